"""The order in which a chat message holds what it says: reasoning, then words, then calls, whatever came first."""

from typing import Final

from sightline.dialects.openai_chat.names import NAME
from sightline.model.report import Report

THOUGHT, WORDS, CALL = 0, 1, 2
_WHAT: Final = ("order of reasoning and words", "order of words and calls")


class Order:
    """Tell it each part of an answer with its number, in any sequence; it reports those that are moved forward."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._first: dict[int, int] = {}
        self._last: dict[int, tuple[int, str]] = {}

    def note(self, rank: int, number: int, at: str) -> None:
        """A part of this rank, which stands behind all that have a smaller number."""
        if any(other > rank and first < number for other, first in self._first.items()):
            self._lose(rank, at)
        for other, (last, place) in self._last.items():
            if other < rank and last > number:
                self._lose(other, place)
        self._first[rank] = min(number, self._first.get(rank, number))
        self._last[rank] = max((number, at), self._last.get(rank, (number, at)))

    def _lose(self, rank: int, at: str) -> None:
        self._report.lose(at, _WHAT[rank], f"{NAME} holds reasoning, then words, then calls", "content")
