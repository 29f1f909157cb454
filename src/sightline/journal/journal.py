"""A log of facts and the state that they fold to, for every feature that must survive the end of its process.

A fact is encoded, cleared of secrets, appended to the log, applied to the state and announced, in this order and one
append at a time. Several processes may have the same log open. The logbook appends only after the last line that the
writer knows, so exactly one of two writers succeeds. What the other one does depends on the log:

- A shared log reads what was added and tries again (the chat, its preferences, the cache of answers). If another
  process has deleted the log, a fault is raised.
- A log with one owner gives up with the fault `taken_over`, because another process has resumed the run.

`drive` runs a generator core: the pure half decides step by step, the other half carries the steps out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sightline.errors import Code, Fault
from sightline.store.store import Line, Logbook
from sightline.transport.waiting import run_to_end, run_unless
from sightline.wire.cache import BoundedCache
from sightline.wire.secrets import Redaction

Fact = TypeVar("Fact")
State = TypeVar("State")
Change = TypeVar("Change")

CONFLICT = 409
"""The status of a logbook's fault if the log has other lines than the writer knows."""

_MOST_TRIES = 100
"""More conflicts in a row than this are not caused by people."""

_BYTES_AT_ONCE = 64_000
"""After reading this many bytes of a log, other tasks of the event loop get a turn."""


@dataclass(frozen=True, slots=True)
class FactFormat(Generic[Fact]):
    """How a fact is written as a line. `encode` returns the line, and the fact as written, in case its text had to be
    repaired. `applies_masked` decides, for a fact that contains a secret, whether the state gets the fact as written
    (True), or with the secret, which only the log must not have."""

    encode: Callable[[Fact], tuple[bytes, Fact]]
    decode: Callable[[Line], Fact]
    applies_masked: Callable[[Fact], bool] = lambda _fact: True


class Journal(Generic[Fact, State, Change]):
    """The facts of the log `name`, and their `state`. `version` is the number of its lines that have been read here.

    `apply` adds a fact, written at a given time of day, to the state and returns what changed. `announce` gets the
    facts of one append with their changes. Facts of other processes are announced one by one, except for those that
    exist when the log is first read. If the caller already knows the lines of the log, it passes their `version`.
    """

    def __init__(
        self,
        logbook: Logbook,
        name: str,
        form: FactFormat[Fact],
        state: State,
        apply: Callable[[Fact, float], Change],
        *,
        now: Callable[[], float],
        secrets: tuple[str, ...] = (),
        announce: Callable[[Sequence[tuple[Fact, Change]]], None] = lambda _applied: None,
        taken_over: Fault | None = None,
        version: int | None = None,
    ) -> None:
        self.name = name
        self.state = state
        self.version = version or 0
        self.is_loaded = version is not None
        self.redaction = Redaction(secrets)
        self._logbook = logbook
        self._form = form
        self._apply = apply
        self._now = now
        self._announce = announce
        self._taken_over = taken_over
        self._lock = asyncio.Lock()

    async def catch_up(self) -> None:
        """Read and apply the lines that other processes have added, or all lines the first time."""
        async with self._lock:
            await self._catch_up()

    async def append(
        self, facts: Iterable[Fact], *, check: Callable[[Fact], object] | None = None, retry: bool = True
    ) -> "list[Change] | None":
        """Append these facts together, apply them, and return what they changed. They are durable when this returns,
        even if the caller is cancelled meanwhile.

        `check` raises a fault if the first fact, cleared of secrets, does not fit the state; it is called again after
        each conflict. Without `retry`, a conflict on a shared log reads what was added and returns None.
        """
        return await run_to_end(self._append(facts, check, retry=retry))

    async def write(self, lines: Sequence[bytes]) -> None:
        """Append encoded lines without changing the state, for callers that apply facts before they are durable."""
        async with self._lock:
            await self._write(lines, None, retry=True)

    def encode(self, fact: Fact) -> tuple[bytes, Fact]:
        """The line of a fact without the secrets, and the fact that the state gets."""
        data, fact = self._form.encode(fact)
        masking = self.redaction.masking()
        data = masking.feed(data) + masking.close()
        if masking.has_found and self._form.applies_masked(fact):
            fact = self._form.decode(Line(self.version + 1, 0.0, data))
        return data, fact

    async def _append(
        self, facts: Iterable[Fact], check: Callable[[Fact], object] | None, *, retry: bool
    ) -> "list[Change] | None":
        encoded: list[tuple[bytes, Fact]] = []
        for fact in facts:
            if encoded:
                await asyncio.sleep(0)  # an import has many facts
            encoded.append(self.encode(fact))
        async with self._lock:
            if not self.is_loaded:
                await self._catch_up()
            first = encoded[0][1]
            at = await self._write(
                [data for data, _ in encoded], None if check is None else lambda: check(first), retry=retry
            )
            if at is None:
                return None
            applied: list[tuple[Fact, Change]] = []
            for _, fact in encoded:
                if applied:
                    await asyncio.sleep(0)
                applied.append((fact, self._apply(fact, at)))
            self._announce(applied)
        return [change for _, change in applied]

    async def _write(self, lines: Sequence[bytes], check: Callable[[], object] | None, *, retry: bool) -> float | None:
        """Append lines and return their time of day; None after a conflict without `retry`."""
        for _ in range(_MOST_TRIES):
            if check is not None:
                check()
            at = self._now()
            try:
                await self._logbook.append(self.name, self.version, lines, at)
            except Fault as fault:
                if fault.status != CONFLICT:
                    raise
                if self._taken_over is not None:
                    raise self._taken_over from None
                known = self.version
                await self._catch_up()
                if self.version == known and known and not await self._logbook.lines(self.name, known - 1):
                    hint = "Load the page again, or start the command again."
                    raise Fault(Code.USAGE, f"the {self.name} was deleted elsewhere", hint=hint, status=404) from None
                if not retry:
                    return None
            else:
                self.version += len(lines)
                return at
        message = f"other processes change the {self.name} all the time"
        raise Fault(Code.OVERLOADED, message, hint="Try again.", status=503)

    async def _catch_up(self) -> None:
        lines = await self._logbook.lines(self.name, self.version)
        unread = _BYTES_AT_ONCE
        for line in lines:
            fact = self._form.decode(line)
            change = self._apply(fact, line.at)
            self.version = line.n
            if self.is_loaded:
                self._announce([(fact, change)])
            unread -= len(line.data)
            if unread <= 0:
                unread = _BYTES_AT_ONCE
                await asyncio.sleep(0)
        self.is_loaded = True


