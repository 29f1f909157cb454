"""Dialling a provider's socket: over TLS, through proxies, and when what answers is no socket."""

import asyncio
from pathlib import Path

import pytest
import trustme
from websockets.asyncio.server import ServerConnection, serve

from sightline.errors import Code
from sightline.transport.web_socket import RefusedSocket, dial_socket
from sightline.wire.call import HttpRequest
from tests.forward_proxy import ForwardProxy
from tests.transport.http.asking import client, failure, kind, served_by
from tests.upstream import Upstream, answer, cut, drip, pieces, stall


class Heard:
    """A user of a socket that keeps what it is told."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()
        self.closed: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()

    def on_message(self, data: bytes, *, is_text: bool) -> None:
        self.messages.put_nowait((data, is_text))

    def on_close(self, code: int, reason: str) -> None:
        self.closed.set_result((code, reason))


async def echo(connection: ServerConnection) -> None:
    await connection.send("first")
    async for message in connection:
        await connection.send(message)


def get(url: str, **headers: str) -> HttpRequest:
    return HttpRequest("GET", url, tuple(headers.items()), b"")


@pytest.mark.parametrize("has_proxy", [False, True])
@pytest.mark.parametrize("is_tls", [False, True])
async def test_a_socket_is_dialled_like_every_connection(tmp_path: Path, is_tls: bool, has_proxy: bool) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = served_by(authority, "api.example.com")

    async with serve(echo, "127.0.0.1", 0, ssl=context if is_tls else None) as server, ForwardProxy() as proxy:
        port = next(iter(server.sockets)).getsockname()[1]
        proxy.reach = ("127.0.0.1", port)
        # Only the proxy knows where the name leads; without it the certificate is not that of the address.
        host = "api.example.com" if has_proxy else "127.0.0.1"
        variables = {"ALL_PROXY": f"http://127.0.0.1:{proxy.port}"} if has_proxy else {}
        url = f"{'https' if is_tls else 'http'}://{host}:{port}/v1/responses"
        async with client(variables, ca_file=str(tmp_path / "ca.pem")) as http:
            if is_tls and not has_proxy:
                fault = await failure(dial_socket(http, get(url), seconds=10))
                assert kind(fault) == "tls"
                return
            dialled = await dial_socket(http, get(url), seconds=10)
            heard = Heard()
            dialled.begin(heard)
            assert await heard.messages.get() == (b"first", True)
            dialled.socket.send(b"\x00\xff", is_text=False)
            assert await heard.messages.get() == (b"\x00\xff", False)
            dialled.socket.close(4000, "x" * 500)
            assert await heard.closed == (4000, "x" * 123)
        if has_proxy:
            assert proxy.asked == [f"CONNECT api.example.com:{port} HTTP/1.1"]


async def test_a_socket_ends_with_the_client_that_dialled_it() -> None:
    async with serve(echo, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with client() as http:
            dialled = await dial_socket(http, get(f"http://127.0.0.1:{port}/"), seconds=10)
            heard = Heard()
            dialled.begin(heard)
            assert await heard.messages.get() == (b"first", True)
        # Nothing is left that could come when the loop has ended.
        assert dialled.lost.done()
        assert heard.closed.result() == (1006, "")


async def test_what_comes_in_place_of_a_socket_is_kept() -> None:
    async with Upstream([answer(429, b"slow", [("Retry-After", "3")])]) as upstream, client() as http:
        with pytest.raises(RefusedSocket) as refused:
            await dial_socket(http, get(f"{upstream.url}/v1/responses", authorization="Bearer k"), seconds=10)
        assert (refused.value.status, refused.value.body) == (429, b"slow")
        assert (b"Retry-After", b"3") in refused.value.headers
        (seen,) = upstream.seen
        assert (seen.method, seen.header("authorization")) == ("GET", "Bearer k")
        assert seen.header("accept-encoding") == ""


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (cut(how="eof"), Code.NETWORK),
        (cut(how="reset"), Code.NETWORK),
        (drip(b"no HTTP\r\n\r\n"), Code.UPSTREAM_PROTOCOL),
        (pieces(b"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"), Code.UPSTREAM_PROTOCOL),
        (stall(), Code.NETWORK),
    ],
    ids=["eof", "reset", "no HTTP", "no key", "silence"],
)
async def test_no_answer_to_the_handshake_is_a_fault(step: object, code: Code) -> None:
    async with Upstream([step]) as upstream, client() as http:  # type: ignore[list-item]
        fault = await failure(dial_socket(http, get(upstream.url), seconds=0.3))
        assert fault.code is code
