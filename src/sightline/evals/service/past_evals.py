"""Runs of suites in the logbook: how each stands, read as far as it was not read before."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.facts import EvalBegan, read
from sightline.evals.core.run_state import EvalState
from sightline.evals.service.eval_log import PREFIX
from sightline.store.logbook import Line, Logbook

State: TypeAlias = Literal["running", "ended", "stopped", "interrupted"]

_MOST_KEPT = 64


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """A run in one line. `of` is how many results it will have, `done` how many it has."""

    run: str
    name: str
    suite: str
    at: float
    state: State
    targets: tuple[str, ...]
    cases: int
    done: int
    of: int


class PastEvals:
    """Knows the runs that were looked at last, so that a look at one that goes on reads only what is new."""

    def __init__(self, logbook: Logbook, is_alive: Callable[[str], bool]) -> None:
        self._logbook = logbook
        self._is_alive = is_alive
        self._known: dict[str, EvalState] = {}

    async def standing(self, run: str) -> EvalState:
        """How a run stands, as it is written down. What is returned grows with the next look."""
        standing = self._known.pop(run, None)
        lines = await self._logbook.lines(PREFIX + run, 0 if standing is None else standing.version)
        if standing is None:
            standing = _first_standing(run, lines)
        for line in lines:
            standing.add(read(line.data))
        self._known[run] = standing
        while len(self._known) > _MOST_KEPT:
            del self._known[next(iter(self._known))]
        return standing

    def state(self, standing: EvalState) -> State:
        """Whether somebody drives it, and how it was left if not."""
        match standing.ended:
            case "finished":
                return "ended"
            case "stopped" | "budget":
                return "stopped"
            case None:
                return "running" if self._is_alive(standing.by) else "interrupted"

    async def list_runs(self, limit: int, suite: str = "") -> list[Brief]:
        """The newest runs, of one suite or of all."""
        found: list[Brief] = []
        for log in await self._logbook.logs(PREFIX):
            if len(found) >= limit:
                break
            run = log.name.removeprefix(PREFIX)
            standing = await self.standing(run)
            began = standing.began
            if suite in ("", began.suite.file, began.suite.name):
                found.append(
                    Brief(
                        run=run,
                        name=began.suite.name,
                        suite=began.suite.file,
                        at=began.at,
                        state=self.state(standing),
                        targets=tuple(target.name for target in began.targets),
                        cases=len(began.suite.cases),
                        done=standing.done,
                        of=len(standing.keys),
                    )
                )
        return found


def _first_standing(run: str, lines: Sequence[Line]) -> EvalState:
    fact = read(lines[0].data) if lines else None
    if not isinstance(fact, EvalBegan):
        hint = "GET /api/evals lists the runs."
        raise Fault(Code.USAGE, f"there is no run {run!r} of evals", hint=hint, status=404)
    return EvalState(fact)
