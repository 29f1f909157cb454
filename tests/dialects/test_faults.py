"""Errors of providers: faults, waits and numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects import faults
from sightline.dialects.fault_codes import HINTS, STATUS, code_of, is_page, status_of
from sightline.dialects.faults import numbers_of, provider_fault, wait_of
from sightline.dialects.registry import NAMES, dialect
from sightline.errors import LABELS, UNSTATED, Code, Fault, Numbers

OVERFLOW = "prompt is too long: 210000 tokens > 200000 maximum"
KEYS = [
    *("error", "message", "detail", "type", "code", "status", "status_code", "details", "@type", "reason"),
    *("metadata", "raw", "error_type", "msg", "loc", "violations", "quotaId", "quota_limit", "retryDelay"),
    *("retry_after", "n_ctx", "n_prompt_tokens"),
]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


def test_every_code_has_a_status_and_a_hint() -> None:
    assert set(STATUS) == set(HINTS) == set(Code)
    assert all(hint.endswith(".") for hint in HINTS.values())


def test_the_sentences_of_providers_are_compiled_for_the_first_error() -> None:
    faults._patterns.cache_clear()
    assert numbers_of(OVERFLOW) == numbers_of(OVERFLOW)
    assert faults._patterns.cache_info().misses == 1


def test_a_providers_error_becomes_a_fault_with_all_that_it_says() -> None:
    fault = provider_fault(
        400,
        OVERFLOW,
        words=(None, 5, "invalid_request_error"),
        details={"type": "invalid_request_error"},
        headers={"retry-after": "3"},
    )
    assert fault == Fault(
        Code.CONTEXT_OVERFLOW,
        OVERFLOW,
        hint=HINTS[Code.CONTEXT_OVERFLOW],
        status=400,
        retry_after=3.0,
        details={"type": "invalid_request_error"},
        numbers=Numbers(200_000, 210_000, 10_000),
    )
    assert fault.label == LABELS[Code.CONTEXT_OVERFLOW] == "quota"


def test_figures_are_given_only_where_they_count_a_whole_requests_tokens() -> None:
    words = "Limit 30000, Requested 10955 tokens per min"
    assert provider_fault(429, words).numbers == Numbers(30_000, 10_955)
    assert provider_fault(500, words).numbers == UNSTATED


def test_what_is_not_found_is_so_without_a_status_too() -> None:
    assert status_of(provider_fault(0, "no such page", words=("not_found_error",))) == 404


def test_an_error_without_words_still_says_something() -> None:
    assert provider_fault(500, "").message == "the provider answered with status 500 and no message"


def test_a_missing_page_points_at_the_address_and_a_missing_model_at_its_name() -> None:
    assert "base_url" in provider_fault(404, "Not Found").hint
    assert "base_url" in provider_fault(405, "Method Not Allowed").hint
    assert provider_fault(404, "The model `x` does not exist").hint == HINTS[Code.MODEL_UNKNOWN]


def test_a_web_page_is_shown_by_its_title_and_is_kept_whole() -> None:
    page = "<html><head><title>\n Attention\n Required! </title></head>blocked</html>"
    fault = provider_fault(403, page, details=page)
    assert fault.message == "Attention Required! (a web page)"
    assert fault.details == page
    assert "web page" in fault.hint
    assert provider_fault(502, page).hint == HINTS[Code.UPSTREAM_ERROR]
    assert provider_fault(403, "<html>no</html>").message == "<html>no</html>"


def test_a_book_of_an_error_is_read_at_its_beginning() -> None:
    text = f"{'x' * 30_000} {OVERFLOW}"
    fault = provider_fault(400, text)
    assert (fault.code, fault.message) == (Code.INVALID_REQUEST, text)


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault(Code.AUTH, "no"), 401),
        (Fault(Code.AUTH, "no", status=403), 403),
        (Fault(Code.UPSTREAM_ERROR, "no", status=200), 502),
        (Fault(Code.CONTEXT_OVERFLOW, "no", status=413), 400),
        (Fault(Code.CONFIG, "no"), 400),
        (Fault(Code.LOCAL_UNAVAILABLE, "no"), 503),
    ],
)
def test_provider_status_is_used_where_it_fits_the_error(fault: Fault, status: int) -> None:
    assert status_of(fault) == status


@pytest.mark.parametrize("name", NAMES)
@given(status=st.integers(100, 599), body=ANY_JSON, wait=st.text(max_size=20))
def test_any_status_and_any_body_are_a_fault(name: str, status: int, body: object, wait: str) -> None:
    fault = dialect(name).read_error(status, body, {"retry-after": wait})  # type: ignore[arg-type]
    assert isinstance(fault, Fault)
    assert fault.message
    assert fault.hint
    told, written = dialect(name).write_error(fault)
    assert told >= 400
    assert isinstance(dialect(name).read_error(told, written, {}), Fault)


NOW = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT", "Date": NOW}, 35.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": NOW}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:35 GMT", "date": "yesterday"}, None),
        ({"retry-after": "Sun, 31 Feb 2026 07:28:35 GMT", "date": NOW}, None),
        ({"retry-after": "soon", "date": NOW}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "²"}, None),
        ({"retry-after": "9" * 400}, None),
        ({}, None),
    ],
)
def test_a_header_says_how_long_or_until_when(headers: dict[str, str], seconds: float | None) -> None:
    assert wait_of("", headers) == seconds


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please try again in 11.054s.", 11.054),
        ("Please try again in 28ms", 0.028),
        ("try again in 500 milliseconds", 0.5),
        ("Please retry after 35 seconds.", 35.0),
        ("Please try again in 7m12s.", 432.0),
        ("Please try again in 1h2m3.5s", 3723.5),
        ("try again in 1h", 3600.0),
        ("try again in 2 minutes", 120.0),
        ("Try again in 1 hour and 5 mins", 3900.0),
        ("retry in 2 days", 172_800.0),
        ("Please wait 8s.", 8.0),
        ("wait for 1 minute, 30 seconds", 90.0),
        ("Please retry in 45.578569677s.", 45.578569677),
        ("Please retry your request later", None),
        ("try again in 3 messages", None),
        ("try later", None),
    ],
)
def test_words_say_it_too(message: str, seconds: float | None) -> None:
    assert wait_of(message, {}) == seconds


def test_a_header_is_trusted_before_words_and_words_before_a_field() -> None:
    told = {"resets_in_seconds": 90}
    assert wait_of("try again in 5s", {"retry-after": "7"}, told) == 7.0
    assert wait_of("try again in 5s", {}, told) == 5.0
    assert wait_of("slow down", {}, told) == 90.0
    assert wait_of("slow down", {}, {"retry_after": 1.5, "resets_in_seconds": 90}) == 1.5


@pytest.mark.parametrize("details", [None, [], {}, {"retry_after": "soon"}, {"retry_after": -1}, {"retry_after": True}])
def test_a_field_that_is_no_time_says_nothing(details: object) -> None:
    assert wait_of("slow down", {}, details) is None  # type: ignore[arg-type]


@given(
    st.text(max_size=200),
    st.dictionaries(st.sampled_from(["retry-after", "date", "retry-after-ms"]), st.text(max_size=40)),
)
def test_retry_wait_is_none_or_non_negative(message: str, headers: dict[str, str]) -> None:
    wait = wait_of(message, headers)
    assert wait is None or wait >= 0


@pytest.mark.parametrize(
    ("message", "limit", "requested", "excess"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000, 10_000),
        ("prompt is too long: 210,000 tokens > 200,000 maximum", 200_000, 210_000, 10_000),
        ("This model's maximum context length is 128k tokens. However, you requested 140.5K", 128_000, 140_500, 12_500),
        ("maximum context length is 1M tokens, however you requested 1,048,577 tokens", 1_000_000, 1_048_577, 48_577),
        ("maximum context length is 4096 tokens. However, you requested 4104tokens", 4096, 4104, 8),
        ("exceed context limit: 199759 + 8192 > 200000, decrease", 200_000, 207_951, 7951),
        ("`inputs` must have less than 1024 tokens. Given: 1244", 1024, 1244, 220),
        ("Your request exceeded model token limit: 262144 (requested: 300000)", 262_144, 300_000, 37_856),
        ("Input prompt (36893 tokens) is too long and exceeds limit of 1000", 1000, 36_893, 35_893),
        ("length of prompt_tokens (163280) must be less than max_seq_len (32768).", 32_768, 163_280, 130_512),
        ("Prompt tokens limit exceeded: 230799 > 91442. To increase", 91_442, 230_799, 139_357),
        ("Input length 1581 exceeds context length 1500", 1500, 1581, 81),
        ("Prompt too long: 41911 tokens exceeds max context window of 32768 tokens", 32_768, 41_911, 9143),
        ("You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only "
         "202752 tokens", 202_752, 202_753, 1),
        ("input token count is 1200000 but model only supports up to 1048576", 1_048_576, 1_200_000, 151_424),
        ("prompt token count of 131000 exceeds the limit of 128000", 128_000, 131_000, 3000),
        ("Range of input length should be [1, 129024]", 129_024, None, None),
        ("TPM: Limit 30000, Used 29937, Requested 385.", 30_000, 385, None),
        ("exceeded max context length by 15935 tokens", None, None, 15_935),
        ("This model's maximum context length is 8192 tokens", 8192, None, None),
        ("Requested tokens exceed context window of 512", 512, None, None),
    ],
)  # fmt: skip
def test_every_provider_has_its_own_sentence(
    message: str, limit: int | None, requested: int | None, excess: int | None
) -> None:
    assert numbers_of(message) == Numbers(limit, requested, excess)


@pytest.mark.parametrize("message", ["", "Overloaded", "max_tokens must be at least 1, got -186.", "status 400"])
def test_what_is_not_stated_is_not_guessed(message: str) -> None:
    assert numbers_of(message) == UNSTATED


def test_fields_are_more_exact_than_sentences() -> None:
    told = {"n_prompt_tokens": 4031, "n_ctx": 2048}
    assert numbers_of("request (1 tokens) exceeds the available context size (2 tokens)", told) == Numbers(
        2048, 4031, 1983
    )
    assert numbers_of("", {"n_ctx": 2048, "n_prompt_tokens": "many"}) == Numbers(limit=2048)
    assert numbers_of("", {"n_ctx": True, "n_prompt_tokens": -1}) == UNSTATED
    assert numbers_of("", ["n_ctx"]) == UNSTATED


@given(limit=st.integers(1, 10**9), over=st.integers(1, 10**9))
def test_the_excess_follows_from_the_other_two(limit: int, over: int) -> None:
    stated = numbers_of(f"prompt is too long: {limit + over:,} tokens > {limit} maximum")
    assert stated == Numbers(limit, limit + over, over)


@given(st.text(alphabet="0123456789,.km> :()tokensmaximulgrequd+", max_size=400))
def test_any_text_is_read(message: str) -> None:
    stated = numbers_of(message)
    assert stated.excess is None or stated.excess >= 0


SEED = (
    "context_length", "maximum context length", "too many tokens", "context too long", "exceeds context window",
    "request too large", "too large for",
)  # fmt: skip
TRAPS = ("generated", "temperature", "moderate", "operate", "rate", "iterate", "frequency", "quotation", "billings")


def told(status: int, message: str, *words: str, numbers: Numbers = UNSTATED) -> Code:
    return code_of(status, message, words, numbers)


@pytest.mark.parametrize("phrase", SEED)
@pytest.mark.parametrize("status", [0, 200, 400, 422])
def test_the_phrases_of_the_seed_mean_overflow_where_nothing_says_better(phrase: str, status: int) -> None:
    assert told(status, f"Error: {phrase.upper()} model-x") is Code.CONTEXT_OVERFLOW
    assert told(status, f"Error: {phrase} model-x", "invalid_request_error") is Code.CONTEXT_OVERFLOW


@pytest.mark.parametrize("phrase", SEED)
@pytest.mark.parametrize("status", [401, 402, 403, 404, 408, 429, 500, 502, 503, 504, 529])
def test_no_phrase_turns_another_status_into_an_overflow(phrase: str, status: int) -> None:
    assert told(status, f"you wrote: {phrase}") is not Code.CONTEXT_OVERFLOW


@pytest.mark.parametrize("status", [413, 429])
@pytest.mark.parametrize("phrase", ["Request too large for gpt-x", "prompt too large for gpt-x"])
def test_one_request_can_be_too_large_for_the_rate(status: int, phrase: str) -> None:
    assert told(status, f"{phrase} on tokens per min (TPM)", "tokens") is Code.REQUEST_TOO_LARGE_FOR_RATE
    assert told(400, f"{phrase} on tokens per min (TPM)") is Code.REQUEST_TOO_LARGE_FOR_RATE


def test_a_429_is_a_rate_limit_unless_the_figures_say_that_waiting_cannot_help() -> None:
    words = "Rate limit reached on tokens per min (TPM): Limit 7000, Requested 12903"
    assert told(429, words, "rate_limit_exceeded") is Code.RATE_LIMITED
    over = Numbers(7000, 12_903, 5903)
    assert told(429, words, "rate_limit_exceeded", numbers=over) is Code.REQUEST_TOO_LARGE_FOR_RATE
    assert told(429, "too many requests", numbers=over) is Code.RATE_LIMITED
    assert told(429, "this file is too large for us") is Code.RATE_LIMITED
    assert told(429, "", "context_length_exceeded") is Code.CONTEXT_OVERFLOW


@pytest.mark.parametrize(
    ("status", "words", "message", "code"),
    [
        (429, ("insufficient_quota",), "no", Code.QUOTA),
        (429, (), "You exceeded your current quota", Code.QUOTA),
        (429, ("rate_limit_error",), "You exceeded your current quota", Code.RATE_LIMITED),
        (429, (), "Upgrade today at https://x.test/billing_details?out+of+credits", Code.RATE_LIMITED),
        (400, ("invalid_request_error",), "Your credit balance is too low", Code.QUOTA),
        (403, (), "Your team has run out of credits", Code.QUOTA),
        (403, ("permission_error",), "Your input was flagged for violence", Code.CONTENT_FILTERED),
        (403, ("invalid_api_key",), "flagged for review", Code.AUTH),
        (403, (), "no", Code.PERMISSION),
        (404, (), "no such page", Code.INVALID_REQUEST),
        (404, (), "The model `x` does not exist", Code.MODEL_UNKNOWN),
        (404, ("api_error",), 'model "x" not found, try pulling it first', Code.MODEL_UNKNOWN),
        (404, ("NOT_FOUND",), "no such page", Code.INVALID_REQUEST),
        (404, (), "Invalid URL (POST /v1/models/x)", Code.INVALID_REQUEST),
        (0, ("not_found_error",), "model: claude-9", Code.MODEL_UNKNOWN),
        (0, ("NOT_FOUND",), "no such page", Code.INVALID_REQUEST),
        (413, (), "Request Entity Too Large", Code.REQUEST_TOO_LARGE),
        (413, (), "Request too large for model x: too many tokens", Code.CONTEXT_OVERFLOW),
        (413, (), "Request too large for model x, 9000 tokens", Code.CONTEXT_OVERFLOW),
        (413, (), "Request too large for this server, 33 MB", Code.REQUEST_TOO_LARGE),
        (413, ("context_length_exceeded",), "no", Code.CONTEXT_OVERFLOW),
        (400, (), "prompt token count of 131000 exceeds the limit of 128000", Code.CONTEXT_OVERFLOW),
        (400, (), "Range of input length should be [1, 129024]", Code.CONTEXT_OVERFLOW),
        (400, (), "Invalid 'input': string too long. Expected a string with maximum length 9", Code.INVALID_REQUEST),
        (400, (), "max_tokens is too large: 9. This model supports at most 5 completion tokens", Code.INVALID_REQUEST),
        (400, (), "Image is too large for this model: 30 MB", Code.INVALID_REQUEST),
        (400, (), "Request payload size exceeds the limit: 20971520 bytes", Code.REQUEST_TOO_LARGE),
        (400, (), "Unknown parameter: 'context_length'.", Code.INVALID_REQUEST),
        (400, (), "max_tokens is too large for this model: 9000", Code.INVALID_REQUEST),
        (400, (), "Unsupported parameter: 'rate_limit' and 'content_filter'", Code.INVALID_REQUEST),
        (400, (), "'rate' must be one of slow, fast; rate limit", Code.INVALID_REQUEST),
        (400, (), "Incorrect API key provided", Code.AUTH),
        (400, (), "User location is not supported for the API use.", Code.PERMISSION),
        (400, (), "Model Not Exist", Code.MODEL_UNKNOWN),
        (400, (), "The response was filtered: content management policy", Code.CONTENT_FILTERED),
        (400, ("model_decommissioned",), "no", Code.MODEL_UNKNOWN),
        (400, ("api_error",), "does not support tools", Code.INVALID_REQUEST),
        (409, (), "conflict", Code.INVALID_REQUEST),
        (408, (), "late", Code.TIMEOUT_IDLE),
        (498, (), "busy", Code.OVERLOADED),
        (499, (), "gone", Code.CANCELLED),
        (500, ("invalid_request_error",), "odd", Code.UPSTREAM_ERROR),
        (500, ("exceed_context_size_error",), "odd", Code.CONTEXT_OVERFLOW),
        (500, ("api_error",), "maximum context length crashed", Code.UPSTREAM_ERROR),
        (500, (), "your billing limit and credit balance are fine", Code.UPSTREAM_ERROR),
        (500, (), "server busy, please try again", Code.OVERLOADED),
        (501, ("not_supported_error",), "no", Code.INVALID_REQUEST),
        (503, (), "later", Code.OVERLOADED),
        (503, ("model_not_found",), "no channel", Code.MODEL_UNKNOWN),
        (599, (), "odd", Code.UPSTREAM_ERROR),
        (0, ("rate_limit_exceeded",), "Rate limit reached: too many tokens", Code.RATE_LIMITED),
        (0, ("overloaded_error",), "context window", Code.OVERLOADED),
        (0, ("api_error",), "prompt too long", Code.CONTEXT_OVERFLOW),
        (0, ("server_error",), "rate limit", Code.UPSTREAM_ERROR),
        (0, (), "Rate limit exceeded", Code.RATE_LIMITED),
        (0, ("something_new",), "Rate limit exceeded", Code.UPSTREAM_ERROR),
        (0, (), "The engine is overloaded", Code.OVERLOADED),
        (0, (), "oops", Code.UPSTREAM_ERROR),
        (0, ("config",), "oops", Code.CONFIG),
    ],
)
def test_status_then_words_then_sentences(status: int, words: tuple[str, ...], message: str, code: Code) -> None:
    assert told(status, message, *words) is code


@pytest.mark.parametrize("opening", ["<html>", "\n<!DOCTYPE html><title>", "<?xml version='1.0'?>", "<HEAD>"])
def test_a_web_page_says_nothing_but_its_status(opening: str) -> None:
    page = f"{opening} prompt is too long, insufficient credits, the model is overloaded, invalid api key"
    assert is_page(page)
    assert told(400, page) is Code.INVALID_REQUEST
    assert told(403, page) is Code.PERMISSION
    assert told(404, page) is Code.INVALID_REQUEST
    assert told(500, page) is Code.UPSTREAM_ERROR


def test_angle_brackets_alone_are_no_web_page() -> None:
    assert not is_page("<tool-use> prompt is too long")


@pytest.mark.parametrize("trap", TRAPS)
@given(
    status=st.sampled_from([0, 200, 400, 403, 404, 413, 422, 429, 500, 502, 503]),
    before=st.sampled_from(["", "The answer was ", "messages.0: "]),
    after=st.sampled_from(["", " is not a number", "-1 must be below 2", "d and refused"]),
)
def test_a_word_that_only_looks_like_another_changes_nothing(trap: str, status: int, before: str, after: str) -> None:
    assert told(status, f"{before}{trap}{after}") is told(status, f"{before}x{after}")


@given(st.integers(-1, 700), st.text(max_size=300), st.lists(st.text(max_size=20)))
def test_everything_has_a_code(status: int, message: str, words: list[str]) -> None:
    assert told(status, message, *words) in Code
