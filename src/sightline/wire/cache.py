"""A mapping of bounded size that forgets what was not used for longest."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Keeps up to `maxsize` entries; with `weigh`, entries that weigh up to `most_weight` together. `get` and `put`
    count as use; `peek`, `in` and iteration do not."""

    def __init__(self, maxsize: int, *, weigh: Callable[[K, V], int] | None = None, most_weight: int = 0) -> None:
        self.maxsize = maxsize
        self._weigh = weigh or (lambda _key, _value: 0)
        self._most_weight = most_weight
        self._weight = 0
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value and mark it as used; None if there is none."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: K, value: V) -> None:
        """Store the value as the one used last, and evict the least recently used that are too many or too heavy."""
        self.pop(key)
        self._entries[key] = value
        self._weight += self._weigh(key, value)
        while len(self._entries) > self.maxsize or self._weight > self._most_weight:
            self._weight -= self._weigh(*self._entries.popitem(last=False))

    def peek(self, key: K) -> V | None:
        """Return the value without marking it as used; None if there is none."""
        return self._entries.get(key)

    def pop(self, key: K) -> V | None:
        """Remove the entry and return its value; None if there is none."""
        if key not in self._entries:
            return None
        value = self._entries.pop(key)
        self._weight -= self._weigh(key, value)
        return value

    def items(self) -> list[tuple[K, V]]:
        """The entries, least recently used first."""
        return list(self._entries.items())

    def values(self) -> list[V]:
        """The values, least recently used first."""
        return list(self._entries.values())

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._weight = 0

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)
