import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from sightline.agent.core.approval import Policy
from sightline.agent.core.facts import RunBegan
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.run import RunPlan
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.runner import NewRun
from sightline.catalog.compose import Prompt
from sightline.catalog.provider import Route
from sightline.errors import CancelReason, Code, Fault
from sightline.exchange.outbound import compose_request
from sightline.model.exchange import ExchangeCancelled
from sightline.model.parts import Text
from sightline.model.request import FunctionTool, Message
from tests.loop_stage import calls, count, plan, says
from tests.running_stage import FakeTools, RunStage, on_stage, open_stage, plays
from tests.upstream import Upstream, stall


async def test_a_plan_that_says_nothing_gets_what_the_choice_and_the_tools_say(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "anthropic") as (stage, upstream):
        upstream.script = [plays(says(), "anthropic")]
        await stage.run(RunPlan(dialect="", limits=RunLimits(cost=1.0)), origin={"cli": True})
        (began,) = [fact for fact in await stage.facts() if isinstance(fact, RunBegan)]
        assert (began.plan.dialect, began.provider, began.session, began.origin) == (
            "anthropic", "acme", "s", {"cli": True},
        )  # fmt: skip
        assert [each.name for each in began.plan.toolbox.definitions] == ["edit_file", "count", "shell"]
        assert began.plan.prices is not None
        assert (await stage.runner.began("r_1")) == began


@on_stage
async def test_a_request_that_was_composed_before_is_sent_as_it_is(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(says())]
    request = compose_request(stage.prompt("As it is."), stage.choice)
    await stage.run(prompt=request)
    sent = upstream.seen[0].json()
    assert sent["messages"] == [{"role": "user", "content": "As it is."}]
    assert [tool["function"]["name"] for tool in sent["tools"] if tool["type"] == "function"]


@on_stage
async def test_invalid_request_raises_a_fault_and_creates_no_run(stage: RunStage, upstream: Upstream) -> None:
    with pytest.raises(Fault, match="the input is empty"):
        await stage.run(prompt=Prompt(messages=()))
    with pytest.raises(Fault, match="the limit of tool calls is -1"):
        await stage.run(plan(limits=RunLimits(tool_calls=-1)))
    twice = FunctionTool("count", None, {"type": "object"})
    with pytest.raises(Fault) as caught:
        await stage.run(prompt=Prompt((Message("user", (Text("x"),)),), tools=(twice,), verbosity="high"))
    assert caught.value.code is Code.INVALID_REQUEST
    assert (await stage.store.logbook.logs(), upstream.seen) == ([], [])


async def test_runs_are_named_after_their_time(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, _):
        assert [stage.runner.make_id() for _ in range(2)] == ["r_001", "r_002"]


async def test_a_run_that_is_not_under_way_cannot_be_stopped(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, _):
        for act in (lambda: stage.runner.stop("r_9", now=True), lambda: stage.runner.step("r_9", is_on=True)):
            with pytest.raises(Fault, match="not in progress here") as caught:
                act()
            assert caught.value.status == 409


@on_stage
async def test_a_hundred_runs_at_once(stage: RunStage, upstream: Upstream) -> None:
    async def model(talk: object) -> None:
        rounds = len(upstream.seen[-1].json()["messages"])
        await plays(calls(count(1)) if rounds == 1 else says())(talk)

    upstream.script = [model]
    tools = [FakeTools() for _ in range(100)]
    ends = await asyncio.gather(*(stage.run(run=f"r_{n}", tools=each) for n, each in enumerate(tools)))
    assert {ended.why for ended in ends} == {"answered"}
    assert all(len(each.used) <= 2 for each in tools)
    assert len(await stage.runner.list_runs(500)) == 100


@on_stage
async def test_a_run_that_is_taken_up_goes_by_the_route_that_it_took(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(calls(count(1))), plays(says())]
    route = Route(provider="acme", system="merge_all")
    messages = tuple(Message(role, (Text(f"{role} {n}"),)) for n, role in enumerate(("user", "system", "user")))
    stage.person.waits = asyncio.Event()
    new = NewRun(Prompt(messages), replace(stage.choice, route=route), plan(policy=Policy()), "s", "r_1")
    task = asyncio.ensure_future(stage.runner.run(new, RunParticipants(stage.tools, stage.person)))
    await stage.person.is_asked.wait()
    await stage.runner.leave_all()
    assert task.cancelled()
    assert (await stage.runner.show("r_1")).state == "interrupted"
    await stage.runner.leave_all()
    stage.person.waits = None
    await stage.runner.resume("r_1", RunParticipants(stage.tools, stage.person))
    before, after = (seen.json()["messages"][:3] for seen in upstream.seen)
    assert [each["role"] for each in before] == ["system", "user", "user"]
    assert after == before


@pytest.mark.parametrize("how", ["shutdown", "interrupted"])
async def test_an_exchange_under_way_says_why_it_was_cancelled(tmp_path: Path, how: CancelReason) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [stall()]
        task = asyncio.ensure_future(stage.run())
        await upstream.arrived(1)
        if how == "shutdown":
            await stage.runner.leave_all()
        else:
            stage.runner.cancel_because("r_1", how)
            task.cancel()
        await asyncio.wait({task})
        await stage.store.settle()
        assert (await stage.store.facts("x_001"))[-1].fact == ExchangeCancelled(how)
