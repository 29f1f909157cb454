"""How much was used in the last while: counts in slots of time, so that memory stays bounded however much is sent."""

from collections import deque
from dataclasses import dataclass
from typing import Literal, TypeAlias

Metric: TypeAlias = Literal["requests", "tokens"]


@dataclass(slots=True)
class Slot:
    """What was used in a short time that began at `start`."""

    start: float
    requests: int
    tokens: int

    def count(self, metric: Metric) -> int:
        """One of its two counts."""
        return self.requests if metric == "requests" else self.tokens


class SlidingWindow:
    """Requests and tokens of the last `span` seconds, known to `step` seconds.

    What is in doubt counts as still inside: a slot leaves when the last of it has. Times must not go back; whoever
    holds the window says so with `shifted` when the clock was set.
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

    def correct(self, at: float, tokens: int) -> None:
        """Change what was counted at that time by so many tokens; nothing where that has left the window."""
        for slot in reversed(self._slots):
            if slot.start <= at:
                if at < slot.start + self._step:
                    self._change(slot, 0, max(tokens, -slot.tokens))
                return

    def used(self, at: float, metric: Metric) -> int:
        """What was used in the window that ends now."""
        self._expire(at)
        return self._requests if metric == "requests" else self._tokens

    def wait(self, at: float, metric: Metric, need: int, limit: int) -> float:
        """The seconds until `need` more fit below the limit; what is larger than the limit waits for all to leave."""
        excess = self.used(at, metric) + need - limit
        seconds = 0.0
        for slot in self._slots:
            if excess <= 0:
                break
            excess -= slot.count(metric)
            seconds = self._end(slot) - at
        return seconds

    def shifted(self, seconds: float) -> None:
        """The clock went back by so much: what was counted ages from where it was."""
        for slot in self._slots:
            slot.start -= seconds

    def slots(self) -> list[tuple[float, int, int]]:
        """What is counted, to be kept."""
        return [(slot.start, slot.requests, slot.tokens) for slot in self._slots]

    def _change(self, slot: Slot, requests: int, tokens: int) -> None:
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
