"""How a run of a suite stands, by its facts: what has a result, what is under way, and what is left."""

from collections.abc import Iterable
from typing import assert_never

from sightline.errors import Code, Fault
from sightline.evals.core.facts import (
    CaseDone,
    CaseStarted,
    EndedWhy,
    EvalBegan,
    EvalEnded,
    EvalFact,
    EvalTaken,
    Key,
    Reopened,
)
from sightline.evals.core.options import trials_of
from sightline.evals.core.result import CaseResult
from sightline.evals.core.selection import targets_of
from sightline.evals.core.suite import Case

NOT_RUN = "dependency_failed"
"""The error code of a case that counts as failed because of what it depends on, and was not asked."""


class EvalState:
    """The fold of a run's facts. `by` is the process that drives it or did, `ended` how it was left, empty while it is
    driven, or where its process ended without a word. `version` counts the facts."""

    def __init__(self, began: EvalBegan) -> None:
        self.began = began
        self.cases: dict[str, Case] = {case.id: case for case in began.suite.cases}
        self.keys: tuple[Key, ...] = _keys(began)
        self.by = ""
        self.ended: EndedWhy | None = None
        self.version = 0
        self._results: dict[Key, CaseResult] = {}
        self._running: dict[Key, None] = {}

    def add(self, fact: EvalFact) -> None:
        """One more fact."""
        self.version += 1
        match fact:
            case EvalBegan():
                self.began = fact
            case EvalTaken(by):
                # What another process had begun and not finished is begun anew.
                self.by, self.ended, self._running = by, None, {}
            case CaseStarted(case, target, trial):
                self._running[case, target, trial] = None
            case CaseDone(result):
                self._running.pop(result.key, None)
                self._results[result.key] = result
            case Reopened(keys):
                for key in keys:
                    self._results.pop(key, None)
            case EvalEnded(why):
                self.ended, self._running = why, {}
            case unreachable:
                assert_never(unreachable)

    @property
    def results(self) -> tuple[CaseResult, ...]:
        """The results there are, in the order of the suite: by case, target and trial."""
        return tuple(self._results[key] for key in self.keys if key in self._results)

    def result(self, key: Key) -> CaseResult | None:
        """The result of one, where it has one."""
        return self._results.get(key)

    @property
    def done(self) -> int:
        """How many have a result."""
        return len(self._results)

    @property
    def running(self) -> tuple[Key, ...]:
        """What is under way."""
        return tuple(self._running)

    @property
    def left(self) -> tuple[Key, ...]:
        """What has no result, in the order of the suite."""
        return tuple(key for key in self.keys if key not in self._results)

    @property
    def failed(self) -> tuple[Key, ...]:
        """What did not pass: it failed, was not graded, was left out because of another, or has no answer."""
        return tuple(result.key for result in self.results if not has_passed(result))

    def keys_of(self, cases: Iterable[str], target: str = "") -> tuple[Key, ...]:
        """Everything of these cases, on one target or on all. A name that is not there is a fault."""
        wanted = set(cases)
        found = tuple(key for key in self.keys if key[0] in wanted and target in ("", key[1]))
        missing = sorted(wanted - {key[0] for key in found})
        if missing:
            where = f" on {target}" if target else ""
            hint = "GET /api/evals/{run} has the names of all."
            raise Fault(Code.USAGE, f"the run has no case {', '.join(missing)}{where}", hint=hint, status=404)
        return found


def fold_facts(facts: Iterable[EvalFact]) -> EvalState:
    """How a run with these facts stands."""
    standing: EvalState | None = None
    for fact in facts:
        if standing is None:
            if not isinstance(fact, EvalBegan):
                break
            standing = EvalState(fact)
        standing.add(fact)
    if standing is None:
        raise Fault(Code.USAGE, "the log of this run does not begin as one", hint="Begin another.", status=404)
    return standing


def has_passed(result: CaseResult) -> bool:
    """Whether it went well, for those that run again what did not."""
    return result.status == "ok" and result.score.verdict in ("pass", "skip")


def has_run(result: CaseResult) -> bool:
    """Whether the target answered it, for those that depend on it."""
    was_left_out = result.status == "skipped" or result.observation.error_code == NOT_RUN
    return not was_left_out and result.status != "execution_error"


def _keys(began: EvalBegan) -> tuple[Key, ...]:
    given = [target.name for target in began.targets]
    return tuple(
        (case.id, target, trial)
        for case in began.suite.cases
        for target in targets_of(case, given, began.options)
        for trial in range(trials_of(case, began.suite, began.options))
    )
