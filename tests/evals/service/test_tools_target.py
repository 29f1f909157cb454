import asyncio
from pathlib import Path

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.core.facts import RunBegan
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.targets import DENIED
from tests.eval_stage import EvalStage, play
from tests.loop_stage import calls, count, says
from tests.running_stage import FakeTools, plays
from tests.stepping_clock import SteppingClock
from tests.upstream import Upstream, answer

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


def staged(folder: Path, story, *rules: ApprovalRule, **more: object) -> Equipped:  # type: ignore[no-untyped-def]
    tools = Equipped()
    tools.rules = rules

    async def equipping(names: tuple[str, ...]) -> Equipped:
        assert names == ("numbers",)
        return tools

    play(story, folder, equipping=equipping, **more)
    return tools


def test_a_case_is_a_run_of_the_tool_loop(tmp_path: Path) -> None:
    async def story(stage: EvalStage, upstream: Upstream) -> None:
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

    tools = staged(tmp_path, story, ApprovalRule("count", "allow"))
    assert tools.used
    assert not tools.is_closed


def test_what_no_toolset_allows_is_denied_with_a_reason_unless_everything_is_approved(tmp_path: Path) -> None:
    async def story(stage: EvalStage, upstream: Upstream) -> None:
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

    staged(tmp_path, story)


def test_a_run_that_reaches_its_limit_has_no_answer(tmp_path: Path) -> None:
    async def story(stage: EvalStage, upstream: Upstream) -> None:
        upstream.script = [plays(calls(count(3)), stream=False)]
        (result,) = (await stage.run(TEXT, (spec(requests=1),))).results
        assert result.status == "execution_error"
        assert "the limit of 1 model requests is reached" in result.observation.error

    staged(tmp_path, story, ApprovalRule("count", "allow"))


def test_conversations_go_on_with_tool_rounds(tmp_path: Path) -> None:
    text = """
tests:
  - id: a
    mode: conversation
    turns:
      - {input: Count to 3., assertions: [{type: contains, value: three}]}
      - {input: And?, assertions: [{type: contains, value: done}]}
"""

    async def story(stage: EvalStage, upstream: Upstream) -> None:
        upstream.script = [plays(each, stream=False) for each in (calls(count(3)), says("three"), says("done"))]
        (result,) = (await stage.run(text, (spec(),))).results
        assert result.score.verdict == "pass"
        roles = [each["role"] for each in upstream.seen[2].json()["messages"]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]

    staged(tmp_path, story, ApprovalRule("count", "allow"))


def test_a_run_that_is_cut_off_is_left_as_any_other(tmp_path: Path) -> None:
    async def story(stage: EvalStage, upstream: Upstream) -> None:
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

    tools = Equipped()
    tools.rules = (ApprovalRule("count", "allow"),)

    async def equipping(_names: tuple[str, ...]) -> Equipped:
        return tools

    play(story, tmp_path, equipping=equipping)


def test_every_round_waits_for_its_place(tmp_path: Path) -> None:
    clock = SteppingClock()

    async def story(stage: EvalStage, upstream: Upstream) -> None:
        upstream.script = [plays(calls(count(3)), stream=False), plays(says("It is three."), stream=False)]
        task = asyncio.ensure_future(stage.run(TEXT, (spec(rpm=1),)))
        await clock.asleep(1)
        assert len(upstream.seen) == 1
        await clock.forward(30)
        assert (len(upstream.seen), len(clock.sleepers)) == (1, 1)
        await clock.forward(31)
        (result,) = (await task).results
        assert (result.score.verdict, len(upstream.seen)) == ("pass", 2)

    staged(tmp_path, story, clock=clock)


def test_a_storm_costs_a_round_what_the_one_budget_allows_and_no_more(tmp_path: Path) -> None:
    async def story(stage: EvalStage, upstream: Upstream) -> None:
        upstream.script = [
            plays(calls(count(3)), stream=False),
            answer(429, b'{"error":{"message":"slow down","type":"rate_limit_error"}}'),
        ]
        (result,) = (await stage.run(TEXT, (spec(),))).results
        retries = stage.stage.catalog.providers["acme"].retries(is_stream=False, is_own=True)
        assert len(upstream.seen) == 1 + 1 + retries
        assert (result.status, result.observation.error_code) == ("execution_error", "rate_limited")

    staged(tmp_path, story)
