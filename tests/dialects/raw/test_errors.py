import pytest

from sightline.dialects.raw.errors import read_error, write_error
from sightline.errors import Code, Fault, Numbers


@pytest.mark.parametrize("code", list(Code))
def test_every_code_is_said_and_heard(code):
    status, body = write_error(Fault(code, "words"))
    assert status >= 400
    assert body == {"error": {"code": code.value, "message": "words"}}
    fault = read_error(status, body, {})
    assert (fault.code, fault.message, fault.status) == (code, "words", status)


def test_a_wait_that_was_asked_for_is_kept():
    fault = read_error(429, {"error": {"code": "rate_limited", "message": "slow"}}, {"Retry-After": "3"})
    assert fault.retry_after == 3.0
    assert fault.hint


def test_a_foreign_word_is_classified_by_what_it_says():
    body = {"error": {"code": "context_length_exceeded", "message": "too long", "type": "x"}}
    assert read_error(400, body, {}).code is Code.CONTEXT_OVERFLOW
    assert read_error(500, {"error": {"code": 5, "message": 6}}, {}).code is Code.UPSTREAM_ERROR


@pytest.mark.parametrize(("body", "message"), [("gone", "gone"), ({"error": "gone"}, "gone")])
def test_a_bare_text_is_the_message(body, message):
    assert read_error(502, body, {}).message == message


@pytest.mark.parametrize("body", [None, [], {}, {"error": None}])
def test_a_body_that_says_nothing_is_still_a_fault(body):
    assert "502" in read_error(502, body, {}).message


def test_figures_and_hints_come_with_our_own_words_too():
    told = "prompt is too long: 9 tokens > 5 maximum"
    fault = read_error(400, {"error": {"code": "context_overflow", "message": told}}, {})
    assert fault.numbers == Numbers(5, 9, 4)
    assert fault.hint
