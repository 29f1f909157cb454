import asyncio

import pytest

from sightline.errors import Code
from sightline.transport.http.faults import may_retry
from sightline.transport.http.straight_way import StraightWay
from sightline.transport.http.target import Timeouts
from sightline.wire.call import HttpRequest
from tests.transport.http.asking import PATIENT, client, failure, kind, later, post, turns
from tests.upstream import LAST, Early, Upstream, answer, chunk, cut, drip, early, head, pieces, says, stall


async def test_request_and_response_are_transferred_unchanged() -> None:
    script = [says({"ok": True}, headers=[("X-Request-Id", "r1")])]
    async with Upstream(script) as upstream, client() as http:
        headers = (("X-B", "2"), ("Authorization", "Bearer k"), ("x-b", "3"))
        request = HttpRequest("POST", f"{upstream.url}/v1/chat?a=1", headers, b'{"model": "m"}')
        response = await http.send(request, Timeouts())
        assert response.status == 200
        assert response.headers[1] == (b"X-Request-Id", b"r1")
        assert response.header("x-request-ID") == "r1"
        assert response.header("absent") == ""
        assert await response.read() == b'{"ok": true}'
        [seen] = upstream.seen
        assert (seen.method, seen.target, seen.body) == ("POST", "/v1/chat?a=1", b'{"model": "m"}')
        assert seen.headers[-3:] == headers
        assert seen.header("host") == f"127.0.0.1:{upstream.port}"


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_every_framing_gives_the_same_body(framing: str) -> None:
    async with Upstream([answer(200, b"body", framing=framing)]) as upstream, client() as http:
        for _ in range(2):
            assert await (await http.send(post(upstream.url), Timeouts())).read() == b"body"
        assert len(upstream.connections) == (2 if framing == "close" else 1)


async def test_an_answer_may_drip() -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\n" + head(201) + chunk(b"slowly") + LAST
    async with Upstream([drip(data)]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts())
        assert (response.status, await response.read()) == (201, b"slowly")


async def test_a_large_body_goes_out_whole() -> None:
    body = bytes(range(256)) * 20_000
    async with Upstream([answer(200)]) as upstream, client() as http:
        for _ in range(2):
            await (await http.send(post(upstream.url, body), Timeouts())).read()
        assert [seen.body for seen in upstream.seen] == [body, body]
        assert len(upstream.connections) == 1


async def test_early_response_to_an_upload_is_read_and_the_connection_closed() -> None:
    # The upstream answers and reads no more, so the body can never be out.
    async def refuse(talk) -> None:
        talk.transport.pause_reading()
        await talk.say(head(413, framing="3") + b"no!")
        await http_heard.wait()
        talk.transport.resume_reading()
        await talk.stall()

    http_heard = asyncio.Event()
    step = early(refuse)
    async with Upstream([step, answer(200)]) as upstream, client() as http:
        response = await http.send(post(upstream.url, b"x" * 30_000_000), Timeouts())
        assert (response.status, await response.read()) == (413, b"no!")
        http_heard.set()
        await upstream.gone(0)
        assert (await http.send(post(upstream.url), Timeouts())).status == 200
        assert upstream.seen[-1].connection == 1


async def test_nothing_is_sent_into_a_body_that_was_never_finished() -> None:
    async def refuse(talk) -> None:
        await talk.say(head(401, framing="2"))
        await drained.wait()
        await talk.say(b"no")
        await talk.stall()

    drained = asyncio.Event()
    async with Upstream([Early(refuse), answer(200)]) as upstream, client() as http:
        response = await http.send(post(upstream.url, b"x" * 30_000_000), Timeouts())
        wire = response._connection._transport
        while wire.get_write_buffer_size():
            await turns(1)
        drained.set()
        assert (response.status, await response.read()) == (401, b"no")
        await upstream.gone(0)
        assert (await http.send(post(upstream.url), Timeouts())).status == 200
        assert upstream.seen[-1].connection == 1


