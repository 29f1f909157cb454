"""Requests whose heads were read before are the same requests as when llhttp reads them."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.server import heads as request_head
from sightline.server.http_connection import ClientConnection
from sightline.web.asgi import AsgiScope, ClientWriter, Receive

Taken = tuple[str, bytes, bytes, list[tuple[bytes, bytes]], bytes]


class Transport:
    """Takes what is written, and never ends."""

    def __init__(self) -> None:
        self.written = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def taken(pieces: Sequence[bytes], turns: int = 50) -> tuple[list[Taken], bytes, list[bool]]:
    """The requests that one connection hands on, what it answers, and which of their heads were known."""
    requests: list[Taken] = []
    known: list[bool] = []

    async def app(scope: AsgiScope, receive: Receive, send: ClientWriter) -> None:
        body = send.take_body()
        if body is None:
            message = await receive()
            body = message["body"]
            while message["more_body"]:
                message = await receive()
                body += message["body"]
        known.append("head" in scope)
        requests.append((scope["method"], scope["raw_path"], scope["query_string"], scope["headers"], body))
        send.respond(200, [(b"content-length", b"2")], b"ok")

    connection, transport = ClientConnection(app, set()), Transport()
    connection.connection_made(cast(Any, transport))
    for piece in pieces:
        connection.data_received(piece)
        await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    connection.connection_lost(None)
    return requests, transport.written, known


def request(body: bytes, *more: str, path: str = "/v1/messages?a=b", length: str = "Content-Length: {}") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", length.format(len(body)), *more, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    request_head._KNOWN.clear()


async def test_the_second_request_with_a_head_is_not_parsed_and_means_the_same() -> None:
    first = request(b"one", "X-A: 1")
    parsed, answered, known = await taken([first])
    again, answered_again, known_again = await taken([first])
    assert (known, known_again) == ([False], [True])
    assert (parsed, answered) == (again, answered_again)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.data())
def test_however_requests_are_split_and_pipelined_they_are_the_same(bodies: list[bytes], data: st.DataObject) -> None:
    said = b"".join(request(body) for body in bodies)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=6)))
    pieces = [piece for a, b in zip([0, *cuts], [*cuts, len(said)], strict=True) if (piece := said[a:b])]

    async def story() -> None:
        request_head._KNOWN.clear()
        expected, answered, _ = await taken([said])
        request_head._KNOWN.clear()
        await taken([request(b"warm")])
        found, answered_too, known = await taken(pieces)
        assert (found, answered_too) == (expected, answered)
        assert len(known) == len(bodies)

    asyncio.run(story())


@pytest.mark.parametrize("at", [1, 10, 30, 45])
async def test_heads_that_come_in_two_pieces_are_whole_each_time(at: int) -> None:
    said = request(b"one")
    expected, _, _ = await taken([said])
    request_head._KNOWN.clear()
    for _ in range(2):
        found, answered, _ = await taken([said[:at], said[at:], said[:at], said[at:], said])
        assert found == expected * 3
        assert answered.count(b"HTTP/1.1 200 OK") == len(found)


async def test_the_second_piece_of_a_head_is_not_taken_for_a_head() -> None:
    said = request(b"one")
    expected, _, _ = await taken([said])
    request_head._KNOWN.clear()
    (first,), _, _ = await taken([b"POST /elsewhere HTTP/1.1\r\nX-Line: ", said])
    assert first[1] == b"/elsewhere"
    assert (await taken([said]))[0] == expected


async def test_thousands_of_requests_may_come_at_once() -> None:
    await taken([request(b"{}")])
    count = 5_000
    requests, answered, known = await taken([request(b"{}") * count], turns=2 * count)
    assert len(requests) == count
    assert known == [True] * count
    assert answered.count(b"HTTP/1.1 200 OK") == count


@pytest.mark.parametrize(
    "said",
    [
        request(b"a", "Transfer-Encoding: chunked"),
        request(b"a", "Content-Length: 1"),
        request(b"a", "Expect: 100-continue"),
        request(b"a", "Connection: close"),
        b"POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\n\r\na",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        request(b"a") + request(b"b"),
        request(b"a")[:-1],
    ],
)
def test_a_request_that_more_than_its_length_frames_is_not_kept(said: bytes) -> None:
    asyncio.run(taken([said]))
    assert not request_head._KNOWN


@pytest.mark.parametrize("length", ["", "x", "-1", "+1", "1 2", "1\r\nX: 2", "9" * 13, "0x1"])
async def test_a_head_is_known_only_with_a_plain_length(length: str) -> None:
    await taken([request(b"a")])
    said = request(b"a", length=f"Content-Length: {length}")
    *_, known = await taken([said])
    assert True not in known


async def test_another_head_is_another_one() -> None:
    await taken([request(b"a", "X-A: 1")])
    (other,), _, known = await taken([request(b"a", "X-A: 2")])
    assert known == [False]
    assert (b"x-a", b"2") in other[3]


async def test_so_many_heads_are_kept_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_head, "_MOST_KNOWN", 2)
    for number in range(5):
        await taken([request(b"a", f"X-A: {number}")])
        assert 1 <= len(request_head._KNOWN) <= 2
