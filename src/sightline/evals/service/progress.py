"""The progress of a run: results so far, rate, cost and time left."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from sightline.evals.core.result import CaseResult
from sightline.evals.core.run_state import EvalState
from sightline.evals.service.target import Spending


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of results. `rate` is results a second of this process, `left_s` the time left at that rate, `cost` the
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


class Meter:
    """Counts results."""

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
        """Count a result."""
        self._fresh += 1
        self._count(result)
        return self.progress(result)

    def progress(self, last: CaseResult | None = None) -> Progress:
        """The current progress."""
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
        self._counts[_kind(result)] += 1
        self._counts["cached"] += result.cached


def _kind(result: CaseResult) -> str:
    by_status = {"execution_error": "errors", "skipped": "skipped"}
    by_verdict = {"pass": "passed", "fail": "failed", "not_graded": "not_graded", "skip": "skipped"}
    return by_status.get(result.status) or by_verdict[result.score.verdict]
