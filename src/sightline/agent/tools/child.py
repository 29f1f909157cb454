"""One child process that leads a session of its own, so that it can be ended together with all that it started."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeAlias, cast

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


PATIENCE = 2.0
"""Seconds that a child has to end when it is asked to, and that its descendants have to vanish when they are killed."""

_LOOK_AGAIN = 0.01
_LAST_WORDS = 0.2
_NUMBERS = count(1)

Heard: TypeAlias = Callable[[int, bytes], None]
"""Is told what the child writes: the number of the pipe (1 or 2), and the bytes."""


class Child(asyncio.SubprocessProtocol):
    """A process that was started. `exited` is set when it has ended itself, whatever it has left behind."""

    def __init__(self, heard: Heard, mark: str) -> None:
        self.exited = asyncio.Event()
        self.exit_code: int | None = None
        self._heard = heard
        self.mark = mark
        self._silent = asyncio.Event()
        self._speaking = {0}
        self._pipes: dict[int, asyncio.ReadTransport] = {}
        self._transport: asyncio.SubprocessTransport | None = None
        self._kin: ProcessTree | None = None

    # --- what asyncio tells ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._kin = ProcessTree.of(self._transport.get_pid(), self.mark)

    def process_exited(self) -> None:
        self.exit_code = self._process.get_returncode()
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.exited.set()
        self.fell_silent(0)

    # --- what its pipes tell --------------------------------------------------------------------------

    def spoke(self, pipe: int, data: bytes) -> None:
        """It has written something."""
        self._heard(pipe, data)

    def fell_silent(self, pipe: int) -> None:
        """Nothing will come through this pipe any more."""
        self._speaking.discard(pipe)
        if not self._speaking:
            self._silent.set()

    # --- what its owner does --------------------------------------------------------------------------

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended, as far as has been heard."""
        return not self.exited.is_set()

    def write(self, data: bytes) -> None:
        """Say something to it; if it does not listen any more, nothing happens."""
        if not self._input.is_closing():
            self._input.write(data)

    @property
    def unread(self) -> int:
        """How many bytes of what was said to it the system has not taken yet, because it does not read."""
        return self._input.get_write_buffer_size()

    def listen(self, *, is_wanted: bool) -> None:
        """Whether what it writes is wanted now; if not, it waits with writing once its pipe is full."""
        pipe = self._pipes.get(1)
        if pipe is not None and not pipe.is_closing():
            (pipe.resume_reading if is_wanted else pipe.pause_reading)()

    def close_input(self) -> None:
        """Let it read the end of its input."""
        self._input.close()

    def kill(self) -> None:
        """End it and its descendants at once."""
        if self._kin is not None:
            self._kin.send(signal.SIGKILL)

    async def connect(self, pipe: int, end: int) -> None:
        """Read from this end of a pipe what it will write."""
        self._speaking.add(pipe)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: _Pipe(self, pipe), os.fdopen(end, "rb", buffering=0))
        self._pipes[pipe] = transport

    def hang_up(self) -> None:
        """Read no more."""
        for pipe in self._pipes.values():
            pipe.close()

    async def wait_until_finished(self) -> None:
        """Wait until it has ended and everything that it wrote has been heard; what it left behind is ended too."""
        await self.exited.wait()
        # Its own words are in the pipe by now; a descendant that holds the pipe open may keep it so for ever.
        await _within(_LAST_WORDS, self._silent.wait())
        await self.end()

    async def end(self) -> None:
        """Ask it and its descendants to end, then make them: they are gone when this returns, even by cancellation."""
        try:
            for number in (signal.SIGTERM, signal.SIGKILL):
                if self._kin is None or not self._kin.send(number):
                    break
                await _within(PATIENCE, self._wait_until_gone(self._kin))
            # To close what has ended unheard would take its exit code away from asyncio.
            await _within(PATIENCE, self.exited.wait())
        finally:
            self.kill()
            self._process.close()
            self.hang_up()
        await _within(PATIENCE, self._silent.wait())
        self._kin = None

    async def _wait_until_gone(self, tree: ProcessTree) -> None:
        while tree.is_left():  # noqa: ASYNC110 - nobody tells of the end of another's child
            await asyncio.sleep(_LOOK_AGAIN)

    @property
    def _process(self) -> asyncio.SubprocessTransport:
        assert self._transport is not None
        return self._transport

    @property
    def _input(self) -> asyncio.WriteTransport:
        return cast(asyncio.WriteTransport, self._process.get_pipe_transport(0))


async def start_child(
    command: Sequence[str], heard: Heard, *, folder: Path, environment: Mapping[str, str], has_one_pipe: bool = False
) -> Child:
    """Start a command. With `has_one_pipe` what it writes comes in one pipe, in the order in which it was written."""
    if any("\0" in word for word in command):
        raise ValueError("embedded null byte")  # where the loop is not Python's own, the rest would be left out
    child = Child(heard, f"{os.getpid()}.{next(_NUMBERS)}")
    starting = asyncio.get_running_loop().create_task(
        _start(child, command, folder=folder, environment=environment, has_one_pipe=has_one_pipe)
    )
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await starting  # in the middle of its start nobody could say what there is to end
        await child.end()
        raise
    return child


async def _start(
    child: Child, command: Sequence[str], *, folder: Path, environment: Mapping[str, str], has_one_pipe: bool
) -> None:
    # Pipes of our own: those of another loop than Python's are sockets, which cannot be opened as /dev/stdout.
    ends: list[int] = []
    try:
        for pipe in (1,) if has_one_pipe else (1, 2):
            end, given = os.pipe()
            ends.append(given)
            await child.connect(pipe, end)
        await asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *command,
            stdout=ends[0],
            stderr=asyncio.subprocess.STDOUT if has_one_pipe else ends[1],
            cwd=folder,
            env={**environment, MARK: child.mark},
            start_new_session=True,
        )
    except BaseException:
        child.hang_up()
        raise
    finally:
        for given in ends:
            os.close(given)


class _Pipe(asyncio.Protocol):
    """One of the pipes through which a child speaks."""

    def __init__(self, child: Child, number: int) -> None:
        self._child = child
        self._number = number

    def data_received(self, data: bytes) -> None:
        self._child.spoke(self._number, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._child.fell_silent(self._number)


async def _within(seconds: float, awaited: Coroutine[object, object, object]) -> None:
    # Not by `asyncio.timeout`: in a task that was cancelled, early versions of Python 3.11 take its end for another
    # cancellation.
    waiting = asyncio.get_running_loop().create_task(awaited)
    try:
        await asyncio.wait({waiting}, timeout=seconds)
    finally:
        waiting.cancel()
    if waiting.done():
        waiting.result()
