"""What a target did."""

from sightline.evals.core.result import CaseObservation, ToolUse


def test_what_is_not_known_is_none_and_not_nothing() -> None:
    seen = CaseObservation()
    assert (seen.usage, seen.cost, seen.seconds) == (None, None, None)


def test_a_call_keeps_a_string_that_holds_no_value() -> None:
    assert ToolUse(name="run", arguments="{broken").arguments == "{broken"
