"""How entries get into the record: through the journal of this process, and from there into the database.

A server has a recorder for the import: a separate process, so that the event loop has no work with the database. Any
other process imports on a thread of its own. Both take the same lock, so that one process of a data folder imports at a
time, and it imports what all processes have recorded.
"""

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any, TypeVar

from sightline.errors import Code, Fault
from sightline.filters.expression import Expression
from sightline.store.entries import Entry, KeptEntry
from sightline.store.importer import Importer, trouble_of, wake
from sightline.store.journal import JournalWriter, TornTail, encode_entries, is_imported, pending, scrub, slots_in
from sightline.store.search import RecordSearch, Search
from sightline.store.store import Forgotten
from sightline.store.summary import Summary, SummedExchanges

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_PAUSE = 0.1
"""Seconds in which a batch may grow: many small batches would write the same pages again and again."""
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0
_LOOK, _LONGEST_LOOK = 0.001, 0.02
"""Seconds between two checks of another process's progress."""
_GRACE = 30.0
"""Seconds that a recorder has to end by itself."""


class JournaledStore(ABC):
    """The parts of a `Store` that are the same for every database: journal, import, search and export. `unwritten` is
    why the latest entries could not even be written to the journal."""

    def __init__(
        self, journal: JournalWriter, folder: Path, importer: Importer, recorder: "RecorderProcess | None"
    ) -> None:
        self.unwritten: Fault | None = None
        self._journal = journal
        self._folder = folder
        self._importer = importer
        self._recorder = recorder
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sightline-record")
        self._import_now = threading.Event()
        self._is_due = False
        self._wait = _FIRST_WAIT
        self._is_closed = False

    @property
    def trouble(self) -> Fault | None:
        """Why entries currently stay in the journal, or cannot even be written there; None if all is well."""
        if self.unwritten is not None:
            return self.unwritten
        if self._recorder is not None and self._recorder.trouble is not None:
            return self._recorder.trouble
        known = trouble_of(self._folder)
        return known and known[1]

    @property
    def torn(self) -> tuple[TornTail, ...]:
        """The parts of the journals of ended processes that could not be read."""
        return tuple(self._importer.torn)

    async def open(self) -> None:
        """Import the journals of ended processes. If that fails, the store is closed and the error is raised."""
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise

    async def _open(self) -> None:
        if self._recorder is None:
            await self._run(self._import_leftovers)
            return
        self._recorder.start()
        if slots_in(self._folder):
            await self._recorder.wait_for_first_look()
            await self.settle()

    def record(self, entries: Sequence[KeptEntry]) -> None:
        """Record these entries. Once this returns, the end of this process cannot lose them."""
        self.append(encode_entries(entries))

    def append(self, data: bytes) -> None:
        """Record entries that are already encoded; see `store.whole.join_entries`."""
        try:
            self._journal.append(data)
        except Fault as fault:
            self.unwritten = fault
            raise
        self.unwritten = None
        if self._recorder is None and not self._is_due:
            self._is_due = True
            self._thread.submit(self._import_soon)

    async def settle(self) -> None:
        """Return once everything recorded so far can be read. Raises a Fault if it cannot be imported."""
        if self._is_closed:
            raise Fault(Code.CONFIG, "the record is closed", hint="Start Sightline again; what was recorded is kept.")
        if self._recorder is None:
            self._import_now.set()
            await self._run(self._settle)
            return
        wanted, known, failures = pending(self._folder), trouble_of(self._folder), self._recorder.failures
        look = _LOOK
        while not is_imported(wanted):
            wake(self._folder)
            await asyncio.sleep(look)
            look = min(2 * look, _LONGEST_LOOK)
            if self._recorder.failures > failures + 1 and self._recorder.trouble is not None:
                raise self._recorder.trouble
            _raise_new(known, trouble_of(self._folder))

    async def forget(self, exchanges: Sequence[str], *, is_dry_run: bool = False) -> Forgotten:
        """Remove these exchanges from the database and from the journal of this data folder; see `Store`."""
        await self.settle()  # otherwise records in the journal would restore the exchanges
        found = await self._forget(exchanges, is_dry_run=is_dry_run)
        if not is_dry_run:
            await asyncio.to_thread(scrub, self._folder, set(exchanges))
        return found

    async def find(self, wanted: Expression, *, now: float, before: str = "", limit: int = 100) -> list[Summary]:
        """The newest exchanges that match the filter; see `Store`."""
        return await self._search(wanted, now, lambda search: search.newest(before, limit))

    async def sums(self, wanted: Expression, by: Sequence[str], *, now: float) -> list[SummedExchanges] | None:
        """The sums of all exchanges that match the filter; see `Store`."""
        return await self._search(wanted, now, lambda search: search.sums(by))

    async def export(self, wanted: Expression, *, now: float) -> AsyncIterator[Entry]:
        """All entries of these exchanges, oldest first; see `Store`."""
        after = ""
        while ids := await self._search(wanted, now, lambda search: search.oldest(after)):  # noqa: B023 - run at once
            for after in ids:
                for entry in await self.entries(after):
                    yield entry

    @abstractmethod
    async def entries(self, exchange: str) -> list[Entry]:
        """All entries of one exchange; see `Store`."""

    @abstractmethod
    async def _forget(self, exchanges: Sequence[str], *, is_dry_run: bool) -> Forgotten:
        """Remove these exchanges from the database; a dry run only measures them."""

    @abstractmethod
    async def _search(self, wanted: Expression, now: float, ask: Callable[[RecordSearch[Any]], Search[T]]) -> T:
        """The result of a search with this filter."""

    async def close(self) -> None:
        """Import what can be imported; the rest stays in the journal."""
        self._is_closed = True
        self._import_now.set()
        self._journal.close()
        if self._recorder is None:
            await self._run(self._finish)
        else:
            await self._recorder.close()
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # --- on the thread ---

    def _import_leftovers(self) -> None:
        """Import the journals of ended processes, or wait for the process that is doing so."""
        if not self._import(self._importer.end_interrupted):
            self._settle()

    def _settle(self) -> None:
        wanted, known = pending(self._folder), trouble_of(self._folder)
        look = _LOOK
        while not is_imported(wanted):
            if self._import(self._importer.catch_up):
                return
            wake(self._folder)
            sleep(look)
            look = min(2 * look, _LONGEST_LOOK)
            _raise_new(known, trouble_of(self._folder))

    def _import_soon(self) -> None:
        if self._import_now.wait(_PAUSE):
            self._import_now.clear()
        self._is_due = False
        if self._is_closed:
            return
        try:
            self._import(self._importer.catch_up)
            self._wait = _FIRST_WAIT
        except (Fault, OSError):
            # The records stay in the journal; `trouble` contains the reason.
            if not self._import_now.wait(self._wait) and not self._is_due:
                self._wait = min(2 * self._wait, _LONGEST_WAIT)
                self._is_due = True
                self._thread.submit(self._import_soon)

    def _import(self, work: Callable[[], object]) -> bool:
        """Import what there is in this way; returns False if another process is importing."""
        if not self._importer.acquire():
            return False
        try:
            work()
        finally:
            self._importer.release()
        return True

    def _finish(self) -> None:
        try:
            if slots_in(self._folder) and self._importer.acquire():
                self._importer.end_interrupted()
        except (Fault, OSError) as error:
            _LOG.warning("what was recorded stays in the journal: %s", error)
        finally:
            self._importer.close()


