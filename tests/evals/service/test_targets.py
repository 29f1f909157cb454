import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.core.facts import RunBegan
from sightline.errors import Fault
from sightline.evals.core.run_state import EvalBegan, RunOptions
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.case_worker import Targets
from sightline.evals.service.command_target import CommandTarget
from sightline.evals.service.model_target import DENIED, MockTarget, ModelTarget, ReplayTarget
from tests.eval_stage import ACME, EvalStage, on_stage, open_evals
from tests.loop_stage import calls, count, says
from tests.running_stage import FakeTools, plays
from tests.stepping_clock import SteppingClock
from tests.upstream import Upstream, answer


def targets(stage: EvalStage, *known: TargetSpec, options: RunOptions | None = None) -> Targets:
    began = EvalBegan(suite=stage.suite(), targets=(), judges=known, options=options or RunOptions())
    return Targets(stage.driven(began))


@on_stage
async def test_a_target_is_what_its_description_says(stage: EvalStage) -> None:
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


@on_stage
async def test_a_judge_is_opened_once_and_has_no_tools(stage: EvalStage) -> None:
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


@on_stage
async def test_a_budget_needs_prices_and_a_replay_a_record(stage: EvalStage) -> None:
    with pytest.raises(Fault, match="the prices of other are not known"):
        await targets(stage, options=RunOptions(budget_usd=1.0)).open_target(TargetSpec(name="a", model="acme/other"))
    await targets(stage, options=RunOptions(budget_usd=1.0)).open_target(ACME)
    bare = EvalStage(stage.stage, stage.root, store=None)
    with pytest.raises(Fault, match="there is no record"):
        await targets(bare).open_target(TargetSpec(name="a", model="acme/m", replay=""))
    assert len((await bare.run()).results) == 3


TEXT = """
tests:
  - id: a
    input: Count to 3.
    assertions:
      - {type: contains, value: three}
      - {type: tool-trajectory, mode: exact, expected: [{tool: count, args: {n: 3}}]}
"""


class Equipped(FakeTools):
    rules: tuple[ApprovalRule, ...] = ()
    hooks = None


def spec(**more: object) -> TargetSpec:
    return TargetSpec(name="agent", model="acme/m", toolsets=("numbers",), **more)  # type: ignore[arg-type]


@asynccontextmanager
async def equipped(
    folder: Path, *rules: ApprovalRule, **more: Any
) -> AsyncIterator[tuple[EvalStage, Upstream, Equipped]]:
    tools = Equipped()
    tools.rules = rules

    async def open_tools(names: tuple[str, ...]) -> Equipped:
        assert names == ("numbers",)
        return tools

    async with open_evals(folder, open_tools=open_tools, **more) as (stage, upstream):
        yield stage, upstream, tools


async def test_a_case_is_a_run_of_the_tool_loop(tmp_path: Path) -> None:
    async with equipped(tmp_path, ApprovalRule("count", "allow")) as (stage, upstream, tools):
        upstream.script = [plays(calls(count(3)), stream=False), plays(says("It is three."), stream=False)]
        (result,) = (await stage.run(TEXT, (spec(),))).results
        assert (result.status, result.score.verdict) == ("ok", "pass"), result.score
        said = result.observation
        assert [message.role for message in said.messages] == ["assistant", "tool", "assistant"]
        (use,) = said.tools
        assert (use.name, use.arguments, use.result) == ("count", {"n": 3}, "count 1.1 did it")
        assert use.seconds is not None
        assert (said.requests, len(said.exchanges), result.cached) == (2, 2, False)
        assert said.usage is not None
        assert said.cost
        (began,) = [fact for fact in await stage.stage.facts(said.run) if isinstance(fact, RunBegan)]
        assert (began.session, began.origin["case"], began.origin["eval"]) == ("eval:e_1", "a", "e_1")
        await stage.run(TEXT, (spec(),), run="e_2")
        assert len(upstream.seen) > 2

    assert tools.used
    assert not tools.is_closed


