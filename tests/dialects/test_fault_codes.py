import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.fault_codes import code_of, is_page
from sightline.errors import UNSTATED, Code, Numbers

SEED = (
    "context_length",
    "maximum context length",
    "too many tokens",
    "context too long",
    "exceeds context window",
    "request too large",
    "too large for",
)
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
