"""The problems that come up while a suite is read, and the questions about values that lead to them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from sightline.catalog.problem import Path, format_path, nearest, quote_word
from sightline.evals.core.place import Severity, SuitePlace, SuiteProblem
from sightline.evals.core.reading.node import Node


class SuiteFindings:
    """Collects problems. The same one is kept once, for what a suite says once is read for every case."""

    def __init__(self) -> None:
        self._found: dict[SuiteProblem, None] = {}

    @property
    def problems(self) -> tuple[SuiteProblem, ...]:
        """All of them, in the order of the files and of the lines."""
        return tuple(sorted(self._found, key=lambda each: (each.place.file, each.place.line, each.place.column)))

    @property
    def has_errors(self) -> bool:
        """Whether something keeps the whole suite from running."""
        return any(problem.severity == "error" and not problem.case for problem in self._found)

    def add(self, problems: Iterable[SuiteProblem], path: Path = ()) -> None:
        """Take problems that were found elsewhere; one that does not know the way there is told to be on this one."""
        for problem in problems:
            self._found[problem if problem.path else msgspec.structs.replace(problem, path=format_path(path))] = None

    def wrong(self, node: Node, message: str, suggestion: str = "", *, severity: Severity = "error") -> None:
        """Something is wrong with this value."""
        self.wrong_at(node.place, node.path, message, suggestion, severity=severity)

    def odd(self, node: Node, message: str, suggestion: str = "") -> None:
        """A person should know something about this value."""
        self.wrong(node, message, suggestion, severity="warning")

    def wrong_at(
        self,
        place: SuitePlace,
        path: Path,
        message: str,
        suggestion: str = "",
        *,
        severity: Severity = "error",
        case: str = "",
    ) -> None:
        """Something is wrong at this place; with a `case`, only that one cannot be run."""
        problem = SuiteProblem(
            place=place, path=format_path(path), message=message, suggestion=suggestion, severity=severity, case=case
        )
        self._found[problem] = None

    def is_mapping(self, node: Node, what: str, suggestion: str = "") -> bool:
        """Whether it is a mapping; if it is not, that is told."""
        if isinstance(node.value, dict):
            return True
        self.wrong(node, f"{what} has to be a mapping, and this is {node.kind}", suggestion)
        return False

    def items(self, node: Node, what: str, suggestion: str = "") -> list[Node]:
        """The items of a list; if it is none, that is told."""
        if not isinstance(node.value, list):
            self.wrong(node, f"{what} has to be a list, and this is {node.kind}", suggestion)
        return node.items

    def check_keys(self, node: Node, known: Sequence[str], what: str, hints: Mapping[str, str] | None = None) -> None:
        """Tell of every key that nobody reads. One that begins with `x-` is the author's own."""
        for key in node.members:
            if key in known or key.startswith("x-"):
                continue
            hint = (hints or {}).get(key) or nearest(key, known)
            self.wrong_at(node.key_place(key), (*node.path, key), f"{what} has no key {quote_word(key)}", hint)

    def text(self, owner: Node, key: str) -> str:
        """A member that is text; empty where there is none. A number is not taken for text, for it may have lost its
        spelling (1.10 is 1.1)."""
        node = owner.get(key)
        if node is None:
            return ""
        if node.text is None:
            self.wrong(node, f"{key} has to be text, and this is {node.kind}", "Put it in quotes.")
        return node.text or ""

    def texts(self, owner: Node, key: str) -> tuple[str, ...]:
        """A member that is a list of texts, or one text."""
        node = owner.get(key)
        if node is None:
            return ()
        if node.text is not None:
            return (node.text,)
        found: list[str] = []
        for item in self.items(node, key, "Write one text, or a list of texts."):
            if item.text is None:
                self.wrong(item, f"{key} is a list of texts, and this is {item.kind}", "Put it in quotes.")
            else:
                found.append(item.text)
        return tuple(found)

    def flag(self, owner: Node, key: str) -> bool | None:
        """A member that is true or false."""
        node = owner.get(key)
        if node is None:
            return None
        if isinstance(node.value, bool):
            return node.value
        self.wrong(node, f"{key} has to be true or false, and this is {node.kind}", "Write true or false.")
        return None

    def number(
        self, owner: Node, key: str, *, least: float, most: float | None = None, is_whole: bool = False
    ) -> float | None:
        """A member that is a number within its bounds."""
        node = owner.get(key)
        if node is None:
            return None
        value = node.value
        kind = "a whole number" if is_whole else "a number"
        bounds = f"from {least:g} to {most:g}" if most is not None else f"of at least {least:g}"
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(value, int | float) and is_number and not (is_whole and isinstance(value, float)):
            if least <= value and (most is None or value <= most):
                return value
            self.wrong(node, f"{key} has to be {kind} {bounds}, and this is {value:g}")
            return None
        self.wrong(node, f"{key} has to be {kind} {bounds}", f"This is {node.kind}.")
        return None

    def choice(self, owner: Node, key: str, among: Sequence[str]) -> str:
        """A member that is one of a few words; empty where there is none."""
        node = owner.get(key)
        if node is None:
            return ""
        if node.text in among:
            return node.text or ""
        written = "" if node.text is None else node.text
        self.wrong(node, f"{key} has to be one of {', '.join(among)}", nearest(written, among) if written else "")
        return ""
