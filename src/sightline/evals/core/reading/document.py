"""Values of a document that know their places, and the problems that are found while documents are read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias, TypeVar

from msgspec import Meta, inspect

from sightline.catalog.problem import Path, format_path, nearest, quote_word
from sightline.catalog.reading import TypedReader, key
from sightline.evals.core.suite import Severity, SuitePlace, SuiteProblem
from sightline.model.json import Json

T = TypeVar("T")
Scalar: TypeAlias = str | int | float | bool | None
Content: TypeAlias = "Scalar | list[Node] | dict[str, Node]"

Text: TypeAlias = Annotated[str, Meta(pattern=r"\S")]
"""Text that is not blank."""
Texts: TypeAlias = Annotated[str | tuple[str, ...], key(hint="Write one text, or a list of texts.")]
"""One text, or a list of them."""
Amount: TypeAlias = Annotated[float, Meta(ge=0)]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]

KINDS = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, a list or a mapping. `keys` are the places of a mapping's keys, `path` is the path of this node."""

    value: Content
    place: SuitePlace
    path: Path = ()
    keys: dict[str, SuitePlace] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The type of the value, in words."""
        return "nothing" if self.value is None else KINDS[type(self.value)]

    @property
    def json(self) -> Json:
        """The value without places."""
        match self.value:
            case dict() as members:
                return {key: node.json for key, node in members.items()}
            case list() as items:
                return [node.json for node in items]
            case scalar:
                return scalar

    @property
    def text(self) -> str | None:
        return self.value if isinstance(self.value, str) else None

    @property
    def items(self) -> "list[Node]":
        """The items of a list; empty for anything else."""
        return self.value if isinstance(self.value, list) else []

    @property
    def members(self) -> "dict[str, Node]":
        """The members of a mapping; empty for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    def get(self, key: str) -> "Node | None":
        """A member that exists and is not null, otherwise None."""
        node = self.members.get(key)
        return None if node is None or node.value is None else node

    def key_place(self, key: str) -> SuitePlace:
        return self.keys.get(key, self.place)


def as_tuple(texts: str | tuple[str, ...]) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else texts


def last_key(path: Path) -> str:
    """The last key of a path, with the item numbers after it: `content[0]` of `tests[2].content[0]`."""
    keys = [index for index, step in enumerate(path) if isinstance(step, str)]
    return format_path(path[keys[-1] :]) if keys else ""


def node_of(value: Json, place: SuitePlace, path: Path) -> Node:
    """A JSON value as a node at this place."""
    match value:
        case dict():
            members = {key: node_of(each, place, (*path, key)) for key, each in value.items()}
            return Node(members, place, path, dict.fromkeys(members, place))
        case list():
            return Node([node_of(each, place, (*path, index)) for index, each in enumerate(value)], place, path)
        case _:
            return Node(value, place, path)


class SuiteFindings:
    """Collects problems. Equal problems are kept once, because the shared parts of a suite are read for every case."""

    def __init__(self) -> None:
        self._found: dict[SuiteProblem, None] = {}

    @property
    def problems(self) -> tuple[SuiteProblem, ...]:
        """All problems, in the order of files and lines."""
        return tuple(sorted(self._found, key=lambda each: (each.place.file, each.place.line, each.place.column)))

    @property
    def has_errors(self) -> bool:
        """Whether an error keeps the whole suite from running."""
        return any(problem.severity == "error" and not problem.case for problem in self._found)

    def add(self, problems: Iterable[SuiteProblem]) -> None:
        """Add problems that were found elsewhere."""
        self._found |= dict.fromkeys(problems)

    def wrong(self, node: Node, message: str, suggestion: str = "", *, severity: Severity = "error") -> None:
        self.wrong_at(node.place, node.path, message, suggestion, severity=severity)

    def odd(self, node: Node, message: str, suggestion: str = "") -> None:
        """Report a warning about this value."""
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
        """Report a problem at this place; with a `case`, only that case cannot be run."""
        problem = SuiteProblem(
            place=place, path=format_path(path), message=message, suggestion=suggestion, severity=severity, case=case
        )
        self._found[problem] = None

    def read(self, node: Node, kind: type[T]) -> T | None:
        """Read the value as this type, and report all of its problems; None if it cannot be read."""
        return _NodeReader(node, self).read(node, kind, node.path)

    def is_mapping(self, node: Node, what: str, suggestion: str = "") -> bool:
        """Whether the value is a mapping; if it is not, that is reported."""
        if isinstance(node.value, dict):
            return True
        self.wrong(node, f"{what} must be a mapping, not {node.kind}", suggestion)
        return False

    def items(self, node: Node, what: str, suggestion: str = "") -> list[Node]:
        """The items of a list; if the value is not a list, that is reported."""
        if not isinstance(node.value, list):
            self.wrong(node, f"{what} must be a list, not {node.kind}", suggestion)
        return node.items

    def check_keys(self, node: Node, known: Sequence[str], what: str) -> None:
        """Report every unknown key. A key that begins with `x-` is the author's own."""
        for name in node.members:
            if name in known or name.startswith("x-"):
                continue
            message = f"{what} has no key {quote_word(name)}"
            self.wrong_at(node.key_place(name), (*node.path, name), message, nearest(name, known))


class _NodeReader(TypedReader):
    """Reads a document by types. Problems get the places of the nodes.

    A struct may have a `TITLE`, its name in messages, and `UNUSED`: hints for keys that other tools read and we do not,
    which are warnings. The hint of the key `*` is for all keys that the struct does not have.
    """

    mapping = "a mapping"
    own_prefix = "x-"

    def __init__(self, root: Node, findings: SuiteFindings) -> None:
        self._root = root
        self._findings = findings

    def content(self, value: Node) -> Content:
        return value.value

    def whole(self, value: Node) -> Json:
        return value.json

    def subject(self, path: Path, kind: inspect.Type) -> str:
        return getattr(getattr(kind, "cls", None), "TITLE", "") or last_key(path)

    def report(self, path: Path, message: str, hint: str, *, is_key: bool = False) -> None:
        self._findings.wrong_at(self._place(path, is_key=is_key), path, message, hint)

    def unknown_key(self, name: str, known: Iterable[str], path: Path, kind: inspect.Type) -> None:
        """Report a key that the struct does not have, as an error, or as a warning if it is only unused here."""
        unused: Mapping[str, str] = getattr(getattr(kind, "cls", None), "UNUSED", {})
        hint = unused.get(name) or unused.get("*")
        if hint is None:
            super().unknown_key(name, known, path, kind)
            return
        message = f"{name} of {self.subject(path, kind)} is not used"
        self._findings.wrong_at(self._place((*path, name)), (*path, name), message, hint, severity="warning")

    def _place(self, path: Path, *, is_key: bool = False) -> SuitePlace:
        node, place = self._root, self._root.place
        for step in path[len(self._root.path) :]:
            below = node.items[step] if isinstance(step, int) else node.members[step]
            place = node.key_place(str(step)) if is_key else below.place
            node = below
        return place
