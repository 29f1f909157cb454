import asyncio

import pytest

from sightline.errors import Code, Fault
from sightline.transport.http.connection import BUFFER_LIMIT
from sightline.transport.http.timeouts import Timeouts
from tests.transport.http.asking import PATIENT, client, everything, failure, later, post, told, turns
from tests.upstream import LAST, Upstream, answer, chunk, head, pieces, stall


def test_a_portion_is_there_before_the_next_is_said() -> None:
    async def story() -> None:
        gate = asyncio.Event()
        async with Upstream([pieces(head() + chunk(b"a"), gate, chunk(b"b") + LAST)]) as upstream, client() as http:
            response = await http.send(post(upstream.url), Timeouts())
            assert await anext(response) == b"a"
            gate.set()
            assert await everything(response) == [b"b"]
            assert await everything(response) == []

    told(story())


def test_chunks_that_came_together_are_one_portion() -> None:
    async def story() -> None:
        together = head() + chunk(b"a") + chunk(b"b") + chunk(b"c") + LAST
        async with Upstream([pieces(together)]) as upstream, client() as http:
            response = await http.send(post(upstream.url), Timeouts())
            assert await everything(response) == [b"abc"]

    told(story())


@pytest.mark.parametrize("how", ["leave", "close", "cancel", "timeout"])
def test_to_leave_early_closes_the_connection_at_once(how: str) -> None:
    async def story() -> None:
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

    told(story())


@pytest.mark.parametrize("is_waited_for", [True, False])
def test_an_answer_that_is_cut_from_here_tells_its_reader_why(is_waited_for: bool) -> None:
    async def story() -> None:
        async with Upstream([stall(head() + chunk(b"a"))]) as upstream, client() as http:
            response = await http.send(post(upstream.url), PATIENT)
            reading = asyncio.ensure_future(everything(response))
            if is_waited_for:
                await turns()
            response.abort(Fault(Code.OVERLOADED, "that is enough"))
            with pytest.raises(Fault, match="that is enough"):
                await reading
            await upstream.gone(0)

    told(story())


def test_an_answer_that_has_ended_cannot_be_cut() -> None:
    async def story() -> None:
        async with Upstream([answer(200, b"all")]) as upstream, client() as http:
            response = await http.send(post(upstream.url), PATIENT)
            assert await response.read() == b"all"
            response.abort(Fault(Code.OVERLOADED, "too late"))
            assert await everything(response) == []
            await http.send(post(upstream.url), PATIENT)
            assert len(upstream.connections) == 1

    told(story())


def test_to_leave_after_the_end_keeps_the_connection_even_if_nobody_looked() -> None:
    async def story() -> None:
        async with Upstream([answer(200, b"unread")]) as upstream, client() as http:
            for _ in range(3):
                async with await http.send(post(upstream.url), PATIENT) as response:
                    pass
                assert await response.read() == b""
            assert len(upstream.connections) == 1

    told(story())


def test_a_connection_whose_reading_had_paused_serves_the_next_request() -> None:
    async def story() -> None:
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

    told(story())


def test_a_whole_answer_has_a_limit() -> None:
    async def story() -> None:
        async with Upstream([stall(head() + chunk(b"x" * 2000))]) as upstream, client() as http:
            response = await http.send(post(upstream.url), PATIENT)
            assert (await failure(response.read(1000))).code is Code.UPSTREAM_PROTOCOL
            await upstream.gone(0)

    told(story())


def test_a_slow_reader_slows_the_upstream_down_and_loses_nothing() -> None:
    async def story() -> None:
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

    told(story())
