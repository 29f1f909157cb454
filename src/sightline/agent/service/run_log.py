"""The logs of runs: that of a run driven by this process, and those of all runs in the logbook."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from sightline.agent.core.facts import (
    NO_PROCESS,
    RunBegan,
    RunEnded,
    RunFact,
    RunTaken,
    TimedFact,
    read,
    run_state_of,
    write,
)
from sightline.agent.core.limits import RunUsage
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome
from sightline.agent.service.run_view import LiveState, RunBrief, RunShown, State, brief, show_run, show_usage
from sightline.errors import Code, Fault
from sightline.journal.journal import CONFLICT, FactFormat, Journal
from sightline.store.store import Line, Logbook
from sightline.wire.cache import BoundedCache
from sightline.wire.jsontext import decode, encode

PREFIX = "run:"
"""The prefix of the names of these logs; the id of the run follows it."""

_MOST_BRIEFS = 256
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}")

# A run continues with the secrets that its model or its tools wrote; only its log must not contain them.
_FORMAT: FactFormat[RunFact] = FactFormat(
    lambda fact: (write(fact), fact), lambda line: read(line.data), applies_masked=lambda _fact: False
)

T = TypeVar("T", RunnableCall, ToolOutcome)
FactListener: TypeAlias = Callable[[RunFact], None]
"""Gets each fact once it is durable."""


@runtime_checkable
class RunObserver(Protocol):
    """Follows runs from outside, for example to export traces."""

    def observe_run(self, run: str, facts: Sequence[tuple[float, RunFact]], fresh: int) -> None:
        """Called with all facts of a run and their times; the last `fresh` of them have just been written."""

    def observe_tool(self, run: str, call: RunnableCall, began: float, ended: float, outcome: ToolOutcome) -> None:
        """Called when a tool of a run has run."""


class RunLog:
    """The log of a run that this process drives, and of which it is the only writer. `timed_facts` has all facts so
    far.

    After each append, `observer` gets all facts, `changed` is called, and `tell` gets each new fact.
    """

    def __init__(
        self,
        logbook: Logbook,
        run: str,
        *,
        now: Callable[[], float],
        secrets: tuple[str, ...] = (),
        facts: Sequence[TimedFact] = (),
        changed: Callable[[], None] = lambda: None,
        tell: FactListener | None = None,
        observer: object | None = None,
    ) -> None:
        self.run = run
        self.now = now
        self.timed_facts = list(facts)
        self._changed = changed
        self._tell = tell
        # The exchange passes the observer on without knowing what a run is.
        self._observer = observer if isinstance(observer, RunObserver) else None
        hint = "It goes on there; `sightline resume` takes it back once that has ended."
        message = f"the run {run} was taken over by another process"
        self._journal: Journal[RunFact, list[TimedFact], None] = Journal(
            logbook,
            PREFIX + run,
            _FORMAT,
            self.timed_facts,
            lambda fact, at: self.timed_facts.append(TimedFact(at, fact)),
            now=now,
            secrets=secrets,
            announce=self._announce,
            taken_over=Fault(Code.USAGE, message, hint=hint, status=CONFLICT),
            version=len(self.timed_facts),
        )

    @property
    def facts(self) -> list[RunFact]:
        """The facts without their times."""
        return [each.fact for each in self.timed_facts]

    async def note(self, *facts: RunFact) -> None:
        """Append these facts. They are durable when this returns, even if the caller is cancelled meanwhile."""
        await self._journal.append(facts)

    def observe_tool(self, call: RunnableCall, began: float, outcome: ToolOutcome) -> None:
        """Report to the observer that a tool ran from that time of day until now."""
        if self._observer is not None:
            self._observer.observe_tool(self.run, self.mask(call), began, self.now(), outcome)

    def mask(self, value: T) -> T:
        """Mask the configured secrets in the value. An outcome is masked before the model gets it, because the request
        that carries it is recorded as well."""
        masking = self._journal.redaction.masking()
        data = masking.feed(encode(msgspec.to_builtins(value))) + masking.close()
        return msgspec.convert(decode(data), type(value)) if masking.has_found else value

    def _announce(self, applied: Sequence[tuple[RunFact, None]]) -> None:
        if self._observer is not None:
            self._observer.observe_run(self.run, [(each.at, each.fact) for each in self.timed_facts], len(applied))
        self._changed()
        if self._tell is not None:
            for fact, _ in applied:
                self._tell(fact)


@dataclass
class PastRuns:
    """The runs in the logbook. `is_alive` tells whether the process with a given name is still running."""

    logbook: Logbook
    is_alive: Callable[[str], bool]
    _ended: BoundedCache[tuple[str, int], RunBrief] = field(default_factory=lambda: BoundedCache(_MOST_BRIEFS))

    async def facts(self, run: str) -> list[TimedFact]:
        """All facts of a run. Raises a fault if there is no such run."""
        lines = await self.logbook.lines(PREFIX + run) if _NAME.fullmatch(run) else []
        if not lines:
            hint = "GET /api/runs lists the runs."
            raise Fault(Code.USAGE, f"there is no run {run!r}", hint=hint, status=404)
        return read_facts(lines)

    def state(self, facts: Sequence[TimedFact]) -> State:
        """The state of a run that this process does not drive. A run whose last driver has ended is interrupted, and
        any process may resume it."""
        if any(isinstance(each.fact, RunEnded) for each in facts):
            return "ended"
        drivers = [each.fact.by for each in facts if isinstance(each.fact, RunTaken)]
        is_driven = bool(drivers) and drivers[-1] != NO_PROCESS and self.is_alive(drivers[-1])
        return "running" if is_driven else "interrupted"

    async def show(self, run: str) -> RunShown:
        facts = await self.facts(run)
        standing, state = run_state_of([each.fact for each in facts]), self.state(facts)
        # When the run is resumed, the first question is about the calls that were running when its process ended.
        question = standing.mid_flight or None if state == "interrupted" else None
        return show_run(run, facts, standing, LiveState(state, question))

    async def list_runs(self, limit: int, driven: Callable[[str], State | None]) -> list[RunBrief]:
        """The newest runs. `driven` returns the state of a run that this process drives, and None for others."""
        found: list[RunBrief] = []
        for log in (await self.logbook.logs(PREFIX))[:limit]:
            run = log.name.removeprefix(PREFIX)
            known = self._ended.get((run, log.lines))
            if known is None:
                known = await self._brief(run, log.began, driven(run))
            if known.state == "ended":
                self._ended.put((run, log.lines), known)
            found.append(known)
        return found

    async def _brief(self, run: str, at: float, state: State | None) -> RunBrief:
        try:
            facts = await self.facts(run)
            return brief(run, facts, run_state_of([each.fact for each in facts]), state or self.state(facts))
        except Fault as fault:  # an unreadable run must not hide the others
            spent = show_usage(RunUsage(unmeasured=("cost",)))
            return RunBrief(
                id=run,
                at=at,
                title=fault.message,
                model="",
                state="interrupted",
                why="",
                rounds=0,
                spent=spent,
                origin={},
            )


def read_facts(lines: Sequence[Line]) -> list[TimedFact]:
    return [TimedFact(line.at, read(line.data)) for line in lines]


def conversation_of(began: RunBegan, run: str) -> str:
    """The conversation of a run: that of the chat which started it, otherwise its own."""
    named = began.origin.get("conversation")
    return named if isinstance(named, str) and named else run