def _raise_new(known: tuple[int, Fault] | None, now: tuple[int, Fault] | None) -> None:
    """Raise the current trouble if it is a new one."""
    if now is not None and (known is None or now[0] != known[0]):
        raise now[1]


class RecorderProcess:
    """A process that imports what is recorded; if it ends, it is started again. `parameters` are the first line of its
    input. It ends when its input ends, so that it does not outlive this process for long."""

    def __init__(self, command: Sequence[str], parameters: bytes) -> None:
        self.failures = 0
        self.trouble: Fault | None = None
        self._command = command
        self._parameters = parameters
        self._process: asyncio.subprocess.Process | None = None
        self._is_ready = asyncio.Event()
        self._closing = asyncio.Event()
        self._supervision: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Start the process, and keep it running."""
        self._supervision = asyncio.ensure_future(self._supervise())

    async def wait_for_first_look(self) -> None:
        """Return once the process has imported what others left, or has failed."""
        await self._is_ready.wait()

    async def close(self) -> None:
        """Let the process finish, and wait for its end."""
        self._closing.set()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        if self._supervision is not None:
            done, _ = await asyncio.wait([self._supervision], timeout=_GRACE)
            if not done and self._process is not None:
                self._process.kill()
                await self._supervision

    async def _supervise(self) -> None:
        wait = _FIRST_WAIT
        while not self._closing.is_set():
            try:
                code: int | str = await self._run()
            except OSError as error:
                code = error.strerror or "unknown"
            if self._closing.is_set():
                return
            self.failures += 1
            hint = "It is started again. What is recorded meanwhile is kept in the journal."
            self.trouble = Fault(Code.CONFIG, f"the recorder ended ({code})", hint=hint)
            self._is_ready.set()
            _LOG.warning("the recorder ended (%s) and is started again", code)
            wait = min(2 * wait, _LONGEST_WAIT)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), wait)

    async def _run(self) -> int:
        """Run the process once; returns its exit code."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe)
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(RuntimeError):  # what uvloop raises if the process has already ended
            process.stdin.write(self._parameters)
        if self._closing.is_set():
            process.stdin.close()
        if await process.stdout.readline():
            self.trouble = None
            self._is_ready.set()
        return await process.wait()
