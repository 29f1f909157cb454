"""Finds the handler of a path by patterns such as `exchanges/*/body`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sightline.web.asgi import Receive

ANY = "*"


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One API call. `names` are the parts of its path that match a `*` of the pattern, as sent."""

    names: tuple[str, ...]
    query: str
    receive: Receive

    @property
    def name(self) -> str:
        return self.names[0]


Handler: TypeAlias = Callable[[ApiCall], Awaitable[object]]
"""Returns a value that is written as JSON, or a whole response."""

Calls: TypeAlias = Mapping[str, Mapping[str, Handler]]
"""Handlers by pattern, as in `exchanges/*/body`, and by method."""


@dataclass(slots=True)
class _Node:
    methods: Mapping[str, Handler] | None = None
    below: "dict[str, _Node]" = field(default_factory=dict)


class Routes:
    """Finds the handlers of a path. A literal name is preferred to a `*`."""

    def __init__(self, calls: Calls) -> None:
        self._root = _Node()
        for pattern, methods in calls.items():
            node = self._root
            for name in pattern.split("/"):
                node = node.below.setdefault(name, _Node())
            node.methods = methods

    def find(self, path: str) -> tuple[Mapping[str, Handler], tuple[str, ...]] | None:
        """The methods of a path, and the names that match its `*`; None if no pattern matches."""
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
