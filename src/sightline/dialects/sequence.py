"""Events put in an order in which no two parts overlap, for dialects that write one block after another.

Only one choice is kept (the others are a loss), parts are renumbered from 0 in the order in which they are written, and
what arrives for a later part while a tool call is still open waits until that call is complete.
"""

from collections import deque

import msgspec

from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Failed,
    Finished,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.report import Report

PartEvent = (
    TextReceived
    | RefusalReceived
    | ThinkingReceived
    | SignatureReceived
    | ToolCallBegun
    | ArgumentsReceived
    | ToolCallCompleted
    | CitationReceived
    | PartReceived
)
_PART_EVENTS = PartEvent.__args__


class Sequencer:
    """Feed it events; it gives them back without overlap."""

    def __init__(self, report: Report, dialect: str) -> None:
        self._report = report
        self._dialect = dialect
        self._open_call: int | None = None
        self._current: int | None = None
        self._left: set[int] = set()
        self._block = -1
        self._waiting: deque[PartEvent] = deque()

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """The events that can be written now."""
        if getattr(event, "choice", 0):
            if isinstance(event, Finished):
                place = event.at.rpartition("/")[0]
                self._report.lose(place, "another choice", f"{self._dialect} has one choice in a reply", "content")
            return []
        if isinstance(event, CitationReceived) and event.part in self._left:
            why = f"{self._dialect} has written the text that it belongs to"
            self._report.lose(event.citation.at, "a citation that came late", why, "option")
            return []
        if isinstance(event, _PART_EVENTS):
            if self._open_call is not None and event.part != self._open_call:
                self._waiting.append(event)
                return []
            return [self._renumber(event), *self._release()]
        if isinstance(event, (Finished, Failed)):
            return [*self._flush(), event]
        return [event]

    def _renumber(self, event: PartEvent) -> StreamEvent:
        if event.part != self._current:
            if self._current is not None:
                self._left.add(self._current)
            self._left.discard(event.part)
            self._current = event.part
            self._block += 1
        if isinstance(event, ToolCallBegun):
            self._open_call = event.part
        elif isinstance(event, ToolCallCompleted):
            self._open_call = None
        return msgspec.structs.replace(event, part=self._block)

    def _release(self) -> list[StreamEvent]:
        """What has waited and need wait no longer, part by part."""
        out: list[StreamEvent] = []
        while self._open_call is None and self._waiting:
            chosen = self._waiting[0].part
            still: deque[PartEvent] = deque()
            for event in self._waiting:
                if event.part == chosen:
                    out.append(self._renumber(event))
                else:
                    still.append(event)
            self._waiting = still
        return out

    def _flush(self) -> list[StreamEvent]:
        """Everything that waits, when no call will be completed any more."""
        out: list[StreamEvent] = []
        while self._open_call is not None or self._waiting:
            self._open_call = None
            out.extend(self._release())
        return out
