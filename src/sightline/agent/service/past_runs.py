"""Runs as the logbook has them, whoever drove them and whenever."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sightline.agent.core.facts import NOBODY, RunBegan, RunEnded, RunTaken
from sightline.agent.core.run_state import stand
from sightline.agent.service.run_log import PREFIX, TimedFact, read_facts
from sightline.agent.service.run_view import Looked, brief, show_run
from sightline.agent.service.shapes import RunBrief, RunShown, SpentShown, State
from sightline.errors import Code, Fault
from sightline.store.store import Logbook

_MOST_REMEMBERED = 256
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}")


@dataclass
class PastRuns:
    """Reads runs. `is_alive` tells of the name of a process whether it still runs, and with it what it drives."""

    logbook: Logbook
    is_alive: Callable[[str], bool]
    _ended: dict[tuple[str, int], RunBrief] = field(default_factory=dict)

    async def facts(self, run: str) -> list[TimedFact]:
        """All facts of a run, of which the first is how it began; a fault if there is no such run."""
        lines = await self.logbook.lines(PREFIX + run) if _NAME.fullmatch(run) else []
        if not lines:
            hint = "GET /api/runs lists the runs."
            raise Fault(Code.USAGE, f"there is no run {run!r}", hint=hint, status=404)
        return read_facts(lines)

    def state(self, facts: Sequence[TimedFact]) -> State:
        """How a run stands that is not driven here."""
        if any(isinstance(each.fact, RunEnded) for each in facts):
            return "ended"
        drivers = [each.fact.by for each in facts if isinstance(each.fact, RunTaken)]
        is_driven = bool(drivers) and drivers[-1] != NOBODY and self.is_alive(drivers[-1])
        return "running" if is_driven else "interrupted"

    async def show(self, run: str) -> RunShown:
        """All of a run."""
        told = await self.facts(run)
        standing, state = stand([each.fact for each in told]), self.state(told)
        # What was running when its process ended will be asked about first.
        question = standing.mid_flight or None if state == "interrupted" else None
        return show_run(run, told, standing, Looked(state, question))

    async def list_runs(self, limit: int, driven: Callable[[str], State | None]) -> list[RunBrief]:
        """The newest runs; `driven` tells how one stands that is driven here."""
        found: list[RunBrief] = []
        for log in (await self.logbook.logs(PREFIX))[:limit]:
            run = log.name.removeprefix(PREFIX)
            known = self._ended.get((run, log.lines))
            if known is None:
                known = await self._brief(run, log.began, driven(run))
            if known.state == "ended":
                self._remember(run, log.lines, known)
            found.append(known)
        return found

    async def _brief(self, run: str, at: float, state: State | None) -> RunBrief:
        try:
            told = await self.facts(run)
            return brief(run, told, stand([each.fact for each in told]), state or self.state(told))
        except Fault as fault:  # one that nobody here can read keeps nobody from the others
            return _unreadable(run, at, fault)

    def _remember(self, run: str, lines: int, known: RunBrief) -> None:
        self._ended[run, lines] = known
        if len(self._ended) > _MOST_REMEMBERED:
            del self._ended[next(iter(self._ended))]


def beginning(facts: Sequence[TimedFact]) -> RunBegan:
    """How a run began; a fault if nobody knows."""
    began = facts[0].fact
    if not isinstance(began, RunBegan):
        hint = "Name a run that is on record whole."
        raise Fault(Code.INVALID_REQUEST, "the facts of this run have no beginning", hint=hint)
    return began


def _unreadable(run: str, at: float, fault: Fault) -> RunBrief:
    nothing = SpentShown(requests=0, tool_calls=0, tokens=0, cost=None, seconds=0.0, unmeasured=("cost",))
    return RunBrief(
        id=run, at=at, title=fault.message, model="", state="interrupted", why="", rounds=0, spent=nothing, origin={}
    )
