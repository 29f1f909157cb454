from typing import Any

import pytest

from sightline.dialects.anthropic.errors import error_body, error_fields, is_error, read_error, write_error
from sightline.errors import Code, Fault
from sightline.model.events import FieldReceived


def error_of(fault) -> dict[str, Any]:
    error = error_body(fault)["error"]
    assert isinstance(error, dict)
    return error


def body(kind, message="no", **more):
    return {"type": "error", "error": {"type": kind, "message": message, **more}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("status", "kind", "message", "code"),
    [
        (400, "invalid_request_error", "messages: roles", Code.INVALID_REQUEST),
        (404, "not_found_error", "model: claude-9", Code.MODEL_UNKNOWN),
        (413, "request_too_large", "Request exceeds the maximum size", Code.REQUEST_TOO_LARGE),
        (504, "timeout_error", "took too long", Code.TIMEOUT_IDLE),
        (529, "overloaded_error", "Overloaded", Code.OVERLOADED),
        (200, "overloaded_error", "Overloaded", Code.OVERLOADED),
    ],
)
def test_each_error_maps_to_its_code_and_keeps_its_message(status, kind, message, code):
    fault = read_error(status, body(kind, message), {"retry-after": "7"})
    assert (fault.code, fault.message, fault.retry_after) == (code, message, 7.0)
    assert fault.details == {"type": kind, "message": message}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        (None, "the provider answered with status 502 and no message"),
        ({"detail": "x"}, '{"detail":"x"}'),
        ({"error": "x"}, '{"error":"x"}'),
        ({"error": {"message": 5}}, '{"message":5}'),
    ],
)
def test_any_body_is_an_error(document, message):
    assert read_error(502, document, {}).message == message


def test_an_error_code_is_kept_for_the_client():
    details = {"error_code": "thread_unsupported_request"}
    fault = read_error(400, body("invalid_request_error", details=details), {})
    assert write_error(fault) == (
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "no", "details": details}},
    )


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        (Fault(Code.INVALID_REQUEST, "m"), 400, "invalid_request_error"),
        (Fault(Code.AUTH, "m", status=401), 401, "authentication_error"),
        (Fault(Code.MODEL_UNKNOWN, "m"), 404, "not_found_error"),
        (Fault(Code.INVALID_REQUEST, "m", status=404), 404, "not_found_error"),
        (Fault(Code.REQUEST_TOO_LARGE, "m"), 413, "request_too_large"),
        (Fault(Code.RATE_LIMITED, "m", status=429, details={"details": {}}), 429, "rate_limit_error"),
        (Fault(Code.QUOTA, "m", status=429, details={"code": "insufficient_quota"}), 429, "billing_error"),
        (Fault(Code.OVERLOADED, "m"), 529, "overloaded_error"),
        (Fault(Code.OVERLOADED, "m", status=200), 529, "overloaded_error"),
        (Fault(Code.OVERLOADED, "m", status=503), 503, "overloaded_error"),
        (Fault(Code.TIMEOUT_IDLE, "m"), 504, "timeout_error"),
        (Fault(Code.NETWORK, "m"), 502, "api_error"),
    ],
)
def test_every_fault_has_status_and_type(fault, status, kind):
    assert write_error(fault) == (status, {"type": "error", "error": {"type": kind, "message": "m"}})


def test_every_code_has_a_type():
    assert all(error_of(Fault(code, "m"))["type"] for code in Code)


def test_context_overflow_uses_the_message_clients_recognise():
    fault = Fault(Code.CONTEXT_OVERFLOW, "maximum context length is 8192 tokens", status=413)
    assert write_error(fault)[0] == 400
    assert error_of(fault)["message"] == "prompt is too long: maximum context length is 8192 tokens"
    again = Fault(Code.CONTEXT_OVERFLOW, "Prompt is too long: 9 tokens")
    assert error_of(again)["message"] == "Prompt is too long: 9 tokens"


def test_an_error_that_came_in_a_stream_keeps_its_kind():
    fault = read_error(200, body("not_found_error", "no such file"), {})
    assert error_of(fault)["type"] == "not_found_error"
    assert write_error(fault)[0] == 404


def test_extra_error_fields_are_reported():
    details = {"error_code": "x"}
    assert error_fields(body("api_error", details=details, none=None), "/3") == [
        FieldReceived("/3/request_id", "req_1"),
        FieldReceived("/3/error/details", details),
    ]
    # Where the words are the whole error, nothing of it stands beside them.
    assert error_fields({"error": {"code": 5}}, "") == []
    assert error_fields({"error": "x"}, "") == []


def test_an_error_in_place_of_an_answer():
    assert is_error(body("api_error"))
    assert is_error({"error": {"message": "relayed"}})
    assert not is_error({"type": "message", "error": {}})
