import asyncio

import pytest

from sightline.agent.core.approval import Allowed, AnsweredByHand, Decision, Denied
from sightline.agent.core.limits import Reached
from sightline.agent.core.steps import Approve, Confirm, RunnableCall
from sightline.agent.service.approvers import Approval, Judging, Said, deny_unattended
from sightline.model.parts import Text

CALL = RunnableCall(key="1.1", id="a", name="count", arguments={"n": 1})
BY_HAND = AnsweredByHand((Text("7"),))


def decided(approve: Approval, objection: str = "") -> Decision:
    step = Approve(1, (CALL,), {"1.1": objection} if objection else {})
    return asyncio.run(Judging(approve).approve("r_1", step))["1.1"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "decision"),
    [
        (True, Allowed()),
        (False, Denied()),
        ("not now", Denied("not now")),
        ({"n": 2}, Allowed({"n": 2})),
        (BY_HAND, BY_HAND),
        (Denied("no"), Denied("no")),
    ],
)
def test_what_a_function_says_is_what_is_decided(said: Said, decision: Decision) -> None:
    async def later(_call: RunnableCall) -> Said:
        return said

    assert decided(lambda _call: said) == decision
    assert decided(later) == decision


def test_yes_is_yes_and_nobody_is_no() -> None:
    assert decided("yes") == Allowed()
    assert decided(deny_unattended) == Denied(by="nobody")


def test_arguments_that_cannot_be_used_are_not_asked_for_twice() -> None:
    assert decided("yes", "n is missing") == Denied("n is missing")


def test_limits_stay_and_what_was_interrupted_is_not_run_again_unless_that_was_said() -> None:
    async def told(judge: Judging) -> tuple[bool, object]:
        confirmed = await judge.confirm("r_1", Confirm(1, Reached("requests", 1, 1, 2)))
        return confirmed, await judge.mid_flight("r_1", [CALL])

    assert asyncio.run(told(Judging("yes"))) == (False, {"1.1": "skip"})
    assert asyncio.run(told(Judging("yes", interrupted="again"))) == (False, {"1.1": "again"})
