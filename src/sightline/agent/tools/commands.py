"""Commands that are run to their end, for whoever must see to it that none of them outlives him."""

import asyncio
import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.agent.tools.capture import Capture
from sightline.agent.tools.child import Child, Heard, start_child


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended. `code` is None where it was ended because it took too long, negative for a signal."""

    code: int | None
    output: str
    complaints: str = ""

    @property
    def in_words(self) -> str:
        """How it ended."""
        if self.code is None:
            return "stopped: it took too long"
        return f"ended by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"


class Commands:
    """Runs commands with one environment. When it is closed, or a task that waits is cancelled, they are ended."""

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
        timeout: float,  # noqa: ASYNC109 - what came before the time was over is told too
        given: bytes = b"",
        heard: Heard | None = None,
        has_one_pipe: bool = False,
    ) -> CommandResult:
        """Run a command with this input to its end; OSError where it cannot be started."""
        pipes = {1: Capture(), 2: Capture()}

        def hear(fd: int, data: bytes) -> None:
            pipes[fd].add(data)
            if heard is not None:
                heard(fd, data)

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
        """End all that runs; nothing more is started."""
        self._is_closed = True
        async with self._starting:
            running = list(self._running)
        async with asyncio.TaskGroup() as group:
            for child in running:
                group.create_task(child.end())
