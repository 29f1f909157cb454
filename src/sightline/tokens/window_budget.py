"""How a model's window is divided, and how much of a history's newest part fits into the room that is left."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sightline.catalog.facts import Facts
from sightline.tokens.account import RateLimits

UNKNOWN_WINDOW = 8192
"""What is assumed of a model of which nothing is known: most have more, few have less."""

_LARGEST_SHARE_OF_A_REPLY = 4
_LARGEST_SHARE_LEARNED = 8


def model_limit(facts: Facts, limits: RateLimits | None = None) -> int:
    """The most that one request can be: the window, or the tokens of a minute where they are fewer.

    `limits` is what the provider reported, which overrides the catalogue.
    """
    per_minute = facts.tpm if limits is None or limits.tpm is None else limits.tpm
    window = facts.context_window or UNKNOWN_WINDOW
    return window if per_minute is None else min(window, per_minute)


def reply_reserve(allowance: int, limit: int, max_tokens: int | None) -> int:
    """What is held back for the reply: what it was limited to, else the allowance, as far as a small window bears it.

    Some providers refuse a prompt that leaves less than the limit which the request itself names.
    """
    return max_tokens if max_tokens is not None else min(allowance, limit // _LARGEST_SHARE_OF_A_REPLY)


def reserve_for_calibration(added: int, limit: int) -> int:
    """What is held back because the provider's past counts were so much higher: no more than a small part of the
    whole, since a lesson can be wrong."""
    return min(added, limit // _LARGEST_SHARE_LEARNED)


@dataclass(frozen=True, slots=True)
class Room:
    """`limit` is the whole. `system` and `tools` are in every request; `user` and `reply` are held back for the next
    prompt and for its answer. These are likely sizes; `margin` is held back because they may be larger. `learned` is
    the part of it that no text accounts for, held back because past counts of the provider were so much higher."""

    limit: int
    system: int = 0
    tools: int = 0
    user: int = 0
    reply: int = 0
    learned: int = 0
    margin: int = 0

    @property
    def usable(self) -> int:
        """What history and prompt can take together."""
        return self.limit - self.system - self.tools - self.reply - self.margin

    @property
    def history(self) -> int:
        """What history can take while the next prompt is not known."""
        return max(0, self.usable - self.user)

    def beside(self, prompt: int) -> int:
        """What history can take beside a prompt of this size."""
        return max(0, self.usable - prompt)

    def can_ever_hold(self, prompt: int) -> bool:
        """Whether the prompt fits where no history is sent and the reply gets what is left. What was only learned
        keeps nothing from being sent: the provider is asked, and says itself what is too much."""
        return prompt + self.system + self.tools + self.margin - self.learned <= self.limit


T = TypeVar("T")


class Boundary(Generic[T]):
    """Things from the oldest to the newest, of which the newest are included until the next one would not fit.

    A thing's cost is asked for when it comes into question and at no other time. The owner reports changes, and the
    answer is found from where it was; only `replace` begins anew, and that costs what fits, not what there is.
    """

    def __init__(self, cost: Callable[[T], int], room: int = 0) -> None:
        self._cost = cost
        self._room = room
        self._items: list[T] = []
        self._start = 0
        self._cost_included = 0

    @property
    def items(self) -> Sequence[T]:
        """All of them."""
        return self._items

    @property
    def start(self) -> int:
        """The place of the oldest one that is included; the length of the list where none does."""
        self._settle()
        return self._start

    @property
    def cost_included(self) -> int:
        """The cost of all that are included."""
        self._settle()
        return self._cost_included

    def replace(self, items: list[T], cost: Callable[[T], int] | None = None) -> None:
        """Another list, or the same one by other costs."""
        self._cost = cost or self._cost
        self._items = items
        self._start = len(items)
        self._cost_included = 0

    def resize(self, room: int) -> None:
        """There is so much room now."""
        self._room = room

    def insert(self, index: int, item: T) -> None:
        """One more, in front of the one at this place."""
        self._items.insert(index, item)
        if index > self._start or index == len(self._items) - 1:
            self._cost_included += self._cost(item)
        else:
            self._start += 1

    def remove(self, index: int) -> None:
        """One less."""
        if index >= self._start:
            self._cost_included -= self._cost(self._items[index])
        else:
            self._start -= 1
        del self._items[index]

    def change(self, index: int, item: T) -> None:
        """Another one in this place."""
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
    """How many of the oldest must go until the rest fits; all of them where nothing helps."""
    total = sum(costs)
    for count, cost in enumerate(costs):
        if total <= room:
            return count
        total -= cost
    return len(costs)
