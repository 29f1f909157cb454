"""An answer that streams through: read from the provider, tapped, handed to the client, closed whatever happens."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from sightline.errors import Fault
from sightline.exchange.taps import Tap
from sightline.model.reply import Reply
from sightline.transport.http.client import Response

_LAST_WORDS = 0.2
"""Seconds for the rest of an answer that has said its end already, so that its connection can be used again."""

LATE_WORDS = 2.0
"""Seconds for what may follow a finish in a dialect whose streams end with their bytes: a count, or another part."""


class StreamPump:
    """The body of a streamed answer, for one reader, once. `release` is called with what was read at the very end."""

    def __init__(self, response: Response, tap: Tap, release: Callable[[Reply, Fault | None], Awaitable[None]]) -> None:
        self._response = response
        self._tap = tap
        self._release: Callable[[Reply, Fault | None], Awaitable[None]] | None = release
        self._ready = b""
        self._is_over = False
        self._cut: Fault | None = None

    async def begin(self) -> bytes:
        """Wait for the first bytes for the client, which stay the first to be read; nothing where there are none."""
        self._ready = await anext(self, b"")
        return self._ready

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        # Nearly all of the work for a stream is done here, once for each of its pieces: each step that is a coroutine
        # of its own costs a piece as much as passing it on does.
        if data := self._ready:
            self._ready = b""
            return data
        tap = self._tap
        tap.catch_up()
        while not self._is_over:
            if tap.has_ended:
                await self._hear_out()
                await self._close(None)
                break
            try:
                out = tap.take(await (self._late_words() if tap.may_end else self._response.__anext__()))
            except StopAsyncIteration:
                out = await self._last(None)
            except Fault as fault:
                out = await self._last(fault)
            if out:
                return out
            tap.catch_up()  # what was held back counts as come
        raise StopAsyncIteration

    async def _late_words(self) -> bytes:
        try:
            async with asyncio.timeout(LATE_WORDS):
                return await self._response.__anext__()
        except TimeoutError:
            raise StopAsyncIteration from None  # some servers keep the connection open

    async def _last(self, fault: Fault | None) -> bytes:
        fault = self._cut or fault
        self._is_over = True
        try:
            return self._tap.end() if fault is None else self._tap.fail(fault)
        finally:
            await self._close(fault)

    async def _hear_out(self) -> None:
        """What may follow an end is the end of the transfer; who goes on talking is hung up on."""
        try:
            async with asyncio.timeout(_LAST_WORDS):
                async for _ in self._response:
                    pass
        except (TimeoutError, Fault):
            return

    def abort(self, fault: Fault) -> None:
        """End it now, with this as the reason for the client."""
        self._cut = fault
        self._response.abort(fault)

    async def leave(self) -> None:
        """The client is done, or gone."""
        if not self._is_over:
            self._is_over = True
            self._tap.leave()
        await self._close(None)

    async def _close(self, fault: Fault | None) -> None:
        self._is_over = True
        release, self._release = self._release, None
        if release is not None:
            await self._response.close()
            await release(self._tap.reply, fault)