async def test_a_head_request_has_no_body() -> None:
    async with Upstream([pieces(head(200, framing="100"))]) as upstream, client() as http:
        response = await http.send(HttpRequest("HEAD", upstream.url, (), b""), Timeouts())
        assert await response.read() == b""


# --- failures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "expected"), [("eof", "eof"), ("reset", "reset")])
async def test_a_connection_that_ends_without_an_answer_may_be_tried_again(how, expected) -> None:
    async with Upstream([cut(how=how)]) as upstream, client() as http:
        fault = await failure(http.send(post(upstream.url), Timeouts()))
        assert (fault.code, kind(fault)) == (Code.NETWORK, expected)
        assert may_retry(fault)


@pytest.mark.parametrize("how", ["eof", "reset"])
async def test_an_answer_cut_in_its_head_is_not_tried_again(how) -> None:
    # The reset waits until the client has read what came before it.
    read = asyncio.Event()
    async with Upstream([cut(b"HTTP/1.1 200 OK\r\nX-A", read, how=how)]) as upstream, client() as http:
        sending = asyncio.ensure_future(failure(http.send(post(upstream.url), Timeouts())))
        await upstream.arrived(1)
        await turns(20)
        read.set()
        fault = await sending
        assert (fault.code, kind(fault)) == (Code.NETWORK, "cut")
        assert not may_retry(fault)


@pytest.mark.parametrize("how", ["eof", "reset"])
@pytest.mark.parametrize(
    ("start", "body"),
    [(head(framing="10"), b"half"), (head(), chunk(b"half")), (head(framing="close"), b"half")],
)
async def test_an_answer_cut_in_its_body_is_no_success(start, body, how) -> None:
    read = asyncio.Event()
    async with Upstream([cut(start, body, read, how=how)]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts())
        assert await anext(response) == b"half"
        read.set()
        if how == "eof" and b"close" in start:
            assert await response.read() == b""
            return
        fault = await failure(response.read())
        assert (fault.code, kind(fault)) == (Code.NETWORK, "cut")
        assert fault.details["bytes"] is True
        # Asked again, it says the same.
        assert await failure(response.read()) is fault


@pytest.mark.parametrize(
    "said",
    [
        b"HELLO\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
    ],
)
async def test_what_is_no_answer_is_refused_and_the_connection_closed(said: bytes) -> None:
    async with Upstream([stall(said)]) as upstream, client() as http:
        fault = await failure(http.send(post(upstream.url), Timeouts()))
        assert fault.code is Code.UPSTREAM_PROTOCOL
        assert not may_retry(fault)
        await upstream.gone(0)


async def test_malformed_chunk_is_reported_after_the_valid_data() -> None:
    async with Upstream([stall(head() + chunk(b"good") + b"no size\r\n")]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts())
        assert await anext(response) == b"good"
        assert (await failure(response.read())).code is Code.UPSTREAM_PROTOCOL
        await upstream.gone(0)


@pytest.mark.parametrize("before", [b"0\r\nX-Late: ", b"2;x="], ids=["trailer", "chunk extension"])
async def test_endless_framing_is_rejected(before: bytes) -> None:
    step = stall(head() + chunk(b"hi") + before, *[b"y" * 64 * 1024] * 50)
    async with Upstream([step]) as upstream, client() as http:
        response = await http.send(post(upstream.url), PATIENT)
        fault = await failure(response.read())
        assert (fault.code, kind(fault)) == (Code.UPSTREAM_PROTOCOL, "malformed")
        await upstream.gone(0)


async def test_body_longer_than_its_content_length_is_cut_there() -> None:
    script = [answer(200, b"hi and more", framing="2"), answer(200, b"next")]
    async with Upstream(script) as upstream, client() as http:
        assert await (await http.send(post(upstream.url), Timeouts())).read() == b"hi"
        assert await (await http.send(post(upstream.url), Timeouts())).read() == b"next"
        assert [seen.connection for seen in upstream.seen] == [0, 1]


