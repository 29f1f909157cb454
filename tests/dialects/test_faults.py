import pytest

from sightline.dialects.faults import HINTS, STATUS, provider_fault, status_of
from sightline.errors import Code, Fault


def test_every_code_has_a_status() -> None:
    assert set(STATUS) == set(Code)


@pytest.mark.parametrize(
    ("status", "words", "message", "code"),
    [
        (
            400,
            ("context_length_exceeded",),
            "This model's maximum context length is 8192 tokens",
            Code.CONTEXT_OVERFLOW,
        ),
        (400, ("invalid_request_error",), "prompt is too long: 210000 tokens > 200000 maximum", Code.CONTEXT_OVERFLOW),
        (
            400,
            ("INVALID_ARGUMENT",),
            "The input token count (9) exceeds the maximum number of tokens allowed (5).",
            Code.CONTEXT_OVERFLOW,
        ),
        (0, ("context_length_exceeded",), "Your input exceeds the context window", Code.CONTEXT_OVERFLOW),
        (429, ("rate_limit_exceeded",), "Rate limit reached: too many tokens, try again in 11.054s", Code.RATE_LIMITED),
        (
            429,
            ("tokens",),
            "Request too large for gpt on tokens per min (TPM): Limit 1, Requested 2",
            Code.REQUEST_TOO_LARGE_FOR_RATE,
        ),
        (429, ("insufficient_quota",), "You exceeded your current quota, check your plan and billing", Code.QUOTA),
        (400, ("invalid_request_error",), "Your credit balance is too low", Code.QUOTA),
        (402, (), "pay first", Code.QUOTA),
        (401, ("authentication_error",), "invalid x-api-key", Code.AUTH),
        (401, (), "no", Code.AUTH),
        (403, ("permission_error",), "no", Code.PERMISSION),
        (404, ("not_found_error",), "model: claude-9", Code.MODEL_UNKNOWN),
        (404, (), "no such page", Code.INVALID_REQUEST),
        (0, ("not_found_error",), "model: claude-9", Code.MODEL_UNKNOWN),
        (0, ("NOT_FOUND",), "no such page", Code.INVALID_REQUEST),
        (400, ("content_filter",), "The response was filtered", Code.CONTENT_FILTERED),
        (400, ("invalid_request_error",), "messages: at least one", Code.INVALID_REQUEST),
        (422, (), "no", Code.INVALID_REQUEST),
        (500, ("invalid_request_error",), "odd", Code.UPSTREAM_ERROR),
        (413, (), "big", Code.REQUEST_TOO_LARGE),
        (529, ("overloaded_error",), "Overloaded", Code.OVERLOADED),
        (503, (), "later", Code.OVERLOADED),
        (500, ("api_error",), "maximum context length crashed", Code.UPSTREAM_ERROR),
        (504, (), "slow", Code.TIMEOUT_IDLE),
        (0, ("server_error",), "oops", Code.UPSTREAM_ERROR),
    ],
)
def test_provider_errors_are_told_apart(status: int, words: tuple[str, ...], message: str, code: Code) -> None:
    fault = provider_fault(status, message, words=(*words, None))
    assert fault.code is code
    assert fault.message == message
    assert fault.hint == HINTS[code]


def test_what_is_not_found_is_so_without_a_status_too() -> None:
    assert status_of(provider_fault(0, "no such page", words=("not_found_error",))) == 404


def test_an_error_without_words_still_says_something() -> None:
    assert provider_fault(500, "").message == "the provider answered with status 500 and no message"


@pytest.mark.parametrize(
    ("message", "headers", "seconds"),
    [
        ("", {"Retry-After": "7"}, 7.0),
        ("", {"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ("", {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ("Please try again in 11.054s.", {}, 11.054),
        ("Please try again in 28ms", {}, 0.028),
        ("please retry after 35 seconds", {}, 35.0),
        ("try again in 2 minutes", {}, 120.0),
        ("try later", {}, None),
    ],
)
def test_how_long_to_wait_is_heard_in_headers_and_words(
    message: str, headers: dict[str, str], seconds: float | None
) -> None:
    assert provider_fault(429, message, headers=headers).retry_after == seconds


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault(Code.AUTH, "no"), 401),
        (Fault(Code.AUTH, "no", status=403), 403),
        (Fault(Code.UPSTREAM_ERROR, "no", status=200), 502),
        (Fault(Code.CONTEXT_OVERFLOW, "no", status=413), 400),
    ],
)
def test_the_status_is_the_providers_own_where_it_told_one(fault: Fault, status: int) -> None:
    assert status_of(fault) == status