class JournalCache(Generic[Fact, State, Change]):
    """The most recently used journals, so that using one again reads only what is new. `open_journal` opens the journal
    with a name. A log without lines is not cached."""

    def __init__(self, open_journal: "Callable[[str], Journal[Fact, State, Change]]", maxsize: int) -> None:
        self._open_journal = open_journal
        self._journals: BoundedCache[str, Journal[Any, State, Any]] = BoundedCache(maxsize)

    async def state(self, name: str) -> State | None:
        """The current state of a log; None if the log is empty. The object changes with the next call."""
        journal = self._journals.get(name) or self._open_journal(name)
        await journal.catch_up()
        if not journal.version:
            return None
        self._journals.put(name, journal)
        return journal.state


Step = TypeVar("Step")
Answer = TypeVar("Answer")
Result = TypeVar("Result")


async def drive(
    steps: Generator[Step, Answer, Result],
    handle: Callable[[Step], Awaitable[Answer]],
    stop: Callable[[], Answer | None] = lambda: None,
    *,
    record: Callable[[Answer], Awaitable[Any]] | None = None,
    first: Step | None = None,
) -> Result:
    """Run the generator to its end and return its result.

    Each step is passed to `handle`, and its answer is sent to the generator. Once `stop` returns an answer, that is
    sent instead, and the step is not carried out. `record` gets each answer before the generator does, so that a
    process that takes over can send it again. If the generator has already been started, `first` is the step that it
    waits at.
    """
    try:
        step = next(steps) if first is None else first
        while True:
            answer = stop()
            if answer is None:
                answer = await handle(step)
            if record is not None:
                await record(answer)
            step = steps.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


class StopSignal:
    """A request to stop the work, after the step in progress or at once. It may come at any time and more than once.
    `is_leaving` means that the work does not end, so that it can be resumed."""

    def __init__(self) -> None:
        self.is_leaving = False
        self._soon = asyncio.Event()
        self._now = asyncio.Event()

    @property
    def is_set(self) -> bool:
        """Whether no new step should be carried out."""
        return self._soon.is_set()

    def stop(self, *, now: bool) -> None:
        """End the work after the step in progress, or `now`. This overrides an earlier `leave`."""
        self.is_leaving = False
        self._set(now=now)

    def leave(self, *, now: bool = False) -> None:
        """Interrupt the work after the step in progress, or `now`. An earlier `stop` takes precedence."""
        self.is_leaving = not self.is_set or self.is_leaving
        self._set(now=now)

    def _set(self, *, now: bool) -> None:
        self._soon.set()
        if now:
            self._now.set()

    async def unless_now(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of the work. Raises `WorkInterrupted` if everything has to stop at once."""
        return await run_unless(self._now, work)

    async def unless_soon(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of work that only waits, for example for a person. Raises `WorkInterrupted` on any request to
        stop."""
        return await run_unless(self._soon, work)
