from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Denied, Policy
from sightline.agent.core.output import Cap, ToolOutcome, text_outcome
from sightline.agent.core.pending import CANCELLED, Pending, RunPolicy
from sightline.agent.core.steps import RunnableCall
from sightline.model.parts import Text
from tests.loop_stage import COUNT, count

CALL = RunnableCall(key="1.1", id="a", name="count", arguments={"n": 1})


def pending() -> Pending:
    return Pending("1.1", count(1, "a"), "a", CALL)


def test_a_policy_asks_allows_or_denies() -> None:
    call = pending()
    assert RunPolicy(Policy(), Cap()).ruling(call, CALL) == "ask"
    assert RunPolicy(Policy(otherwise="allow"), Cap()).ruling(call, CALL) != "ask"
    assert call.fate is None
    assert RunPolicy(Policy((ApprovalRule("*", "deny", reason="No."),)), Cap()).ruling(call, CALL) != "ask"
    assert (call.fate, call.outcome) == (
        "denied",
        text_outcome("A rule of this run does not allow this call. No.", is_error=True),
    )


def test_what_nobody_decides_is_cancelled() -> None:
    call = pending()
    assert RunPolicy(Policy(), Cap()).decide(call, None, COUNT) == ""
    assert (call.fate, call.outcome) == ("cancelled", text_outcome(CANCELLED, is_error=True))


def test_a_person_can_answer_in_place_of_the_tool() -> None:
    call = pending()
    RunPolicy(Policy(), Cap()).decide(call, AnsweredByHand((Text("One."),), is_error=True), COUNT)
    assert (call.fate, call.outcome) == ("answered", ToolOutcome((Text("One."),), is_error=True))


def test_a_decision_for_more_than_one_call_becomes_a_rule() -> None:
    deciding = RunPolicy(Policy(), Cap())
    assert deciding.decide(pending(), Allowed(rule=ApprovalRule("count", "allow", {"/n": "1"})), COUNT) == ""
    assert deciding.ruling(pending(), CALL) != "ask"
    other = RunnableCall(key="1.2", id="b", name="count", arguments={"n": 2})
    assert deciding.ruling(pending(), other) == "ask"
    deciding.decide(pending(), Denied("No.", ApprovalRule("count", "deny")), COUNT)
    assert deciding.ruling(pending(), other) != "ask"


def test_arguments_are_edited_only_into_what_the_tool_takes() -> None:
    deciding, call = RunPolicy(Policy(), Cap()), pending()
    rule = ApprovalRule("*", "allow")
    assert "expected integer" in deciding.decide(call, Allowed({"n": "x"}, rule), COUNT)
    assert deciding.ruling(pending(), CALL) == "ask", "a decision that cannot be followed leaves no rule"
    assert not call.is_edited
    assert deciding.decide(call, Allowed({"n": 2}), COUNT) == ""
    assert call.is_edited
    assert call.ready is not None
    assert call.ready.arguments == {"n": 2}


def test_arguments_cannot_be_edited_into_what_a_rule_denies() -> None:
    deciding = RunPolicy(Policy((ApprovalRule("count", "deny", {"/n": "13"}, "Bad luck."),)), Cap())
    assert deciding.decide(pending(), Allowed({"n": 13}), COUNT) == "A rule denies this call. Bad luck."
