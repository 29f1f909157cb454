import asyncio
import contextlib
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.errors import Fault
from sightline.transport.http.connection import BUFFER_LIMIT, WRITE_SIZE, HttpConnection
from sightline.transport.http.timeouts import Timeouts
from tests.transport.http.asking import client, failure, kind, post, told, turns
from tests.upstream import LAST, Upstream, answer, chunk, cut, head, pieces


class Wire(asyncio.Transport):
    """A transport without a socket: the test says what comes, and hears what goes."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: asyncio.Protocol
        self.written: list[bytes] = []
        self.is_open = True
        self.is_paused = False
        self.pauses_after = sys.maxsize

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        if sum(map(len, self.written)) >= self.pauses_after:
            self.protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return not self.is_open

    def abort(self) -> None:
        if self.is_open:
            self.is_open = False
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def connected() -> tuple[HttpConnection, Wire]:
    connection, wire = HttpConnection(asyncio.get_running_loop(), "api.example.com"), Wire()
    wire.protocol = connection
    connection.connection_made(wire)
    return connection, wire


def test_head_and_body_go_out_in_one_write() -> None:
    async def story() -> None:
        connection, wire = connected()
        loop = asyncio.get_running_loop()
        loop.call_soon(connection.data_received, b"HTTP/1.1 204 Done\r\n\r\n")
        parsed = await connection.exchange(b"HEAD", b"BODY", Timeouts(), bodiless=False)
        assert parsed.status == 204
        assert wire.written == [b"HEADBODY"]
        assert connection.release()
        connection.abort()
        await connection.wait_until_closed()
        await connection.wait_until_closed()

    told(story())


def test_a_connection_whose_request_is_not_out_is_not_used_again() -> None:
    async def story() -> None:
        connection, wire = connected()
        connection.pause_writing()
        asyncio.get_running_loop().call_soon(connection.data_received, head(401, framing="2"))
        parsed = await connection.exchange(b"HEAD", b"x" * 2 * WRITE_SIZE, Timeouts(), bodiless=False)
        connection.resume_writing()
        connection.data_received(b"no")
        assert parsed.is_complete
        assert parsed.keeps_alive
        assert sum(map(len, wire.written)) < 2 * WRITE_SIZE
        assert not connection.release()
        connection.abort()
        await connection.wait_until_closed()

    told(story())


def test_a_connection_whose_last_byte_was_handed_over_is_used_again() -> None:
    async def story() -> None:
        connection, wire = connected()
        body = b"x" * (WRITE_SIZE + 1)
        wire.pauses_after = len(b"HEAD" + body)
        asyncio.get_running_loop().call_soon(connection.data_received, b"HTTP/1.1 204 Done\r\n\r\n")
        await connection.exchange(b"HEAD", body, Timeouts(), bodiless=False)
        assert b"".join(wire.written) == b"HEAD" + body
        assert connection.release()
        connection.abort()
        await connection.wait_until_closed()

    told(story())


def test_bytes_that_nobody_asked_for_end_an_idle_connection() -> None:
    async def story() -> None:
        connection, wire = connected()
        connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n")
        assert not wire.is_open
        assert not connection.is_usable()
        await connection.wait_until_closed()

    told(story())


def test_bytes_behind_an_answer_that_is_not_released_yet_end_the_connection() -> None:
    async def story() -> None:
        connection, wire = connected()
        asyncio.get_running_loop().call_soon(connection.data_received, b"HTTP/1.1 204 Done\r\n\r\n")
        parsed = await connection.exchange(b"HEAD", b"", Timeouts(), bodiless=False)
        connection.data_received(b"x")
        assert parsed.is_complete
        assert not wire.is_open
        assert not connection.release()
        await connection.wait_until_closed()

    told(story())


def test_reading_stops_only_where_there_is_something_to_take() -> None:
    async def story() -> None:
        connection, wire = connected()
        asyncio.get_running_loop().call_soon(connection.data_received, head() + b"1;x=")
        parsed = await connection.exchange(b"HEAD", b"", Timeouts(), bodiless=False)
        connection.data_received(b"y" * BUFFER_LIMIT)
        assert not wire.is_paused
        connection.data_received(b"\r\nz\r\n")
        assert wire.is_paused
        assert connection.take(parsed) == b"z"
        assert not wire.is_paused
        connection.abort()
        await connection.wait_until_closed()

    told(story())


def test_an_exchange_on_a_lost_connection_fails_like_any_other() -> None:
    async def story() -> None:
        connection, wire = connected()
        wire.abort()
        await connection.wait_until_closed()
        assert kind(await failure(connection.exchange(b"HEAD", b"", Timeouts(), bodiless=False))) == "reset"
        connection, wire = connected()
        connection.eof_received()
        wire.abort()
        await connection.wait_until_closed()
        assert kind(await failure(connection.exchange(b"HEAD", b"", Timeouts(), bodiless=False))) == "eof"

    told(story())


def test_an_upstream_that_ends_behind_its_answer_is_not_asked_again() -> None:
    async def story() -> None:
        ended = [cut(head(framing="2") + b"hi", how="eof"), answer(200, b"next")]
        async with Upstream(ended) as upstream, client() as http:
            assert await (await http.send(post(upstream.url), Timeouts())).read() == b"hi"
            # The loop has not had a turn in which to notice, and still nothing is sent into the void.
            assert await (await http.send(post(upstream.url), Timeouts())).read() == b"next"
            assert [seen.connection for seen in upstream.seen] == [0, 1]

    told(story())


def test_an_upstream_that_speaks_unasked_is_not_asked_again() -> None:
    async def story() -> None:
        gate = asyncio.Event()
        script = [pieces(head() + LAST, gate, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"), answer(200, b"good")]
        async with Upstream(script) as upstream, client() as http:
            await (await http.send(post(upstream.url), Timeouts())).read()
            gate.set()
            await upstream.gone(0)
            assert await (await http.send(post(upstream.url), Timeouts())).read() == b"good"

    told(story())


START = b"HTTP/1.1 200 OK\r\n"
REPLIES = st.binary(max_size=60) | st.lists(
    st.sampled_from(
        [
            b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"\r\n", b"abc",
            chunk(b"abc"), LAST, START, b"HTTP/1.1 100 Continue\r\n\r\n", b"\0",
        ]
    ),
    max_size=8,
).map(lambda parts: START + b"".join(parts))  # fmt: skip


@settings(max_examples=200)
@given(st.lists(REPLIES, max_size=3), st.sampled_from(["eof", "reset", "stall"]))
def test_whatever_comes_is_an_answer_or_a_fault_and_never_a_hang(reads: list[bytes], end: str) -> None:
    async def story() -> None:
        connection, wire = connected()

        def play() -> None:
            for data in reads:
                if wire.is_open and data:
                    connection.data_received(data)
            if end == "eof" and wire.is_open:
                connection.eof_received()
            if end != "stall":
                wire.is_open = False
                connection.connection_lost(None if end == "eof" else ConnectionResetError())

        asyncio.get_running_loop().call_soon(play)
        with contextlib.suppress(Fault):
            async with asyncio.timeout(60):
                limits = Timeouts(first_byte=0.001, idle=0.001)
                parsed = await connection.exchange(b"HEAD", b"", limits, bodiless=False)
                while not parsed.is_over():
                    await connection.next_change()
            connection.take(parsed)
            connection.release()
        connection.abort()
        await connection.wait_until_closed()
        await turns(1)

    told(story())