# --- time -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "limits", "expected"),
    [
        (b"", Timeouts(first_byte=20), "first_byte"),
        (b"HTTP/1.1 200 OK\r\nX", Timeouts(first_byte=20, idle=5), "idle"),
        (b"HTTP/1.1 200 OK\r\nX", Timeouts(first_byte=0, idle=5), "idle"),
    ],
)
async def test_silence_before_the_body_ends_the_wait(said: bytes, limits: Timeouts, expected: str) -> None:
    async with Upstream([stall(said)]) as upstream, client() as http:
        sending = asyncio.ensure_future(failure(http.send(post(upstream.url), limits)))
        await upstream.arrived(1)
        await turns(20)
        later(4)
        await turns()
        assert not sending.done()
        later(20)
        fault = await sending
        assert (fault.code, kind(fault)) == (Code.TIMEOUT_IDLE, expected)
        assert not may_retry(fault)
        await upstream.gone(0)


async def test_silence_in_the_body_ends_it_but_no_byte_is_late_while_they_come() -> None:
    gates = [asyncio.Event(), asyncio.Event()]
    step = stall(head() + chunk(b"a"), gates[0], chunk(b"b"), gates[1], chunk(b"c"))
    async with Upstream([step]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts(idle=10))
        assert await anext(response) == b"a"
        for gate, expected in zip(gates, [b"b", b"c"], strict=True):
            later(9)
            await turns()
            gate.set()
            assert await anext(response) == expected
        waiting = asyncio.ensure_future(failure(anext(response)))
        await turns()
        later(10)
        fault = await waiting
        assert (fault.code, kind(fault)) == (Code.TIMEOUT_IDLE, "idle")
        await upstream.gone(0)


async def test_without_limits_nothing_is_too_late() -> None:
    gates = [asyncio.Event(), asyncio.Event()]
    step = pieces(gates[0], head() + chunk(b"a"), gates[1], LAST)
    async with Upstream([step]) as upstream, client() as http:
        sending = asyncio.ensure_future(http.send(post(upstream.url), PATIENT))
        await upstream.arrived(1)
        later(1e6)
        await turns()
        gates[0].set()
        response = await sending
        later(1e6)
        await turns()
        gates[1].set()
        assert await response.read() == b"a"


async def test_a_timer_of_one_exchange_does_not_end_the_next() -> None:
    gate = asyncio.Event()
    async with Upstream([answer(200), pieces(gate, head() + LAST)]) as upstream, client() as http:
        await (await http.send(post(upstream.url), Timeouts(first_byte=10))).read()
        sending = asyncio.ensure_future(http.send(post(upstream.url), Timeouts(first_byte=30)))
        await upstream.arrived(2)
        later(29)
        await turns()
        gate.set()
        await (await sending).read()
        assert len(upstream.connections) == 1


async def test_timer_firing_between_two_exchanges_has_no_effect() -> None:
    async with Upstream([answer(200)]) as upstream, client() as http:
        for _ in range(2):
            await (await http.send(post(upstream.url), Timeouts(first_byte=10, idle=10))).read()
            later(11)
            await turns()
        assert len(upstream.connections) == 1


async def test_upload_that_is_never_read_times_out() -> None:
    async def ignore(talk) -> None:
        talk.transport.pause_reading()
        await upstream.arrived(1)
        ignored.set()
        await done.wait()
        talk.transport.resume_reading()

    ignored, done = asyncio.Event(), asyncio.Event()
    async with Upstream([early(ignore)]) as upstream, client() as http:
        sending = asyncio.ensure_future(failure(http.send(post(upstream.url, b"x" * 30_000_000), Timeouts())))
        await ignored.wait()
        await turns(50)
        later(601)
        fault = await sending
        assert (fault.code, kind(fault)) == (Code.TIMEOUT_IDLE, "first_byte")
        done.set()


