import asyncio
from pathlib import Path

from sightline.evals.core.facts import EvalBegan, Key
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.result import CaseResult
from sightline.evals.core.run_state import EvalState
from sightline.evals.core.score import CaseScore
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.case_worker import Worker
from sightline.evals.service.eval_log import EvalLog
from sightline.evals.service.evaluation import CaseScheduler
from sightline.evals.service.target import Spending
from tests.eval_stage import EvalStage, play
from tests.upstream import Upstream


class Elsewhere:
    """Runs cases on another machine, as it were."""

    def __init__(self) -> None:
        self.ran: list[Key] = []

    async def run(self, key: Key) -> CaseResult:
        self.ran.append(key)
        await asyncio.sleep(0)
        case, target, trial = key
        score = CaseScore(verdict="pass", score=1.0)
        return CaseResult(
            case=case, target=target, trial=trial, status="ok", score=score, observation=CaseObservation()
        )

    async def close(self) -> None:
        pass


def test_whoever_runs_cases_is_driven_the_same(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        began = EvalBegan(suite=stage.suite(), targets=(TargetSpec(name="t", mock=""),))
        log = EvalLog(stage.stage.store.logbook, "e_1", EvalState(began), now=lambda: 1.0)
        log.note(began)
        worker = Elsewhere()
        elsewhere: Worker = worker
        assert await CaseScheduler(log, elsewhere, {"t": 2}, Spending(), stage.stage.clock).through() == "finished"
        await log.flush()
        assert sorted(worker.ran) == [("france", "t", 0), ("italy", "t", 0), ("spain", "t", 0)]
        assert (await stage.evaluation.show("e_1")).standing.done == 3

    play(story, tmp_path)
