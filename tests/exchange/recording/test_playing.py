"""The forms in which a recording is played are told in tests/engine/test_replaying.py; here is what stands beside."""

import asyncio
from collections.abc import AsyncIterator

from sightline.errors import Code, Fault
from sightline.exchange.recording.playback import PlayedBody, not_recorded
from tests.relay_stage import asks, taken


def test_leaving_early_leaves_nothing_open() -> None:
    async def story() -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"a"
            yield b"b"

        body = PlayedBody(pieces())
        assert await anext(aiter(body)) == b"a"
        await body.leave()
        assert await anext(aiter(body)) == b"b"

    asyncio.run(story())


def test_a_miss_has_no_exchange() -> None:
    async def story() -> None:
        got = await taken(not_recorded(Fault(Code.INVALID_REQUEST, "none", status=404), asks("anthropic")))
        assert (got.exchange, got.status) == ("", 404)
        assert got.json()["error"]["message"] == "none"

    asyncio.run(story())
