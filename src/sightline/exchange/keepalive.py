"""Keep-alive while an exchange waits for a user: the client's stream is opened early and gets a frame every few
seconds.

A client that did not ask for a stream gets nothing until the response is complete. Once a stream is open, a failure can
no longer have a status and is reported inside the stream.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from typing import Any

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Fault
from sightline.exchange import client_response
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, Headers, ResponseBody
from sightline.exchange.exchange import Exchange
from sightline.exchange.interception.core.reply_writing import write_failed_stream, write_stream
from sightline.exchange.reply_reader import decode_body, decoder_for, read_error_body
from sightline.transport.waiting import Clock, wait_either
from sightline.wire.jsontext import decode

TICK = 10.0
"""Seconds between two keep-alive frames, and before the first: until then, a fault can still have a status."""

_EVENTS = "text/event-stream"


def can_keep_alive(request: ClientRequest) -> bool:
    """Whether the client reads server-sent events. Google's streams are a JSON array unless events are requested, and a
    WebSocket has its own pings."""
    return request.is_stream and not request.wants_array and request.transport != "websocket"


def sign_of_life(request: ClientRequest) -> bytes:
    """The keep-alive frame for this client's stream."""
    return dialect(request.dialect).clients.keep_alive(request.headers_by_name())


def wants_usage(request: ClientRequest) -> bool:
    """Whether the client expects token counts in a stream; only one dialect's clients have to ask for them."""
    if not request.is_stream or not dialect(request.dialect).support.asks_for_usage:
        return True
    try:
        return bool(dialect(request.dialect).read_request(decode(request.body)).options.include_usage)
    except Fault:
        return False


async def run_with_keepalive(
    exchange: Exchange, running: Coroutine[Any, Any, ClientResponse], clock: Clock
) -> ClientResponse:
    """The response of `running`, or an open stream in its place if the exchange waits for a user longer than `TICK`."""
    task = asyncio.get_running_loop().create_task(running)
    try:
        while True:
            await wait_either(task, exchange.user_awaited.wait())
            if not task.done():
                await wait_either(task, clock.sleep(TICK))
            if task.done():
                return task.result()
            if exchange.user_awaited.is_set():
                break
    except asyncio.CancelledError:
        await _abandon(task)
        raise
    headers: Headers = [*client_response.EVENT_STREAM, *exchange.own_headers()]
    body = KeepAliveBody(task, exchange.request, clock)
    body.opened = ClientResponse(exchange.id, 200, headers, body)
    return body.opened


class KeepAliveBody(ResponseBody):
    """The body of a stream that was opened before there was a response. `opened` is that stream; it gets the fault of
    the response."""

    opened: ClientResponse

    def __init__(self, task: "asyncio.Task[ClientResponse]", request: ClientRequest, clock: Clock) -> None:
        self._task = task
        self._request = request
        self._clock = clock
        self._chunks = self._make_chunks()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def _make_chunks(self) -> AsyncGenerator[bytes, None]:
        sign = sign_of_life(self._request)
        yield sign
        while not self._task.done():
            await wait_either(self._task, self._clock.sleep(TICK))
            if not self._task.done():
                yield sign
        answer = self._task.result()
        if answer.status >= 400 or not _header(answer, b"content-type").startswith(_EVENTS):
            yield await self._as_stream(answer)
            return
        decoder = decoder_for(_header(answer, b"content-encoding"))
        try:
            async for piece in answer:
                self.opened.fault = answer.fault
                if data := piece if decoder is None else decoder.feed(piece):
                    yield data
        except Fault as fault:  # a compressed stream cannot contain the fault, but this one is not compressed
            self.opened.fault = answer.fault
            yield b"\n\n" + write_failed_stream(fault, self._request.dialect, self._client)
        self.opened.fault = answer.fault

    async def _as_stream(self, answer: ClientResponse) -> bytes:
        """A complete response, such as an error, as the rest of the stream that was opened."""
        body = b"".join([piece async for piece in answer])
        coding = _header(answer, b"content-encoding")
        plain = decode_body(coding, body)
        spoken = self._request.dialect
        if answer.status >= 400:
            self.opened.fault = answer.fault or read_error_body(spoken, answer.status, plain)
            return write_failed_stream(self.opened.fault, spoken, self._client)
        decoder = ReplyDecoder(dialect(spoken))
        return write_stream([*decoder.feed(plain), *decoder.close()], spoken, self._client)

    @property
    def _client(self) -> Client:
        created = int(self._clock.now())
        has_usage = wants_usage(self._request)
        return Client(include_usage=has_usage, id=self.opened.exchange, model=self._request.model, created=created)

    async def leave(self) -> None:
        await _abandon(self._task)
        await self._chunks.aclose()


def _header(answer: ClientResponse, name: bytes) -> str:
    return client_response.header(tuple(answer.headers), name).strip().lower()


async def _abandon(task: "asyncio.Task[ClientResponse]") -> None:
    """The client has gone: cancel the task, and close its response."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        await task.result().__aexit__(None, None, None)
