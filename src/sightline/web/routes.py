"""Which call of the API a path means: patterns of names, in which a `*` stands for any one."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sightline.web.asgi import Receive

ANY = "*"


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request. `names` are what stands in its path for each `*` of the pattern, as it was written."""

    names: tuple[str, ...]
    query: str
    receive: Receive

    @property
    def name(self) -> str:
        """The first of them."""
        return self.names[0]


Handler: TypeAlias = Callable[[ApiCall], Awaitable[object]]
"""Answers with a value to be written as JSON, or with a whole answer."""

Calls: TypeAlias = Mapping[str, Mapping[str, Handler]]
"""By pattern, as in `exchanges/*/body`, and by method."""


@dataclass(slots=True)
class _Node:
    methods: Mapping[str, Handler] | None = None
    below: "dict[str, _Node]" = field(default_factory=dict)


class Routes:
    """Finds the calls of a path. A name that a pattern has goes before a `*`."""

    def __init__(self, calls: Calls) -> None:
        self._root = _Node()
        for pattern, methods in calls.items():
            node = self._root
            for name in pattern.split("/"):
                node = node.below.setdefault(name, _Node())
            node.methods = methods

    def find(self, path: str) -> tuple[Mapping[str, Handler], tuple[str, ...]] | None:
        """The methods of a path, and what its `*` stand for; None where nothing is there."""
        node, names = self._root, list[str]()
        for name in path.split("/"):
            found = node.below.get(name) if name != ANY else None
            if found is None:
                found = node.below.get(ANY)
                names.append(name)
            if found is None:
                return None
            node = found
        return None if node.methods is None else (node.methods, tuple(names))