# --- leaving ------------------------------------------------------------------------------------------------


async def test_a_cancelled_request_closes_its_connection_at_once() -> None:
    async with Upstream([stall()]) as upstream, client() as http:
        sending = asyncio.ensure_future(http.send(post(upstream.url), PATIENT))
        await upstream.arrived(1)
        sending.cancel()
        await upstream.gone(0)
        with pytest.raises(asyncio.CancelledError):
            await sending


async def test_a_request_cancelled_while_its_body_goes_out_closes_its_connection() -> None:
    async def ignore(talk) -> None:
        talk.transport.pause_reading()
        ignored.set()
        await done.wait()
        talk.transport.resume_reading()
        await talk.stall()

    ignored, done = asyncio.Event(), asyncio.Event()
    async with Upstream([early(ignore)]) as upstream, client() as http:
        sending = asyncio.ensure_future(http.send(post(upstream.url, b"x" * 30_000_000), PATIENT))
        await ignored.wait()
        await turns(20)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        done.set()
        await upstream.gone(0)


async def test_a_closed_client_has_ended_everything_and_sends_nothing_more() -> None:
    script = [answer(200), stall(head() + chunk(b"a")), stall()]
    async with Upstream(script) as upstream:
        http = client()
        kept = await http.send(post(upstream.url), PATIENT)
        response = await http.send(post(upstream.url), PATIENT)
        await kept.read()
        sending = asyncio.ensure_future(failure(http.send(post(upstream.url), PATIENT)))
        await upstream.arrived(3)
        await http.close()
        await upstream.gone(0)
        await upstream.gone(1)
        assert kind(await sending) == "reset" or kind(await sending) == "eof"
        assert await anext(response) == b"a"
        assert kind(await failure(response.read())) == "cut"
        assert (await failure(http.send(post(upstream.url), PATIENT))).code is Code.CANCELLED
        assert (await failure(http.send(post("http://127.0.0.1:1"), PATIENT))).code is Code.CANCELLED


async def test_no_message_has_a_query_string() -> None:
    async with Upstream([cut(), stall(b"no http")]) as upstream, client() as http:
        for _ in range(2):
            fault = await failure(http.send(post(f"{upstream.url}/v1?key=secret"), PATIENT))
            assert "secret" not in f"{fault} {fault.hint} {fault.details}"


async def test_chunks_are_passed_on_until_the_taker_stops_and_the_rest_is_iterated() -> None:
    gates = [asyncio.Event() for _ in range(3)]
    script = pieces(head(200), chunk(b"a"), gates[0], chunk(b"b"), gates[1], chunk(b"c"), gates[2], LAST)
    async with Upstream([script]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts())
        taken: list[bytes] = []

        def take(data: bytes) -> bool:
            taken.append(data)
            gates[len(taken) - 1].set()
            return len(taken) < 2

        await response.pass_to(take)
        assert taken == [b"a", b"b"]
        gates[2].set()
        assert b"".join([piece async for piece in response]) == b"c"
        await response.pass_to(take)  # it has ended: there is nothing to pass on
        assert len(taken) == 2


class Taker:
    """A client of a straight way, and what takes the rest; each portion opens the next gate."""

    is_writing_paused = False

    def __init__(self, gates: list[asyncio.Event]) -> None:
        self.got: list[tuple[str, bytes]] = []
        self.handed_on: list[bytes] = []
        self._gates = gates
        self._now = 0.0
        self.way = StraightWay(self.write, self, self.clock, self.hand_on)

    def clock(self) -> float:
        self._now += 1
        return self._now

    def hand_on(self, data: list[bytes], moments: list[float]) -> None:
        assert len(data) == len(moments)
        self.handed_on += data

    def write(self, framed: bytes) -> None:
        self._take("straight", framed)

    def take(self, data: bytes) -> bool:
        self._take("taken", data)
        return True

    def _take(self, how: str, data: bytes) -> None:
        self.got.append((how, data))
        self._gates[len(self.got)].set()


