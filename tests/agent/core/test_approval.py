"""Rules, decisions and what they do to a call."""

import pytest

from sightline.agent.core.approval import Allowed, ApprovalRule, Denied, Policy
from sightline.agent.core.arguments import Repair
from sightline.agent.core.limits import Reached
from sightline.agent.core.rounds import DENIED, Pending, RunPolicy
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Cap, text_outcome
from sightline.model.json import JsonObject
from sightline.model.parts import ToolCall
from tests.loop_stage import COUNT, count


def test_without_rules_the_policy_says_what_otherwise_holds() -> None:
    assert Policy().ruling("x", {}).ruling == "ask"
    assert Policy(otherwise="allow").ruling("x", {}).ruling == "allow"


def test_the_first_rule_decides_and_one_that_denies_comes_before_all() -> None:
    allow, ask, deny = (
        ApprovalRule("read_*", "allow"),
        ApprovalRule("*", "ask"),
        ApprovalRule("*_secret", "deny", reason="Never."),
    )
    policy = Policy((allow, ask, deny))
    assert policy.ruling("read_file", {}) == allow
    assert policy.ruling("write_file", {}) == ask
    assert policy.ruling("read_secret", {}) == deny
    assert policy.prepend(ApprovalRule("write_file", "allow")).ruling("write_file", {}).ruling == "allow"
    assert policy.prepend(ApprovalRule("*", "allow")).ruling("read_secret", {}) == deny


@pytest.mark.parametrize(
    ("pattern", "arguments", "fits"),
    [
        ("src/*", {"path": "src/a.py"}, True),
        ("src/*", {"path": "src/a/b.py"}, False),
        ("src/**", {"path": "src/a/b.py"}, True),
        ("src/**", {"path": "src/../etc/passwd"}, False),
        ("src\\**", {"path": "src\\..\\x"}, False),
        ("**", {"path": ".."}, False),
        ("a..b*", {"path": "a..b/"}, False),
        ("a..b*", {"path": "a..bc"}, True),
        ("../x", {"path": "../x"}, True),
        ("git status*", {"path": "git status\nrm -r ."}, False),
        ("git status", {"path": "git status "}, False),
        ("a.c", {"path": "abc"}, False),
        ("***/b", {"path": "a/c/b"}, True),
        ("a\n*", {"path": "a\nb"}, True),
        ("src/*", {}, False),
        ("4?", {"path": 42}, False),
        ("42", {"path": 42}, True),
        ("[[]1,2]", {"path": [1, 2]}, False),
        ("[1,*]", {"path": [1, 2]}, True),
    ],
)
def test_patterns_over_arguments(pattern: str, arguments: JsonObject, *, fits: bool) -> None:
    assert ApprovalRule("write", "allow", {"/path": pattern}).covers("write", arguments) is fits
    assert not ApprovalRule("write", "allow", {"/path": pattern}).covers("read", arguments)


def test_many_stars_of_an_argument_pattern_take_no_time() -> None:
    for pattern in ("*a*a*a*a*a*b", "**a**a**b", "*a**a" * 100 + "*b"):
        rule = ApprovalRule("write", "allow", {"/path": pattern})
        assert not rule.covers("write", {"path": "a" * 20_000})
        assert rule.covers("write", {"path": "a" * 20_000 + "b"})


def test_rule_for_free_text_arguments_uses_the_empty_pointer() -> None:
    rule = ApprovalRule("shell", "allow", {"": "ls *"})
    assert rule.covers("shell", "ls -l")
    assert not rule.covers("shell", "rm x")


def test_all_patterns_must_fit() -> None:
    rule = ApprovalRule("move", "allow", {"/from": "a/*", "/to": "b/*"})
    assert rule.covers("move", {"from": "a/1", "to": "b/1"})
    assert not rule.covers("move", {"from": "a/1", "to": "c/1"})


READY = RunnableCall(key="1.1", id="a", name="count", arguments={"n": 1}, repairs=(Repair("/n", "x"),))


def test_a_call_goes_back_under_the_id_that_it_is_sent_with() -> None:
    assert Pending("1.1", count(1, "a"), "a_2", READY).echo == count(1, "a_2")


def test_a_call_that_ran_is_recorded_with_what_the_tool_was_given() -> None:
    pending = Pending("1.1", count('"1"', "a"), "a_2", READY)
    pending.settle("ran", text_outcome("x" * 900), Cap(characters=100))
    record = pending.record
    assert (record.fate, record.ran, record.sent_id, record.repairs) == ("ran", {"n": 1}, "a_2", READY.repairs)
    assert record.outcome == pending.outcome != text_outcome("x" * 900)
    assert pending.meaning == {"n": 1}


def test_a_call_that_was_refused_is_known_by_what_the_model_wrote() -> None:
    pending = Pending("1.1", ToolCall("a", "nope", "{"), "a")
    pending.settle("refused", text_outcome("no"), Cap())
    assert (pending.meaning, pending.record.ran, pending.record.sent_id) == ("{", None, None)
    assert pending.echo.arguments == "{"


def test_each_way_not_to_run_has_its_words() -> None:
    pending = Pending("1.1", count(1, "a"), "a", READY)
    pending.deny("", Cap())
    assert pending.outcome == text_outcome(DENIED["user"], is_error=True)
    pending.exceed(Reached("cost", 1.5, 2.0), Cap())
    assert (pending.fate, pending.outcome) == (
        "limit",
        text_outcome("This call was not run: the limit of 1.5 US dollars is reached.", is_error=True),
    )


def test_edited_free_text_goes_back_as_the_model_wrote_it() -> None:
    for kind, arguments in (("custom", "ls -l"), ("function", '{"input":"ls -l"}')):
        pending = Pending("1.1", ToolCall("a", "shell", "ls", kind), "a")
        pending.ready = RunnableCall(key="1.1", id="a", name="shell", arguments="ls")
        pending.edit("ls -l")
        assert pending.echo.arguments == arguments


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
    assert call.ready.arguments == {"n": 2}


def test_arguments_cannot_be_edited_into_what_a_rule_denies() -> None:
    deciding = RunPolicy(Policy((ApprovalRule("count", "deny", {"/n": "13"}, "Bad luck."),)), Cap())
    assert deciding.decide(pending(), Allowed({"n": 13}), COUNT) == "A rule denies this call. Bad luck."
