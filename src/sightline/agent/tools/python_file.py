"""The public functions of a Python file as tools, run in worker processes, which can be killed.

A worker takes one call at a time and is reused, so that the file's variables persist; a concurrent call gets another
worker. A worker whose call was not finished is killed.
"""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import msgspec

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition, ToolOutcome, text_outcome
from sightline.agent.tools.commands import Child, describe_exit, last_line_in, start_child
from sightline.agent.tools.tools import TIMEOUT, Progress, unknown
from sightline.agent.tools.worker import Answer, FileBroken, FileLoaded, Kind, Load, Order, Ran, RunFunction
from sightline.errors import Code, Fault
from sightline.wire.jsontext import MISFIT, decode, encode

LONGEST_ANSWER = 64 << 20
_LONGEST_WORDS = 500


class WorkerClient:
    """A worker process for the tools or the graders of a file."""

    def __init__(self, kind: Kind = "tools") -> None:
        self._kind = kind
        self._line = bytearray()
        self._words = bytearray()
        self._progress: Progress | None = None
        self._answer: asyncio.Future[Answer | None] | None = None
        self._child: Child | None = None
        self._starting = asyncio.Lock()

    @property
    def is_alive(self) -> bool:
        return self._child is not None and self._child.is_alive

    async def start(self, file: Path, *, folder: Path, environment: Mapping[str, str]) -> None:
        """Start the process. Raises OSError if that fails."""
        # -P: a file in the working folder must not shadow a module.
        command = (sys.executable, "-P", "-m", "sightline.agent.tools.worker", self._kind, str(file))
        async with self._starting:
            self._child = await start_child(command, self._receive_output, folder=folder, environment=environment)

    async def ask(self, order: Order, progress: Progress | None = None) -> Answer | None:
        """Send a request and return the answer; None if the worker ends instead."""
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
        async with self._starting:
            child = self._child
        if child is not None:
            await child.end()

    @property
    def end_in_words(self) -> str:
        """How it ended and the last line of its output, for a person."""
        return "; ".join(filter(None, (self.ending, self._last_words)))

    @property
    def ending(self) -> str:
        """The exit code or signal in words."""
        code = None if self._child is None else self._child.exit_code
        return "it was ended" if code is None else describe_exit(code)

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
        return last_line_in(self._words.decode(errors="replace"))[-_LONGEST_WORDS:]


def _answer(line: bytes) -> Answer:
    try:
        return msgspec.convert(decode(line), FileLoaded | FileBroken | Ran)
    except (*MISFIT, Fault):
        return FileBroken("what it answered is not understood")


def unreadable(file: Path, error: OSError | UnicodeDecodeError) -> Fault:
    """The fault for a file that cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return Fault(Code.CONFIG, f"{file}: not UTF-8 (byte {error.start})", hint="Save it as UTF-8.")
    return Fault(Code.CONFIG, f"{file}: {error.strerror}", hint="Check the path.")


LOAD_TIMEOUT = 60.0
MOST_WORKERS = 8
_LONGEST_FILE = 4 << 20
_BY_ITSELF = "Run the file with Python by itself to see what happens."


@dataclass(eq=False, repr=False)
class PythonFile:
    """The tools of one file. `folder` is the working directory; `kind` is what its functions are. `definitions` are as
    of loading the file."""

    file: Path
    _: KW_ONLY
    folder: Path
    environment: Mapping[str, str]
    timeout: float = TIMEOUT
    kind: Kind = "tools"
    definitions: tuple[Definition, ...] = ()
    _source: str = ""
    _idle: list[WorkerClient] = field(default_factory=list)
    _workers: set[WorkerClient] = field(default_factory=set)
    _worker_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_WORKERS))
    _is_closed: bool = False

    def __post_init__(self) -> None:
        self._path = self.file.absolute()  # workers are started later, when the working directory may be another

    def __str__(self) -> str:
        return str(self.file)

    async def load(self) -> None:
        """Load the file and find its tools. Raises a fault with the line of the error."""
        self._source = _text(self.file)
        worker = await self._start_worker()
        self._idle.append(worker)

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        """Call a function. Its process is killed on a timeout or cancellation."""
        if all(each.name != call.name for each in self.definitions):
            return unknown(call.name, self.definitions)
        async with self._worker_slots:
            try:
                worker = await self._worker()
            except Fault as fault:
                return text_outcome(fault.message, is_error=True)
            answer: Answer | None = None
            try:
                async with asyncio.timeout(self.timeout):
                    answer = await worker.ask(RunFunction(call.name, call.arguments), progress)
            except TimeoutError:
                return text_outcome(f"{call.name} was stopped: it took longer than {self.timeout:g} s.", is_error=True)
            finally:
                await self._return_worker(worker, is_whole=isinstance(answer, Ran))
        if isinstance(answer, Ran):
            return answer.outcome
        why = answer.message if isinstance(answer, FileBroken) else worker.ending  # printed output is not for the model
        return text_outcome(f"{call.name} did not come to an end: its process is gone ({why}).", is_error=True)

    async def close(self) -> None:
        self._is_closed = True
        async with asyncio.TaskGroup() as group:
            for worker in self._workers:
                group.create_task(worker.end())
        self._workers.clear()
        self._idle.clear()

    async def _worker(self) -> WorkerClient:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            await self._return_worker(worker, is_whole=False)
        return await self._start_worker()

    async def _return_worker(self, worker: WorkerClient, *, is_whole: bool) -> None:
        if is_whole and not self._is_closed:
            self._idle.append(worker)
            return
        try:
            await worker.end()
        finally:
            self._workers.discard(worker)

    async def _start_worker(self) -> WorkerClient:
        """Start a worker and load the file in it."""
        if self._is_closed:
            raise Fault(Code.CANCELLED, f"the tools of {self.file} have been closed")
        worker = WorkerClient(self.kind)
        self._workers.add(worker)
        answer: Answer | None = None
        try:
            await worker.start(self._path, folder=self.folder, environment=self.environment)
            async with asyncio.timeout(LOAD_TIMEOUT):
                answer = await worker.ask(Load(self._source))
        except OSError as error:  # TimeoutError is an OSError
            words = "it takes too long to load" if isinstance(error, TimeoutError) else str(error.strerror)
            raise self._fault(FileBroken(words, hint="Move slow work into the tools themselves.")) from None
        finally:
            if not isinstance(answer, FileLoaded):
                await self._return_worker(worker, is_whole=False)
        if not isinstance(answer, FileLoaded):
            how = f"its process ended while the file was loaded ({worker.end_in_words})"
            raise self._fault(answer if isinstance(answer, FileBroken) else FileBroken(how, hint=_BY_ITSELF))
        self.definitions = self.definitions or answer.definitions
        return worker

    def _fault(self, broken: FileBroken) -> Fault:
        place = f"{self.file}:{broken.line}" if broken.line else self.file
        return Fault(Code.CONFIG, f"{place}: {broken.message}", hint=broken.hint)


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8-sig") as opened:
            text = opened.read(_LONGEST_FILE + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(file, error) from None
    if len(text) > _LONGEST_FILE:
        raise Fault(Code.CONFIG, f"{file}: too long for a file of tools", hint="Check that it is the right file.")
    return text
