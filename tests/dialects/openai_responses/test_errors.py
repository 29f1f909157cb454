import pytest

from sightline.dialects.openai_chat.errors import read_error, write_error
from sightline.dialects.openai_responses.names import read_failure, write_failure
from sightline.errors import Code, Fault


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("context_length_exceeded", Code.CONTEXT_OVERFLOW),
        ("rate_limit_exceeded", Code.RATE_LIMITED),
        ("invalid_prompt", Code.INVALID_REQUEST),
        ("bio_policy", Code.INVALID_REQUEST),
        ("image_too_large", Code.INVALID_REQUEST),
        ("failed_to_download_image", Code.INVALID_REQUEST),
        ("image_content_policy_violation", Code.CONTENT_FILTERED),
        ("cyber_policy", Code.CONTENT_FILTERED),
        ("misalignment_policy_violation", Code.CONTENT_FILTERED),
        ("vector_store_timeout", Code.TIMEOUT_IDLE),
        ("server_error", Code.UPSTREAM_ERROR),
        ("cancelled", Code.CANCELLED),
        ("something_new", Code.UPSTREAM_ERROR),
        (None, Code.UPSTREAM_ERROR),
    ],
)
def test_the_code_of_a_failed_reply_says_what_it_is(code, expected):
    error = {"code": code, "message": "It went wrong."}
    fault = read_failure(error)
    assert (fault.code, fault.message) == (expected, "It went wrong.")


@pytest.mark.parametrize("error", [None, "boom", {}, {"message": 3}])
def test_a_failure_without_words_is_still_one(error):
    assert read_failure(error).code is Code.UPSTREAM_ERROR
    assert read_failure(error).message


def test_a_cancelled_reply_says_so_even_without_words():
    assert read_failure({"code": "cancelled"}).message == "the reply was cancelled at the provider"


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.REQUEST_TOO_LARGE_FOR_RATE])
def test_what_we_write_is_read_as_the_same_or_as_the_nearest_that_this_api_can_say(code):
    theirs = (Code.UPSTREAM_ERROR, Code.UPSTREAM_PROTOCOL, Code.NETWORK, Code.LOCAL_UNAVAILABLE)
    ours = (Code.TRANSLATION_LOSS, Code.USAGE, Code.CONFIG)
    nearest = Code.UPSTREAM_ERROR if code in theirs else Code.INVALID_REQUEST if code in ours else code
    nearest = Code.QUOTA if code is Code.CAP_REACHED else nearest  # OpenAI has one word for what is paid for
    assert read_failure(write_failure(Fault(code, "words"))).code is nearest


def test_a_request_too_large_for_the_rate_is_known_by_its_words():
    fault = Fault(Code.REQUEST_TOO_LARGE_FOR_RATE, "Request too large on tokens per min (TPM)")
    assert read_failure(write_failure(fault)).code is Code.REQUEST_TOO_LARGE_FOR_RATE


def test_bodies_are_those_of_both_openai_apis():
    status, body = write_error(Fault(Code.CONTEXT_OVERFLOW, "too long"))
    assert status == 400
    assert body["error"] == {
        "message": "too long",
        "type": "invalid_request_error",
        "param": None,
        "code": "context_length_exceeded",
    }
    assert read_error(status, body, {}).code is Code.CONTEXT_OVERFLOW
