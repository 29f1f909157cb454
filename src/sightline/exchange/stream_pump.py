"""The pump of a streamed response: reads from the provider, gives the client its bytes, and records what passes.

A tap decides what the client gets of each chunk.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from sightline.errors import Fault
from sightline.exchange.client_response import ResponseBody
from sightline.exchange.reply_reader import ReplyReader
from sightline.exchange.stream_taps import Tap
from sightline.model.reply import Reply
from sightline.transport.http.framing import chunk, unframe
from sightline.transport.http.straight_way import StraightWay
from sightline.transport.sender import ProviderResponse
from sightline.web.asgi import ChunkWriter

_DRAIN_SECONDS = 0.2
"""Seconds to read the rest of a transfer after its stream has ended, so that its connection can be reused."""

LATE_SECONDS = 2.0
"""Seconds to wait for a count or a part after the finish, in a dialect whose streams end only with the transfer."""


class StreamPump(ResponseBody):
    """The body of a streamed response; iterate over it once. `release` is called at the very end with the reply."""

    def __init__(
        self, response: ProviderResponse, tap: Tap, release: Callable[[Reply, Fault | None], Awaitable[None]]
    ) -> None:
        self._response = response
        self._tap = tap
        self._release: Callable[[Reply, Fault | None], Awaitable[None]] | None = release
        self._ready = b""
        self._is_over = False
        self._abort_reason: Fault | None = None

    async def take_whole(self, data: bytes) -> bytes:
        """Everything that the client gets of a response that has arrived completely. Do not iterate over it after
        that."""
        try:
            out = self._tap.take(data) if data else b""
        except Fault as fault:
            return await self._finish(fault)
        if self._tap.has_ended:
            await self._close(None)
            return out
        return out + await self._finish(None)

    async def begin(self) -> bytes:
        """Wait for the first bytes for the client. The iteration still yields them first."""
        self._ready = await anext(self, b"")
        return self._ready

    def share_reading(self) -> ReplyReader | None:
        return self._tap.share_reading()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        # A separate coroutine for this step would double the cost of a chunk.
        if data := self._ready:
            self._ready = b""
            return data
        tap = self._tap
        tap.catch_up()
        while not self._is_over:
            if tap.has_ended:
                await self._drain()
                await self._close(None)
                break
            try:
                out = tap.take(await (self._read_late() if tap.may_end else self._response.__anext__()))
            except StopAsyncIteration:
                out = await self._finish(None)
            except Fault as fault:
                out = await self._finish(fault)
            if out:
                return out
            tap.catch_up()  # the tap has held these bytes back, and has to parse them
        raise StopAsyncIteration

    async def write_to(self, client: ChunkWriter) -> None:
        """Write each chunk to the client in the callback that reads it from the provider's socket. The task wakes up
        only for the first and the last bytes, and if the client is slower: the socket is not read until it has caught
        up."""
        tap, write = self._tap, client.write
        may_find_way = False

        def take(data: bytes) -> bool:
            write(tap.take(data))
            if tap.is_behind:
                tap.catch_up()
            if client.is_paused or tap.has_ended or tap.may_end:
                return False
            return not may_find_way or tap.find_passing() is None

        async for data in self:
            write(data)
            if client.is_paused:
                await client.until_writable()
            if self._is_over or tap.has_ended or tap.may_end:
                continue
            way = self._direct_path(client)
            may_find_way = way is None and client.chunk_writer() is not None  # possibly later, once the reply has begun
            try:
                try:
                    await self._response.pass_to(take, way)
                finally:
                    if way is not None:
                        tap.recorder.end_passing()
            except Fault as fault:
                write(await self._finish(fault))
            if client.is_paused:
                await client.until_writable()

    def _direct_path(self, client: ChunkWriter) -> StraightWay | None:
        """A direct path from socket to client, if the client gets the bytes unchanged, in the chunks in which they
        arrive; None otherwise."""
        recorder, passing, writer = self._tap.recorder, self._tap.find_passing(), client.chunk_writer()
        if passing is None or writer is None:
            return None
        keep, mask = passing
        write, pausable = writer

        def hand_on(passed: list[bytes], moments: list[float]) -> None:
            recorder.record_chunks(passed, moments)
            keep(passed)

        way = StraightWay(
            write if mask is None else _write_masked(write, mask), pausable, recorder.clock.monotonic, hand_on
        )
        recorder.begin_passing(way.flush)
        return way

    async def _read_late(self) -> bytes:
        try:
            async with asyncio.timeout(LATE_SECONDS):
                return await self._response.__anext__()
        except TimeoutError:
            raise StopAsyncIteration from None  # some servers keep the connection open

    async def _finish(self, fault: Fault | None) -> bytes:
        fault = self._abort_reason or fault
        self._is_over = True
        try:
            return self._tap.end() if fault is None else self._tap.fail(fault)
        finally:
            await self._close(fault)

    async def _drain(self) -> None:
        """Read the rest of the transfer, which should only be its end. A provider that sends more is disconnected."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self._response:
                    pass
        except (TimeoutError, Fault):
            return

    def abort(self, fault: Fault) -> None:
        """End the stream now; the client gets this fault as the reason."""
        self._abort_reason = fault
        self._response.abort(fault)

    async def leave(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._tap.leave()
        await self._close(None)

    async def _close(self, fault: Fault | None) -> None:
        self._is_over = True
        release, self._release = self._release, None
        if release is not None:
            try:
                await self._response.close()
            finally:  # the client may leave meanwhile, which cancels this
                await release(self._tap.reply, fault)


def _write_masked(write: Callable[[bytes], None], mask: Callable[[bytes], bytes]) -> Callable[[bytes], None]:
    """A writer for chunks that may contain a key, which is masked."""

    def write_masked(framed: bytes) -> None:
        (data,) = unframe((framed,))
        shown = mask(data)
        if shown is data:
            write(framed)
        elif shown:
            write(chunk(shown))

    return write_masked
