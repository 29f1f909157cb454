"""The calls below /api/runs, and whoever waits at the other end of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sightline.agent.api.runs import ResumeForChat, Runs, run_calls
from sightline.agent.core.approval import Policy
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.core.run import RunPlan
from sightline.agent.service.approvers import SavedRule, SavedRules
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.runner import NewRun
from sightline.agent.tools.opening import OpenToolsets, Toolsets
from sightline.errors import Code, Fault
from sightline.exchange.hub import FactQueue
from sightline.model.parts import ToolCall
from sightline.web import replies
from sightline.web.routes import ApiCall, Routes
from tests.loop_stage import calls, count, limited, plan, says
from tests.running_stage import RunStage, news, open_stage, plays, stuck_tools
from tests.upstream import Upstream

ASKING = plan(policy=Policy())


@dataclass
class Desk:
    """The API of a stage, whose configured tools are the stage's own."""

    stage: RunStage
    runs: Runs
    routes: Routes

    async def call(self, path: str, body: Any = None) -> Any:
        """What the API answers, as JSON; a fault is one with its status."""
        path, _, query = path.partition("?")
        methods, names = self.routes.find(path)

        async def receive() -> dict[str, Any]:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            return {"type": "http.request", "body": b"" if body is None else data}

        handler = methods["GET" if body is None else "POST"]
        try:
            answer = replies.json(await handler(ApiCall(names, query, receive)))
        except Fault as fault:
            answer = replies.failure(fault)
        told = json.loads(answer.body)
        return told if answer.status == 200 else (answer.status, told["error"]["message"])

    def begin(self, wanted: RunPlan, **more: Any) -> "asyncio.Task[FinishedRun]":
        """A run that asks the page."""
        settings: dict[str, Any] = {"id": "r_1", "origin": {"toolsets": ["mine"]}, **more}
        runner, stage = self.stage.runner, self.stage
        new = NewRun(stage.prompt(), stage.choice, wanted, "s", **settings)
        work = runner.run(new, RunParticipants(stage.tools, runner.questions))
        return asyncio.get_running_loop().create_task(work)

    async def begin_waiting(
        self, wanted: RunPlan = ASKING, **more: Any
    ) -> tuple["asyncio.Task[FinishedRun]", FactQueue]:
        """A run that waits for the page, and what is told of it from then on."""
        watch = self.stage.hub.watch()
        task = self.begin(wanted, **more)
        await news(watch, "waiting")
        return task, watch


class Placed(OpenToolsets):
    """The stage's tools, of which one has a place."""

    @property
    def places(self) -> dict[str, str]:
        """Only that one."""
        return {"count": "python /sums.py"}


async def not_joined(_chat: str, _pair: str, _run: str) -> bool:
    return False


@asynccontextmanager
async def open_desk(folder: Path, *, joining: ResumeForChat = not_joined) -> AsyncIterator[tuple[Desk, Upstream]]:
    async with open_stage(folder) as (stage, upstream):

        async def opening(_names: Sequence[str]) -> OpenToolsets:
            return Placed((stage.tools,), None)

        runs = Runs(stage.runner, Toolsets(("mine",), opening), joining, SavedRules(folder))
        try:
            yield Desk(stage, runs, Routes(run_calls(runs))), upstream
        finally:
            await runs.close()


