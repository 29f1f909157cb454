"""Our side of one worker: orders go out, answers come back, and what its functions print is told as progress."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from sightline.agent.tools.child import Child, start_child
from sightline.agent.tools.messages import Answer, FileBroken, FileLoaded, Order, Ran
from sightline.agent.tools.tools import Progress
from sightline.errors import Code, Fault
from sightline.wire.jsontext import MISFIT, decode, encode

WORKER = "sightline.agent.tools.worker"
LONGEST_ANSWER = 64 << 20
_LONGEST_WORDS = 500


class WorkerClient:
    """A worker that has been started. `program` is the module that it runs."""

    def __init__(self, program: str = WORKER) -> None:
        self._program = program
        self._line = bytearray()
        self._words = bytearray()
        self._progress: Progress | None = None
        self._answer: asyncio.Future[Answer | None] | None = None
        self._child: Child | None = None
        self._starting = asyncio.Lock()

    @property
    def is_alive(self) -> bool:
        """Whether it can be given orders."""
        return self._child is not None and self._child.is_alive

    async def start(self, file: Path, *, folder: Path, environment: Mapping[str, str]) -> None:
        """Start the process, which can raise OSError."""
        # -P: a file in the working folder that is called like a module must not be taken for it.
        command = (sys.executable, "-P", "-m", self._program, str(file))
        async with self._starting:
            self._child = await start_child(command, self._receive_output, folder=folder, environment=environment)

    async def ask(self, order: Order, progress: Progress | None = None) -> Answer | None:
        """What it answers; None if it ends instead."""
        assert self._child is not None
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self._progress = progress
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch(answer))
            self._child.write(encode(msgspec.to_builtins(order)) + b"\n")
            try:
                return await answer
            finally:
                self._progress = None
                watching.cancel()

    async def end(self) -> None:
        """End it, with all that its functions have started."""
        async with self._starting:
            child = self._child
        if child is not None:
            await child.end()

    @property
    def end_in_words(self) -> str:
        """How it ended, and the last thing that it wrote, which is for a person."""
        return "; ".join(filter(None, (self.ending, self._last_words)))

    @property
    def ending(self) -> str:
        """How it ended."""
        code = None if self._child is None else self._child.exit_code
        return "it was ended" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"

    async def _watch(self, answer: "asyncio.Future[Answer | None]") -> None:
        assert self._child is not None
        await self._child.exited.wait()
        await self._child.wait_until_finished()
        if not answer.done():
            answer.set_result(None)

    def _receive_output(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._words += data
            del self._words[: -2 * _LONGEST_WORDS]
            if self._progress is not None and self._last_words:
                self._progress(self._last_words)
            return
        self._line += data
        if len(self._line) > LONGEST_ANSWER:
            self._settle(FileBroken("its answer is too long"))
        elif data.endswith(b"\n"):
            line, self._line = bytes(self._line), bytearray()
            self._settle(_answer(line))

    def _settle(self, answer: Answer) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    @property
    def _last_words(self) -> str:
        lines = self._words.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[-_LONGEST_WORDS:]


def _answer(line: bytes) -> Answer:
    try:
        return msgspec.convert(decode(line), FileLoaded | FileBroken | Ran)
    except (*MISFIT, Fault):
        return FileBroken("what it answered is not understood")


def unreadable(file: Path, error: OSError | UnicodeDecodeError) -> Fault:
    """The fault of a file that cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return Fault(Code.CONFIG, f"{file}: not UTF-8 (byte {error.start})", hint="Save it as UTF-8.")
    return Fault(Code.CONFIG, f"{file}: {error.strerror}", hint="Check the path.")
