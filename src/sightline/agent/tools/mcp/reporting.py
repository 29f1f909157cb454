"""How far a call is, in words for a person: short, one line, and not more often than can be read."""

import asyncio

from sightline.agent.tools.tools import Progress

LONGEST = 200
SPACING = 0.1
"""Seconds between two reports of one call; what comes sooner is left out."""


class Reporting:
    """Hands on the progress of one call until it ends."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._next = 0.0
        self._has_ended = False

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """What the server told."""
        now = asyncio.get_running_loop().time()
        if self._has_ended or now < self._next:
            return
        self._next = now + SPACING
        self._progress(words(progress, total, message))

    def end(self) -> None:
        """The call has ended: what comes late is not told."""
        self._has_ended = True


def words(progress: float, total: float | None, message: str | None) -> str:
    """The server's words and numbers on one line. Nothing in it can move a terminal's cursor."""
    number = f"{progress:g} of {total:g}" if total else f"{progress:g}"
    text = "".join(letter if letter.isprintable() else " " for letter in (message or "")[: 4 * LONGEST])
    text = " ".join(text.split())[:LONGEST]
    return f"{text} ({number})" if text else number
