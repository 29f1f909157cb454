"""Hooks of a run, and how they decide about calls with rules and a person."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Decision, Denied, Policy
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import Approve, RunnableCall
from sightline.agent.service.approvers import FunctionApprover
from sightline.agent.service.driver import CallApproval, RunParticipants
from sightline.agent.service.run_view import RunShown
from sightline.agent.tools.hooks import Event, Hook, Hooks, HookVerdict
from sightline.errors import Code
from sightline.model.parts import Text
from tests.loop_stage import calls, count, limited, plan, says
from tests.running_stage import RunStage, open_stage, plays


def hooks(folder: Path, event: Event, *answers: Any, tools: str = "*") -> tuple[Hooks, list[Any]]:
    """Hooks for one moment that give these answers in turn, the last again and again; and what they were told."""
    told: list[Any] = []

    def hook(given: Any) -> Any:
        told.append(given)
        return answers[min(len(told), len(answers)) - 1]

    return Hooks([Hook(event, hook, tools=tools)], folder=folder, environment={}), told


class HookedRun(NamedTuple):
    """How a run with a hook ended, what was sent, and how it is shown."""

    ended: FinishedRun
    sent: list[Any]
    stage: RunStage
    shown: RunShown


async def run_with(folder: Path, asked: Hooks, wanted: RunPlan | None = None, approver: Any = None) -> HookedRun:
    """A run of two rounds."""
    async with open_stage(folder) as (stage, upstream):
        upstream.script = [plays(calls(count(1))), plays(says("Done."))]
        ended = await stage.run(wanted or plan(), approver, hooks=asked)
        sent = [seen.json()["messages"] for seen in upstream.seen]
        return HookedRun(ended, sent, stage, await stage.runner.show("r_1"))


async def run(
    folder: Path, event: Event, *answers: Any, wanted: RunPlan | None = None
) -> tuple[FinishedRun, list[Any], list[Any], HookedRun]:
    """How a run ended whose hook answers so, what the hook was told, and what was sent."""
    asked, told = hooks(folder, event, *answers)
    hooked = await run_with(folder, asked, wanted)
    return hooked.ended, told, hooked.sent, hooked


async def test_a_hook_can_refuse_a_request(tmp_path: Path) -> None:
    ended, told, sent, _ = await run(tmp_path, "before_request", {"decision": "deny", "reason": "Too dear."})
    assert (ended.why, sent, len(told)) == ("failed", [], 1)
    assert (ended.reply.fault.code, "Too dear." in ended.reply.fault.message) == (Code.PERMISSION, True)


async def test_what_a_hook_says_before_a_request_stays_in_the_conversation(tmp_path: Path) -> None:
    ended, _, sent, _ = await run(tmp_path, "before_request", "It is Monday.", None)
    assert sent[0][-1]["content"] == "It is Monday."
    assert [message["role"] for message in sent[1]] == ["user", "user", "assistant", "tool"]
    assert ended.why == "answered"


async def test_a_hook_can_refuse_a_reply_so_that_nothing_of_it_runs(tmp_path: Path) -> None:
    ended, _, sent, kept = await run(tmp_path, "after_reply", {"decision": "block", "reason": "No tools today."})
    assert (ended.why, len(sent), kept.stage.tools.used) == ("failed", 1, [])


async def test_a_hook_looks_at_calls_that_a_rule_allows_and_its_arguments_run_and_are_seen(tmp_path: Path) -> None:
    ended, told, sent, kept = await run(tmp_path, "before_tool", {"arguments": {"n": 5}})
    assert [call.arguments for call in kept.stage.tools.used] == [{"n": 5}]
    assert ended.rounds[0].calls[0].is_edited
    assert json.loads(sent[1][1]["tool_calls"][0]["function"]["arguments"]) == {"n": 5}
    assert told[0]["call"]["arguments"] == {"n": 1}


async def test_arguments_that_a_hook_wrote_are_held_to_the_schema(tmp_path: Path) -> None:
    ended, _, sent, kept = await run(tmp_path, "before_tool", {"decision": "allow", "arguments": {"n": "many"}})
    assert (kept.stage.tools.used, ended.rounds[0].calls[0].fate) == ([], "denied")
    assert "expected integer" in sent[1][-1]["content"]


async def test_reason_of_a_denying_hook_is_sent_to_the_model(tmp_path: Path) -> None:
    ended, _, sent, _ = await run(tmp_path, "before_tool", {"decision": "deny", "reason": "Not on Mondays."})
    assert (ended.rounds[0].calls[0].fate, ended.rounds[0].calls[0].denied_by) == ("denied", "hook")
    assert sent[1][-1]["content"].endswith("A hook of this run does not allow this call. Not on Mondays.")


@pytest.mark.parametrize("decision", ["deny", "allow"])
async def test_hook_context_about_a_call_is_sent_with_its_result_whether_it_runs_or_not(
    tmp_path: Path, decision: str
) -> None:
    ended, _, sent, _ = await run(tmp_path, "before_tool", {"decision": decision, "context": "Look at the list."})
    assert sent[1][-1] == {"role": "user", "content": "Look at the list."}
    assert ended.rounds[0].context == "Look at the list."


async def test_a_hook_can_send_a_call_to_a_person(tmp_path: Path) -> None:
    _, _, _, kept = await run(tmp_path, "before_tool", {"decision": "ask"})
    assert [call.key for call in kept.stage.person.asked[0].calls] == ["1.1"]


async def test_hook_context_and_reason_are_sent_after_the_tool_results(tmp_path: Path) -> None:
    ended, told, sent, _ = await run(
        tmp_path, "after_tool", {"decision": "deny", "reason": "Check it.", "context": "Psst."}
    )
    assert sent[1][-1] == {"role": "user", "content": "Psst.\nCheck it."}
    assert told[0]["outcome"]["parts"][0]["text"] == "count 1.1 did it"
    assert ended.rounds[0].context == "Psst.\nCheck it."


async def test_a_hook_can_keep_the_model_at_work_and_limits_hold_all_the_same(tmp_path: Path) -> None:
    ended, told, sent, _ = await run(
        tmp_path, "stop", {"decision": "block", "reason": "Test it."}, wanted=limited(requests=4)
    )
    assert (ended.why, len(sent), [each["is_active"] for each in told]) == ("limit", 4, [False, True, True])
    assert "Test it." in sent[2][-1]["content"]


async def test_a_hook_can_end_the_run(tmp_path: Path) -> None:
    ended, _, sent, kept = await run(tmp_path, "after_tool", {"stop": "Enough."})
    assert (ended.why, len(sent), kept.shown.notes) == ("cancelled", 1, ("a hook ended the run: Enough.",))
    assert ended.request.messages[-1].role == "tool"


async def test_a_hook_can_end_the_run_before_anything_is_sent(tmp_path: Path) -> None:
    ended, _, sent, kept = await run(tmp_path, "before_request", {"stop": ""})
    assert (ended.why, sent, kept.shown.notes) == ("cancelled", [], ("a hook ended the run",))


async def test_a_run_with_hooks_can_be_taken_up_without_them(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [plays(calls(count(1))), plays(says())]
        stage.person.waits = asyncio.Event()
        asked, _ = hooks(tmp_path, "before_tool", {"decision": "ask"})
        task = asyncio.ensure_future(stage.run(plan(policy=Policy(otherwise="allow")), hooks=asked))
        await stage.person.is_asked.wait()
        task.cancel()
        await asyncio.wait({task})
        stage.person.waits = None
        ended = await stage.runner.resume("r_1", RunParticipants(stage.tools, stage.person))
        assert (ended.why, len(stage.tools.used), len(stage.person.asked)) == ("answered", 1, 1)


# --- hooks that fail ------------------------------------------------------------------------------


async def run_broken(folder: Path, event: Event) -> HookedRun:
    """A run that allows every call, with a hook that fails."""
    asked = Hooks([Hook(event, "exit 1")], folder=folder, environment={})
    return await run_with(folder, asked, plan(policy=Policy(otherwise="allow")), FunctionApprover("yes"))


async def test_a_failing_hook_before_a_tool_denies_the_call_though_every_call_is_approved(tmp_path: Path) -> None:
    ended, sent, stage, shown = await run_broken(tmp_path, "before_tool")
    assert stage.tools.used == []
    assert (ended.rounds[0].calls[0].fate, ended.rounds[0].calls[0].denied_by) == ("denied", "hook")
    assert sent[1][-1]["content"].endswith(
        "A hook of this run does not allow this call. A check of this run could not be made."
    )
    assert shown.rounds[0].calls[0].denied_by == "hook"
    assert "before_tool hook" in shown.notes[0]


@pytest.mark.parametrize("event", ["before_request", "after_reply"])
async def test_a_failing_hook_around_a_request_ends_the_run_as_a_failure(tmp_path: Path, event: Event) -> None:
    ended, sent, stage, _ = await run_broken(tmp_path, event)
    assert (ended.why, len(sent), stage.tools.used) == ("failed", int(event == "after_reply"), [])
    assert "could not judge" in ended.reply.fault.message


async def test_a_failing_hook_at_the_end_makes_the_run_a_failure_that_keeps_its_words(tmp_path: Path) -> None:
    ended, sent, _, shown = await run_broken(tmp_path, "stop")
    assert (ended.why, ended.rounds[-1].text, len(sent)) == ("failed", "Done.", 2)
    assert "could not judge the end of the run" in shown.rounds[-1].fault.message


async def test_failing_after_tool_hook_is_reported_and_the_result_is_kept(tmp_path: Path) -> None:
    ended, _, stage, shown = await run_broken(tmp_path, "after_tool")
    assert (ended.why, len(stage.tools.used), "after_tool hook" in shown.notes[0]) == ("answered", 1, True)


CALLS = tuple(RunnableCall(key=f"1.{n}", id=str(n), name="count", arguments={"n": n}) for n in (1, 2, 3))


class Desk:
    """Hooks that say what stands in `verdicts` and a person who says what stands in `decisions`."""

    def __init__(self, verdicts: Mapping[str, HookVerdict], decisions: Mapping[str, Decision], policy: Policy) -> None:
        self.verdicts = verdicts
        self.decisions = decisions
        self.shown: list[Approve] = []
        self.approving = CallApproval(self.look, self.decide, policy)

    async def look(self, _event: Event, _number: int, call: RunnableCall) -> HookVerdict | None:
        return self.verdicts.get(call.key) if self.verdicts else None

    async def decide(self, step: Approve) -> Mapping[str, Decision]:
        self.shown.append(step)
        return self.decisions

    def approve(self, step: Approve) -> dict[str, Decision]:
        return asyncio.run(self.approving.approve(step))


def desk(verdicts: Any = None, decisions: Any = None, policy: Policy | None = None) -> Desk:
    return Desk(verdicts or {}, decisions or {}, policy or Policy())


def test_without_hooks_a_person_decides_what_no_rule_allows() -> None:
    at = desk(decisions={"1.2": Denied("No."), "1.3": AnsweredByHand((Text("3"),))})
    decided = at.approve(Approve(1, CALLS, {}, ("1.1",)))
    assert decided == {"1.1": Allowed(), "1.2": Denied("No."), "1.3": AnsweredByHand((Text("3"),))}
    assert [call.key for call in at.shown[0].calls] == ["1.2", "1.3"]


def test_hooks_deny_allow_and_ask_before_any_person() -> None:
    verdicts = {
        "1.1": HookVerdict("deny", "Not here."),
        "1.2": HookVerdict("allow", context="Mind the gap."),
        "1.3": HookVerdict("ask"),
    }
    at = desk(verdicts, {"1.3": Allowed(rule=ApprovalRule("count", "allow"))})
    decided = at.approve(Approve(1, CALLS, {}, ("1.3",)))
    assert decided == {
        "1.1": Denied("Not here.", by="hook"),
        "1.2": Allowed(),
        "1.3": Allowed(rule=ApprovalRule("count", "allow")),
    }
    assert at.approving.contexts["1.2"] == "Mind the gap."
    assert [call.key for call in at.shown[0].calls] == ["1.3"]


def test_call_without_any_hook_or_user_decision_stays_open() -> None:
    assert desk().approve(Approve(1, CALLS)) == {}


def test_arguments_that_a_hook_changed_are_shown_and_run_unless_the_person_changes_them() -> None:
    changed = HookVerdict(arguments={"n": 7})
    at = desk({"1.1": changed, "1.2": changed, "1.3": changed}, {"1.1": Allowed(), "1.2": Allowed({"n": 8})})
    decided = at.approve(Approve(1, CALLS))
    assert decided == {"1.1": Allowed({"n": 7}), "1.2": Allowed({"n": 8})}
    assert [call.arguments for call in at.shown[0].calls] == [{"n": 7}] * 3


def test_a_rule_for_the_old_arguments_says_nothing_of_those_that_a_hook_wrote() -> None:
    policy = Policy((ApprovalRule("count", "allow", {"/n": "1"}), ApprovalRule("count", "allow", {"/n": "7"})))
    at = desk(
        {"1.1": HookVerdict(arguments={"n": 9}), "1.2": HookVerdict(arguments={"n": 7}), "1.3": HookVerdict()},
        {},
        policy,
    )
    decided = at.approve(Approve(1, CALLS, {}, ("1.1", "1.3")))
    assert decided == {"1.2": Allowed({"n": 7}), "1.3": Allowed()}
    assert [call.key for call in at.shown[0].calls] == ["1.1"]


def test_invalid_arguments_from_a_hook_are_denied_without_a_prompt() -> None:
    at = desk({"1.1": HookVerdict("allow", arguments={"n": "x"})}, {"1.2": Allowed()})
    first = at.approve(Approve(1, CALLS[:1]))
    assert first == {"1.1": Allowed({"n": "x"})}
    again = at.approve(Approve(1, CALLS[:2], {"1.1": "n is no integer", "1.2": "neither"}))
    assert again == {
        "1.1": Denied("It changed the arguments to some that cannot be used: n is no integer", by="hook"),
        "1.2": Allowed(),
    }
    assert at.shown[-1].objections == {"1.2": "neither"}
