import asyncio
import contextlib
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.transport.http.connection import BUFFER_LIMIT, WRITE_SIZE, HttpConnection
from sightline.transport.http.pool import ConnectionPool
from sightline.transport.http.target import Timeouts
from tests.transport.http.asking import PATIENT, client, everything, failure, kind, later, post, told, turns
from tests.upstream import LAST, Upstream, answer, chunk, cut, head, pieces, stall


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


async def test_head_and_body_go_out_in_one_write() -> None:
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


async def test_a_connection_whose_request_is_not_out_is_not_used_again() -> None:
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


async def test_a_connection_whose_last_byte_was_handed_over_is_used_again() -> None:
    connection, wire = connected()
    body = b"x" * (WRITE_SIZE + 1)
    wire.pauses_after = len(b"HEAD" + body)
    asyncio.get_running_loop().call_soon(connection.data_received, b"HTTP/1.1 204 Done\r\n\r\n")
    await connection.exchange(b"HEAD", body, Timeouts(), bodiless=False)
    assert b"".join(wire.written) == b"HEAD" + body
    assert connection.release()
    connection.abort()
    await connection.wait_until_closed()


async def test_unsolicited_bytes_close_an_idle_connection() -> None:
    connection, wire = connected()
    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n")
    assert not wire.is_open
    assert not connection.is_usable()
    await connection.wait_until_closed()


async def test_bytes_behind_an_answer_that_is_not_released_yet_end_the_connection() -> None:
    connection, wire = connected()
    asyncio.get_running_loop().call_soon(connection.data_received, b"HTTP/1.1 204 Done\r\n\r\n")
    parsed = await connection.exchange(b"HEAD", b"", Timeouts(), bodiless=False)
    connection.data_received(b"x")
    assert parsed.is_complete
    assert not wire.is_open
    assert not connection.release()
    await connection.wait_until_closed()


async def test_reading_stops_only_where_there_is_something_to_take() -> None:
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


async def test_an_exchange_on_a_lost_connection_fails_like_any_other() -> None:
    connection, wire = connected()
    wire.abort()
    await connection.wait_until_closed()
    assert kind(await failure(connection.exchange(b"HEAD", b"", Timeouts(), bodiless=False))) == "reset"
    connection, wire = connected()
    connection.eof_received()
    wire.abort()
    await connection.wait_until_closed()
    assert kind(await failure(connection.exchange(b"HEAD", b"", Timeouts(), bodiless=False))) == "eof"


async def test_connection_closed_after_its_response_is_not_reused() -> None:
    ended = [cut(head(framing="2") + b"hi", how="eof"), answer(200, b"next")]
    async with Upstream(ended) as upstream, client() as http:
        assert await (await http.send(post(upstream.url), Timeouts())).read() == b"hi"
        # The loop has not had a turn in which to notice, and still nothing is sent into the void.
        assert await (await http.send(post(upstream.url), Timeouts())).read() == b"next"
        assert [seen.connection for seen in upstream.seen] == [0, 1]


