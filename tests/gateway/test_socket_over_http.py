"""A client's socket in front of a provider that is asked over HTTP: one of another dialect, or one without sockets."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.background import upstream_in_background
from tests.gateway.test_responses_socket import ASK, client_of, exchanges, read_response
from tests.gateway_server import Served, served
from tests.reply_samples import CALLS, SAYS, streamed
from tests.upstream import Upstream, answer, says, stall, streams

MESSAGE = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "again"}]}


@contextmanager
def serving(folder: Path, dialect: str, more: str = "") -> Iterator[tuple[Served, Upstream]]:
    with upstream_in_background() as upstream:
        config = f'[providers.acme]\nbase_url = "{upstream.url}/v1"\ndialect = "{dialect}"\n{more}\n'
        routed = f'{config}[[routes]]\nmodel = "gpt-*"\nprovider = "acme"\n'
        with served(folder, routed) as server:
            yield server, upstream


def text_of(frames: list[str]) -> str:
    return "".join(each["delta"] for each in map(json.loads, frames) if each["type"] == "response.output_text.delta")


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "gemini"])
def test_a_provider_of_another_dialect_answers_over_the_socket(tmp_path: Path, dialect: str) -> None:
    with serving(tmp_path, dialect) as (server, upstream), client_of(server, "/v1/responses") as socket:
        upstream.script = [streams(*streamed(dialect, SAYS))]
        socket.send(json.dumps({**ASK, "stream_id": "lane"}))
        frames = read_response(socket)
        assert text_of(frames) == "Hello there."
        assert {json.loads(each)["stream_id"] for each in frames} == {"lane"}
        (shown,) = exchanges(server)
        assert (shown["state"], shown["transport"], shown["provider"]) == ("finished", "websocket", "acme")
        assert server.body(shown["id"], "received") == json.dumps({**ASK, "stream_id": "lane"}).encode()
        assert server.body(shown["id"], "sent") == upstream.seen[0].body
        assert not any(loss["pointer"] in ("/type", "/stream_id") for loss in shown["losses"])


def test_the_connection_knows_what_went_before(tmp_path: Path) -> None:
    with serving(tmp_path, "anthropic") as (server, upstream), client_of(server, "/v1/responses") as socket:
        upstream.script = [streams(*streamed("anthropic", CALLS)), streams(*streamed("anthropic", SAYS))]
        socket.send(json.dumps({**ASK, "instructions": "be brief", "generate": False}))
        warm = json.loads(read_response(socket)[-1])["response"]
        assert warm["output"] == []
        assert upstream.seen == []
        socket.send(json.dumps({**ASK, "input": [MESSAGE], "previous_response_id": warm["id"]}))
        called = json.loads(read_response(socket)[-1])["response"]
        call = next(item for item in called["output"] if item["type"] == "function_call")
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "12 degrees"}
        socket.send(json.dumps({**ASK, "input": [result], "previous_response_id": called["id"]}))
        assert text_of(read_response(socket)) == "Hello there."
        first, second = (each.json()["messages"] for each in upstream.seen)
    assert [each["role"] for each in first] == ["user", "user"]
    assert "again" in json.dumps(first[-1])
    assert second[: len(first)] == first
    assert [each["role"] for each in second] == ["user", "user", "assistant", "user"]
    assert "12 degrees" in json.dumps(second[-1])


def test_a_response_that_is_not_known_makes_the_client_send_everything(tmp_path: Path) -> None:
    with serving(tmp_path, "openai-chat") as (server, upstream), client_of(server, "/v1/responses") as socket:
        socket.send(json.dumps({**ASK, "previous_response_id": "resp_of_another_connection"}))
        (error,) = map(json.loads, read_response(socket))
        assert (error["type"], error["error"]["code"]) == ("error", "previous_response_not_found")
        assert upstream.seen == []


def test_a_provider_without_sockets_gets_the_request_over_http(tmp_path: Path) -> None:
    with (
        serving(tmp_path, "openai-responses", "websocket = false") as (server, upstream),
        client_of(server, "/p/acme/v1/responses", additional_headers={"Authorization": "Bearer k"}) as socket,
    ):
        upstream.script = [streams(*streamed("openai-responses", SAYS))]
        socket.send('{"type":"response.create", "model":"gpt-5", "input":"hi", "extra":[1.50]}')
        assert text_of(read_response(socket)) == "Hello there."
        (seen,) = upstream.seen
    assert (seen.method, seen.target) == ("POST", "/v1/responses")
    assert seen.body == b'{"model":"gpt-5","input":"hi","extra":[1.50],"stream":true}'
    assert (seen.header("content-type"), seen.header("authorization")) == ("application/json", "Bearer k")
    assert not any(name.lower().startswith("sec-websocket") for name, _ in seen.headers)


def test_a_provider_that_answers_the_handshake_with_404_is_asked_over_http(tmp_path: Path) -> None:
    with serving(tmp_path, "openai-responses") as (server, upstream), client_of(server, "/v1/responses") as socket:
        upstream.script = [says({"error": {"message": "no"}}, 404), streams(*streamed("openai-responses", SAYS))]
        socket.send(json.dumps(ASK))
        assert text_of(read_response(socket)) == "Hello there."
        socket.send(json.dumps(ASK))
        assert text_of(read_response(socket)) == "Hello there."
        assert [each.method for each in upstream.seen] == ["GET", "POST", "POST"]


def test_an_error_of_the_provider_is_an_error_event_with_its_status(tmp_path: Path) -> None:
    with serving(tmp_path, "anthropic") as (server, upstream), client_of(server, "/v1/responses") as socket:
        error = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
        upstream.script = [says(error, 429, [("Retry-After", "7")])]
        socket.send(json.dumps({**ASK, "stream_id": "b"}))
        (told,) = map(json.loads, read_response(socket))
    assert (told["status"], told["headers"], told["stream_id"]) == (429, {"retry-after": "7"}, "b")
    assert "slow down" in told["error"]["message"]


def test_cancel_ends_a_request_that_went_over_http(tmp_path: Path) -> None:
    with serving(tmp_path, "openai-chat") as (server, upstream), client_of(server, "/v1/responses") as socket:
        upstream.script = [stall()]
        socket.send(json.dumps(ASK))
        socket.send('{"type":"response.cancel"}')
        assert json.loads(read_response(socket)[-1])["response"]["status"] == "cancelled"
        upstream.script = [streams(*streamed("openai-chat", SAYS))]
        socket.send(json.dumps(ASK))
        assert text_of(read_response(socket)) == "Hello there."
        first, second = exchanges(server)
    assert (first["state"], second["state"]) == ("cancelled", "finished")


def test_steering_is_refused_with_its_own_event(tmp_path: Path) -> None:
    with serving(tmp_path, "openai-chat") as (server, _), client_of(server, "/v1/responses") as socket:
        socket.send('{"type":"response.steer","previous_response_id":"r","input":"shorter"}')
        told: Any = json.loads(socket.recv(timeout=30))
    assert (told["type"], told["error"]["code"]) == ("response.steer.failed", "steering_not_supported")
    assert told["steer"] == {"input": "shorter", "previous_response_id": "r"}


@pytest.mark.filterwarnings("ignore:connect\\(\\) must be used:DeprecationWarning")  # by the library itself
def test_openais_library_works_over_the_socket(tmp_path: Path) -> None:
    with serving(tmp_path, "anthropic") as (server, upstream):
        upstream.script = [streams(*streamed("anthropic", SAYS))]
        client = OpenAI(api_key="sk-x", base_url=f"{server.url}/v1")
        with client.responses.connect() as connection:
            for _ in range(2):
                connection.response.create(model="gpt-5", input="hi")
                text = ""
                for event in connection:
                    if event.type == "response.output_text.delta":
                        text += event.delta
                    if event.type == "response.completed":
                        break
                assert text == "Hello there."


def test_a_frame_without_a_model_is_refused_and_the_socket_stays(tmp_path: Path) -> None:
    with serving(tmp_path, "openai-chat") as (server, upstream), client_of(server, "/v1/responses") as socket:
        upstream.script = [answer(500, b"no")]
        for wrong in ('{"type":"response.create"}', '{"type":"response.nonsense"}', "no json", b"\x00"):
            socket.send(wrong)
            (told,) = map(json.loads, read_response(socket))
            assert (told["type"], told["status"]) == ("error", 400)
        assert exchanges(server) == []
