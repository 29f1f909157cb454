"""Child processes: each has its own session and is ended together with all processes that it started. Commands run to
their end, with their output captured within limits."""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeAlias, cast

from sightline.platform.processes import MARK, READS_ANY_PIPE, ProcessTree, own_group

GRACE_S = 2.0
"""Seconds that a child gets to end after SIGTERM, and its descendants to vanish after SIGKILL."""

_OUTPUT_GRACE_S = 0.2
_NUMBERS = count(1)

OutputListener: TypeAlias = Callable[[int, bytes], None]
"""Receives the child's output: the number of the pipe (1 or 2) and the bytes."""


class Child(asyncio.SubprocessProtocol):
    """A started process. `exited` is set when the process itself has ended; its descendants may still run."""

    def __init__(self, on_output: OutputListener, mark: str) -> None:
        self.exited = asyncio.Event()
        self.exit_code: int | None = None
        self._on_output = on_output
        self.mark = mark
        self._all_closed = asyncio.Event()
        self._open_pipes = {0}
        self._pipes: dict[int, asyncio.ReadTransport] = {}
        self._transport: asyncio.SubprocessTransport | None = None
        self._tree: ProcessTree | None = None

    # --- callbacks of asyncio --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        for pipe in (1, 2):
            if (made := self._transport.get_pipe_transport(pipe)) is not None:
                self._open_pipes.add(pipe)
                self._pipes[pipe] = cast(asyncio.ReadTransport, made)
        self._tree = ProcessTree.of(self._transport.get_pid(), self.mark)

    def process_exited(self) -> None:
        self.exit_code = self._process.get_returncode()
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.exited.set()
        self._close_pipe(0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._on_output(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd:
            self._close_pipe(fd)

    def _close_pipe(self, pipe: int) -> None:
        self._open_pipes.discard(pipe)
        if not self._open_pipes:
            self._all_closed.set()

    # --- calls of the owner ----------------------------------------------------------------------------

    @property
    def is_alive(self) -> bool:
        return not self.exited.is_set()

    def write(self, data: bytes) -> None:
        """Write to its standard input; ignored if that is closed."""
        if not self._input.is_closing():
            self._input.write(data)

    @property
    def unread(self) -> int:
        """How many bytes are buffered because the child does not read them."""
        return self._input.get_write_buffer_size()

    def listen(self, *, is_wanted: bool) -> None:
        """Resume or pause reading its output. While paused, the child blocks once its pipe is full."""
        pipe = self._pipes.get(1)
        if pipe is not None and not pipe.is_closing():
            (pipe.resume_reading if is_wanted else pipe.pause_reading)()

    def close_input(self) -> None:
        self._input.close()

    def kill(self) -> None:
        if self._tree is not None:
            self._tree.kill()

    async def connect(self, pipe: int, end: int) -> None:
        """Read the child's output from this end of a pipe."""
        self._open_pipes.add(pipe)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: _Pipe(self, pipe), os.fdopen(end, "rb", buffering=0))
        self._pipes[pipe] = transport

    def close_pipes(self) -> None:
        for pipe in self._pipes.values():
            pipe.close()

    async def wait_until_finished(self) -> None:
        """Wait until the child has exited and all its output is read, then end its descendants."""
        await self.exited.wait()
        # The child's own output is in the pipe by now; a descendant may hold the pipe open forever.
        await _wait_at_most(_OUTPUT_GRACE_S, self._all_closed.wait())
        await self.end()

    async def end(self) -> None:
        """Terminate, then kill the child and its descendants. They have ended when this returns, even if it is
        cancelled."""
        try:
            for is_kill in (False, True):
                if self._tree is None or not (self._tree.kill() if is_kill else self._tree.terminate()):
                    break
                await _wait_at_most(GRACE_S, self._tree.wait_until_gone())
            # Closing the transport before asyncio has reaped the child would lose its exit code.
            await _wait_at_most(GRACE_S, self.exited.wait())
        finally:
            self.kill()
            self._process.close()
            self.close_pipes()
        await _wait_at_most(GRACE_S, self._all_closed.wait())
        self._tree = None

    @property
    def _process(self) -> asyncio.SubprocessTransport:
        assert self._transport is not None
        return self._transport

    @property
    def _input(self) -> asyncio.WriteTransport:
        return cast(asyncio.WriteTransport, self._process.get_pipe_transport(0))


async def start_child(
    command: Sequence[str],
    on_output: OutputListener,
    *,
    folder: Path,
    environment: Mapping[str, str],
    has_one_pipe: bool = False,
    has_own_pipes: bool = READS_ANY_PIPE,
) -> Child:
    """Start a command. With `has_one_pipe`, stdout and stderr share one pipe, which keeps their order. Without
    `has_own_pipes`, the event loop creates the pipes: that of Windows can read no others."""
    if any("\0" in word for word in command):
        raise ValueError("embedded null byte")  # other event loops (uvloop) skip the remaining callbacks if one raises
    child = Child(on_output, f"{os.getpid()}.{next(_NUMBERS)}")
    starting = asyncio.get_running_loop().create_task(
        _start(child, command, folder, environment, has_one_pipe=has_one_pipe, has_own_pipes=has_own_pipes)
    )
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        # The start is shielded: if it were cancelled halfway, there would be no handle to end the process with.
        await starting
        await child.end()
        raise
    return child


async def _start(
    child: Child,
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    has_one_pipe: bool,
    has_own_pipes: bool,
) -> None:
    ends: list[int] = []
    try:
        # Create the pipes here, because uvloop uses sockets, which the child cannot open as /dev/stdout.
        for pipe in ((1,) if has_one_pipe else (1, 2)) if has_own_pipes else ():
            end, given = os.pipe()
            ends.append(given)
            await child.connect(pipe, end)
        output, complaints = (ends[0], ends[-1]) if ends else (asyncio.subprocess.PIPE, asyncio.subprocess.PIPE)
        await asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *command,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT if has_one_pipe else complaints,
            cwd=folder,
            env={**environment, MARK: child.mark},
            **own_group(),
        )
    except BaseException:
        child.close_pipes()
        raise
    finally:
        for given in ends:
            os.close(given)


