import asyncio
import json
import socket
from collections.abc import Awaitable, Iterator

import pytest

from sightline.errors import Code, Fault
from sightline.gateway.gateway import MOST_BYTES, Gateway
from sightline.gateway.refusal import refusal_response
from sightline.web.asgi import AsgiScope, RequestEvent, ResponseChunk, ResponseStart, response_body
from tests.server.running import CATALOG, Running, Told, ToldRelay, has_key, running

ASKS = {
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/v1/messages": "anthropic",
    "/v1beta/models/m:generateContent": "gemini",
}
ASK = {"model": "m"}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as made:
        yield made


@pytest.fixture(autouse=True)
def _fresh(server: Running) -> None:
    server.relay.asked.clear()
    server.relay.answer = Told()


@pytest.mark.parametrize(("path", "dialect"), ASKS.items())
def test_a_request_reaches_the_relay_as_it_came(server: Running, path: str, dialect: str) -> None:
    status, _, body = server.post(f"/p/acme/s/task{path}?beta=true&x=%20", ASK, {"X-Own": "1"})
    assert (status, body) == (200, {})
    (asked,) = server.relay.asked
    assert (asked.dialect, asked.path, asked.query) == (dialect, path, "beta=true&x=%20")
    assert (asked.provider, asked.session, asked.model) == ("acme", "task", "m")
    assert ("x-own", "1") in asked.headers
    assert asked.body == b'{"model": "m"}'


def test_the_answer_is_handed_back_as_it_came(server: Running) -> None:
    server.relay.answer = Told(
        [b"ab", b"c"],
        status=418,
        headers=[(b"content-type", b"x/y"), (b"x-a", b"1"), (b"x-a", b"\xe9"), (b"content-length", b"3")],
    )
    status, headers, body = server.ask("POST", "/v1/messages", b'{"model":"m"}')
    assert (status, body) == (418, b"abc")
    assert headers == {"content-type": "x/y", "x-a": "é", "content-length": "3"}


def test_an_empty_answer_is_one(server: Running) -> None:
    server.relay.answer = Told([], headers=[(b"content-length", b"0")])
    assert server.ask("POST", "/v1/messages", b'{"model":"m"}')[2] == b""
    server.relay.answer = Told([])
    assert server.ask("POST", "/v1/messages", b'{"model":"m"}')[2] == b""


