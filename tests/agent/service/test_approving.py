import asyncio
from collections.abc import Mapping
from typing import Any

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Decision, Denied, Policy
from sightline.agent.core.steps import Approve, RunnableCall
from sightline.agent.service.hook_points import CallApproval
from sightline.agent.tools.hooks import HookVerdict
from sightline.model.parts import Text

CALLS = tuple(RunnableCall(key=f"1.{n}", id=str(n), name="count", arguments={"n": n}) for n in (1, 2, 3))


class Desk:
    """Hooks that say what stands in `verdicts` and a person who says what stands in `decisions`."""

    def __init__(self, verdicts: Mapping[str, HookVerdict], decisions: Mapping[str, Decision], policy: Policy) -> None:
        self.verdicts = verdicts
        self.decisions = decisions
        self.shown: list[Approve] = []
        self.approving = CallApproval(self.look, self.decide, policy)

    async def look(self, _number: int, call: RunnableCall) -> HookVerdict | None:
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


def test_a_call_about_which_nobody_says_anything_is_left_open() -> None:
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


def test_arguments_of_a_hook_that_the_tool_does_not_take_are_nobodys_to_correct() -> None:
    at = desk({"1.1": HookVerdict("allow", arguments={"n": "x"})}, {"1.2": Allowed()})
    first = at.approve(Approve(1, CALLS[:1]))
    assert first == {"1.1": Allowed({"n": "x"})}
    again = at.approve(Approve(1, CALLS[:2], {"1.1": "n is no integer", "1.2": "neither"}))
    assert again == {
        "1.1": Denied("It changed the arguments to some that cannot be used: n is no integer", by="hook"),
        "1.2": Allowed(),
    }
    assert at.shown[-1].objections == {"1.2": "neither"}
