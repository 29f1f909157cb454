"""Who is let in, and to whom each request goes, on a server that really listens."""

import json
import socket
from collections.abc import Iterator

import pytest

from tests.server.running import TOKEN, Running, Told, running

ASK = b'{"model":"m"}'
PATHS = ["/", "/api/health", "/api/exchanges", "/v1/models", "/v1/messages", "/nothing", "/favicon.ico"]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as made:
        yield made


def status_of(said: bytes) -> int:
    return int(said.split(b" ", 2)[1])


def asked(server: Running, path: str, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *headers, f"content-length: {len(body)}", "connection: close", "", ""]
    return server.raw("\r\n".join(lines).encode() + body)


# --- hosts and origins, before everything else ------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["host: evil.example:{port}"],
        ["host: 127.0.0.1:{port}", "host: 127.0.0.1:{port}"],
        ["host: 127.0.0.1:{port}", "origin: http://evil.example"],
        ["host: 127.0.0.1:{port}", "sec-fetch-site: cross-site"],
    ],
)
def test_strangers_are_refused_on_every_path_token_or_not(server: Running, path: str, headers: list[str]) -> None:
    told = [each.format(port=server.port) for each in headers]
    for token in ([], [f"authorization: Bearer {TOKEN}"]):
        said = asked(server, path, *told, *token)
        assert status_of(said) == 403
        assert b"access-control" not in said.lower()
        assert b"set-cookie" not in said.lower()


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize("who", ["origin: http://evil.example", "sec-fetch-site: cross-site"])
def test_a_foreign_page_can_post_nothing(server: Running, kind: str, who: str) -> None:
    before = len(server.relay.asked)
    headers = [f"host: {server.host}", f"content-type: {kind}", who]
    assert status_of(asked(server, "/v1/messages", *headers, method="POST", body=ASK)) == 403
    assert status_of(asked(server, "/v1/messages", *headers, method="OPTIONS")) == 403
    assert len(server.relay.asked) == before


@pytest.mark.parametrize(
    "headers",
    [
        ["host: [::1]:{port}"],
        ["host: localhost:{port}", "origin: http://localhost:{port}", "sec-fetch-site: same-origin"],
    ],
)
def test_the_own_machine_is_let_in(server: Running, headers: list[str]) -> None:
    told = [each.format(port=server.port) for each in headers]
    assert status_of(asked(server, "/api/health", *told)) == 200
    assert status_of(asked(server, "/v1/messages", *told, method="POST", body=ASK)) == 200


def test_a_refused_client_gets_its_own_dialects_error(server: Running) -> None:
    said = asked(server, "/v1/messages", "host: evil.example", method="POST", body=ASK)
    assert json.loads(said.partition(b"\r\n\r\n")[2])["type"] == "error"
    said = asked(server, "/api/exchanges", "host: evil.example")
    assert set(json.loads(said.partition(b"\r\n\r\n")[2])["error"]) == {"code", "message", "hint"}


def test_refusals_come_in_their_order(server: Running) -> None:
    own = f"host: {server.host}"
    assert status_of(asked(server, "/api/nothing", "host: evil.example")) == 403
    assert status_of(asked(server, "/api/nothing", own)) == 401
    assert status_of(asked(server, "/api/nothing", own, f"authorization: Bearer {TOKEN}")) == 404


# --- no way around ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/p/acme/api/exchanges",
        "/s/x/api/exchanges",
        "/p/acme/s/x/api/exchanges",
        "/p/acme/../api/exchanges",
        "/p/../api/exchanges",
        "/p/x/%2e%2e/%2e%2e/api/exchanges",
        "//api/exchanges",
        "/%61pi/exchanges",
        "/./api/exchanges",
        "/v1/../api/exchanges",
        "/API/exchanges",
        "/api%2Fexchanges",
    ],
)
def test_the_workbench_is_not_behind_any_other_path(server: Running, path: str) -> None:
    said = asked(server, path, f"host: {server.host}", f"authorization: Bearer {TOKEN}")
    assert status_of(said) == 404
    assert b'"exchanges":' not in said


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{port}/api/exchanges",
        "http://evil.example/api/exchanges",
        "https://evil.example/v1/messages",
        "*",
    ],
)
def test_a_target_that_is_no_path_is_refused(server: Running, target: str) -> None:
    written = target.format(port=server.port)
    said = asked(server, written, f"host: {server.host}", f"authorization: Bearer {TOKEN}")
    assert status_of(said) in (400, 403)
    assert b'"exchanges":' not in said


def test_connect_method_is_rejected(server: Running) -> None:
    assert status_of(server.raw(b"CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example:443\r\n\r\n")) in (400, 403)


# --- everybody at once ------------------------------------------------------------------------------


def test_slow_client_does_not_block_others(server: Running) -> None:
    server.relay.answer = Told([b"x" * 65536] * 400, headers=[(b"content-type", b"text/plain")])
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow:
        slow.sendall(
            f"POST /v1/messages HTTP/1.1\r\nhost: {server.host}\r\ncontent-length: {len(ASK)}\r\n\r\n".encode() + ASK
        )
        assert slow.recv(1024).startswith(b"HTTP/1.1 200")
        for _ in range(20):
            assert server.ask("GET", "/api/health")[0] == 200
        assert not server.relay.answer.is_over
    assert server.relay.answer.was_left.wait(20)
    server.relay.answer = Told()
