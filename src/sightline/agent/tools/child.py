"""One child process that leads a session of its own, so that it can be ended together with all that it started."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TypeAlias, cast

from sightline.agent.tools.process_tree import MARK, ProcessTree

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
