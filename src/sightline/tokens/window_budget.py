"""How a model's context window is divided, and how much of the newest history fits into the room that is left."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sightline.catalog.facts import Facts
from sightline.tokens.account import RateLimits

UNKNOWN_WINDOW = 8192
"""The window that is assumed for an unknown model: most have more, few have less."""

_LARGEST_SHARE_OF_A_REPLY = 4
_LARGEST_SHARE_LEARNED = 8


def model_limit(facts: Facts, limits: RateLimits | None = None) -> int:
    """The largest size of one request: the context window, or the tokens per minute if they are fewer.

    `limits` are the limits that the provider reported, which override the catalogue.
    """
    per_minute = facts.tpm if limits is None or limits.tpm is None else limits.tpm
    window = facts.context_window or UNKNOWN_WINDOW
    return window if per_minute is None else min(window, per_minute)


def reply_reserve(allowance: int, limit: int, max_tokens: int | None) -> int:
    """The tokens reserved for the reply: `max_tokens` of the request, or the allowance, limited to a share of a small
    window.

    Some providers reject a prompt that leaves less room than the limit in the request itself.
    """
    return max_tokens if max_tokens is not None else min(allowance, limit // _LARGEST_SHARE_OF_A_REPLY)


def reserve_for_calibration(added: int, limit: int) -> int:
    """The tokens reserved because the provider's past counts were higher by `added`: at most a small part of the whole,
    since a learned correction can be wrong."""
    return min(added, limit // _LARGEST_SHARE_LEARNED)


@dataclass(frozen=True, slots=True)
class Room:
    """`limit` is the whole. `system` and `tools` are in every request; `user` and `reply` are reserved for the next
    prompt and its answer. These are likely sizes; `margin` is reserved because they may be larger. `learned` is the
    part of the margin that no text accounts for, reserved because the provider's past counts were higher."""

    limit: int
    system: int = 0
    tools: int = 0
    user: int = 0
    reply: int = 0
    learned: int = 0
    margin: int = 0

    @property
    def usable(self) -> int:
        """The room for history and prompt together."""
        return self.limit - self.system - self.tools - self.reply - self.margin

    @property
    def history(self) -> int:
        """The room for history while the next prompt is unknown."""
        return max(0, self.usable - self.user)

    def beside(self, prompt: int) -> int:
        """The room for history beside a prompt of this size."""
        return max(0, self.usable - prompt)

    def can_ever_hold(self, prompt: int) -> bool:
        """Whether the prompt fits if no history is sent and the reply gets what is left. The `learned` part does not
        keep a prompt from being sent: the provider itself rejects what is too large."""
        return prompt + self.system + self.tools + self.margin - self.learned <= self.limit


T = TypeVar("T")


class Boundary(Generic[T]):
    """Items from the oldest to the newest, of which the newest are included until the next one would not fit.

    The cost of an item is computed only when it is considered. The owner reports changes, and the boundary is moved
    from where it was; only `replace` starts over, and its cost depends on what fits, not on the number of items.
    """

    def __init__(self, cost: Callable[[T], int], room: int = 0) -> None:
        self._cost = cost
        self._room = room
        self._items: list[T] = []
        self._start = 0
        self._cost_included = 0

    @property
    def items(self) -> Sequence[T]:
        """All items."""
        return self._items

    @property
    def start(self) -> int:
        """The index of the oldest item that is included; the number of items if none is."""
        self._settle()
        return self._start

    @property
    def cost_included(self) -> int:
        """The cost of all included items."""
        self._settle()
        return self._cost_included

    def replace(self, items: list[T], cost: Callable[[T], int] | None = None) -> None:
        """Use another list, or the same list with other costs."""
        self._cost = cost or self._cost
        self._items = items
        self._start = len(items)
        self._cost_included = 0

    def resize(self, room: int) -> None:
        """Set the room."""
        self._room = room

    def insert(self, index: int, item: T) -> None:
        """Insert an item before the one at this index."""
        self._items.insert(index, item)
        if index > self._start or index == len(self._items) - 1:
            self._cost_included += self._cost(item)
        else:
            self._start += 1

    def remove(self, index: int) -> None:
        """Remove the item at this index."""
        if index >= self._start:
            self._cost_included -= self._cost(self._items[index])
        else:
            self._start -= 1
        del self._items[index]

    def change(self, index: int, item: T) -> None:
        """Replace the item at this index."""
        if index >= self._start:
            self._cost_included += self._cost(item) - self._cost(self._items[index])
        self._items[index] = item

    def _settle(self) -> None:
        while self._cost_included > self._room and self._start < len(self._items):
            self._cost_included -= self._cost(self._items[self._start])
            self._start += 1
        while self._start and self._cost_included + (cost := self._cost(self._items[self._start - 1])) <= self._room:
            self._cost_included += cost
            self._start -= 1


def count_to_drop(costs: Sequence[int], room: int) -> int:
    """How many of the oldest must be dropped until the rest fits; all of them if nothing fits."""
    total = sum(costs)
    for count, cost in enumerate(costs):
        if total <= room:
            return count
        total -= cost
    return len(costs)
