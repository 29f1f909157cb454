"""A run on its way: as many cases at once as each target takes, each when it may, until all are done or nobody wants
more."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from sightline.errors import Fault
from sightline.evals.core.facts import CaseDone, CaseStarted, EndedWhy, Key
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.options import budget_of, cost_limit_of
from sightline.evals.core.result import CaseResult, Status
from sightline.evals.core.run_state import NOT_RUN
from sightline.evals.core.schedule import Schedule
from sightline.evals.core.score import CaseScore
from sightline.evals.core.stored_media import replace_media
from sightline.evals.core.summary import amount_of, costs_of
from sightline.evals.service.eval_log import EvalLog
from sightline.evals.service.spending import Spending
from sightline.evals.service.workers import Worker
from sightline.transport.clock import Clock


class CaseScheduler:
    """Drives one run. `widths` is how many cases each target takes at once."""

    def __init__(
        self, log: EvalLog, worker: Worker, widths: Mapping[str, int], spending: Spending, clock: Clock
    ) -> None:
        self.log = log
        self._worker = worker
        self._widths = widths
        self._purse = spending
        self._clock = clock
        self._schedule = Schedule(log.standing)
        began = log.standing.began
        self._suite = began.suite
        self._budget = budget_of(began.suite, began.options)
        self._closing: EndedWhy | None = None
        self._news = {name: asyncio.Event() for name in widths}
        self._trials_cost: dict[tuple[str, str], float] = {}
        for result in log.standing.results:
            self._charge(result)

    def stop(self, why: EndedWhy = "stopped") -> None:
        """Begin nothing more; what is under way comes to its end."""
        self._closing = self._closing or why
        for news in self._news.values():
            news.set()

    async def through(self) -> EndedWhy:
        """Do all that is left. A fault that is no case's ends everything."""
        failed: Fault | None = None
        try:
            async with asyncio.TaskGroup() as group:
                left = Counter(target for _, target, _ in self.log.standing.left)
                for target, width in self._widths.items():
                    for _ in range(min(width, left[target])):
                        group.create_task(self._work(target))
        except* Fault as faults:
            failed = _first(faults)
        if failed is not None:  # raised above, early versions of Python 3.11 make a group of it again
            raise failed
        return "finished" if not self.log.standing.left else self._closing or "stopped"

    async def _work(self, target: str) -> None:
        schedule, news = self._schedule, self._news[target]
        while not schedule.is_over(target):
            if self._budget is not None and self._purse.spent >= self._budget:
                self.stop("budget")
            if self._closing is not None:
                return
            key = schedule.next(target)
            if key is None:
                news.clear()
                await news.wait()
                continue
            result = self._forgone(key)
            if result is None:
                self.log.note(CaseStarted(*key))
                result = await self._worker.run(key)
            self._charge(result)
            # Nothing new is begun before this lasts: a process that ends loses what is under way, and no more.
            await self.log.append(CaseDone(replace_media(result)))
            schedule.finish(key)
            news.set()
            if result.status == "execution_error" and self._suite.execution.fail_on_error:
                self.stop()

    def _forgone(self, key: Key) -> CaseResult | None:
        """The result of a case that is not run, because of what it depends on or of what its trials cost."""
        case = self.log.standing.cases[key[0]]
        failures = self._schedule.failures(key) if case.on_dependency_failure != "run" else ()
        if failures:
            why = f"it depends on {', '.join(failures)}, which could not be carried out"
            if case.on_dependency_failure == "fail":
                return self._make_result(
                    key, "quality_failure", CaseScore(verdict="fail", score=0.0, reason=why), code=NOT_RUN
                )
            return self._make_result(key, "skipped", CaseScore(verdict="skip", reason=why))
        limit = cost_limit_of(case, self._suite)
        if limit is not None and self._trials_cost.get(key[:2], 0.0) >= limit:
            why = f"the trials before it have cost the {limit:g} dollars that they may"
            return self._make_result(key, "skipped", CaseScore(verdict="skip", reason=why))
        return None

    def _make_result(self, key: Key, status: Status, score: CaseScore, code: str = "") -> CaseResult:
        case = self.log.standing.cases[key[0]]
        return CaseResult(
            case=key[0],
            target=key[1],
            trial=key[2],
            suite=self._suite.name,
            group=case.group,
            tags=case.tags,
            status=status,
            score=score,
            observation=CaseObservation(requests=0, cost=0.0, error_code=code),
            at=self._clock.now(),
        )

    def _charge(self, result: CaseResult) -> None:
        key = result.case, result.target
        self._trials_cost[key] = self._trials_cost.get(key, 0.0) + amount_of(costs_of(result)).at_least


def _first(faults: BaseExceptionGroup[Fault]) -> Fault:
    found = faults.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
