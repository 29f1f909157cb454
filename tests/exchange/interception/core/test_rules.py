import pytest

from sightline.errors import Code, Fault
from sightline.exchange.interception.core.rules import (
    EVERY,
    MOST_RULES,
    NO_RULES,
    Interception,
    InterceptionRule,
    Rules,
)
from sightline.filters.predicate import Known

OPUS = Known({"model": "claude-opus", "session": "blue", "dialect": "anthropic"}, "please delete the database")


def decided(rules: Rules, phase: str = "request") -> InterceptionRule | None:
    return rules.decide(OPUS, phase, now=0.0)[0]  # type: ignore[arg-type]


def test_the_first_rule_that_matches_decides() -> None:
    rules = Rules.of([{"filter": "model:gpt-*"}, {"filter": "session:blue", "action": "pass"}, {"filter": ""}])
    rule = decided(rules)
    assert (rule.filter, rule.action) == ("session:blue", "pass")


def test_no_rule_and_no_match_decide_nothing() -> None:
    assert decided(NO_RULES) is None
    assert not NO_RULES
    assert decided(Rules.of([{"filter": "m'gpt-*'"}])) is None


def test_the_filter_language_is_that_of_the_traffic() -> None:
    told = 'model:claude-* & dialect:anthropic & text:"delete the" & !(session:red | session:green)'
    assert decided(Rules.of([{"filter": told}])) is not None


def test_each_phase_is_decided_by_itself() -> None:
    rules = Rules.of([{"filter": "", "phase": "tool_calls", "action": "drop"}, {"filter": "", "timeout_s": 3}])
    request, calls = decided(rules), decided(rules, "tool_calls")
    assert (request.action, request.timeout_s, request.on_timeout) == ("hold", 3, "send")
    assert calls.action == "drop"


def test_a_rule_for_once_is_used_up_by_its_first_match() -> None:
    rules = Rules.of([{"filter": "session:blue", "once": True}, {"filter": "", "action": "pass"}])
    first, rest = rules.decide(OPUS, "request", now=0.0)
    second, same = rest.decide(OPUS, "request", now=0.0)
    assert first.once
    assert second.action == "pass"
    assert same is rest
    assert [rule.action for rule in rules.rules] == ["hold", "pass"]


def test_rules_come_and_go_as_json() -> None:
    told = [{"filter": "model:a*", "action": "hold", "phase": "tool_calls", "once": True, "timeout_s": 1.5,
             "on_timeout": "drop"}]  # fmt: skip
    assert Rules.of(told).plain() == told  # type: ignore[arg-type]
    assert InterceptionRule(filter="", action="hold") == EVERY


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "a JSON list"),
        ([{"filter": ""}] * (MOST_RULES + 1), "at most 1000"),
        ([{"filter": ""}, {"filter": "", "colour": "red"}], "rule 2: .*colour"),
        ([{"filter": "", "action": "hide"}], "rule 1: .*hide"),
        ([{"filter": 3}], "rule 1: "),
        ([{"filter": "", "timeout_s": 0}], "rule 1: timeout_s is more than 0"),
        ([{"filter": "", "timeout_s": 1e9}], "rule 1: timeout_s"),
        ([{"filter": "", "once": "yes"}], "rule 1: "),
        ([{"filter": "", "action": "\ud800"}], "rule 1: "),
    ],
)
def test_a_bad_list_is_refused_whole(told: object, words: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        Rules.of(told)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.status) == (Code.INVALID_REQUEST, 422)
    assert caught.value.hint


@pytest.mark.parametrize("told", ["modell:x", "model:", "(model:a", "latest:3"])
def test_a_bad_filter_is_pointed_at(told: str) -> None:
    with pytest.raises(Fault, match="rule 2: filter, column") as caught:
        Rules.of([{"filter": ""}, {"filter": told}])
    assert "^" in caught.value.hint
    assert caught.value.status == 422


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        ([], False),
        ([{"filter": ""}], False),
        ([{"filter": "", "phase": "tool_calls"}], True),
        ([{"filter": "model:gpt", "phase": "tool_calls"}], False),
        ([{"filter": "", "phase": "tool_calls", "action": "pass"}], False),
        ([{"filter": "tool:Bash", "phase": "tool_calls"}], True),
        ([{"filter": "!tool:Read", "phase": "tool_calls"}], True),
        ([{"filter": "model:x & (tool:Bash | session:red)", "phase": "tool_calls"}], True),
        ([{"filter": "model:gpt & session:red", "phase": "tool_calls"}], False),
    ],
)
def test_what_asks_for_the_tools_of_a_reply_has_to_see_the_reply(rules: list[object], wanted: bool) -> None:
    assert Rules.of(rules).may_want_calls(OPUS, now=0.0) is wanted  # type: ignore[arg-type]


