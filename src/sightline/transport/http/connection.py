"""One connection: sends a request, reads its response, and watches the timeouts."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Protocol, cast

from sightline.errors import Fault
from sightline.platform.processes import readiness_check
from sightline.transport.http import faults
from sightline.transport.http.framing import HEAD_LIMIT, AnswerParser, AnswerShape, OnInterim, chunk, last_chunk
from sightline.transport.http.target import Timeouts

# No more than this is buffered for a reader that is slower than the network.
BUFFER_LIMIT = 256 * 1024
# A larger body is sent in parts of this size, as fast as the other side accepts them.
WRITE_SIZE = 256 * 1024
_SMALL = 16 * 1024
_NO_TIMEOUTS = Timeouts(0, 0, 0)


class RequestBody(Protocol):
    """The body of a request, sent as it arrives. Without a `length`, it is sent in chunks."""

    @property
    def length(self) -> int | None:
        """The number of bytes; None if it is not known in advance."""

    async def read(self) -> bytes:
        """The next bytes; empty at the end. It is not called before the previous bytes could be written."""

    @property
    def trailers(self) -> list[tuple[bytes, bytes]]:
        """The trailers, once the body has ended."""


class AnswerTaker(Protocol):
    """Gets a response in the callback that reads it from the socket."""

    def take_whole(self, shape: AnswerShape, values: tuple[bytes, ...], body: bytes, /) -> bool:
        """The response arrived completely, in one read, with a head of this shape and these values of its headers.
        Returns whether it is taken; a taker that takes it releases the connection."""

    def on_answer(self, answer: AnswerParser, /) -> None:
        """Called once, when something arrived that `take_whole` did not take, or the connection has ended. The taker
        takes the response, if it is complete by now, or calls `leave_taker` before this returns."""


def abort(transport: asyncio.Transport) -> None:
    """Close a socket at once. Early versions of Python 3.11 raise an error for a TLS transport that has ended
    already."""
    with contextlib.suppress(AttributeError):
        transport.abort()


class HttpConnection(asyncio.Protocol):
    """Serves one exchange at a time. A task that stops waiting for it closes it: it is never used again."""

    def __init__(self, loop: asyncio.AbstractEventLoop, place: str) -> None:
        self.place = place
        self.on_lost: Callable[[HttpConnection], None] | None = None
        self.is_lost = False
        self._listener: Callable[[bytes], None] | None = None
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._answer: AnswerParser | None = None
        """The parser of the response. With a taker, it is created only if it is needed."""
        self._taker: AnswerTaker | None = None
        self._shape: AnswerShape | None = None
        """The shape of the last response: the next one is likely to have it too."""
        self._waiter: asyncio.Future[None] | None = None
        self._lost_waiters: list[asyncio.Future[None]] = []
        self._has_ended = False
        self._has_sent = False
        self._buffered = 0
        self._is_reading_paused = False
        self._is_writing_paused = False
        self._writable: asyncio.Future[None] | None = None
        self._upload: asyncio.Task[None] | None = None
        """Sends a body that is still arriving."""
        self._timeouts = _NO_TIMEOUTS
        self.heard = 0.0
        """When something last arrived, by the loop's time; a listener sets it."""
        self._timer: asyncio.TimerHandle | None = None
        self._readiness: Callable[[], object] | None = None

    # --- called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports do not inherit from it

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None and (taker := self._taker) is not None:
            shape = self._shape
            if shape is not None and (at := shape.length_at) is not None:
                found = shape.match(data, 0, HEAD_LIMIT)
                if found is not None:
                    body, values = data[found.end() :], found.groups()
                    if len(body) == int(values[at]) and taker.take_whole(shape, values, body):
                        return
            answer = self._pending_answer()
        if answer is None or answer.is_complete or answer.fault is not None:
            # Bytes without a request: the framing is lost, so the connection is not used again.
            self.abort()
            return
        self.heard = self._loop.time()
        is_first = not answer.has_head and not answer.has_begun()
        answer.feed(data)
        self._buffered += len(data)
        if answer.is_over():
            if not answer.keeps_alive:
                self.abort()
        else:
            if is_first:
                self._schedule_check(self._timeouts.idle)
            if self._buffered > BUFFER_LIMIT and not self._is_reading_paused:
                self._pause_reading(answer)
        self._wake()

    def _pause_reading(self, answer: AnswerParser) -> None:
        # Only a reader resumes the reading, and if there is nothing to take, none would.
        if answer.pieces and self._transport is not None:
            self._is_reading_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        self._has_ended = True
        answer = self._pending_answer()
        if answer is not None:
            answer.feed_eof(clean=not answer.has_begun() or self._is_end_announced())
        self._wake()

    def _is_end_announced(self) -> bool:
        """Whether the other side announced this end. Anyone on the path can end a TCP connection, and asyncio reports
        that in the same way as an end that TLS authenticates; TLS itself knows which it was."""
        tls = self._transport.get_extra_info("ssl_object") if self._transport is not None else None
        if tls is None:
            return True
        try:
            return not tls.read(1)
        except ssl.SSLError:
            return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._transport = None
        if (answer := self._pending_answer()) is not None:
            # An unannounced end over TLS looks like this too, and may have been caused by anyone.
            answer.feed_eof(clean=exc is None and not answer.has_begun())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._upload is not None:
            self._upload.cancel()
        self._wake()
        for waiter in self._lost_waiters:
            if not waiter.done():
                waiter.set_result(None)
        if self.on_lost is not None:
            self.on_lost(self)

    def pause_writing(self) -> None:
        self._is_writing_paused = True

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        waiter, self._writable = self._writable, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        if self._taker is None:  # a taker waits only for a response
            self._wake()

    # --- an exchange ---

    async def exchange(self, head: bytes, body: bytes, timeouts: Timeouts, *, bodiless: bool) -> AnswerParser:
        """Send a request and wait for the head of its response. If this fails in any way, the connection is closed."""
        answer = self._answer = AnswerParser(self.place, bodiless=bodiless, shape=self._shape)
        self._timeouts = timeouts
        self._buffered = 0
        self._has_sent = False
        try:
            if self.is_lost:
                answer.feed_eof(clean=self._has_ended)
            elif len(body) <= WRITE_SIZE:
                assert self._transport is not None
                self._progress()
                if len(body) < _SMALL:
                    self._transport.write(head + body)
                else:
                    self._transport.writelines((head, body))  # without copying both
                self._has_sent = True
            else:
                await self._write_large(answer, head, body)
        except BaseException:
            self.abort()
            raise
        return await self.wait_for_head(answer)

    def begin(self, head: bytes, body: bytes, timeouts: Timeouts, taker: AnswerTaker) -> None:
        """Send a request whose response goes to the taker. The connection must be usable, and the body not longer than
        `WRITE_SIZE`."""
        transport = self._transport
        assert transport is not None
        self._taker = taker
        self._timeouts = timeouts
        self._buffered = 0
        self.heard = self._loop.time()
        self._schedule_check(timeouts.first_byte)
        if len(body) < _SMALL:
            transport.write(head + body)
        else:
            transport.writelines((head, body))
        self._has_sent = True

    def leave_taker(self) -> None:
        """The taker stops waiting: `wait_for_head` takes over."""
        self._pending_answer()
        self._taker = None

    def _pending_answer(self) -> AnswerParser | None:
        """The parser of the response; None while there is no request."""
        if self._answer is None and self._taker is not None:
            self._answer = AnswerParser(self.place, shape=self._shape)
        return self._answer

    async def wait_for_head(self, answer: AnswerParser | None = None) -> AnswerParser:
        """Wait for the head of the response, by default the one that a taker was to get. If this fails in any way, the
        connection is closed."""
        answer = answer or self._answer
        assert answer is not None, "no request is out"
        try:
            while not answer.has_head:
                if answer.fault is not None:
                    raise answer.fault
                await self.next_change()
        except BaseException:
            self.abort()
            raise
        return answer

    async def exchange_open(
        self,
        head: bytes,
        body: RequestBody,
        timeouts: Timeouts,
        *,
        bodiless: bool,
        on_interim: OnInterim | None = None,
    ) -> AnswerParser:
        """Send a request whose body is still arriving, and wait for the head of its response. The rest of the body is
        then sent alongside the response, until that has ended."""
        answer = self._answer = AnswerParser(self.place, bodiless=bodiless, on_interim=on_interim)
        self._timeouts = timeouts
        self._buffered = 0
        self._has_sent = body.length == 0
        try:
            if self.is_lost:
                answer.feed_eof(clean=self._has_ended)
            else:
                assert self._transport is not None
                self._progress()
                self._transport.write(head)
                if not self._has_sent:
                    self._upload = self._loop.create_task(self._send_body(answer, body))
        except BaseException:
            self.abort()
            raise
        return await self.wait_for_head(answer)

    async def _send_body(self, answer: AnswerParser, body: RequestBody) -> None:
        """Write a body as it arrives, as fast as the other side accepts it."""
        is_chunked = body.length is None
        try:
            while data := await body.read():
                if self._transport is None:
                    return
                self._transport.write(chunk(data) if is_chunked else data)
                self._progress()
                while self._is_writing_paused:
                    self._writable = self._loop.create_future()
                    await self._writable
                    self._progress()
            if self._transport is not None:
                if is_chunked:
                    self._transport.write(last_chunk(body.trailers))
                self._has_sent = True
                self._upload = None
                self._progress()
        except Fault as fault:
            self.abort_exchange(answer, fault)

    async def _write_large(self, answer: AnswerParser, head: bytes, body: bytes) -> None:
        assert self._transport is not None
        self._progress()
        self._transport.write(head)
        rest = memoryview(body)
        while rest:
            self._transport.write(rest[:WRITE_SIZE])
            rest = rest[WRITE_SIZE:]
            self._has_sent = not rest
            while self._is_writing_paused:
                await self.next_change()
                if answer.has_head or answer.is_over():
                    # Answered before the whole body was sent: the rest is not needed.
                    return
            self._progress()

    def _progress(self) -> None:
        self.heard = self._loop.time()
        self._schedule_check(self._timeouts.first_byte)

    def next_change(self) -> asyncio.Future[None]:
        """Done when bytes have arrived or the connection has ended. A task that stops waiting must abort."""
        waiter = self._waiter = self._loop.create_future()
        return waiter

    def listen(self, listener: Callable[[bytes], None] | None) -> None:
        """Call this with the bytes that arrive while the body is read, or with none when the connection has ended,
        instead of waking the waiting task; None ends it. The listener feeds the bytes to the parser, takes all that
        arrived, and leaves when the response is over."""
        self._listener = listener
        if self._transport is not None:
            self._transport.set_protocol(self if listener is None else _Listening(self, listener))

    def abort_exchange(self, answer: AnswerParser, fault: Fault) -> None:
        """End an exchange: the task that reads its response gets this fault."""
        answer.fault = fault
        self.abort()
        self._wake()

    def take(self, answer: AnswerParser) -> bytes:
        """All of the body that has arrived since the last call."""
        pieces = answer.pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self.resume_reading()
        return data

    def resume_reading(self) -> None:
        """Everything that arrived was taken: resume reading, if it was paused because too much was buffered."""
        self._buffered = 0
        if self._is_reading_paused:
            self._is_reading_paused = False
            self.heard = self._loop.time()
            if self._transport is not None:
                self._transport.resume_reading()

    # --- time ---

    def _schedule_check(self, limit: float) -> None:
        """Make sure that the silence is checked when it may be too long, by the existing timer if that fires earlier.
        Arriving bytes do not touch the timer: it looks at the time of the last byte when it fires."""
        if not limit:
            return
        due = self.heard + limit
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        answer = self._pending_answer()
        if answer is None or answer.is_over():
            return
        limit = self._timeouts.idle if answer.has_begun() else self._timeouts.first_byte
        if self._is_reading_paused or (self._upload is not None and not self._is_writing_paused):
            # It is the reader that is slow, or the sender of the body.
            self.heard = self._loop.time()
        if limit and self.heard + limit <= self._loop.time():
            self.abort_exchange(answer, faults.silent(self.place, limit, begun=answer.has_begun()))
        else:
            self._schedule_check(limit)

    def _wake(self) -> None:
        if self._listener is not None:
            self._listener(b"")
            return
        if self._taker is not None:
            assert self._answer is not None
            self._taker.on_answer(self._answer)
            return
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # --- release and shutdown ---

    def release(self) -> bool:
        """End the exchange; returns whether another one may follow. A response that a taker took was complete."""
        answer, self._answer = self._answer, None
        taker, self._taker = self._taker, None
        if self._upload is not None:
            self._upload.cancel()
            self._upload = None
        if answer is not None:
            self._shape = answer.shape
            if not (answer.is_complete and answer.keeps_alive):
                return False
        elif taker is None:
            return False
        transport = self._transport
        if transport is None or self._has_ended or transport.is_closing():
            return False
        # Otherwise the next request would be taken for the rest of one that was not completely sent.
        return self._has_sent and not transport.get_write_buffer_size()

    def is_usable(self) -> bool:
        """Whether the connection is still open, and silent as it should be between two exchanges."""
        transport = self._transport
        if transport is None or self._has_ended or transport.is_closing():
            return False
        # It may have ended without the loop having had time to report that.
        if self._readiness is None:
            self._readiness = readiness_check(transport.get_extra_info("socket").fileno())
        return not self._readiness()

    def abort(self) -> None:
        if self._transport is not None:
            abort(self._transport)

    async def wait_until_closed(self) -> None:
        if not self.is_lost:
            waiter = self._loop.create_future()
            self._lost_waiters.append(waiter)
            await waiter


class _Listening(asyncio.BaseProtocol):
    """Replaces a connection as the transport's protocol while its bytes go to a listener, with no function call in
    between."""

    def __init__(self, connection: HttpConnection, listener: Callable[[bytes], None]) -> None:
        self._connection = connection
        self.data_received = listener
        self.eof_received = connection.eof_received

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