class _Pipe(asyncio.Protocol):
    """Reads one output pipe of a child."""

    def __init__(self, child: Child, number: int) -> None:
        self._child = child
        self._number = number

    def data_received(self, data: bytes) -> None:
        self._child.pipe_data_received(self._number, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._child.pipe_connection_lost(self._number, exc)


async def _wait_at_most(seconds: float, awaited: Coroutine[object, object, object]) -> None:
    # Not `asyncio.timeout`: in a cancelled task, early versions of Python 3.11 treat its expiry as another
    # cancellation.
    waiting = asyncio.get_running_loop().create_task(awaited)
    try:
        await asyncio.wait({waiting}, timeout=seconds)
    finally:
        waiting.cancel()
    if waiting.done():
        waiting.result()


_PASSED_ON = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"}
)


def minimal(environment: Mapping[str, str]) -> dict[str, str]:
    """Only the variables that any command needs: for commands that a model has written."""
    return {name: value for name, value in environment.items() if name in _PASSED_ON or name.startswith("LC_")}


def without_variables(environment: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """All variables except these: for programs that a user has written."""
    return {name: value for name, value in environment.items() if name not in secrets}


HEAD = 24 << 10
TAIL = 40 << 10
"""Head and tail together are less than the limit of one result, so that output is truncated only once."""


class Capture:
    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self.total = 0
        self._most_head = head
        self._most_tail = tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._most_head - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            self._tail.append(rest[-self._most_tail :])
            self._in_tail += len(self._tail[-1])
            while self._in_tail - len(self._tail[0]) >= self._most_tail:
                self._in_tail -= len(self._tail.popleft())

    @property
    def text(self) -> str:
        """The output as text, with a note where something is left out."""
        tail = b"".join(self._tail)[-self._most_tail :]
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (bytes(self._head) + tail).decode(errors="replace")
        mark = f"\n[{missing} of {self.total} bytes are left out here]\n"
        return self._head.decode(errors="replace") + mark + tail.decode(errors="replace")


def describe_exit(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def last_line_in(text: str) -> str:
    """The last line that is not blank; empty if there is none."""
    return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command. `code` is None after a timeout, negative for a signal."""

    code: int | None
    output: str
    complaints: str = ""

    @property
    def in_words(self) -> str:
        """The exit code or signal in words."""
        if self.code is None:
            return "stopped: it took too long"
        return f"{'ended by ' if self.code < 0 else ''}{describe_exit(self.code)}"


class Commands:
    """Runs commands with one environment. They are killed when this is closed or a waiting task is cancelled."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._running: set[Child] = set()
        self._starting = asyncio.Lock()
        self._is_closed = False

    async def run(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        timeout: float,  # noqa: ASYNC109 - the output before the timeout is returned too
        given: bytes = b"",
        on_output: OutputListener | None = None,
        has_one_pipe: bool = False,
    ) -> CommandResult:
        """Run a command with this input. Raises OSError if it cannot be started."""
        pipes = {1: Capture(), 2: Capture()}

        def hear(fd: int, data: bytes) -> None:
            pipes[fd].add(data)
            if on_output is not None:
                on_output(fd, data)

        async with self._starting:
            if self._is_closed:
                raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
            child = await start_child(
                command, hear, folder=folder, environment=self._environment, has_one_pipe=has_one_pipe
            )
            self._running.add(child)
        is_late = False
        try:
            child.write(given)
            child.close_input()
            try:
                async with asyncio.timeout(timeout):
                    await child.exited.wait()
            except TimeoutError:
                is_late = True
            else:
                await child.wait_until_finished()
        finally:
            try:
                await child.end()
            finally:
                self._running.discard(child)
        return CommandResult(None if is_late else child.exit_code, pipes[1].text, pipes[2].text)

    async def close(self) -> None:
        """Kill all running commands; no more are started."""
        self._is_closed = True
        async with self._starting:
            running = list(self._running)
        async with asyncio.TaskGroup() as group:
            for child in running:
                group.create_task(child.end())
