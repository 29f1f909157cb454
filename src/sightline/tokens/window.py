"""How much was used in the last while: counts in slots of time, so that memory stays bounded however much is sent."""

from collections import deque
from dataclasses import dataclass
from typing import Literal, TypeAlias

Metric: TypeAlias = Literal["requests", "tokens"]
Count: TypeAlias = tuple[float, int, int]


@dataclass(slots=True)
class Slot:
    """What was used in a short time that began at `start`, and how much of it somebody else keeps already."""

    start: float
    requests: int
    tokens: int
    kept_requests: int = 0
    kept_tokens: int = 0

    def count(self, metric: Metric) -> int:
        """One of its two counts."""
        return self.requests if metric == "requests" else self.tokens


class SlidingWindow:
    """Requests and tokens of the last `span` seconds, known to `step` seconds.

    What is in doubt counts as still inside: a slot leaves when the last of it has. Times must not go back.
    """

    def __init__(self, span: float, step: float) -> None:
        self._span = span
        self._step = step
        self._slots: deque[Slot] = deque()
        self._requests = 0
        self._tokens = 0

    def add(self, at: float, requests: int, tokens: int) -> None:
        """Count something in."""
        self._expire(at)
        if not self._slots or at >= self._slots[-1].start + self._step:
            self._slots.append(Slot(at, 0, 0))
        self._change(self._slots[-1], requests, tokens)

    def correct(self, at: float, tokens: int, *, requests: int = 0) -> None:
        """Change what was counted at that time by so much; nothing where that has left the window."""
        for slot in reversed(self._slots):
            if slot.start <= at:
                if at < slot.start + self._step:
                    self._change(slot, requests, tokens)
                return

    def usage(self, at: float, metric: Metric) -> int:
        """What was used in the window that ends now."""
        self._expire(at)
        return self._requests if metric == "requests" else self._tokens

    def wait(self, at: float, metric: Metric, need: int, limit: int) -> float:
        """The seconds until `need` more fit below the limit; what is larger than the limit waits for all to leave."""
        excess = self.usage(at, metric) + need - limit
        seconds = 0.0
        for slot in self._slots:
            if excess <= 0:
                break
            excess -= slot.count(metric)
            seconds = self._end(slot) - at
        return seconds

    def since(self, at: float) -> tuple[int, int]:
        """Requests and tokens of the slots that began after this."""
        late = [slot for slot in self._slots if slot.start > at]
        return sum(slot.requests for slot in late), sum(slot.tokens for slot in late)

    def news(self) -> list[Count]:
        """What has changed since it was kept: when, by how many requests, by how many tokens."""
        changes = ((s.start, s.requests - s.kept_requests, s.tokens - s.kept_tokens) for s in self._slots)
        return [change for change in changes if change[1] or change[2]]

    def mark_saved(self) -> None:
        """All of it is kept now."""
        for slot in self._slots:
            slot.kept_requests, slot.kept_tokens = slot.requests, slot.tokens

    def merge(self, news: list[Count], ahead: float) -> None:
        """Count in what another window has counted; its times are so much behind ours."""
        merged: list[Slot] = []
        moved = [(start + ahead, requests, tokens) for start, requests, tokens in news]
        for start, requests, tokens in sorted([*self.slots(), *moved]):
            if not merged or start >= merged[-1].start + self._step:
                merged.append(Slot(start, 0, 0))
            merged[-1].requests += requests
            merged[-1].tokens += tokens
        self._slots.clear()
        self._requests = self._tokens = 0
        for slot in merged:
            self._slots.append(Slot(slot.start, 0, 0))
            self._change(self._slots[-1], slot.requests, slot.tokens)

    def slots(self) -> list[Count]:
        """What is counted, to be kept."""
        return [(slot.start, slot.requests, slot.tokens) for slot in self._slots]

    def _change(self, slot: Slot, requests: int, tokens: int) -> None:
        requests, tokens = max(requests, -slot.requests), max(tokens, -slot.tokens)
        slot.requests += requests
        slot.tokens += tokens
        self._requests += requests
        self._tokens += tokens

    def _end(self, slot: Slot) -> float:
        return slot.start + self._step + self._span

    def _expire(self, at: float) -> None:
        while self._slots and self._end(self._slots[0]) <= at:
            gone = self._slots.popleft()
            self._requests -= gone.requests
            self._tokens -= gone.tokens
