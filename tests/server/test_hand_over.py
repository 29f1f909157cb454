"""Which requests another process has to serve, and what becomes of a connection that is given away."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from sightline.server.hand_over import HandOver, is_plain
from sightline.server.listener import ListeningServer
from sightline.web.asgi import AsgiScope, ClientWriter, Receive, WebResponse

POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
OTHER = b"POST /elsewhere/path HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    ("first", "plain"),
    [
        (POST, True),
        (b"POST /p/acme/v1/messages HTTP/1.1\r\n", True),
        (b"POST /v1be", False),
        (b"POST / HTTP/1.1\r\n", False),
        (b"POST /?token=1 HTTP/1.1\r\n", False),
        (b"POST /api/rules HTTP/1.1\r\n", False),
        (b"POST /api HTTP/1.1\r\n", False),
        (b"POST /ui/0/x.js HTTP/1.1\r\n", False),
        (b"POST http://example.org/v1 HTTP/1.1\r\n", False),
        (b"GET /v1/models HTTP/1.1\r\n", False),
        (b"post /v1/messages HTTP/1.1\r\n", False),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", False),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00", False),
    ],
)
def test_only_what_is_unmistakably_a_plain_request_is_served_anywhere(first: bytes, plain: bool) -> None:
    assert is_plain(first) is plain


class Stage:
    """A server whose connections go to another process for some paths; `given` is what that process got."""

    def __init__(self, *, is_gone: bool = False) -> None:
        self.given: list[tuple[bytes, int]] = []
        self.was_given = asyncio.Event()
        self._is_gone = is_gone
        self.server = ListeningServer(answer, ending=nothing)
        self.other = HandOver(lambda first: first.startswith(b"POST /elsewhere"), self._send)

    def _send(self, first: bytes, descriptor: int) -> bool:
        if self._is_gone:
            return False
        self.given.append((first, os.dup(descriptor)))
        self.was_given.set()
        return True

    async def connect(self, first: bytes = b"") -> socket.socket:
        """A client whose connection this server has adopted."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            client = socket.create_connection(listening.getsockname())
            accepted, _ = listening.accept()
        client.setblocking(False)
        self.server.adopt(accepted, self.other, first)
        return client


async def nothing() -> None:
    pass


def answer(scope: AsgiScope, _receive: Receive, send: ClientWriter) -> Awaitable[None]:
    return WebResponse(200, scope["raw_path"], []).to(send)


@asynccontextmanager
async def open_stage(*, is_gone: bool = False) -> AsyncIterator[Stage]:
    stage = Stage(is_gone=is_gone)
    serving = asyncio.ensure_future(stage.server.run_on([]))
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        yield stage
        stage.server.end()
        await serving


async def read_until(client: socket.socket, mark: bytes) -> bytes:
    """What comes up to the mark, or the end."""
    came = b""
    while mark not in came:
        data = await asyncio.get_running_loop().sock_recv(client, 65536)
        if not data:
            break
        came += data
    return came


async def test_a_connection_is_given_away_before_a_request_and_goes_on_elsewhere() -> None:
    async with open_stage() as stage:
        client = await stage.connect()
        client.send(POST)
        assert b"/v1/chat/completions" in await read_until(client, b"completions")
        client.send(OTHER)
        await stage.was_given.wait()
        ((first, descriptor),) = stage.given
        assert first == OTHER
        with socket.socket(fileno=descriptor) as given:
            given.send(b"from the other process")
            assert await read_until(client, b"process") == b"from the other process"
        client.close()


async def test_a_request_that_was_given_here_is_served_here() -> None:
    async with open_stage() as stage:
        client = await stage.connect(OTHER[:20])
        client.send(OTHER[20:])
        assert b"/elsewhere/path" in await read_until(client, b"path")
        assert not stage.given
        client.close()


async def test_a_request_whose_process_is_gone_is_served_here() -> None:
    async with open_stage(is_gone=True) as stage:
        client = await stage.connect()
        client.send(OTHER)
        assert b"/elsewhere/path" in await read_until(client, b"path")
        client.close()


async def test_a_request_that_came_together_with_one_before_it_is_served_here_or_not_at_all() -> None:
    async with open_stage() as stage:
        client = await stage.connect()
        client.send(POST + POST)
        assert (await read_until(client, b"completionsHTTP/1.1 200 OK")).count(b"200 OK") == 2
        client.close()
        client = await stage.connect()
        client.send(POST + OTHER)
        assert (await read_until(client, b"no such mark")).count(b"200 OK") == 1
        assert not stage.given
        client.close()
