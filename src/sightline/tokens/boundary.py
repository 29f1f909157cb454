"""How much of a list's newest part fits into some room, kept up to date without looking at all of it."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Boundary(Generic[T]):
    """Things from the oldest to the newest, of which the newest go along until the next one would be too much.

    A thing's cost is asked for when it comes into question and at no other time. What changes is told, and the answer
    is found from where it was; only `replace` begins anew, and that costs what fits, not what there is.
    """

    def __init__(self, cost: Callable[[T], int], room: int = 0) -> None:
        self._cost = cost
        self._room = room
        self._items: list[T] = []
        self._start = 0
        self._taken = 0

    @property
    def items(self) -> Sequence[T]:
        """All of them."""
        return self._items

    @property
    def start(self) -> int:
        """The place of the oldest one that goes along; the length of the list where none does."""
        self._settle()
        return self._start

    @property
    def taken(self) -> int:
        """The cost of all that go along."""
        self._settle()
        return self._taken

    def replace(self, items: list[T], cost: Callable[[T], int] | None = None) -> None:
        """Another list, or the same one by other costs."""
        self._cost = cost or self._cost
        self._items = items
        self._start = len(items)
        self._taken = 0

    def resize(self, room: int) -> None:
        """There is so much room now."""
        self._room = room

    def insert(self, index: int, item: T) -> None:
        """One more, in front of the one at this place."""
        self._items.insert(index, item)
        if index > self._start or index == len(self._items) - 1:
            self._taken += self._cost(item)
        else:
            self._start += 1

    def remove(self, index: int) -> None:
        """One less."""
        if index >= self._start:
            self._taken -= self._cost(self._items[index])
        else:
            self._start -= 1
        del self._items[index]

    def change(self, index: int, item: T) -> None:
        """Another one in this place."""
        if index >= self._start:
            self._taken += self._cost(item) - self._cost(self._items[index])
        self._items[index] = item

    def _settle(self) -> None:
        while self._taken > self._room and self._start < len(self._items):
            self._taken -= self._cost(self._items[self._start])
            self._start += 1
        while self._start and self._taken + (cost := self._cost(self._items[self._start - 1])) <= self._room:
            self._taken += cost
            self._start -= 1


def count_to_drop(costs: Sequence[int], room: int) -> int:
    """How many of the oldest must go until the rest fits; all of them where nothing helps."""
    total = sum(costs)
    for count, cost in enumerate(costs):
        if total <= room:
            return count
        total -= cost
    return len(costs)