async def test_what_no_toolset_allows_is_denied_with_a_reason_unless_everything_is_approved(tmp_path: Path) -> None:
    async with equipped(tmp_path) as (stage, upstream, _):
        script = [plays(calls(count(3)), stream=False), plays(says("three"), stream=False)]
        upstream.script = [*script, *script, *script]
        (denied,) = (await stage.run(TEXT, (spec(),))).results
        (use,) = denied.observation.tools
        assert (use.is_error, DENIED in use.result) == (True, True)
        for run, result in (
            ("e_2", await stage.run(TEXT, (spec(),), run="e_2", approve=True)),
            ("e_3", await stage.run(TEXT, (spec(approve=True),), run="e_3")),
        ):
            assert result.results[0].observation.tools[0].result.endswith("did it"), run


async def test_a_run_that_reaches_its_limit_has_no_answer(tmp_path: Path) -> None:
    async with equipped(tmp_path, ApprovalRule("count", "allow")) as (stage, upstream, _):
        upstream.script = [plays(calls(count(3)), stream=False)]
        (result,) = (await stage.run(TEXT, (spec(requests=1),))).results
        assert result.status == "execution_error"
        assert "the limit of 1 model requests is reached" in result.observation.error


async def test_conversations_go_on_with_tool_rounds(tmp_path: Path) -> None:
    text = """
tests:
  - id: a
    mode: conversation
    turns:
      - {input: Count to 3., assertions: [{type: contains, value: three}]}
      - {input: And?, assertions: [{type: contains, value: done}]}
"""

    async with equipped(tmp_path, ApprovalRule("count", "allow")) as (stage, upstream, _):
        upstream.script = [plays(each, stream=False) for each in (calls(count(3)), says("three"), says("done"))]
        (result,) = (await stage.run(text, (spec(),))).results
        assert result.score.verdict == "pass"
        roles = [each["role"] for each in upstream.seen[2].json()["messages"]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_a_run_that_is_cut_off_is_left_as_any_other(tmp_path: Path) -> None:
    async with equipped(tmp_path, ApprovalRule("count", "allow")) as (stage, upstream, tools):
        upstream.script = [plays(calls(count(3)), stream=False)]
        begun = asyncio.Event()

        async def never(_call: object) -> None:
            begun.set()
            await asyncio.Event().wait()

        tools.act = never  # type: ignore[assignment]
        task = asyncio.ensure_future(stage.run(TEXT, (spec(),)))
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
        assert tools.cut_off == ["1.1"]
        assert (await stage.evaluation.show("e_1")).state == "stopped"


async def test_every_round_waits_for_its_place(tmp_path: Path) -> None:
    clock = SteppingClock()

    async with equipped(tmp_path, clock=clock) as (stage, upstream, _):
        upstream.script = [plays(calls(count(3)), stream=False), plays(says("It is three."), stream=False)]
        task = asyncio.ensure_future(stage.run(TEXT, (spec(rpm=1),)))
        await clock.asleep(1)
        assert len(upstream.seen) == 1
        await clock.forward(30)
        assert (len(upstream.seen), len(clock.sleepers)) == (1, 1)
        await clock.forward(31)
        (result,) = (await task).results
        assert (result.score.verdict, len(upstream.seen)) == ("pass", 2)


async def test_a_storm_costs_a_round_what_the_one_budget_allows_and_no_more(tmp_path: Path) -> None:
    async with equipped(tmp_path) as (stage, upstream, _):
        upstream.script = [
            plays(calls(count(3)), stream=False),
            answer(429, b'{"error":{"message":"slow down","type":"rate_limit_error"}}'),
        ]
        (result,) = (await stage.run(TEXT, (spec(),))).results
        retries = stage.stage.catalog.providers["acme"].retries(is_stream=False, is_own=True)
        assert len(upstream.seen) == 1 + 1 + retries
        assert (result.status, result.observation.error_code) == ("execution_error", "rate_limited")