async def test_a_chunk_that_comes_whole_is_passed_on_with_its_size_wherever_others_are_cut() -> None:
    first, second, third = b"data: 1\n\n", b"data: \r\n\r\n", b"9\r\ndata: 3\n\n"
    said = [chunk(first), chunk(second), chunk(third)[:7], chunk(third)[7:], chunk(second) + chunk(first), chunk(third)]
    gates = [asyncio.Event() for _ in [*said, LAST]]
    script = pieces(head(200), *[part for pair in zip(gates, [*said, LAST], strict=True) for part in pair])
    async with Upstream([script]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts())
        taker = Taker(gates)
        gates[0].set()
        await response.pass_to(taker.take, taker.way)
        assert (
            taker.got
            == [
                ("taken", first),  # the parser had not seen a chunk yet
                ("straight", chunk(second)),
                ("taken", third[:4]),
                ("taken", third[4:]),
                ("taken", second + first),
                ("straight", chunk(third)),
            ]
        )
        assert taker.handed_on == [second, third], "before what came behind them was taken"
        assert [piece async for piece in response] == []


async def test_what_the_straight_way_raises_is_raised_and_does_not_break_the_connection() -> None:
    gates = [asyncio.Event() for _ in range(4)]
    script = pieces(head(200), gates[0], chunk(b"first\n"), gates[1], chunk(b"second\n"), gates[2], LAST)
    async with Upstream([script]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts())
        taker = Taker(gates)

        def refuse(_framed: bytes) -> None:
            raise RuntimeError("the handler is closed")

        way = StraightWay(refuse, taker, taker.clock, taker.hand_on)
        gates[0].set()
        with pytest.raises(RuntimeError, match="the handler is closed"):
            await response.pass_to(taker.take, way)
        gates[2].set()
        assert [piece async for piece in response] == [], "the rest of the stream still comes"


async def test_the_straight_way_ends_when_its_client_is_paused_and_hands_on_what_has_passed() -> None:
    gates = [asyncio.Event() for _ in range(200)]
    said = [part for gate in gates[:150] for part in (gate, chunk(b"a piece\n"))]
    script = pieces(head(200), *said, gates[150], chunk(b"the rest"), LAST)
    async with Upstream([script]) as upstream, client() as http:
        response = await http.send(post(upstream.url), Timeouts())
        taker = Taker(gates)
        write, sizes = taker.way.write, []

        def write_until_full(framed: bytes) -> None:
            write(framed)
            sizes.append(len(taker.handed_on))
            taker.is_writing_paused = len(taker.got) == 150

        taker.way.write = write_until_full
        gates[0].set()
        await response.pass_to(taker.take, taker.way)
        assert len(taker.got) == 150
        assert taker.handed_on == [b"a piece\n"] * 149, "all but the first, which the parser has seen"
        assert sorted(set(sizes)) == [0, 64, 128], "it does not keep more than so many"
        assert b"".join([piece async for piece in response]) == b"the rest"


async def test_what_a_taker_raises_is_raised_where_it_was_started_and_a_cancelled_one_hangs_up() -> None:
    async with Upstream([stall(head(200), chunk(b"a"))]) as upstream, client() as http:

        def refuse(_data: bytes) -> bool:
            raise ZeroDivisionError

        async with await http.send(post(upstream.url), PATIENT) as response:
            with pytest.raises(ZeroDivisionError):
                await response.pass_to(refuse)
        response = await http.send(post(upstream.url), PATIENT)
        passing = asyncio.ensure_future(response.pass_to(lambda _data: True))
        await turns()
        passing.cancel()
        await asyncio.wait({passing})
        await upstream.gone(1)
