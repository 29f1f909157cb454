"""The public functions of a Python file as tools. They run in processes of their own, which can be ended.

A worker takes one call at a time and is used again for the next, so that what a file keeps in its variables lasts; a
call that runs beside another gets a worker of its own. A worker whose call was not finished is ended.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition
from sightline.agent.tools.messages import Answer, FileBroken, FileLoaded, Load, Ran, RunFunction
from sightline.agent.tools.tools import Progress, unknown
from sightline.agent.tools.worker_client import WORKER, WorkerClient, unreadable
from sightline.errors import Code, Fault

TIMEOUT = 60.0
LOAD_TIMEOUT = 60.0
MOST_WORKERS = 8
_LONGEST_FILE = 4 << 20
_BY_ITSELF = "Run the file with Python by itself to see what happens."


class PythonFile:
    """The tools of one file. `folder` is where its functions run, `program` the module of the workers that run them."""

    def __init__(
        self,
        file: Path,
        *,
        folder: Path,
        environment: Mapping[str, str],
        timeout: float = TIMEOUT,
        program: str = WORKER,
    ) -> None:
        self._program = program
        self._file = file.absolute()
        self._shown = str(file)
        self._folder = folder
        self._environment = environment
        self._timeout = timeout
        self._definitions: tuple[Definition, ...] = ()
        self._source = ""
        self._idle: list[WorkerClient] = []
        self._workers: set[WorkerClient] = set()
        self._seats = asyncio.Semaphore(MOST_WORKERS)
        self._is_closed = False

    def __str__(self) -> str:
        return self._shown

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The functions, as they were when the file was loaded."""
        return self._definitions

    async def load(self) -> None:
        """Read the file and find its tools, or raise a fault that says where it is wrong."""
        self._source = _text(self._file, self._shown)
        worker = await self._start_worker()
        self._idle.append(worker)

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        """Call a function. When it takes too long or nobody waits any more, its process is ended."""
        if all(each.name != call.name for each in self._definitions):
            return unknown(call.name, self._definitions)
        async with self._seats:
            try:
                worker = await self._worker()
            except Fault as fault:
                return text_outcome(fault.message, is_error=True)
            answer: Answer | None = None
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await worker.ask(RunFunction(call.name, call.arguments), progress)
            except TimeoutError:
                return text_outcome(f"{call.name} was stopped: it took longer than {self._timeout:g} s.", is_error=True)
            finally:
                await self._return_worker(worker, is_whole=isinstance(answer, Ran))
        if isinstance(answer, Ran):
            return answer.outcome
        why = (
            answer.message if isinstance(answer, FileBroken) else worker.ending
        )  # what it printed is not for the model
        return text_outcome(f"{call.name} did not come to an end: its process is gone ({why}).", is_error=True)

    async def close(self) -> None:
        """End all workers."""
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
        """A new worker that has loaded the file."""
        if self._is_closed:
            raise Fault(Code.CANCELLED, f"the tools of {self._shown} have been closed")
        worker = WorkerClient(self._program)
        self._workers.add(worker)
        answer: Answer | None = None
        try:
            await worker.start(self._file, folder=self._folder, environment=self._environment)
            async with asyncio.timeout(LOAD_TIMEOUT):
                answer = await worker.ask(Load(self._source))
        except OSError as error:  # a TimeoutError is one too
            words = "it takes too long to load" if isinstance(error, TimeoutError) else str(error.strerror)
            raise self._fault(
                FileBroken(words, hint="What a tool needs at length, let it do when it is called.")
            ) from None
        finally:
            if not isinstance(answer, FileLoaded):
                await self._return_worker(worker, is_whole=False)
        if not isinstance(answer, FileLoaded):
            how = f"its process ended while the file was loaded ({worker.end_in_words})"
            raise self._fault(answer if isinstance(answer, FileBroken) else FileBroken(how, hint=_BY_ITSELF))
        self._definitions = self._definitions or answer.definitions
        return worker

    def _fault(self, broken: FileBroken) -> Fault:
        place = f"{self._shown}:{broken.line}" if broken.line else self._shown
        return Fault(Code.CONFIG, f"{place}: {broken.message}", hint=broken.hint)


def _text(file: Path, shown: str) -> str:
    try:
        with file.open(encoding="utf-8-sig") as opened:
            text = opened.read(_LONGEST_FILE + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(Path(shown), error) from None
    if len(text) > _LONGEST_FILE:
        raise Fault(Code.CONFIG, f"{shown}: too long for a file of tools", hint="Is it another file?")
    return text
