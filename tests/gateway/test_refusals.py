import json

import pytest

from sightline.errors import Code, Fault
from sightline.gateway.refusal import no_such_path, no_websocket, refusal_response, wrong_method


@pytest.mark.parametrize(
    ("dialect", "kind"),
    [("openai-chat", "type"), ("openai-responses", "type"), ("anthropic", "type"), ("gemini", "status")],
)
def test_a_refusal_is_an_error_of_the_dialect_with_its_hint(dialect: str, kind: str) -> None:
    answer = refusal_response(dialect, Fault(Code.INVALID_REQUEST, "not so", hint="Do it otherwise.", retry_after=1.2))
    error = json.loads(answer.body)["error"]
    assert answer.status == 400
    assert error["message"] == "not so. Do it otherwise."
    assert error[kind]
    assert answer.headers == [(b"content-type", b"application/json"), (b"retry-after", b"2")]


def test_without_a_hint_the_message_stands_alone() -> None:
    answer = refusal_response("anthropic", Fault(Code.REQUEST_TOO_LARGE, "too much"))
    assert json.loads(answer.body) == {"type": "error", "error": {"type": "request_too_large", "message": "too much"}}
    assert answer.status == 413


def test_a_path_that_is_not_known_is_not_found() -> None:
    answer = refusal_response("gemini", no_such_path("GET", "/v1beta/x"))
    assert answer.status == 404
    assert json.loads(answer.body)["error"]["status"] == "NOT_FOUND"


def test_a_wrong_method_names_the_right_one() -> None:
    answer = wrong_method("anthropic", "PUT", "POST")
    assert answer.status == 405
    assert (b"allow", b"POST") in answer.headers


def test_a_websocket_is_refused_so_that_clients_fall_back_at_once() -> None:
    answer = no_websocket("openai-responses")
    assert answer.status == 426
    assert (b"upgrade", b"HTTP/1.1") in answer.headers
