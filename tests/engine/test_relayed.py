import asyncio

from sightline.engine.relayed import Relayed, Whole


def test_a_body_that_is_here_is_given_once() -> None:
    async def story() -> None:
        async with Relayed("x_1", 200, [], Whole(b"data")) as relayed:
            assert [piece async for piece in relayed] == [b"data"]
            assert [piece async for piece in relayed] == []
            assert relayed.fault is None

    asyncio.run(story())