ONE = Known({"model": "m"})
CALLS = Rules.of([{"filter": "", "phase": "tool_calls"}])
ONCE = Rules.of([{"filter": "", "once": True}])


def test_nothing_is_stopped_at_first() -> None:
    fresh = Interception()
    assert (fresh.mode, fresh.is_idle) == ("off", True)
    assert fresh.decide(ONE, "request", now=0.0) == (None, fresh)


def test_rules_decide_unless_it_is_off() -> None:
    on = Interception().with_rules(ONCE)
    rule, after = on.decide(ONE, "request", now=0.0)
    assert rule.once
    assert after.is_idle
    off = on.with_mode("off")
    assert off.is_idle
    assert off.decide(ONE, "request", now=0.0)[0] is None
    assert not Interception().with_rules(CALLS).with_mode("off").may_want_calls(ONE, now=0.0)
    assert Interception().with_rules(CALLS).may_want_calls(ONE, now=0.0)


def test_until_a_person_chooses_a_mode_rules_switch_it_on_and_their_end_switches_it_off() -> None:
    on = Interception().with_rules(CALLS)
    assert (on.mode, on.with_rules(NO_RULES).mode) == ("rules", "off")
    again = Interception.of(Interception().plain())
    assert again.with_rules(CALLS).mode == "rules", "also after a restart"
    waiting = Interception().with_mode("next").with_rules(CALLS)
    assert (waiting.mode, waiting.decide(ONE, "request", now=0.0)[1].mode) == ("next", "rules")
    assert waiting.decide(ONE, "request", now=0.0)[1].with_rules(NO_RULES).mode == "off"
    chosen = Interception().with_mode("off")
    assert chosen.with_rules(CALLS).mode == "off"
    assert Interception.of(chosen.plain()).with_rules(CALLS).mode == "off"
    assert Interception().with_mode("rules").with_rules(NO_RULES).mode == "rules"


def test_a_rule_for_always_changes_nothing() -> None:
    on = Interception().with_rules(CALLS)
    assert on.decide(ONE, "tool_calls", now=0.0)[1] is on


def test_every_request_is_held_and_calls_stay_with_the_rules() -> None:
    every = Interception().with_mode("every")
    assert not every.is_idle
    assert every.decide(ONE, "request", now=0.0) == (EVERY, every)
    assert every.decide(ONE, "tool_calls", now=0.0)[0] is None
    assert every.with_rules(CALLS).decide(ONE, "tool_calls", now=0.0)[0] is not None


@pytest.mark.parametrize("before", ["off", "every", "rules"])
def test_the_next_request_is_held_and_then_it_is_as_before(before: str) -> None:
    waiting = Interception().with_rules(CALLS).with_mode(before).with_mode("next").with_mode("next")
    assert not waiting.is_idle
    assert waiting.may_want_calls(ONE, now=0.0) is (before != "off")
    rule, after = waiting.decide(ONE, "request", now=0.0)
    assert (rule, after.mode) == (EVERY, before)


def test_there_are_four_modes() -> None:
    with pytest.raises(Fault, match="no mode 'some'") as caught:
        Interception().with_mode("some")
    assert caught.value.hint == "Known modes: off, next, every, rules."


def test_it_can_be_kept() -> None:
    told = Interception().with_rules(CALLS).with_mode("off").with_mode("next")
    again = Interception.of(told.plain())
    assert again.plain() == told.plain() == {"mode": "next", "before": "off", "rules": CALLS.plain()}
    with pytest.raises(Fault, match="mode"):
        Interception.of({"mode": "some", "before": "off", "rules": []})
