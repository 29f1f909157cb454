from typing import Any

import pytest

from sightline.dialects.gemini.errors import read_error, write_error
from sightline.errors import Code, Fault

RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "35.5s"}
QUOTA = "You exceeded your current quota, please check your plan and billing details."


def body(code, status, message="no", **more):
    return {"error": {"code": code, "message": message, "status": status, **more}}


@pytest.mark.parametrize(
    ("status", "word", "message", "code"),
    [
        (400, "INVALID_ARGUMENT", "bad", Code.INVALID_REQUEST),
        (400, "FAILED_PRECONDITION", "location", Code.INVALID_REQUEST),
        (404, "NOT_FOUND", "models/x is not found", Code.MODEL_UNKNOWN),
        (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", Code.RATE_LIMITED),
        (429, "RESOURCE_EXHAUSTED", QUOTA, Code.QUOTA),
        (499, "CANCELLED", "cancelled", Code.CANCELLED),
        (503, "UNAVAILABLE", "The model is overloaded.", Code.OVERLOADED),
    ],
)
def test_google_errors_map_to_their_codes(status, word, message, code):
    fault = read_error(status, body(status, word, message), {})
    assert (fault.code, fault.message, fault.status) == (code, message, status)
    # in a stream the body alone tells the status
    assert read_error(0, body(status, word, message), {}).code is code


def test_a_bad_key_is_an_auth_fault_although_its_status_is_400():
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    fault = read_error(400, body(400, "INVALID_ARGUMENT", "API key not valid.", details=[info]), {})
    assert fault.code is Code.AUTH
    assert "API key" in fault.hint


def test_a_quota_that_tells_when_to_come_back_is_a_rate_limit():
    fault = read_error(429, [body(429, "RESOURCE_EXHAUSTED", QUOTA, details=["odd", {"x": 1}, RETRY])], {})
    assert (fault.code, fault.retry_after) == (Code.RATE_LIMITED, 35.5)
    assert read_error(429, body(429, "RESOURCE_EXHAUSTED", details=[RETRY]), {"Retry-After": "9"}).retry_after == 9


def exhausted(message, *details):
    return read_error(429, body(429, "RESOURCE_EXHAUSTED", message, details=list(details)), {})


def violation(quota):
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": ["odd", {"quotaId": quota}]}


def test_which_limit_was_hit_tells_whether_waiting_helps():
    minute = violation("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")
    day = violation("GenerateRequestsPerDayPerProjectPerModel-FreeTier")
    assert exhausted(QUOTA, minute).code is Code.RATE_LIMITED
    assert exhausted(QUOTA, minute, day, RETRY).code is Code.QUOTA
    assert exhausted(QUOTA, {"@type": "x", "metadata": {"quota_limit": "RequestsPerDay"}}).code is Code.QUOTA
    assert exhausted("Quota exceeded for limit 'Requests per day'").code is Code.QUOTA
    assert exhausted(f"{QUOTA} limit: 0, model: x. Please retry in 4s.").code is Code.QUOTA
    assert exhausted(f"{QUOTA} Please retry in 4s.").retry_after == 4
    assert exhausted(f"{QUOTA} Please retry in 4s.").code is Code.RATE_LIMITED
    assert exhausted(QUOTA, {"@type": "x", "violations": 5}).code is Code.QUOTA
    assert exhausted(QUOTA, minute).hint != exhausted(QUOTA, day).hint


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("<html>", "<html>"),
        (None, "the provider answered with status 502 and no message"),
        ([], "the provider answered with status 502 and no message"),
        ({"error": "flat"}, "flat"),
        ({"error": {"message": 5, "code": "x", "details": {}}}, "the provider answered with status 502 and no message"),
        ({"message": "bare"}, "bare"),
    ],
)
def test_bodies_of_any_shape_are_read(given, message):
    fault = read_error(502, given, {})
    assert (fault.code, fault.message) == (Code.UPSTREAM_ERROR, message)


def test_a_delay_that_is_no_delay_is_none():
    odd = {"@type": RETRY["@type"], "retryDelay": "soon"}
    assert read_error(429, body(429, "RESOURCE_EXHAUSTED", details=[odd, {"@type": "x"}]), {}).retry_after is None


@pytest.mark.parametrize("code", list(Code))
def test_every_fault_has_an_error_body(code):
    status, written = write_error(Fault(code, "words"))
    error: Any = written["error"]
    assert error["code"] == status
    assert error["message"].endswith("words")
    assert error["status"].isupper()


def test_what_is_not_found_stays_so():
    assert write_error(Fault(Code.INVALID_REQUEST, "no", status=404)) == (404, body(404, "NOT_FOUND"))


def test_details_are_kept_and_retry_delay_is_written_once():
    fault = read_error(429, body(429, "RESOURCE_EXHAUSTED", details=[RETRY]), {})
    assert write_error(fault)[1] == body(429, "RESOURCE_EXHAUSTED", details=[RETRY])
    told: Any = write_error(Fault(Code.RATE_LIMITED, "slow", retry_after=2.0, details={"type": "rate_limit_error"}))[1]
    assert told["error"]["details"] == [{"@type": RETRY["@type"], "retryDelay": "2s"}]
    told = write_error(Fault(Code.RATE_LIMITED, "slow", retry_after=0.25))[1]
    assert told["error"]["details"] == [{"@type": RETRY["@type"], "retryDelay": "0.25s"}]


def test_overflow_is_an_invalid_argument():
    status, written = write_error(Fault(Code.CONTEXT_OVERFLOW, "prompt is too long", status=413))
    error: Any = written["error"]
    assert (status, error["status"], error["message"]) == (400, "INVALID_ARGUMENT", "prompt is too long")
    status, written = write_error(Fault(Code.CONTEXT_OVERFLOW, "no room"))
    assert read_error(status, written, {}).code is Code.CONTEXT_OVERFLOW
