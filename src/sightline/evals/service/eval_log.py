"""Runs of suites in the logbook: the journal of a run, its progress (results so far, rate, cost and time left), and the
states of the runs of all processes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseResult
from sightline.evals.core.run_state import CaseDone, EvalBegan, EvalFact, EvalState, read, write
from sightline.evals.service.target import Spending
from sightline.journal.journal import CONFLICT, FactFormat, Journal, JournalCache
from sightline.store.store import Logbook

Write: TypeAlias = Callable[[Sequence[bytes]], Awaitable[None]]
"""Appends these lines after all earlier ones; they are durable when it returns."""


class LineWriter:
    """Writes lines in batches. `add` never waits, `lasting` waits for its own line, and `flush` for all. After a
    failure, all of them raise it."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: list[tuple[bytes, Callable[[], None] | None]] = []
        self._task: asyncio.Task[None] | None = None
        self._trouble: Fault | None = None
        self._unsure: set[asyncio.Future[None]] = set()

    def add(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        """Append a line; `then` is called when it is durable."""
        if self._trouble is not None:
            raise self._trouble
        self._waiting.append((line, then))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._on_task_end)

    async def lasting(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        """Append a line, which is durable when this returns."""
        lasts: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def confirm() -> None:
            if then is not None:
                then()
            if not lasts.done():
                lasts.set_result(None)

        self._unsure.add(lasts)
        try:
            self.add(line, confirm)
            await lasts
        finally:
            self._unsure.discard(lasts)

    async def flush(self) -> None:
        """Wait until all lines are written. A cancellation in the meantime is raised afterwards."""
        cancelled: asyncio.CancelledError | None = None
        while self._task is not None and not self._task.done():
            try:
                await asyncio.wait({self._task})
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        if self._trouble is not None:
            raise self._trouble
        if self._task is not None:
            self._task.result()

    def _on_task_end(self, task: "asyncio.Task[None]") -> None:
        """Fail the waiting lines if the task failed, also if a callback for another line raised."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        for lasts in self._unsure:
            if not lasts.done():
                lasts.set_exception(error)

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await self._write([line for line, _ in batch])
            except Fault as fault:
                self._trouble = fault
                self._fail(fault)
                return
            for _, then in batch:
                if then is not None:
                    then()


PREFIX = "eval:"
"""The prefix of the names of these logs, before the run's id. The whole name is the session of its exchanges."""

# The state gets results as they were written, without secrets, because they are shown and exported. The first fact
# keeps its secrets in memory, because the run needs them.
FORMAT: FactFormat[EvalFact] = FactFormat(
    lambda fact: (write(fact), fact), lambda line: read(line.data), lambda fact: isinstance(fact, CaseDone)
)


@runtime_checkable
class EvalObserver(Protocol):
    """Follows runs of suites from outside, for example to export traces."""

    def observe_eval(self, run: str, fact: EvalFact, standing: EvalState) -> None:
        """A fact of a run is durable; `standing` is the run with it."""


class EvalLog:
    """Appends facts in batches. `standing` has each fact at once, `written` is called with it when it is durable."""

    def __init__(
        self,
        logbook: Logbook,
        run: str,
        standing: EvalState,
        *,
        now: Callable[[], float],
        secrets: tuple[str, ...] = (),
        written: Callable[[EvalFact], None] = lambda _fact: None,
    ) -> None:
        self.run = run
        self.standing = standing
        self._written = written
        message = f"the run {run} was taken over by another process"
        self._journal: Journal[EvalFact, EvalState, None] = Journal(
            logbook,
            PREFIX + run,
            FORMAT,
            standing,
            lambda fact, _at: standing.add(fact),
            now=now,
            secrets=secrets,
            taken_over=Fault(Code.USAGE, message, hint="It goes on there.", status=CONFLICT),
            version=standing.version,
        )
        self._writer = LineWriter(self._journal.write)

    def note(self, fact: EvalFact) -> None:
        """Append a fact with the next batch."""
        line, kept = self._journal.encode(fact)
        self._writer.add(line, lambda: self._written(kept))
        self.standing.add(kept)

    async def append(self, fact: EvalFact) -> None:
        """Append a fact; it is durable when this returns."""
        line, kept = self._journal.encode(fact)
        self.standing.add(kept)
        await self._writer.lasting(line, lambda: self._written(kept))

    async def flush(self) -> None:
        await self._writer.flush()


State: TypeAlias = Literal["running", "ended", "stopped", "interrupted"]

_MOST_KEPT = 64


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """A run in one line. `of` is the number of results it will have, `done` the number it has."""

    run: str
    name: str
    suite: str
    at: float
    state: State
    targets: tuple[str, ...]
    cases: int
    done: int
    of: int


def brief_of(run: str, standing: EvalState, state: State) -> Brief:
    began = standing.began
    return Brief(
        run=run,
        name=began.suite.name,
        suite=began.suite.file,
        at=began.at,
        state=state,
        targets=tuple(target.name for target in began.targets),
        cases=len(began.suite.cases),
        done=standing.done,
        of=len(standing.keys),
    )


class PastEvals:
    """Reads runs of all processes. `is_alive` returns whether the process with a name still runs."""

    def __init__(self, logbook: Logbook, is_alive: Callable[[str], bool]) -> None:
        self._logbook = logbook
        self._is_alive = is_alive
        self._journals = JournalCache(self._open_journal, _MOST_KEPT)

    async def standing(self, run: str) -> EvalState:
        """The state of a run as in the log. The returned object changes with the next call."""
        past = await self._journals.state(PREFIX + run)
        if past is None or past.standing is None:
            raise _unknown(run)
        return past.standing

    async def load(self, run: str) -> EvalState:
        """The same as an object of its own, with which a run can be resumed."""
        journal = self._open_journal(PREFIX + run)
        await journal.catch_up()
        if journal.state.standing is None:
            raise _unknown(run)
        return journal.state.standing

    def _open_journal(self, name: str) -> "Journal[EvalFact, _PastEval, None]":
        past = _PastEval(name.removeprefix(PREFIX))
        return Journal(self._logbook, name, FORMAT, past, past.add, now=lambda: 0.0)

    def state(self, standing: EvalState) -> State:
        """Whether a process is driving the run, and how it ended if not."""
        match standing.ended:
            case "finished":
                return "ended"
            case "stopped" | "budget":
                return "stopped"
            case None:
                return "running" if self._is_alive(standing.by) else "interrupted"

    async def list_runs(self, limit: int, suite: str = "") -> list[Brief]:
        found: list[Brief] = []
        for log in await self._logbook.logs(PREFIX):
            if len(found) >= limit:
                break
            run = log.name.removeprefix(PREFIX)
            standing = await self.standing(run)
            if suite in ("", standing.began.suite.file, standing.began.suite.name):
                found.append(brief_of(run, standing, self.state(standing)))
        return found


class _PastEval:
    """A run that has no state before its first fact."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.standing: EvalState | None = None

    def add(self, fact: EvalFact, _at: float) -> None:
        if self.standing is None:
            if not isinstance(fact, EvalBegan):
                raise _unknown(self.run)
            self.standing = EvalState(fact)
        self.standing.add(fact)


def _unknown(run: str) -> Fault:
    hint = "GET /api/evals lists the runs."
    return Fault(Code.USAGE, f"there is no run {run!r} of evals", hint=hint, status=404)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of results. `rate` is this process's results per second, `left_s` the time left at that rate, `cost` the
    known cost, `cost_unknown` the number of requests of unknown cost."""

    run: str
    done: int
    of: int
    passed: int = 0
    failed: int = 0
    errors: int = 0
    not_graded: int = 0
    skipped: int = 0
    cached: int = 0
    cost: float = 0.0
    cost_unknown: int = 0
    rate: float = 0.0
    seconds: float = 0.0
    left_s: float | None = None
    last: CaseResult | None = None


ProgressListener: TypeAlias = Callable[[Progress], None]


_BY_STATUS = {"execution_error": "errors", "skipped": "skipped"}
_BY_VERDICT = {"pass": "passed", "fail": "failed", "not_graded": "not_graded", "skip": "skipped"}


class Meter:
    def __init__(self, run: str, standing: EvalState, spending: Spending, elapsed: Callable[[], float]) -> None:
        self._run = run
        self._of = len(standing.keys)
        self._spending = spending
        self._elapsed = elapsed
        self._began = elapsed()
        self._fresh = 0
        self._counts = dict.fromkeys(("passed", "failed", "errors", "not_graded", "skipped", "cached"), 0)
        self._done = 0
        for result in standing.results:
            self._count(result)

    def add(self, result: CaseResult) -> Progress:
        self._fresh += 1
        self._count(result)
        return self.progress(result)

    def progress(self, last: CaseResult | None = None) -> Progress:
        seconds = self._elapsed() - self._began
        rate = self._fresh / seconds if seconds > 0 else 0.0
        return Progress(
            run=self._run,
            done=self._done,
            of=self._of,
            cost=self._spending.spent,
            cost_unknown=self._spending.unknown,
            rate=rate,
            seconds=seconds,
            left_s=(self._of - self._done) / rate if rate else None,
            last=last,
            **self._counts,
        )

    def _count(self, result: CaseResult) -> None:
        self._done += 1
        self._counts[_BY_STATUS.get(result.status) or _BY_VERDICT[result.score.verdict]] += 1
        self._counts["cached"] += result.cached