def test_a_stream_is_handed_on_piece_by_piece(server: Running) -> None:
    gates = [server.event(), server.event()]
    server.relay.answer = Told(
        [b"data: 1\n\n", gates[0], b"data: 2\n\n", gates[1]], headers=[(b"content-type", b"text/event-stream")]
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as talk, talk.makefile("rb") as stream:
        talk.sendall(f"POST /v1/messages HTTP/1.1\r\nhost: {server.host}\r\ncontent-length: 13\r\n\r\n".encode())
        talk.sendall(b'{"model":"m"}')
        while stream.readline().strip():
            pass
        assert stream.read(14) == b"9\r\ndata: 1\n\n\r\n"
        server.set(gates[0])
        assert stream.read(14) == b"9\r\ndata: 2\n\n\r\n"
        server.set(gates[1])
        assert stream.read(5) == b"0\r\n\r\n"
    assert not server.relay.answer.was_left.is_set()


async def test_last_byte_of_a_sized_answer_waits_for_the_record() -> None:
    class Sent(asyncio.Queue[ResponseStart | ResponseChunk]):
        def __call__(self, message: ResponseStart | ResponseChunk) -> Awaitable[None]:
            return self.put(message)

        def take_body(self) -> None:
            """It is to be received."""

        def write(self, data: bytes) -> None:
            self.put_nowait(response_body(data, more=True))

        async def until_writable(self) -> None:
            """It takes everything."""

    recorded, sent = asyncio.Event(), Sent()
    relay = ToldRelay()
    relay.answer = Told([b"ab", recorded])
    scope: AsgiScope = {
        "type": "http", "method": "POST", "raw_path": b"/v1/messages", "query_string": b"", "headers": []
    }  # fmt: skip

    async def receive() -> RequestEvent:
        return {"type": "http.request", "body": b'{"model":"m"}', "more_body": False}

    gateway = Gateway(relay, CATALOG, has_key, lambda: 0.0)  # type: ignore[arg-type]
    serving = asyncio.ensure_future(gateway.serve(scope, receive, sent))  # type: ignore[arg-type]
    assert (await sent.get())["type"] == "http.response.start"
    assert await sent.get() == response_body(b"ab", more=True)
    await asyncio.sleep(0)
    assert sent.empty()
    recorded.set()
    await serving
    assert await sent.get() == response_body(b"", more=False)


def test_an_answer_that_breaks_off_does_not_look_whole(server: Running) -> None:
    server.relay.answer = Told([b"abc", b"def", Fault(Code.NETWORK, "reset")])
    told = server.raw(
        f"POST /v1/messages HTTP/1.1\r\nhost: {server.host}\r\ncontent-length: 13\r\n\r\n".encode() + b'{"model":"m"}'
    )
    assert b"abc" in told
    assert not told.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("path", ASKS)
@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b"[]", 400), (b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}", 400)]
)
def test_early_rejection_uses_the_client_dialect_and_is_logged_once(
    server: Running, path: str, body: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    got, headers, told = server.ask("POST", path, body)
    assert got == status
    assert json.loads(told)["error"]["message"]
    assert "x-sightline-exchange" not in headers
    assert server.relay.asked == []
    assert [record.name for record in caplog.records] == ["sightline.gateway"]


def test_a_body_that_is_too_large_is_refused_and_12_mb_are_not(server: Running) -> None:
    large = b'{"model":"m","x":"' + b"x" * 12_000_000 + b'"}'
    assert server.ask("POST", "/v1/messages", large)[0] == 200
    assert server.relay.asked[0].body == large
    status, _, told = server.ask("POST", "/v1/messages", b"x" * (MOST_BYTES + 1))
    assert status == 413
    assert json.loads(told)["error"]["type"] == "request_too_large"


@pytest.mark.parametrize(
    ("path", "headers", "kind"),
    [
        ("/v1/nothing", {}, "openai"),
        ("/v1/nothing", {"anthropic-version": "2023-06-01"}, "anthropic"),
        ("/v1beta/nothing", {}, "gemini"),
        ("/v1/messages/batches", {}, "anthropic"),
        ("/backend-api/me", {}, "openai"),
        ("/p/acme/api/health", {}, "openai"),
    ],
)
def test_an_unknown_path_is_not_found_in_the_callers_dialect(
    server: Running, path: str, headers: dict[str, str], kind: str
) -> None:
    for method in ("GET", "POST"):
        status, _, told = server.ask(method, path, b"{}" if method == "POST" else None, headers)
        body = json.loads(told)
        shape = "anthropic" if "type" in body else "gemini" if "status" in body["error"] else "openai"
        assert (status, shape) == (404, kind)


@pytest.mark.parametrize("path", ASKS)
def test_a_known_path_wants_its_method(server: Running, path: str) -> None:
    status, headers, _ = server.ask("GET", path)
    assert (status, headers["allow"]) == (405, "POST")
    status, headers, _ = server.ask("DELETE", "/v1/models")
    assert (status, headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("path", ["/v1beta/models/m:nope", "/v1/models/m:nope", "/p/acme/v1beta/models/m:embedText"])
def test_unknown_model_action_is_not_found(server: Running, path: str) -> None:
    status, _, told = server.ask("POST", path, b"{}")
    assert (status, json.loads(told)["error"]["status"]) == (404, "NOT_FOUND")


def test_models_are_listed_in_the_callers_shape(server: Running) -> None:
    def listing(path: str, **headers: str) -> object:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return json.loads(server.ask("GET", path, None, sent)[2])

    assert listing("/v1/models")["data"] == [{"id": "smol", "object": "model", "created": 0, "owned_by": "local"}]  # type: ignore[index]
    assert listing("/v1/models", anthropic_version="2023-06-01")["data"][0]["type"] == "model"  # type: ignore[index]
    assert listing("/v1/models", x_goog_api_key="k")["models"][0]["name"] == "models/smol"  # type: ignore[index]
    assert listing("/v1beta/models")["models"][0]["name"] == "models/smol"  # type: ignore[index]
    assert listing("/v1/models?client_version=0.166") == {"models": []}
    assert listing("/v1/models/smol")["id"] == "smol"  # type: ignore[index]
    assert listing("/p/local/s/x/v1/models")["data"][0]["id"] == "smol"  # type: ignore[index]


def test_a_model_or_provider_that_is_not_there_is_not_found(server: Running) -> None:
    assert server.ask("GET", "/v1/models/huge")[0] == 404
    status, _, told = server.ask("GET", "/p/nobody/v1/models")
    assert status == 404
    assert "acme, local" in json.loads(told)["error"]["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1beta/models/x/../../evil:generateContent",
        "/v1beta/models/x/%2e%2e/%2e%2e/evil:generateContent",
        "/p/acme/v1beta/models/x%5c..%5cevil:streamGenerateContent",
        "/v1beta/models/..%252fevil:countTokens",
    ],
)
def test_a_path_that_leads_out_of_the_api_is_refused(server: Running, path: str) -> None:
    before = len(server.relay.asked)
    status, _, body = server.ask("POST", path, b"{}")
    assert status == 400
    assert json.loads(body)["error"]["status"] == "INVALID_ARGUMENT"
    assert len(server.relay.asked) == before


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


def test_message_is_sent_alone_without_a_hint() -> None:
    answer = refusal_response("anthropic", Fault(Code.REQUEST_TOO_LARGE, "too much"))
    assert json.loads(answer.body) == {"type": "error", "error": {"type": "request_too_large", "message": "too much"}}
    assert answer.status == 413
