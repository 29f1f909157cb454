import asyncio

import pytest

from sightline.errors import Code
from sightline.transport.http.connection import HttpConnection
from sightline.transport.http.pool import ConnectionPool
from sightline.transport.http.timeouts import Timeouts
from tests.transport.http.asking import PATIENT, client, failure, kind, later, post, told, turns
from tests.upstream import LAST, Upstream, answer, chunk, cut, head, pieces, stall


def test_the_connection_used_last_is_used_first() -> None:
    async def story() -> None:
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

    told(story())


def test_an_idle_connection_is_closed_when_its_time_is_over() -> None:
    async def story() -> None:
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

    told(story())


def test_a_connection_that_is_too_old_is_not_used_even_before_it_is_swept() -> None:
    async def story() -> None:
        async with Upstream([answer(200)]) as upstream, client(keep_alive=60) as http:
            await (await http.send(post(upstream.url), PATIENT)).read()
            later(61)
            await (await http.send(post(upstream.url), PATIENT)).read()
            assert upstream.seen[-1].connection == 1

    told(story())


def test_without_keep_alive_every_request_has_its_own() -> None:
    async def story() -> None:
        async with Upstream([answer(200)]) as upstream, client(keep_alive=0) as http:
            for _ in range(2):
                await (await http.send(post(upstream.url), PATIENT)).read()
            assert [seen.connection for seen in upstream.seen] == [0, 1]

    told(story())


def test_where_there_are_too_many_they_wait_in_order() -> None:
    async def story() -> None:
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

    told(story())


def test_a_lost_connection_leaves_its_place_to_the_next() -> None:
    async def story() -> None:
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

    told(story())


def test_a_failed_connection_leaves_its_place_too() -> None:
    async def story() -> None:
        async with Upstream([answer(200)]) as upstream:
            url = upstream.url
        async with client(max_connections=1) as http:
            faults = await asyncio.gather(*(failure(http.send(post(url), Timeouts())) for _ in range(3)))
            assert [kind(fault) for fault in faults] == ["refused"] * 3

    told(story())


@pytest.mark.parametrize("is_lost", [False, True])
def test_who_leaves_when_its_turn_has_come_passes_it_on(is_lost: bool) -> None:
    async def story() -> None:
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

    told(story())


def test_a_connection_that_ends_while_it_is_handed_over_is_not_used() -> None:
    async def story() -> None:
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

    told(story())


def test_a_connection_that_ends_as_soon_as_it_is_made_fails_its_request_and_leaves_its_place() -> None:
    async def story() -> None:
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

    told(story())


def test_closing_turns_away_who_waits() -> None:
    async def story() -> None:
        async with Upstream([stall()]) as upstream:
            http = client(max_connections=1)
            first = asyncio.ensure_future(failure(http.send(post(upstream.url), PATIENT)))
            await upstream.arrived(1)
            second = asyncio.ensure_future(failure(http.send(post(upstream.url), PATIENT)))
            await turns()
            await http.close()
            assert (await second).code is Code.CANCELLED
            assert (await first).code is Code.NETWORK

    told(story())


def test_closing_ends_a_connection_that_is_just_made() -> None:
    async def story() -> None:
        async with Upstream([answer(200)]) as upstream:
            http = client()
            sending = asyncio.ensure_future(failure(http.send(post(upstream.url), PATIENT)))
            await asyncio.sleep(0)
            await http.close()
            assert (await sending).code is Code.CANCELLED

    told(story())
