"""A grader's configuration, read field by field; everything that is wrong is a problem with its place and path."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from sightline.catalog.problem import likely, nearest
from sightline.evals.core.graders.finding import Run
from sightline.evals.core.place import Severity, SuitePlace, SuiteProblem
from sightline.model.json import Json, JsonObject

Reader: TypeAlias = "Callable[[Fields], Run]"
Readers: TypeAlias = Mapping[str, Reader]


class Fields:
    """The fields of one object. `readers` is the table of all graders, for those that hold others.

    What is asked for is thereby known; `close` tells of every other field.
    """

    def __init__(self, config: Mapping[str, Json], place: SuitePlace, path: str, readers: Readers) -> None:
        self.place = place
        self.path = path
        self.readers = readers
        self.problems: list[SuiteProblem] = []
        self._config = config
        self._known: list[str] = []

    @property
    def is_sound(self) -> bool:
        """Whether nothing keeps the grader from being run."""
        return all(problem.severity != "error" for problem in self.problems)

    def tell(self, field: str, message: str, suggestion: str = "", severity: Severity = "error") -> None:
        """A problem at a field; an empty one is the object itself."""
        path = f"{self.path}.{field}" if field else self.path
        self.problems.append(
            SuiteProblem(place=self.place, path=path, message=message, suggestion=suggestion, severity=severity)
        )

    def has(self, *names: str) -> bool:
        """Whether any of these is given."""
        return any(name in self._config for name in names)

    def raw(self, *names: str) -> Json:
        """The value of the first of these names that is given, None where none is."""
        self._known += names
        return next((self._config[name] for name in names if name in self._config), None)

    def text(self, *names: str, needed: bool = False, why: str = "", blank: bool = False) -> str:
        """A text; an empty one is none, and neither is a `blank` one unless it may be."""
        value = self.raw(*names)
        if isinstance(value, str) and (value.strip() or (blank and value)):
            return value
        if value is not None:
            self.tell(names[0], f"a text is expected, not {describe_value(value)}", why or "Write it in quotes.")
        elif needed:
            self.tell(names[0], f"{names[0]} is missing", why)
        return ""

    def texts(self, *names: str, needed: bool = False) -> tuple[str, ...]:
        """A list of texts with something in it."""
        value = self.raw(*names)
        if value is None:
            if needed:
                self.tell(names[0], f"{names[0]} is missing", "Give a list of texts.")
            return ()
        if isinstance(value, list) and value and all(isinstance(each, str) and each for each in value):
            return tuple(str(each) for each in value)
        self.tell(names[0], f"a list of texts is expected, not {describe_value(value)}")
        return ()

    def number(
        self, *names: str, least: float = 0.0, most: float = math.inf, above: bool = False, needed: bool = False
    ) -> float | None:
        """A number in a range, to which the least itself does not belong where it is to be `above` it."""
        value = self.raw(*names)
        if value is None:
            if needed:
                self.tell(names[0], f"{names[0]} is missing", "Give a number.")
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            self.tell(names[0], f"a number is expected, not {describe_value(value)}")
            return None
        if not least <= value <= most or (above and value == least):
            self.tell(names[0], f"{value} is not {_range(least, most, above=above)}")
            return None
        return float(value)

    def count(self, *names: str, most: float = math.inf, least: int = 0) -> int | None:
        """A whole number."""
        value = self.number(*names, least=least, most=most)
        if value is None or value.is_integer():
            return None if value is None else int(value)
        self.tell(names[0], f"a whole number is expected, not {value}")
        return None

    def flag(self, name: str, *, otherwise: bool = False) -> bool:
        """True or false."""
        value = self.raw(name)
        if value is None or isinstance(value, bool):
            return otherwise if value is None else value
        self.tell(name, f"true or false is expected, not {describe_value(value)}")
        return otherwise

    def word(self, *names: str, words: Iterable[str], otherwise: str = "") -> str:
        """One of these words; without another it has to be given."""
        known = list(words)
        value = self.raw(*names)
        if value is None:
            if not otherwise:
                self.tell(names[0], f"{names[0]} is missing", f"One of: {', '.join(known)}.")
            return otherwise
        if isinstance(value, str) and value in known:
            return value
        self.tell(names[0], f"{describe_value(value)} is not known here", nearest(str(value), known))
        return otherwise

    def mapping(self, *names: str) -> JsonObject:
        """An object; an empty one where there is none."""
        value = self.raw(*names)
        if isinstance(value, dict):
            return value
        if value is not None:
            self.tell(names[0], f"an object is expected, not {describe_value(value)}")
        return {}

    def items(self, *names: str, needed: bool = False) -> list[Json]:
        """A list; an empty one where there is none."""
        value = self.raw(*names)
        if isinstance(value, list):
            return value
        if value is not None:
            self.tell(names[0], f"a list is expected, not {describe_value(value)}")
        elif needed:
            self.tell(names[0], f"{names[0]} is missing", "Give a list.")
        return []

    def inner(self, value: JsonObject, field: str) -> "Fields":
        """The fields of an object in this one; its problems are told here once it is closed."""
        fields = Fields(value, self.place, f"{self.path}.{field}", self.readers)
        fields.problems = self.problems
        return fields

    def close(self) -> None:
        """Tell of the fields that nobody asked for."""
        for name in self._unknown():
            self.tell(name, f"there is no field {name!r} here", nearest(name, dict.fromkeys(self._known)))

    def rest(self) -> JsonObject:
        """The fields that nobody asked for, for whoever passes them on; one that looks like a slip is told of."""
        for name in self._unknown():
            if hint := likely(name, self._known, 0.8):
                self.tell(name, f"{name!r} is passed on as it is", hint, "warning")
        rest = {name: self._config[name] for name in self._unknown()}
        self._known += rest
        return rest

    def _unknown(self) -> list[str]:
        return [name for name in self._config if name not in self._known and not name.startswith("x-")]


def describe_value(value: Json) -> str:
    """A value in few words."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "an object"
        case list():
            return "a list" if value else "an empty list"
        case str():
            return repr(value if len(value) <= 40 else f"{value[:40]}…") if value.strip() else "an empty text"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _range(least: float, most: float, *, above: bool) -> str:
    low = f"above {least:g}" if above else f"at least {least:g}"
    return low if most == math.inf else f"{low} and at most {most:g}"
