from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.evals.core.facts import EvalBegan
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.case_worker import open_case_worker
from sightline.evals.service.context import EvalRun
from sightline.evals.service.target import Spending
from tests.eval_stage import ACME, EvalStage, play
from tests.upstream import Upstream

MOCK = TargetSpec(name="parrot", mock="Paris")


def test_only_the_targets_that_are_wanted_are_opened(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        run, around = stage.stage, stage.evaluation.surroundings
        broken = TargetSpec(name="broken", cli=CommandSpec(command="cat", cwd="nowhere"))
        began = EvalBegan(suite=stage.suite(), targets=(ACME, MOCK, broken))
        opening = EvalRun("e_1", began, run.engine, run.store.logbook, around, Spending())
        async with open_case_worker(opening, (MOCK,)) as worker:
            assert list(worker.targets) == ["parrot"]
            assert (await worker.run(("france", "parrot", 0))).score.verdict == "pass"
        with pytest.raises(Fault, match="which is no folder"):
            async with open_case_worker(opening, began.targets):
                pass

    play(story, tmp_path)
