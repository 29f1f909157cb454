"""Errors of providers: faults, waits and numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.faults import HINTS, STATUS, numbers_of, provider_fault, status_of, wait_of
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
def test_the_status_is_the_providers_own_where_it_told_one(fault: Fault, status: int) -> None:
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
def test_whatever_was_said_a_wait_is_none_or_no_less_than_nothing(message: str, headers: dict[str, str]) -> None:
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
