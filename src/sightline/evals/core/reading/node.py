"""A value of a document that knows where it stands."""

from dataclasses import dataclass, field
from typing import TypeAlias

from sightline.catalog.problem import Path, format_path
from sightline.evals.core.place import SuitePlace
from sightline.model.json import Json

Scalar: TypeAlias = str | int | float | bool | None
Content: TypeAlias = "Scalar | list[Node] | dict[str, Node]"

KINDS = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, a list or a mapping. `keys` are the places of a mapping's keys, `path` the way here."""

    value: Content
    place: SuitePlace
    path: Path = ()
    keys: dict[str, SuitePlace] = field(default_factory=dict)

    @property
    def shown_path(self) -> str:
        """The way here, as a person writes it."""
        return format_path(self.path)

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "nothing" if self.value is None else KINDS[type(self.value)]

    @property
    def json(self) -> Json:
        """The value alone."""
        match self.value:
            case dict() as members:
                return {key: node.json for key, node in members.items()}
            case list() as items:
                return [node.json for node in items]
            case scalar:
                return scalar

    @property
    def text(self) -> str | None:
        """The words, if it is text."""
        return self.value if isinstance(self.value, str) else None

    @property
    def items(self) -> "list[Node]":
        """The items of a list; of anything else, none."""
        return self.value if isinstance(self.value, list) else []

    @property
    def members(self) -> "dict[str, Node]":
        """The members of a mapping; of anything else, none."""
        return self.value if isinstance(self.value, dict) else {}

    def get(self, key: str) -> "Node | None":
        """A member that is there and is not null."""
        node = self.members.get(key)
        return None if node is None or node.value is None else node

    def key_place(self, key: str) -> SuitePlace:
        """Where a key stands."""
        return self.keys.get(key, self.place)


def node_of(value: Json, place: SuitePlace, path: Path) -> Node:
    """A value from elsewhere, in this place."""
    match value:
        case dict():
            members = {key: node_of(each, place, (*path, key)) for key, each in value.items()}
            return Node(members, place, path, dict.fromkeys(members, place))
        case list():
            return Node([node_of(each, place, (*path, index)) for index, each in enumerate(value)], place, path)
        case _:
            return Node(value, place, path)
