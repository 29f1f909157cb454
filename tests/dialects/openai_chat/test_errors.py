import json

import pytest

from sightline.dialects.openai_chat.errors import error_object, finish_fault, read_error
from sightline.errors import Code, Fault
from sightline.model.events import Failed
from sightline.wire.sse import Frame
from tests.dialects.openai_chat.telling import DIALECT

write_error = DIALECT.write_error


def told(status, error):
    return read_error(status, {"error": error}, {})


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (400, {"message": "maximum context length is 8192", "code": "context_length_exceeded"}, Code.CONTEXT_OVERFLOW),
        (429, {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}, Code.RATE_LIMITED),
        (500, {"message": "The server had an error", "type": "server_error"}, Code.UPSTREAM_ERROR),
    ],
)
def test_a_providers_error_keeps_its_words_and_gets_its_code(status, error, code):
    fault = told(status, error)
    assert (fault.code, fault.message, fault.status, fault.details) == (code, error["message"], status, error)


def test_errors_of_other_shapes_still_say_what_they_say():
    assert told(502, "Bad gateway").message == "Bad gateway"
    assert read_error(400, {"detail": "no such field"}, {}).message == "no such field"
    assert read_error(400, {"object": "error", "message": "too long", "code": 400}, {}).message == "too long"
    assert read_error(500, "<html>oops</html>", {}).message == "<html>oops</html>"
    assert read_error(500, None, {}).code is Code.UPSTREAM_ERROR
    assert told(400, {"message": None, "type": None}).code is Code.INVALID_REQUEST


def test_a_status_inside_a_stream_is_believed_and_elsewhere_not():
    assert told(0, {"message": "slow down", "code": 429}).status == 429
    assert told(0, {"message": "slow down", "code": "429"}).code is Code.RATE_LIMITED
    assert read_error(0, {"message": "quota exceeded", "code": 429}, {}).code is Code.RATE_LIMITED
    assert told(400, {"message": "bad", "code": 503}).status == 400
    assert told(0, {"message": "bad", "code": 7}).status == 0


@pytest.mark.parametrize("place", ["code", "status_code", "status", "raw_status_code"])
def test_a_stream_tells_its_status_in_one_of_many_places(place):
    assert told(0, {"message": "no", place: 429}).code is Code.RATE_LIMITED
    assert told(0, {"message": "no", place: True}).status == 0
    assert told(0, {"message": "no", place: "4290"}).status == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"message": {"detail": [{"loc": ["body", "n", 0], "msg": "not permitted"}]}}, "body.n.0: not permitted"),
        ({"detail": [{"msg": "bad"}, {"loc": ["x"], "msg": "odd"}]}, "bad; x: odd"),
        ({"detail": [{"loc": ["x"]}, "plain"]}, '{"loc":["x"]}; "plain"'),
        ({"message": {"detail": "one"}}, "one"),
        ({"message": {}, "detail": "two"}, "two"),
        ({"error": ["three"]}, '"three"'),
        ({"error": {"message": "four", "detail": "five"}}, "four"),
    ],
)
def test_a_list_of_problems_is_read_as_sentences(body, message):
    assert read_error(422, body, {}).message == message


@pytest.mark.parametrize(
    ("raw", "message", "code"),
    [
        ("slow down", "wrapped: slow down", Code.INVALID_REQUEST),
        ('{"error": {"message": "no", "code": "model_not_found"}}', "wrapped: no", Code.MODEL_UNKNOWN),
        ({"error": {"message": "no", "status": "PERMISSION_DENIED"}}, "wrapped: no", Code.PERMISSION),
        ({"type": "billing_error", "message": "no"}, "wrapped: no", Code.QUOTA),
        ({"error": "prompt is too long"}, "wrapped: prompt is too long", Code.CONTEXT_OVERFLOW),
        ({"odd": 1}, 'wrapped: {"odd":1}', Code.INVALID_REQUEST),
        ('{"error": {"mess', 'wrapped: {"error": {"mess', Code.INVALID_REQUEST),
        (None, "wrapped", Code.INVALID_REQUEST),
    ],
)
def test_another_providers_error_inside_is_the_one_that_counts(raw, message, code):
    fault = told(400, {"message": "wrapped", "metadata": {"raw": raw, "provider_name": "x"}})
    assert (fault.message, fault.code) == (message, code)


def test_a_router_may_name_the_kind_itself():
    fault = told(400, {"message": "no", "code": 400, "metadata": {"error_type": "context_length_exceeded"}})
    assert fault.code is Code.CONTEXT_OVERFLOW
    assert told(400, {"message": "no", "metadata": "odd"}).code is Code.INVALID_REQUEST


def test_the_error_of_a_chunk_says_more_than_its_finish_word():
    chunk = {
        "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}],
        "error": {"code": 429, "message": "Gone"},
    }
    reader = DIALECT.stream_reader()
    events = reader.feed(Frame(json.dumps(chunk).encode())) + reader.close()
    faults = [event.fault for event in events if isinstance(event, Failed)]
    assert [(fault.code, fault.message) for fault in faults] == [(Code.RATE_LIMITED, "Gone")]


@pytest.mark.parametrize("code", Code)
def test_every_fault_has_a_body_with_the_providers_words(code):
    status, body = write_error(Fault(code, "words of the provider"))
    assert body["error"]["message"] == "words of the provider"
    assert status >= 400


def test_the_param_is_the_providers_own_and_never_a_place_of_ours():
    def param(details):
        fault = Fault(Code.INVALID_REQUEST, "bad", pointer="/messages/0", details=details)
        return error_object(fault)["param"]

    assert param({"param": "messages"}) == "messages"
    assert param({"param": 7}) is param({}) is param(None) is param("messages") is None


@pytest.mark.parametrize("code", [Code.AUTH, Code.QUOTA, Code.RATE_LIMITED, Code.OVERLOADED, Code.CONTEXT_OVERFLOW])
def test_what_is_written_reads_back_as_the_same_failure(code):
    status, body = write_error(Fault(code, "words"))
    assert read_error(status, body, {}).code is code


def test_context_overflow_uses_the_code_clients_look_for():
    status, body = write_error(Fault(Code.CONTEXT_OVERFLOW, "prompt is too long", status=413))
    assert (status, body["error"]["code"]) == (400, "context_length_exceeded")


def test_a_finish_word_can_be_a_failure_with_or_without_an_explanation():
    assert finish_fault("error", None).message == "the provider ended the reply with 'error'"
    fault = finish_fault("error", {"code": 502, "message": "Upstream died"})
    assert (fault.message, fault.status, fault.code) == ("Upstream died", 502, Code.UPSTREAM_ERROR)
