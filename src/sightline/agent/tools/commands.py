"""Runs commands to their end and ends them when their owner is closed; captures their output within limits."""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.agent.tools.child import Child, OutputListener, start_child

_PASSED_ON = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"}
)


def minimal(environment: Mapping[str, str]) -> dict[str, str]:
    """Only the variables that any command needs: for commands that a model has written."""
    return {name: value for name, value in environment.items() if name in _PASSED_ON or name.startswith("LC_")}


def without(environment: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
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
        return f"ended by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"


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
