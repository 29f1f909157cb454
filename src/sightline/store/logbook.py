"""Logs beside the record: lines that are only ever added, from which whoever wrote them knows again where it stood.

A chat is such a log, and a run of tools. A line is for its writer to understand, and holds no secrets, because whoever
adds it has taken them out before. Retention leaves logs alone.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from sightline.errors import Code, Fault


class Line(msgspec.Struct, frozen=True):
    """Line number `n` of a log, from 1, and the time of day at which it was added."""

    n: int
    at: float
    data: bytes


class Log(msgspec.Struct, frozen=True):
    """A log: how many lines it has, and when the first and the latest of them were added."""

    name: str
    lines: int
    began: float
    latest: float


class Logbook(Protocol):
    """The logs of one data folder, or of one database that several share."""

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        """Add these lines behind line number `after`; once it returns, the end of this process cannot lose them.

        A log that has another number of lines by now is left as it is, and the fault has the status 409.
        """
        ...

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        """The lines behind line number `after`, in their order; none if there is no such log."""
        ...

    async def logs(self, prefix: str = "") -> list[Log]:
        """The logs whose names begin so, the one that was added to latest first."""
        ...

    async def forget(self, log: str) -> None:
        """Take a log away with all its lines."""
        ...


def overtaken(log: str) -> Fault:
    """The fault of one who did not know all lines of a log."""
    hint = "Read what was added there meanwhile, and try again."
    return Fault(Code.USAGE, f"the log {log!r} was changed by another process", hint=hint, status=409)
