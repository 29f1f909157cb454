"""A client that is kept waiting by a person: its stream is opened early and ticks until there is something to say.

Nothing can be said to who wants a whole answer. A stream can be begun, and then holds whatever is needed for its reader
not to give up. Whatever fails later can only be told inside it.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Fault
from sightline.exchange import answers
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, Headers
from sightline.exchange.interception.reply_writing import write_failed_stream, write_stream
from sightline.exchange.reply_reader import BodyDecoder
from sightline.model.events import StreamEvent
from sightline.transport.clock import Clock
from sightline.wire.jsontext import decode

if TYPE_CHECKING:
    from sightline.exchange.exchange import Journey

TICK = 10.0
"""Seconds between two signs of life, and before the first: faults can have a status as long as nothing was said."""

_EVENTS = "text/event-stream"


def can_tick(asked: ClientRequest) -> bool:
    """Whether its client reads server-sent events; Google's streams are a JSON list unless events are asked for."""
    return asked.is_stream and not asked.wants_array


def sign_of_life(asked: ClientRequest) -> bytes:
    """The frame that keeps a waiting stream of this client open."""
    return dialect(asked.dialect).clients.keep_alive(asked.headers_by_name())


def wants_usage(asked: ClientRequest) -> bool:
    """Whether the client takes the counts of a stream; only those of one dialect have to ask for them."""
    if not asked.is_stream or not dialect(asked.dialect).clients.asks_for_usage:
        return True
    try:
        return bool(dialect(asked.dialect).read_request(decode(asked.body)).options.include_usage)
    except Fault:
        return False


class HoldSignal:
    """Whether a journey waits for a person now, or for a reply that one will look at."""

    def __init__(self) -> None:
        self._needed = asyncio.Event()

    @property
    def is_needed(self) -> bool:
        """Whether it does."""
        return self._needed.is_set()

    @contextmanager
    def hold_open(self) -> Iterator[None]:
        """It does, as long as this lasts."""
        self._needed.set()
        try:
            yield
        finally:
            self._needed.clear()

    async def wait_until_needed(self) -> None:
        """Return once it does."""
        await self._needed.wait()


async def run_with_keepalive(
    journey: "Journey", running: Coroutine[Any, Any, ClientResponse], clock: Clock
) -> ClientResponse:
    """The answer that runs; a head without it, if its client would be kept waiting by a person for too long."""
    task = asyncio.get_running_loop().create_task(running)
    try:
        while True:
            await _until(task, journey.patience.wait_until_needed())
            if not task.done():
                await _until(task, clock.sleep(TICK))
            if task.done():
                return task.result()
            if journey.patience.is_needed:
                break
    except asyncio.CancelledError:
        await _abandon(task)
        raise
    headers: Headers = [*answers.EVENT_STREAM, *journey.own_headers()]
    ticking = KeepAliveBody(task, journey.asked, clock)
    ticking.opened = ClientResponse(journey.exchange, 200, headers, ticking)
    return ticking.opened


class KeepAliveBody:
    """The body of a stream that was opened before there was an answer. `opened` is that stream, which learns what the
    answer ended with."""

    opened: ClientResponse

    def __init__(self, task: "asyncio.Task[ClientResponse]", asked: ClientRequest, clock: Clock) -> None:
        self._task = task
        self._asked = asked
        self._clock = clock
        self._sign = sign_of_life(asked)
        self._has_begun = False
        self._answer: ClientResponse | None = None
        self._pieces: AsyncIterator[bytes] | None = None
        self._undoing: BodyDecoder | None = None
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if not self._has_begun:
            self._has_begun = True
            return self._sign
        if self._is_over:
            raise StopAsyncIteration
        if self._answer is None:
            if not self._task.done():
                await _until(self._task, self._clock.sleep(TICK))
            if not self._task.done():
                return self._sign
            answer = self._answer = self._task.result()
            if answer.status >= 400 or not _header(answer, b"content-type").startswith(_EVENTS):
                self._is_over = True
                return await self._as_stream(answer)
            coding = _header(answer, b"content-encoding")
            self._undoing = None if coding in ("", "identity") else BodyDecoder(coding)
            self._pieces = aiter(answer)
        assert self._pieces is not None
        try:
            return await self._piece(self._pieces)
        finally:
            self.opened.fault = self._answer.fault

    async def _piece(self, pieces: AsyncIterator[bytes]) -> bytes:
        while True:
            try:
                piece = await anext(pieces)
            except Fault as fault:  # a coded stream has no place for it; this one, which is not coded, has
                self._is_over = True
                return b"\n\n" + write_failed_stream(fault, self._asked.dialect, self._client)
            if data := piece if self._undoing is None else self._undoing.feed(piece):
                return data

    async def _as_stream(self, answer: ClientResponse) -> bytes:
        """A whole answer, which is an error or comes from who does not stream, as the stream that was begun."""
        body = b"".join([piece async for piece in answer])
        coding = _header(answer, b"content-encoding")
        plain = body if coding in ("", "identity") else BodyDecoder(coding).feed(body)
        spoken = self._asked.dialect
        if answer.status >= 400:
            self.opened.fault = answer.fault or _fault_in(spoken, answer.status, plain)
            return write_failed_stream(self.opened.fault, spoken, self._client)
        return write_stream(_events_in(spoken, plain), spoken, self._client)

    @property
    def _client(self) -> Client:
        created = int(self._clock.now())
        has_usage = wants_usage(self._asked)
        return Client(include_usage=has_usage, id=self.opened.exchange, model=self._asked.model, created=created)

    async def leave(self) -> None:
        """The client is done, or gone."""
        self._is_over = True
        await _abandon(self._task)


def _header(answer: ClientResponse, name: bytes) -> str:
    return answers.header(tuple(answer.headers), name).strip().lower()


def _fault_in(spoken: str, status: int, plain: bytes) -> Fault:
    try:
        return dialect(spoken).read_error(status, decode(plain), {})
    except Fault:
        return dialect(spoken).read_error(status, plain.decode("utf-8", "replace"), {})


def _events_in(spoken: str, plain: bytes) -> list[StreamEvent]:
    hearing = ReplyDecoder(dialect(spoken))
    return [*hearing.feed(plain), *hearing.close()]


async def _until(task: "asyncio.Task[ClientResponse]", other: Coroutine[Any, Any, None]) -> None:
    """Wait for the first of the two; the other one does not outlive that."""
    waiting = asyncio.get_running_loop().create_task(other)
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        await asyncio.wait({waiting})


async def _abandon(task: "asyncio.Task[ClientResponse]") -> None:
    """The client has gone: what runs for it ends, and what came of it is closed."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        await task.result().__aexit__(None, None, None)
