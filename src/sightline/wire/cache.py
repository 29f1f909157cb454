"""A mapping of bounded size that evicts the least recently used entry."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Keeps up to `maxsize` entries. `get` and `put` count as use; `peek`, `in` and iteration do not."""

    def __init__(self, maxsize: int) -> None:
        self.maxsize = maxsize
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value and mark it as used; None if there is none."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Store the value as the most recently used, and evict the least recently used entry if there are too many."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self.maxsize:
            self._entries.popitem(last=False)

    def peek(self, key: K) -> V | None:
        """Return the value without marking it as used; None if there is none."""
        return self._entries.get(key)

    def pop(self, key: K) -> V | None:
        """Remove the entry and return its value; None if there is none."""
        return self._entries.pop(key, None)

    def items(self) -> list[tuple[K, V]]:
        """The entries, least recently used first."""
        return list(self._entries.items())

    def values(self) -> list[V]:
        """The values, least recently used first."""
        return list(self._entries.values())

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)
