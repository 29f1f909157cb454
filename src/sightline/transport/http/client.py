"""The HTTP client: one request, one response, over a pool of connections for each origin."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, Self

from sightline.errors import Fault
from sightline.transport.http import faults
from sightline.transport.http.connection import WRITE_SIZE, AnswerTaker, HttpConnection, RequestBody
from sightline.transport.http.dialling import CheckAddress, Trust, dial_for
from sightline.transport.http.framing import AnswerParser, OnInterim, around_length, open_head, with_length
from sightline.transport.http.pool import ConnectionPool
from sightline.transport.http.straight_way import StraightWay, take_straight
from sightline.transport.http.target import HttpTarget, Origin, Proxies, Proxy, Timeouts, target
from sightline.wire.call import HttpRequest

READ_LIMIT = 64 * 1024 * 1024


class Response:
    """A response whose head has arrived. Iterate over it to get the body as it arrives, or `read` it whole, once.

    A body that is read to its end returns the connection to the pool. Leaving earlier, by `close`, the end of an
    `async with` or cancellation, closes the connection at once.
    """

    def __init__(self, connection: HttpConnection, answer: AnswerParser, pool: ConnectionPool) -> None:
        self.status: int = answer.status
        self.headers: tuple[tuple[bytes, bytes], ...] = tuple(answer.headers)
        self.named = answer.named
        self._answer = answer
        self._connection: HttpConnection | None = connection
        self._place = connection.place
        self._pool = pool

    @property
    def trailers(self) -> list[tuple[bytes, bytes]]:
        """The trailers, once the body has been read to its end."""
        return self._answer.trailers

    def header(self, name: str) -> str:
        """The first value of a header, by its case-insensitive name; empty if the header is absent."""
        value = self.named.get(name.lower().encode("latin-1"))
        return "" if value is None else value.decode("latin-1")

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        answer = self._answer
        connection = self._connection
        if connection is None:
            raise StopAsyncIteration
        while not answer.pieces:
            if answer.fault is not None:
                raise answer.fault
            if answer.is_complete:
                self._release()
                raise StopAsyncIteration
            try:
                await connection.next_change()
            except asyncio.CancelledError:
                connection.abort()
                raise
        data = connection.take(answer)
        if answer.is_complete:
            self._release()
        return data

    async def pass_to(self, take: Callable[[bytes], bool], way: StraightWay | None = None) -> None:
        """Pass the body to `take` inside the callback that reads the socket, until `take` returns False or the body
        ends. Iterate afterwards for the rest and for how the body ended. Raises what `take` or `way` raises.

        With a `way`, a read that is exactly one chunk bypasses `take`, until the client is paused.
        """
        connection, answer = self._connection, self._answer
        if connection is None:
            return
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        pieces = answer.pieces

        def on_error(error: Exception) -> None:
            connection.listen(None)
            if not done.done():
                done.set_exception(error)

        def on_data(data: bytes) -> None:
            connection.heard = loop.time()
            goes_on = True
            try:
                if way is not None:
                    way.flush()
                    goes_on = not way.client.is_writing_paused
                if data:
                    answer.feed(data)
                if pieces:
                    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                    pieces.clear()
                    goes_on = take(data)
            except Exception as error:  # noqa: BLE001 - it is raised where this is awaited
                on_error(error)
                return
            if not goes_on or answer.is_complete or answer.fault is not None:
                connection.listen(None)
                if not done.done():
                    done.set_result(None)

        listener = on_data if way is None else take_straight(connection, answer, way, on_data, on_error)
        connection.listen(listener)
        try:
            listener(b"")
            connection.resume_reading()
            await done
        except asyncio.CancelledError:
            connection.abort()
            raise
        finally:
            connection.listen(None)

    def take_whole(self) -> bytes | None:
        """The whole body if all of it has arrived, as is usual for short answers; otherwise None."""
        answer = self._answer
        if not answer.is_complete or self._connection is None:
            return None
        data = self._connection.take(answer)
        self._release()
        return data

    async def read(self, limit: int = READ_LIMIT) -> bytes:
        """Read the rest of the body. Raises a fault if it is larger than the limit."""
        pieces = []
        size = 0
        async for piece in self:
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                await self.close()
                raise faults.too_large(self._place, limit)
        return b"".join(pieces)

    def abort(self, fault: Fault) -> None:
        """Stop the response: its reader, now or later, gets this fault."""
        if self._connection is not None:
            self._answer.pieces.clear()
            self._connection.abort_exchange(self._answer, fault)

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection)

    async def close(self) -> None:
        """Discard the rest of the body. Afterwards the connection is closed, or back in its pool."""
        connection = self._connection
        self._release()
        self._answer.pieces.clear()
        if connection is not None and not self._answer.is_complete:
            await connection.wait_until_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class RequestLine:
    """Sends requests that differ only in their body over idle connections, without a task. `head` is the head before
    and after the content length."""

    __slots__ = ("_after", "_before", "_pool", "_timeouts", "release")

    def __init__(self, head: tuple[bytes, bytes], pool: ConnectionPool, timeouts: Timeouts) -> None:
        self._before, self._after = head
        self._pool = pool
        self._timeouts = timeouts
        self.release = pool.release
        """Called with a connection whose answer has been taken, which is free again."""

    def begin(self, body: bytes, taker: AnswerTaker) -> HttpConnection | None:
        """Send a request whose answer goes to the taker; None, with nothing sent, if no connection is idle."""
        if len(body) > WRITE_SIZE or (connection := self._pool.take_idle()) is None:
            return None
        head = b"%bContent-Length: %d\r\n%b" % (self._before, len(body), self._after)
        connection.begin(head, body, self._timeouts, taker)
        return connection

    async def receive(self, connection: HttpConnection) -> "Response":
        """Wait for the head of the answer, in place of the taker."""
        return Response(connection, await connection.wait_for_head(), self._pool)


_PROXY_AUTHENTICATION_REQUIRED = 407
_MOST_WAYS = 1024
_MOST_HEADS = 64


class _Way(NamedTuple):
    """What requests to one URL need. `heads` are the heads of earlier requests, without the content length."""

    aim: HttpTarget
    proxy: Proxy | None
    pool: ConnectionPool
    heads: dict[tuple[str, tuple[tuple[str, str], ...], bool], tuple[bytes, bytes, str | None]]


def _head_of(request: HttpRequest, way: _Way) -> tuple[bytes, bytes, str | None]:
    """The head of a request without the content length; see `around_length`."""
    key = request.method, request.headers, request.is_passed_on
    parts = way.heads.get(key)
    if parts is None:
        if len(way.heads) >= _MOST_HEADS:
            way.heads.clear()
        parts = way.heads[key] = around_length(request, way.aim, way.proxy)
    return parts


async def _refuse_proxy(response: Response, aim: HttpTarget, proxy: Proxy | None) -> None:
    """Raise a fault if the answer is from the proxy and not from the provider."""
    if proxy is not None and not aim.origin.is_tls:
        await response.close()
        raise faults.proxy_refused(proxy.place, proxy.variable, response.status, aim.origin.place)


class ForeignConnection(asyncio.Protocol, ABC):
    """A connection that does not speak HTTP. `lost` is done when it has ended."""

    lost: asyncio.Future[None]

    @abstractmethod
    def abort(self) -> None:
        """Close the socket at once."""


class HttpClient:
    """Sends requests. It belongs to the event loop in which it sends the first one.

    At most `max_connections` are open to an origin; further requests wait. Idle connections are closed after
    `keep_alive` seconds; with 0, none is kept. `check` may refuse addresses to which a request would go.
    """

    def __init__(
        self,
        *,
        trust: Trust,
        proxies: Proxies,
        max_connections: int = 1000,
        keep_alive: float = 60.0,
        check: CheckAddress | None = None,
    ) -> None:
        self._trust = trust
        self._proxies = proxies
        self._max_connections = max_connections
        self._keep_alive = keep_alive
        self._check = check
        self._pools: dict[tuple[Origin, Proxy | None], ConnectionPool] = {}
        self._ways: dict[tuple[str, bool], _Way] = {}
        self._foreign: set[ForeignConnection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def send(self, request: HttpRequest, timeouts: Timeouts, *, past_proxy: bool = False) -> Response:
        """Send a request once, and return when the head of its answer has arrived. `past_proxy` bypasses the proxy.

        Cancelling closes the connection at once.
        """
        way = self._ways.get((request.url, past_proxy)) or self._way(request.url, past_proxy=past_proxy)
        aim, proxy, pool, _ = way
        head = with_length(request, *_head_of(request, way))
        connection = pool.take_idle() or await pool.acquire(timeouts.connect)
        answer = await connection.exchange(head, request.body, timeouts, bodiless=request.method == "HEAD")
        response = Response(connection, answer, pool)
        if response.status == _PROXY_AUTHENTICATION_REQUIRED:
            await _refuse_proxy(response, aim, proxy)
        return response

    def line_for(self, request: HttpRequest, timeouts: Timeouts) -> RequestLine | None:
        """A `RequestLine` for requests like this one; None if they have to go through `send`."""
        way = self._ways.get((request.url, False)) or self._way(request.url, past_proxy=False)
        before, after, length = _head_of(request, way)
        return None if length is not None or way.proxy is not None else RequestLine((before, after), way.pool, timeouts)

    async def send_open(
        self,
        request: HttpRequest,
        body: RequestBody,
        timeouts: Timeouts,
        *,
        past_proxy: bool = False,
        takes_trailers: bool = False,
        on_interim: OnInterim | None = None,
    ) -> Response:
        """Send a request with a streamed body. The answer may begin, and end, before the body has; the rest of the body
        is then not sent."""
        aim, proxy, pool, _ = self._ways.get((request.url, past_proxy)) or self._way(request.url, past_proxy=past_proxy)
        head = open_head(request, aim, proxy, length=body.length, takes_trailers=takes_trailers)
        connection = await pool.acquire(timeouts.connect)
        answer = await connection.exchange_open(
            head, body, timeouts, bodiless=request.method == "HEAD", on_interim=on_interim
        )
        response = Response(connection, answer, pool)
        if response.status == _PROXY_AUTHENTICATION_REQUIRED:
            await _refuse_proxy(response, aim, proxy)
        return response

    def _way(self, url: str, *, past_proxy: bool) -> "_Way":
        """Resolve the target, the proxy and the pool of a URL, and remember them."""
        aim = target(url)
        proxy = None if past_proxy else self._proxies.for_origin(aim.origin)
        pool = self._pools.get((aim.origin, proxy)) or self._new_pool(aim.origin, proxy)
        if len(self._ways) >= _MOST_WAYS:
            self._ways.clear()
        self._ways[url, past_proxy] = way = _Way(aim, proxy, pool, {})
        return way

    def _new_pool(self, origin: Origin, proxy: Proxy | None) -> ConnectionPool:
        if self._is_closed:
            raise faults.client_closing()
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        assert self._loop is loop, "a client belongs to one loop"

        async def open_connection(seconds: float) -> HttpConnection:
            connection = HttpConnection(loop, origin.place)
            await dial_for(connection, loop, origin, proxy, self._trust, seconds, check=self._check)
            return connection

        pool = ConnectionPool(loop, open_connection, limit=self._max_connections, keep_alive=self._keep_alive)
        self._pools[origin, proxy] = pool
        return pool

    async def connect(
        self, connection: ForeignConnection, url: str, seconds: float, *, past_proxy: bool = False
    ) -> None:
        """Connect a protocol of the caller to this URL within so many seconds. It belongs to no pool, but is closed
        with this client."""
        if self._is_closed:
            raise faults.client_closing()
        origin = target(url).origin
        proxy = None if past_proxy else self._proxies.for_origin(origin)
        loop = asyncio.get_running_loop()
        await dial_for(connection, loop, origin, proxy, self._trust, seconds, is_tunnelled=True)
        self._foreign.add(connection)
        connection.lost.add_done_callback(lambda _: self._foreign.discard(connection))

    async def close(self) -> None:
        self._is_closed = True
        for pool in self._pools.values():
            await pool.close()
        # Otherwise the last bytes of a socket could arrive when the loop has ended.
        foreign = list(self._foreign)
        for connection in foreign:
            connection.abort()
        for connection in foreign:
            await connection.lost

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


_SHORT = Timeouts(connect=1.0, first_byte=2.0, idle=2.0)
_WANTS_KEY = (401, 403)


async def probe(client: HttpClient, request: HttpRequest) -> str:
    """Request the list of models. Empty if the server answers, even if a key is missing; otherwise what is wrong."""
    place = target(request.url).origin.place
    try:
        async with await client.send(request, _SHORT, past_proxy=True) as response:
            status = response.status
    except Fault as fault:
        details = fault.details
        is_refused = isinstance(details, dict) and details.get("kind") == "refused"
        return (
            f"Not running: nothing listens at {place}." if is_refused else f"{place} does not answer: {fault.message}."
        )
    if status // 100 == 2 or status in _WANTS_KEY:
        return ""
    return f"What listens at {place} has no list of models (status {status})."