async def test_connection_with_unsolicited_data_is_not_reused() -> None:
    gate = asyncio.Event()
    script = [pieces(head() + LAST, gate, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"), answer(200, b"good")]
    async with Upstream(script) as upstream, client() as http:
        await (await http.send(post(upstream.url), Timeouts())).read()
        gate.set()
        await upstream.gone(0)
        assert await (await http.send(post(upstream.url), Timeouts())).read() == b"good"


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


async def test_the_connection_used_last_is_used_first() -> None:
    gates = [asyncio.Event(), asyncio.Event()]
    script = [pieces(gates[0], head() + LAST), pieces(gates[1], head() + LAST), answer(200)]
    async with Upstream(script) as upstream, client() as http:
        sent = []
        for count in (1, 2):
            sent.append(asyncio.ensure_future(http.send(post(upstream.url), PATIENT)))
            await upstream.arrived(count)
        for gate, sending in zip(reversed(gates), reversed(sent), strict=True):
            gate.set()
            await (await sending).read()
        for _ in range(3):
            await (await http.send(post(upstream.url), PATIENT)).read()
        assert [seen.connection for seen in upstream.seen] == [0, 1, 0, 0, 0]


async def test_an_idle_connection_is_closed_when_its_time_is_over() -> None:
    async with Upstream([answer(200)]) as upstream, client(keep_alive=60) as http:
        await (await http.send(post(upstream.url), PATIENT)).read()
        later(30)
        await (await http.send(post(upstream.url), PATIENT)).read()
        later(59)
        await turns()
        assert not upstream.connections[0].gone.is_set()
        later(1)
        await upstream.gone(0)
        await (await http.send(post(upstream.url), PATIENT)).read()
        assert upstream.seen[-1].connection == 1


async def test_a_connection_that_is_too_old_is_not_used_even_before_it_is_swept() -> None:
    async with Upstream([answer(200)]) as upstream, client(keep_alive=60) as http:
        await (await http.send(post(upstream.url), PATIENT)).read()
        later(61)
        await (await http.send(post(upstream.url), PATIENT)).read()
        assert upstream.seen[-1].connection == 1


async def test_without_keep_alive_every_request_has_its_own() -> None:
    async with Upstream([answer(200)]) as upstream, client(keep_alive=0) as http:
        for _ in range(2):
            await (await http.send(post(upstream.url), PATIENT)).read()
        assert [seen.connection for seen in upstream.seen] == [0, 1]


async def test_where_there_are_too_many_they_wait_in_order() -> None:
    gates = [asyncio.Event() for _ in range(4)]
    script = [pieces(gate, head() + LAST) for gate in gates]
    async with Upstream(script) as upstream, client(max_connections=1) as http:
        sent = [asyncio.ensure_future(http.send(post(f"{upstream.url}/{number}"), PATIENT)) for number in range(4)]
        await upstream.arrived(1)
        await turns()
        # One who leaves the queue does not hold it up.
        sent[2].cancel()
        for gate in gates:
            gate.set()
        for number in (0, 1, 3):
            await (await sent[number]).read()
        assert [seen.target for seen in upstream.seen] == ["/0", "/1", "/3"]
        assert len(upstream.connections) == 1


async def test_a_lost_connection_leaves_its_place_to_the_next() -> None:
    gate = asyncio.Event()
    script = [cut(gate), answer(200)]
    async with Upstream(script) as upstream, client(max_connections=1) as http:
        first = asyncio.ensure_future(failure(http.send(post(upstream.url), PATIENT)))
        await upstream.arrived(1)
        second = asyncio.ensure_future(http.send(post(upstream.url), PATIENT))
        await turns()
        gate.set()
        assert kind(await first) == "reset"
        await (await second).read()
        assert upstream.seen[-1].connection == 1


async def test_a_failed_connection_leaves_its_place_too() -> None:
    async with Upstream([answer(200)]) as upstream:
        url = upstream.url
    async with client(max_connections=1) as http:
        faults = await asyncio.gather(*(failure(http.send(post(url), Timeouts())) for _ in range(3)))
        assert [kind(fault) for fault in faults] == ["refused"] * 3


@pytest.mark.parametrize("is_lost", [False, True])
async def test_cancelled_waiter_passes_its_slot_to_the_next(is_lost: bool) -> None:
    gate = asyncio.Event()
    first_step = cut(gate) if is_lost else pieces(gate, head() + chunk(b"a") + LAST)
    async with Upstream([first_step, answer(200)]) as upstream, client(max_connections=1) as http:

        async def ask() -> None:
            if is_lost:
                await failure(http.send(post(upstream.url), PATIENT))
            else:
                await (await http.send(post(upstream.url), PATIENT)).read()
            # In this turn of the loop the second one's place was given, and it does not know yet.
            if not is_lost:
                second.cancel()

        first = asyncio.ensure_future(ask())
        await upstream.arrived(1)
        second = asyncio.ensure_future(http.send(post(upstream.url), PATIENT))
        third = asyncio.ensure_future(http.send(post(upstream.url), PATIENT))
        await turns()
        if is_lost:
            pool = next(iter(http._pools.values()))
            give_up = pool._give_up_place

            def given_up() -> None:
                give_up()
                second.cancel()
                pool._give_up_place = give_up

            pool._give_up_place = given_up
        gate.set()
        await first
        await (await third).read()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert len(upstream.seen) == 2


async def test_a_connection_that_ends_while_it_is_handed_over_is_not_used() -> None:
    gate = asyncio.Event()
    script = [pieces(gate, head() + LAST), answer(200)]
    async with Upstream(script) as upstream, client(max_connections=1) as http:
        first = asyncio.ensure_future(http.send(post(upstream.url), PATIENT))
        await upstream.arrived(1)
        second = asyncio.ensure_future(http.send(post(upstream.url), PATIENT))
        await turns()
        gate.set()
        response = await first
        connection = response._connection
        await response.read()
        connection.abort()
        assert (await second).status == 200
        assert [seen.connection for seen in upstream.seen] == [0, 1]


async def test_a_connection_that_ends_as_soon_as_it_is_made_fails_its_request_and_leaves_its_place() -> None:
    loop = asyncio.get_running_loop()

    async def dial(_seconds: float) -> HttpConnection:
        connection = HttpConnection(loop, "api.example.com")
        connection.connection_lost(None)
        return connection

    pool = ConnectionPool(loop, dial, limit=1, keep_alive=60)
    for _ in range(3):
        connection = await pool.acquire(0)
        assert kind(await failure(connection.exchange(b"", b"", PATIENT, bodiless=False))) == "reset"
    await pool.close()


async def test_closing_the_client_cancels_waiting_requests() -> None:
    async with Upstream([stall()]) as upstream:
        http = client(max_connections=1)
        first = asyncio.ensure_future(failure(http.send(post(upstream.url), PATIENT)))
        await upstream.arrived(1)
        second = asyncio.ensure_future(failure(http.send(post(upstream.url), PATIENT)))
        await turns()
        await http.close()
        assert (await second).code is Code.CANCELLED
        assert (await first).code is Code.NETWORK


async def test_closing_ends_a_connection_that_is_just_made() -> None:
    async with Upstream([answer(200)]) as upstream:
        http = client()
        sending = asyncio.ensure_future(failure(http.send(post(upstream.url), PATIENT)))
        await asyncio.sleep(0)
        await http.close()
        assert (await sending).code is Code.CANCELLED


async def test_chunk_is_delivered_before_the_next_is_sent() -> None:
    gate = asyncio.Event()
    async with Upstream([pieces(head() + chunk(b"a"), gate, chunk(b"b") + LAST)]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts())
        assert await anext(response) == b"a"
        gate.set()
        assert await everything(response) == [b"b"]
        assert await everything(response) == []


async def test_chunks_that_came_together_are_one_portion() -> None:
    together = head() + chunk(b"a") + chunk(b"b") + chunk(b"c") + LAST
    async with Upstream([pieces(together)]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts())
        assert await everything(response) == [b"abc"]


@pytest.mark.parametrize("how", ["leave", "close", "cancel", "timeout"])
async def test_to_leave_early_closes_the_connection_at_once(how: str) -> None:
    async with Upstream([stall(head() + chunk(b"a")), answer(200)]) as upstream, client() as http:
        response = await http.send(post(upstream.url), PATIENT)
        assert await anext(response) == b"a"
        match how:
            case "leave":
                async with response:
                    pass
            case "close":
                await response.close()
                await response.close()
            case "cancel":
                reading = asyncio.ensure_future(anext(response))
                await turns()
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
            case _:
                asyncio.get_running_loop().call_soon(later, 5)
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(4):
                        await response.read()
        await upstream.gone(0)
        await http.send(post(upstream.url), PATIENT)
        assert upstream.seen[-1].connection == 1


@pytest.mark.parametrize("is_waited_for", [True, False])
async def test_an_answer_that_is_cut_from_here_tells_its_reader_why(is_waited_for: bool) -> None:
    async with Upstream([stall(head() + chunk(b"a"))]) as upstream, client() as http:
        response = await http.send(post(upstream.url), PATIENT)
        reading = asyncio.ensure_future(everything(response))
        if is_waited_for:
            await turns()
        response.abort(Fault(Code.OVERLOADED, "that is enough"))
        with pytest.raises(Fault, match="that is enough"):
            await reading
        await upstream.gone(0)


async def test_an_answer_that_has_ended_cannot_be_cut() -> None:
    async with Upstream([answer(200, b"all")]) as upstream, client() as http:
        response = await http.send(post(upstream.url), PATIENT)
        assert await response.read() == b"all"
        response.abort(Fault(Code.OVERLOADED, "too late"))
        assert await everything(response) == []
        await http.send(post(upstream.url), PATIENT)
        assert len(upstream.connections) == 1


async def test_closing_a_complete_but_unread_response_keeps_the_connection() -> None:
    async with Upstream([answer(200, b"unread")]) as upstream, client() as http:
        for _ in range(3):
            async with await http.send(post(upstream.url), PATIENT) as response:
                pass
            assert await response.read() == b""
        assert len(upstream.connections) == 1


async def test_a_connection_whose_reading_had_paused_serves_the_next_request() -> None:
    said = asyncio.Event()
    # More than is held for a slow reader, and then the end.
    step = pieces(head() + chunk(b"x" * (BUFFER_LIMIT + 1)), said, LAST)
    async with Upstream([step, answer(200, b"next")]) as upstream, client() as http:
        response = await http.send(post(upstream.url), PATIENT)
        await turns(20)
        said.set()
        assert len(await response.read()) == BUFFER_LIMIT + 1
        assert await (await http.send(post(upstream.url), PATIENT)).read() == b"next"
        assert len(upstream.connections) == 1


async def test_a_whole_answer_has_a_limit() -> None:
    async with Upstream([stall(head() + chunk(b"x" * 2000))]) as upstream, client() as http:
        response = await http.send(post(upstream.url), PATIENT)
        assert (await failure(response.read(1000))).code is Code.UPSTREAM_PROTOCOL
        await upstream.gone(0)


async def test_a_slow_reader_slows_the_upstream_down_and_loses_nothing() -> None:
    portion = bytes(range(256)) * 256
    count = 400
    said = 0

    async def pour(talk) -> None:
        nonlocal said
        await talk.say(head())
        for _ in range(count):
            await talk.say(chunk(portion))
            said += 1
        await talk.say(LAST)

    async with Upstream([pour]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts(idle=10))
        before = -1
        while said != before:
            before = said
            await turns(50)
        assert said < count
        # Time in which the reader does not read is no silence of the upstream.
        for _ in range(3):
            later(11)
            await turns()
        got = [piece async for piece in response]
        assert b"".join(got) == portion * count
        assert max(map(len, got)) < BUFFER_LIMIT + 300_000
