import asyncio

import pytest

from sightline.transport.http.dialling import Tunnel
from tests.transport.http.asking import told


class Line(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data


def asked(*answers: bytes | None, authorization: str = "") -> tuple[int, bytes]:
    async def story() -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()
        tunnel, line = Tunnel(loop), Line()
        tunnel.connection_made(line)
        for answer in answers:
            loop.call_soon(tunnel.connection_lost, None) if answer is None else loop.call_soon(
                tunnel.data_received, answer
            )
        return await tunnel.connect("api.example.com:443", authorization), line.written

    return told(story())


def test_it_asks_for_the_origin() -> None:
    status, written = asked(b"HTTP/1.1 200 Connection established\r\n\r\n")
    assert status == 200
    assert written == b"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n"


def test_it_tells_the_password() -> None:
    _, written = asked(b"HTTP/1.0 200\r\n\r\n", authorization="Basic x")
    assert written.endswith(b"\r\nProxy-Authorization: Basic x\r\n\r\n")


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([b"HTTP/1.1 2", b"00 OK\r\nVia: x\r\n", b"\r\n"], 200),
        ([b"HTTP/1.1 407 No\r\nContent-Length: 4\r\n\r\nbody"], 407),
        ([b"HTTP/1.1 200 OK\r\n\r\nthe proxy speaks for the origin"], 0),
        ([b"SSH-2.0\r\n\r\n"], 0),
        ([b"x" * 70_000], 0),
        ([b"HTTP/1.1 200", None], 0),
        ([b"HTTP/1.1 200 OK\r\n\r\n", None], 200),
    ],
)
def test_the_answer_is_a_status_or_nothing(answers: list[bytes | None], status: int) -> None:
    assert asked(*answers)[0] == status
