import pytest

from sightline.chat.core.trouble import (
    TRIMMED_FOR,
    filter_changed,
    overflow_after_trimming,
    prompt_too_large,
    trouble_of,
)
from sightline.errors import Code, Fault, Numbers

LAST = Fault(Code.CONTEXT_OVERFLOW, "maximum context length is 100", status=400, numbers=Numbers(limit=100))


@pytest.mark.parametrize(
    ("fault", "code", "label"),
    [
        (Fault(Code.AUTH, "no"), "auth", "auth"),
        (Fault(Code.RATE_LIMITED, "slow down"), "rate_limited", "quota"),
        (Fault(Code.NETWORK, "gone"), "network", "net"),
        (Fault(Code.MODEL_UNKNOWN, "who?"), "model_unknown", "model"),
        (Fault(Code.OVERLOADED, "busy"), "overloaded", "unknown"),
        (prompt_too_large(200, 100, 0), "user_prompt_too_large", "quota"),
        (overflow_after_trimming(LAST, 2, 2), "context_overflow_after_trimming", "quota"),
        (filter_changed(LAST), "filter_changed", "unknown"),
        (Fault(Code.CONTEXT_OVERFLOW, "x", details={"code": "context_length_exceeded"}), "context_overflow", "quota"),
        (Fault(Code.CANCELLED, "x", details="text"), "cancelled", "unknown"),
    ],
)
def test_every_failure_has_a_code_and_a_coarse_class(fault: Fault, code: str, label: str) -> None:
    trouble = trouble_of(fault)
    assert (trouble.code, trouble.label, trouble.message, trouble.hint) == (code, label, fault.message, fault.hint)


def test_a_prompt_that_is_too_large_says_by_how_much() -> None:
    assert "2,000 tokens and the model takes 1,000" in prompt_too_large(2000, 1000, 0).message
    assert "300 are taken by the system prompt" in prompt_too_large(2000, 1000, 300).message
    assert "Nothing was sent" in prompt_too_large(2000, 1000, 300).hint


@pytest.mark.parametrize(
    ("trimmed", "attempts", "told"),
    [
        (0, 0, "nothing more could be left out"),
        (1, 1, "1 pair was left out in 1 further attempt;"),
        (3, 2, "3 pairs were left out in 2 further attempts;"),
    ],
)
def test_an_overflow_after_trimming_says_what_was_tried(trimmed: int, attempts: int, told: str) -> None:
    fault = overflow_after_trimming(LAST, trimmed, attempts)
    assert told in fault.message
    assert LAST.message in fault.message
    assert (fault.status, fault.numbers) == (400, LAST.numbers)
    assert "larger window" in fault.hint


def test_a_rate_limit_trims_nothing() -> None:
    assert {Code.CONTEXT_OVERFLOW, Code.REQUEST_TOO_LARGE_FOR_RATE} == TRIMMED_FOR