async def test_a_call_is_approved_on_the_page_with_other_arguments(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as (desk, upstream):
        upstream.script = [plays(calls(count(1, "a"), count(2, "b"), count(3, "c"))), plays(says())]
        task, watch = await desk.begin_waiting()
        shown = await desk.call("runs/r_1")
        assert (shown["state"], shown["pending"]["step"]) == ("waiting", "approve")
        assert [call["key"] for call in shown["pending"]["calls"]] == ["1.1", "1.2", "1.3"]
        some = {"1.1": {"decision": "allowed", "arguments": {"n": 9}}, "1.2": {"decision": "denied", "reason": "No."}}
        less = await desk.call("runs/r_1/decide", {"decisions": some})
        assert [call["key"] for call in less["pending"]["calls"]] == ["1.3"]
        by_hand = {"1.3": {"decision": "answered", "text": "three", "is_error": False}}
        await desk.call("runs/r_1/decide", {"decisions": by_hand})
        ended = await task
        assert [call.fate for call in ended.rounds[0].calls] == ["ran", "denied", "answered"]
        assert [call.arguments for call in desk.stage.tools.used] == [{"n": 9}]
        (line,) = await desk.call("runs?limit=5")
        assert (line["id"], line["state"], line["origin"]) == ("r_1", "ended", {"toolsets": ["mine"]})
        watch.close()


@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_limit_is_raised_on_the_page_or_not(tmp_path: Path, *, goes_on: bool) -> None:
    async with open_desk(tmp_path) as (desk, upstream):
        upstream.script = [plays(calls(count(1))), plays(says())]
        task, watch = await desk.begin_waiting(limited(requests=1, behaviour="confirm"))
        pending = (await desk.call("runs/r_1"))["pending"]
        assert (pending["step"], pending["reached"]["raised"], "reached" in pending["words"]) == ("confirm", 2, True)
        await desk.call("runs/r_1/confirm", {"goes_on": goes_on})
        assert (await task).why == ("answered" if goes_on else "limit")
        watch.close()


async def test_a_run_is_stopped_on_the_page(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as (desk, upstream):
        desk.stage.tools, begun = stuck_tools()
        upstream.script = [plays(calls(count(1)))]
        task = desk.begin(plan())
        await begun.wait()
        await desk.call("runs/r_1/stop", {"now": False})
        assert not task.done()
        await desk.call("runs/r_1/stop", {"now": True})
        with pytest.raises(Fault, match="was left"):
            await task
        assert desk.stage.tools.cut_off == ["1.1"]
        assert (await desk.call("runs/r_1"))["state"] == "interrupted", "it can be taken up"


async def test_stepping_is_switched_on_and_off(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as (desk, upstream):
        upstream.script = [plays(calls(count(1))), plays(says())]
        task, watch = await desk.begin_waiting()
        assert (await desk.call("runs/r_1/step", {"on": True}))["is_stepping"]
        await desk.call("runs/r_1/decide", {"decisions": {"1.1": {"decision": "allowed"}}})
        while (pending := (await desk.call("runs/r_1"))["pending"]) is None or pending["step"] != "hold":
            await anext(watch)
        assert pending == {"step": "hold", "exchange": "x_002"}
        holds = desk.stage.relay.holds
        holds.release("x_002", holds.hold_of("x_002").draft.sha256)
        assert (await task).why == "answered"
        watch.close()


@pytest.mark.parametrize("told_before", [True, False])
async def test_a_run_that_was_left_is_taken_up_on_the_page(tmp_path: Path, *, told_before: bool) -> None:
    async with open_desk(tmp_path) as (desk, upstream):
        desk.stage.tools, begun = stuck_tools()
        upstream.script = [plays(calls(count(1))), plays(says())]
        task = desk.begin(plan())
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
        left = await desk.call("runs/r_1")
        assert (left["state"], left["pending"]["step"]) == ("interrupted", "mid_flight")
        desk.stage.tools.act = None
        watch = desk.stage.hub.watch()
        answer = {"mid_flight": {"1.1": "again"}}
        taken = await desk.call("runs/r_1/resume", answer if told_before else {})
        assert taken["state"] in ("running", "waiting")
        if not told_before:
            await news(watch, "waiting")
            assert (await desk.call("runs/r_1"))["pending"]["step"] == "mid_flight"
            await desk.call("runs/r_1/resume", answer)
        await news(watch, "ended")
        shown = await desk.call("runs/r_1")
        assert (shown["why"], shown["rounds"][0]["calls"][0]["fate"]) == ("answered", "ran")
        watch.close()


async def test_run_with_command_line_tools_cannot_be_resumed_over_the_api(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as (desk, upstream):
        upstream.script = [plays(calls(count(1)))]
        task, watch = await desk.begin_waiting(origin={"cli": True})
        status, message = await desk.call("runs/r_1/resume", {})
        assert (status, "command line" in message) == (409, True)
        task.cancel()
        await asyncio.wait({task})
        watch.close()


async def test_what_cannot_be_done_is_refused_in_words(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as (desk, upstream):
        upstream.script = [plays(says())]
        assert (await desk.call("runs/r_9"))[0] == 404
        assert (await desk.call("runs/%00"))[0] == 404
        for order in ("decide", "confirm", "stop", "step", "resume"):
            body = {"decide": {"decisions": {}}, "confirm": {"goes_on": True}, "step": {"on": True}}.get(order, {})
            assert (await desk.call(f"runs/r_9/{order}", body))[0] == 404
        await desk.begin(plan())
        assert await desk.call("runs/r_1/stop", {}) == (409, "the run 'r_1' is not in progress here")
        assert (await desk.call("runs/r_1/decide", {"decisions": {}}))[0] == 409
        assert (await desk.call("runs/r_1/confirm", {"goes_on": True}))[0] == 409
        assert await desk.call("runs/r_1/resume", {}) == (409, "the run r_1 has ended")
        for wrong in ({"decisions": []}, {"decisions": {"1.1": {"decision": "perhaps"}}}, {}, {"more": 1}):
            assert (await desk.call("runs/r_1/decide", wrong))[0] == 422
        assert (await desk.call("runs/r_1/stop", b"{"))[0] == 400
        assert (await desk.call("runs?limit=many"))[0] == 400


async def test_to_close_leaves_what_was_taken_up_so_that_it_can_be_taken_up_again(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as (desk, upstream):
        upstream.script = [plays(calls(count(1)))]
        task, watch = await desk.begin_waiting()
        task.cancel()
        await asyncio.wait({task})
        await desk.call("runs/r_1/resume", {})
        await news(watch, "waiting")
        await desk.runs.close()
        assert (await desk.call("runs/r_1"))["state"] == "interrupted"
        watch.close()


async def test_a_rule_for_all_runs_is_kept_for_the_tool_that_waits_and_no_other(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as (desk, upstream):
        upstream.script = [plays(calls(count(1))), plays(calls(count(1))), plays(says())]
        task, watch = await desk.begin_waiting()
        rule = {"tool": "count", "ruling": "allow", "arguments": {"/n": "1"}}
        decision = {"decision": "allowed", "rule": rule, "always": True}
        assert (await desk.call("runs/r_1/decide", {"decisions": {"9.9": decision}}))[0] == 409
        assert SavedRules(tmp_path).all() == (), "a call that does not wait brings no rule"
        await desk.call("runs/r_1/decide", {"decisions": {"1.1": decision}})
        assert ((await task).why, len(desk.stage.tools.used)) == ("answered", 2)
        assert SavedRules(tmp_path).all() == (SavedRule("count", "python /sums.py", {"/n": "1"}),)
        (shown,) = await desk.call("approvals")
        assert shown["words"] == "count (/n like 1)"
        gone = {name: shown[name] for name in ("tool", "place", "arguments")}
        assert await desk.call("approvals/forget", gone) == []
        assert await desk.call("approvals/forget", gone) == (404, "no such rule about 'count' is kept")
        watch.close()


async def test_a_rule_that_cannot_be_kept_leaves_the_call_waiting(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as (desk, upstream):
        upstream.script = [plays(calls(ToolCall("c", "shell", "ls"))), plays(says())]
        task, watch = await desk.begin_waiting()
        decision = {"decision": "allowed", "rule": {"tool": "shell", "ruling": "allow"}, "always": True}
        refused = await desk.call("runs/r_1/decide", {"decisions": {"1.1": decision}})
        assert refused == (409, "it is not known where the tool 'shell' comes from")
        assert (await desk.call("runs/r_1"))["state"] == "waiting"
        await desk.call("runs/r_1/decide", {"decisions": {"1.1": {"decision": "allowed"}}})
        await task
        watch.close()


@pytest.mark.parametrize("answer", ["yes", "no", "fault"])
async def test_the_run_of_a_pair_goes_on_there_if_it_can(tmp_path: Path, answer: str) -> None:
    joined: list[tuple[str, str, str]] = []

    async def joining(chat: str, pair: str, run: str) -> bool:
        joined.append((chat, pair, run))
        if answer == "fault":
            raise Fault(Code.USAGE, "an answer is still arriving", status=409)
        return answer == "yes"

    async with open_desk(tmp_path, joining=joining) as (desk, upstream):
        upstream.script = [plays(calls(count(1)))]
        task, watch = await desk.begin_waiting(origin={"kind": "chat", "pair": "p_1", "toolsets": ["mine"]})
        task.cancel()
        await asyncio.wait({task})
        taken = await desk.call("runs/r_1/resume", {})
        assert joined == [("main", "p_1", "r_1")]
        if answer == "fault":
            assert taken == (409, "an answer is still arriving")
        else:
            assert (taken["state"] == "interrupted") is (answer == "yes"), "only what nobody takes runs here alone"
        watch.close()
