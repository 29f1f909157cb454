import asyncio

import pytest

from sightline.server.http_call import HttpCall
from sightline.server.http_connection import ClientConnection
from sightline.web.asgi import AsgiScope, ClientWriter, Headers, response_body, response_start


class Wire(asyncio.Transport):
    """A socket that notes each write."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


class Talk:
    """One request and the socket of its client."""

    def __init__(self, method: str = "POST", *, keeps: bool = True, version: str = "1.1") -> None:
        self.wire = Wire()
        self._about = method, keeps, version == "1.0"

    def begin(self) -> ClientConnection:
        """The connection, within a loop."""

        async def app(*_: object) -> None:
            """Nothing is asked."""

        connection = ClientConnection(app, set())
        connection.transport = self.wire
        method, keeps, is_http_1_0 = self._about
        scope: AsgiScope = {"type": "http", "method": method, "raw_path": b"/", "query_string": b"", "headers": []}
        self.call = HttpCall(connection, scope, keeps_alive=keeps, is_http_1_0=is_http_1_0)
        return connection

    def say(self, status: int, headers: Headers, *pieces: bytes) -> list[bytes]:
        async def talk() -> None:
            self.begin()
            await self.call(response_start(status, headers))
            for number, piece in enumerate(pieces, 1):
                await self.call(response_body(piece, more=number < len(pieces)))

        asyncio.run(talk())
        return self.wire.written


def test_answer_with_content_length_is_sent_in_one_write() -> None:
    talk = Talk()
    assert talk.say(200, [(b"X-A", b"b"), (b"Content-Length", b"2")], b"hi") == [
        b"HTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 2\r\n\r\nhi"
    ]
    assert talk.call.is_answered
    assert not talk.wire.is_closed


def test_the_pieces_of_a_longer_one_follow() -> None:
    written = Talk().say(200, [(b"content-length", b"4")], b"hi", b"ho")
    assert written == [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhi", b"ho"]


_CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_the_head_of_a_stream_leaves_in_the_same_turn_of_the_loop() -> None:
    talk = Talk()
    talk.begin()
    await talk.call(response_start(200, []))
    await asyncio.sleep(0)
    assert talk.wire.written == [_CHUNKED]
    await talk.call(response_body(b"hi", more=True))
    assert talk.wire.written[1:] == [b"2\r\nhi\r\n"]


def test_the_head_of_a_stream_leaves_with_its_first_piece_if_that_is_here() -> None:
    written = Talk().say(200, [], b"hi", b"", b"ho", b"")
    assert written == [_CHUNKED + b"2\r\nhi\r\n", b"2\r\nho\r\n", b"0\r\n\r\n"]


async def test_a_stream_that_is_here_whole_is_one_write() -> None:
    talk = Talk()
    talk.begin()
    talk.call.respond(200, [], b"hi")
    assert talk.wire.written == [_CHUNKED + b"2\r\nhi\r\n0\r\n\r\n"]
    assert talk.call.is_answered


async def test_the_head_of_a_stream_that_fails_at_once_leaves_before_the_connection_is_closed() -> None:
    talk = Talk()
    talk.begin()

    async def app(_scope: object, _receive: object, send: ClientWriter) -> None:
        await send(response_start(200, []))

    await talk.call.run(app)
    assert (talk.wire.written, talk.wire.is_closed) == ([_CHUNKED], True)


def test_an_answer_without_a_body_has_none() -> None:
    head = Talk("HEAD")
    assert head.say(200, [(b"content-length", b"2")], b"hi") == [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"]
    assert head.call.is_answered
    assert Talk().say(204, [], b"") == [b"HTTP/1.1 204 No Content\r\n\r\n"]


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_a_connection_that_is_not_kept_is_closed_behind_the_answer(is_asked_for: bool) -> None:
    talk = Talk(keeps=not is_asked_for)
    headers = [(b"content-length", b"0"), *([] if is_asked_for else [(b"connection", b"close")])]
    assert talk.say(200, headers, b"") == [b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"]
    assert talk.wire.is_closed


@pytest.mark.parametrize("body", [b"h", b"hih"])
def test_body_that_differs_from_its_content_length_is_an_error(body: bytes) -> None:
    talk = Talk()
    with pytest.raises(RuntimeError):
        talk.say(200, [(b"content-length", b"2")], body)
    assert talk.wire.written == []


def test_a_header_cannot_end_the_head() -> None:
    for header in ((b"x", b"a\r\nb: c"), (b"x\r\n", b"a")):
        with pytest.raises(RuntimeError):
            Talk().say(200, [header])


async def test_a_client_that_is_slow_is_waited_for() -> None:
    talk = Talk()
    connection = talk.begin()
    connection.pause_writing()
    sending = asyncio.ensure_future(talk.call(response_start(200, [])))
    await asyncio.sleep(0)
    assert talk.wire.written == []
    connection.resume_writing()
    await sending
    await asyncio.sleep(0)
    assert len(talk.wire.written) == 1


def test_a_client_of_http_1_0_gets_no_chunks() -> None:
    talk = Talk(version="1.0")
    first, *others = talk.say(200, [(b"content-type", b"text/event-stream")], b"one", b"", b"two", b"")
    assert b"chunked" not in first
    assert b"connection: close\r\n" in first
    assert first.endswith(b"\r\n\r\none")
    assert others == [b"two"]
    assert talk.wire.is_closed


def test_declared_content_length_is_kept_for_http_1_0() -> None:
    assert Talk(version="1.0").say(200, [(b"content-length", b"2")], b"ok")[0].endswith(b"\r\n\r\nok")


def test_status_without_a_reason_phrase_can_be_sent() -> None:
    assert Talk().say(599, [(b"content-length", b"0")], b"")[0].startswith(b"HTTP/1.1 599 \r\n")
