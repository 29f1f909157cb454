import pytest

from sightline.errors import Fault
from sightline.exchange.interception.core.rules import EVERY, NO_RULES, Interception, Rules
from sightline.filters.predicate import Known

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
    assert rule is not None
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
