"""The facts of one run in the logbook: each is there before anything follows from it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from sightline.agent.core.facts import RunBegan, RunFact, read, write
from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.steps import RunnableCall
from sightline.errors import Code, Fault
from sightline.exchange.redaction import Redaction
from sightline.store.logbook import Line, Logbook
from sightline.wire.jsontext import decode, encode

PREFIX = "run:"
"""How the logs of runs are called, before the run's own name."""

_CHANGED = 409


class TimedFact(msgspec.Struct, frozen=True):
    """A fact and the time of day at which it was written down."""

    at: float
    fact: RunFact


Telling: TypeAlias = Callable[[RunFact], None]
"""Is told each fact once it is written down."""


@runtime_checkable
class RunObserver(Protocol):
    """Follows runs from outside, as an exporter of traces does."""

    def observe_run(self, run: str, facts: Sequence[tuple[float, RunFact]], fresh: int) -> None:
        """The facts of a run with their times, the last `fresh` of which were just written down."""
        ...

    def observe_tool(self, run: str, call: RunnableCall, began: float, ended: float, outcome: ToolOutcome) -> None:
        """A tool of a run was run."""
        ...


class RunLog:
    """Adds facts, one after the other whoever brings them, without the configured keys. `told` are all so far."""

    def __init__(
        self,
        logbook: Logbook,
        run: str,
        *,
        now: Callable[[], float],
        secrets: tuple[str, ...] = (),
        facts: Sequence[TimedFact] = (),
        changed: Callable[[], None] = lambda: None,
        tell: Telling | None = None,
        observer: object | None = None,
    ) -> None:
        self.run = run
        self.told = list(facts)
        self._logbook = logbook
        self._now = now
        self._redaction = Redaction(secrets)
        self._changed = changed
        self._tell = tell
        # The exchange hands it on without knowing what a run is.
        self._observer = observer if isinstance(observer, RunObserver) else None
        self._lock = asyncio.Lock()

    @property
    def facts(self) -> list[RunFact]:
        """The facts alone."""
        return [each.fact for each in self.told]

    async def note(self, *facts: RunFact) -> None:
        """Write these down. Who is cancelled meanwhile is so once they are there, or are known not to be."""
        async with self._lock:
            await _whole(self._append(facts))
        if self._observer is not None:
            self._observer.observe_run(self.run, [(each.at, each.fact) for each in self.told], len(facts))
        self._changed()
        if self._tell is not None:
            for fact in facts:
                self._tell(fact)

    def now(self) -> float:
        """The time of day."""
        return self._now()

    def observe_tool(self, call: RunnableCall, began: float, outcome: ToolOutcome) -> None:
        """A tool has just been run, from that time of day on."""
        if self._observer is not None:
            masking = self._redaction.masking()
            shown = masking.feed(encode(msgspec.to_builtins(call))) + masking.close()
            call = msgspec.convert(decode(shown), RunnableCall) if masking.has_found else call
            self._observer.observe_tool(self.run, call, began, self._now(), outcome)

    async def _append(self, facts: Sequence[RunFact]) -> None:
        at = self._now()
        try:
            await self._logbook.append(PREFIX + self.run, len(self.told), [self._encode(fact) for fact in facts], at)
        except Fault as fault:
            if fault.status != _CHANGED:
                raise
            hint = "It goes on there; `sightline resume` takes it back once that has ended."
            raise Fault(
                Code.USAGE, f"the run {self.run} was taken over by another process", hint=hint, status=_CHANGED
            ) from None
        self.told += [TimedFact(at, fact) for fact in facts]

    def mask_outcome(self, outcome: ToolOutcome) -> ToolOutcome:
        """An outcome without the configured keys: the request that brings it to the model is on record as well."""
        masking = self._redaction.masking()
        shown = masking.feed(encode(msgspec.to_builtins(outcome))) + masking.close()
        return msgspec.convert(decode(shown), ToolOutcome) if masking.has_found else outcome

    def _encode(self, fact: RunFact) -> bytes:
        masking = self._redaction.masking()
        return masking.feed(write(fact)) + masking.close()


def conversation_of(began: RunBegan, run: str) -> str:
    """The conversation that a run belongs to: that of the chat which began it, or one of its own."""
    named = began.origin.get("conversation")
    return named if isinstance(named, str) and named else run


def read_facts(lines: Sequence[Line]) -> list[TimedFact]:
    """The facts that these lines hold."""
    return [TimedFact(line.at, read(line.data)) for line in lines]


async def _whole(work: Coroutine[object, object, None]) -> None:
    """Do it to its end, whatever becomes of who waits for it."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # heard, so that nobody complains; whoever is cancelled does not want to know
        raise cancelled
    task.result()
