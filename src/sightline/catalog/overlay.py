"""Several trees laid over each other, key by key, where each value still knows who set it."""

from collections.abc import Callable
from typing import Protocol

from sightline.catalog.problem import ConfigLocation, Path
from sightline.model.json import JsonObject


class ValueOrigin(Protocol):
    """Who set a value: a document, or a variable of the environment."""

    @property
    def builtin(self) -> bool:
        """Whether it is one of Sightline's own tables."""
        ...

    def place(self, path: Path) -> ConfigLocation:
        """Where exactly the value at this path stands."""
        ...


class Overlay:
    """The trees so far. Tables are merged, anything else is replaced by what is laid over it."""

    def __init__(self) -> None:
        self.tree: JsonObject = {}
        self._origins: dict[Path, ValueOrigin] = {}

    def lay(self, tree: JsonObject, origin: ValueOrigin) -> None:
        """Put a tree over what is there."""
        self._lay(self.tree, tree, origin, (), lambda _: False)

    def lay_below_the_users(self, table: JsonObject, *path: str) -> None:
        """Put a table over what is built in at `path`, and below what the user has set there."""
        for step in reversed(path):
            table = {step: table}
        self._lay(self.tree, table, self.origin(path), (), self.is_users)

    def is_users(self, path: Path) -> bool:
        """Whether the user has set this very value."""
        return path in self._origins and not self._origins[path].builtin

    def origin(self, path: Path) -> ValueOrigin:
        """Who set the value at this path, or the nearest table around it."""
        while path not in self._origins:
            path = path[:-1]
        return self._origins[path]

    def place(self, path: Path) -> ConfigLocation:
        """Where the value at this path was set."""
        return self.origin(path).place(path)

    def _lay(
        self, under: JsonObject, over: JsonObject, origin: ValueOrigin, path: Path, is_kept: Callable[[Path], bool]
    ) -> None:
        if not self.is_users(path):
            self._origins[path] = origin
        for name, value in over.items():
            here = (*path, name)
            below = under.get(name)
            if isinstance(value, dict) and (below is None or isinstance(below, dict)):
                # A copy, so that what is laid over it later does not reach into the document it came from.
                under[name] = table = dict(below or {})
                self._lay(table, value, origin, here, is_kept)
            elif not is_kept(here):
                under[name] = value
                self._origins[here] = origin
