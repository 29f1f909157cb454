"""Runs of suites in the logbook: how each stands, read as far as it was not read before."""

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.run_state import EvalBegan, EvalFact, EvalState
from sightline.evals.service.eval_log import FORMAT, PREFIX
from sightline.journal.journal import Journal, JournalCache
from sightline.store.store import Logbook

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
    """Reads runs of all processes. `is_alive` says of the name of a process whether it still runs."""

    def __init__(self, logbook: Logbook, is_alive: Callable[[str], bool]) -> None:
        self._logbook = logbook
        self._is_alive = is_alive
        self._journals = JournalCache(self._open_journal, _MOST_KEPT)

    async def standing(self, run: str) -> EvalState:
        """The state of a run as it is in the log. The value changes with the next look."""
        past = await self._journals.state(PREFIX + run)
        if past is None or past.standing is None:
            raise _unknown(run)
        return past.standing

    def _open_journal(self, name: str) -> "Journal[EvalFact, _PastEval, None]":
        past = _PastEval(name.removeprefix(PREFIX))
        return Journal(self._logbook, name, FORMAT, past, past.add, now=lambda: 0.0)

    def state(self, standing: EvalState) -> State:
        """Whether a process is running it, and how it ended if not."""
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
