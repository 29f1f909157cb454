"""Which processes belong to a child that we started: its session, and whoever carries its mark in the environment.

A shell's background jobs change their group, and a daemon leaves its session; the mark stays with both. It can be read
where the system has /proc. Elsewhere the group is all that is known.
"""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "_SIGHTLINE_CHILD"
"""The variable that every child gets, with a value of its own, and passes on to its children."""

_PROC = Path("/proc")
_GONE = ("Z", "X")


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """A child and its descendants. `born` is when it was started, as the system counts; it tells whether its number
    has become another's."""

    leader: int
    mark: str
    born: int

    @classmethod
    def of(cls, leader: int, mark: str) -> "ProcessTree":
        """The kin of a child that was started just now."""
        with suppress(OSError):
            return cls(leader, mark, _Stat.of(_PROC / str(leader)).born)
        return cls(leader, mark, -1)

    def is_left(self) -> bool:
        """Whether any of them is still there."""
        return bool(self.alive()) if _PROC.is_dir() else self._send_to_group(0)

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to all of them; whether there was anybody to send it to."""
        if not _PROC.is_dir():
            return self._send_to_group(number)
        alive = self.alive()
        if self.leader in alive:
            self._send_to_group(number)  # all at once, so that none of them can fork out of the way
        for pid in alive:
            with suppress(ProcessLookupError, PermissionError):
                if self.leader not in alive or os.getpgid(pid) != self.leader:
                    os.kill(pid, number)
        return bool(alive)

    def alive(self) -> list[int]:
        """Those that are left."""
        needle = f"{MARK}={self.mark}".encode()
        session = self.leader if self._has_its_number() else -1
        found: list[int] = []
        for entry in _PROC.iterdir():
            if not entry.name.isdigit():
                continue
            with suppress(OSError):  # it has ended meanwhile, or is somebody else's
                stat = _Stat.of(entry)
                if stat.state not in _GONE and (
                    stat.session == session or needle in (entry / "environ").read_bytes().split(b"\0")
                ):
                    found.append(int(entry.name))
        return found

    def _has_its_number(self) -> bool:
        """Whether the number is the child's. No new process gets one that a session still goes by."""
        try:
            return _Stat.of(_PROC / str(self.leader)).born == self.born
        except OSError:
            return self.born >= 0

    def _send_to_group(self, number: int) -> bool:
        try:
            os.killpg(self.leader, number)
        except (ProcessLookupError, PermissionError):  # macOS says the second of a group of zombies
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Stat:
    """The line that the system has about a process."""

    state: str
    session: int
    born: int

    @classmethod
    def of(cls, entry: Path) -> "_Stat":
        # The second field is the name, in parentheses, and may hold anything; the others are counted from behind it.
        fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        return cls(fields[0].decode(), int(fields[3]), int(fields[19]))
