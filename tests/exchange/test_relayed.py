import asyncio

from sightline.exchange.client_response import ClientResponse, WholeBody


def test_a_body_that_is_here_is_given_once() -> None:
    async def story() -> None:
        async with ClientResponse("x_1", 200, [], WholeBody(b"data")) as relayed:
            assert [piece async for piece in relayed] == [b"data"]
            assert [piece async for piece in relayed] == []
            assert relayed.fault is None

    asyncio.run(story())


def test_an_answer_may_be_read_and_given_on() -> None:
    async def story() -> None:
        first = ClientResponse("x_1", 201, [(b"a", b"b")], WholeBody(b"one"))
        again = first.with_body(b"two")
        assert (again.exchange, again.status, again.headers) == ("x_1", 201, [(b"a", b"b")])
        assert [[piece async for piece in each] for each in (first, again)] == [[b"one"], [b"two"]]

    asyncio.run(story())
