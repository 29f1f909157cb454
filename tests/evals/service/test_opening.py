from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.evals.core.facts import EvalBegan
from sightline.evals.core.options import RunOptions
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.command_target import CommandTarget
from sightline.evals.service.context import EvalRun
from sightline.evals.service.model_target import ModelTarget
from sightline.evals.service.target import Spending
from sightline.evals.service.targets import MockTarget, ReplayTarget, Targets
from tests.eval_stage import ACME, EvalStage, play
from tests.upstream import Upstream


def targets(stage: EvalStage, *known: TargetSpec, options: RunOptions | None = None) -> Targets:
    began = EvalBegan(suite=stage.suite(), targets=(), judges=known, options=options or RunOptions())
    run = stage.stage
    return Targets(EvalRun("e_1", began, run.engine, run.store.logbook, stage.evaluation.surroundings, Spending()))


def test_a_target_is_what_its_description_says(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        opening = targets(stage)
        for spec, kind in (
            (ACME, ModelTarget),
            (TargetSpec(name="a", mock="x"), MockTarget),
            (TargetSpec(name="a", model="acme/m", replay="model:m"), ReplayTarget),
            (TargetSpec(name="a", cli=CommandSpec(command="true")), CommandTarget),
        ):
            opened = await opening.open_target(spec)
            assert isinstance(opened, kind)
            assert opened.spec == spec
            await opened.close()
        with pytest.raises(Fault, match="a term is missing here"):
            await opening.open_target(TargetSpec(name="a", model="acme/m", replay="((("))
        await opening.close()

    play(story, tmp_path)


def test_a_judge_is_opened_once_and_has_no_tools(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        agent = TargetSpec(name="agent", model="acme/m", toolsets=("x",), rpm=7)
        opening = targets(stage, agent)
        judge = await opening.judging("agent", "")
        assert isinstance(judge, ModelTarget)
        assert (judge.spec.toolsets, judge.choice.facts.rpm) == ((), 7)
        assert await opening.judging("agent", "") is judge
        other = await opening.judging("agent", "acme/other")
        assert isinstance(other, ModelTarget)
        assert (other.choice.model, other.choice.facts.rpm) == ("other", 7)
        with pytest.raises(Fault, match="no provider is known"):
            await opening.judging("nobody", "")
        await opening.close()

    play(story, tmp_path)


def test_a_budget_needs_prices_and_a_replay_a_record(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        with pytest.raises(Fault, match="the prices of other are not known"):
            await targets(stage, options=RunOptions(budget_usd=1.0)).open_target(
                TargetSpec(name="a", model="acme/other")
            )
        await targets(stage, options=RunOptions(budget_usd=1.0)).open_target(ACME)
        bare = EvalStage(stage.stage, stage.root, store=None)
        with pytest.raises(Fault, match="there is no record"):
            await targets(bare).open_target(TargetSpec(name="a", model="acme/m", replay=""))
        assert len((await bare.run()).results) == 3

    play(story, tmp_path)
