"""The HTTP client: one request, one response, over a pool of connections for each origin."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, Self

from sightline.errors import Fault
from sightline.transport.http import faults
from sightline.transport.http.connection import WRITE_SIZE, AnswerTaker, HttpConnection, RequestBody
from sightline.transport.http.dialling import Trust, dial_for
from sightline.transport.http.framing import AnswerParser, OnInterim, around_length, open_head, with_length
from sightline.transport.http.pool import ConnectionPool
from sightline.transport.http.straight_way import StraightWay, take_straight
from sightline.transport.http.target import HttpTarget, Origin, Proxies, Proxy, Timeouts, target
from sightline.wire.call import HttpRequest

READ_LIMIT = 64 * 1024 * 1024


class Response:
    """Iterate over it for the body in the portions in which it came, or `read` it whole; for one reader, once.

    Read to its end it gives its connection back. Left before that, by `close`, by the end of an `async with` or by a
    cancelled wait, it closes the connection at once.
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
        """What followed the body, once that has been read to its end."""
        return self._answer.trailers

    def header(self, name: str) -> str:
        """The first value of a header, whatever the case of its name; nothing where it is absent."""
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
        """Give each portion of the body to `take` in the callback that reads it from the socket, until `take` returns
        False or no more comes; what is left, and how the body ended, the iteration tells. Raises what `take` or the way
        raises.

        A portion that is exactly one chunk takes the straight `way`, if there is one, until its client is paused.
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
        """The whole body, if all of it is here already, as that of a short answer is; else None."""
        answer = self._answer
        if not answer.is_complete or self._connection is None:
            return None
        data = self._connection.take(answer)
        self._release()
        return data

    async def read(self, limit: int = READ_LIMIT) -> bytes:
        """The rest of the body, if it is not larger than the limit."""
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
        """Stop reading it: a task that reads it, now or later, gets this fault."""
        if self._connection is not None:
            self._answer.pieces.clear()
            self._connection.abort_exchange(self._answer, fault)

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection)

    async def close(self) -> None:
        """Give up what is still to come; the socket is closed, or back in its pool, when this returns."""
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
    """Requests to one address that differ in their body alone, sent over connections that idle, without a task. `head`
    is what stands before and behind the length of the body."""

    __slots__ = ("_after", "_before", "_pool", "_timeouts", "release")

    def __init__(self, head: tuple[bytes, bytes], pool: ConnectionPool, timeouts: Timeouts) -> None:
        self._before, self._after = head
        self._pool = pool
        self._timeouts = timeouts
        self.release = pool.release
        """Called with a connection whose answer was taken: it is free."""

    def begin(self, body: bytes, taker: AnswerTaker) -> HttpConnection | None:
        """Send one, whose answer goes to the taker; None where nothing was sent, as no connection is there."""
        if len(body) > WRITE_SIZE or (connection := self._pool.take_idle()) is None:
            return None
        head = b"%bContent-Length: %d\r\n%b" % (self._before, len(body), self._after)
        connection.begin(head, body, self._timeouts, taker)
        return connection

    async def receive(self, connection: HttpConnection) -> "Response":
        """The answer in place of the taker, when its head is here."""
        return Response(connection, await connection.wait_for_head(), self._pool)


_PROXY_AUTHENTICATION_REQUIRED = 407
_MOST_WAYS = 1024
_MOST_HEADS = 64


class _Way(NamedTuple):
    """What requests to one address need. `heads` are the heads of those that were sent, but for their length."""

    aim: HttpTarget
    proxy: Proxy | None
    pool: ConnectionPool
    heads: dict[tuple[str, tuple[tuple[str, str], ...], bool], tuple[bytes, bytes, str | None]]


def _head_of(request: HttpRequest, way: _Way) -> tuple[bytes, bytes, str | None]:
    """The head of a request, but for its length; see `around_length`."""
    key = request.method, request.headers, request.is_passed_on
    parts = way.heads.get(key)
    if parts is None:
        if len(way.heads) >= _MOST_HEADS:
            way.heads.clear()
        parts = way.heads[key] = around_length(request, way.aim, way.proxy)
    return parts


async def _refuse_proxy(response: Response, aim: HttpTarget, proxy: Proxy | None) -> None:
    """Raise the fault of an answer that is the proxy's own and not the provider's."""
    if proxy is not None and not aim.origin.is_tls:
        await response.close()
        raise faults.proxy_refused(proxy.place, proxy.variable, response.status, aim.origin.place)


class ForeignConnection(asyncio.Protocol, ABC):
    """A connection that speaks another protocol. `lost` is done when it has ended."""

    lost: asyncio.Future[None]

    @abstractmethod
    def abort(self) -> None:
        """Close the socket at once."""


class HttpClient:
    """Sends requests. It belongs to the loop in which it sends the first one.

    At most `max_connections` are open to an origin; further requests wait for their turn, as long as their callers
    do. A connection that idles is closed after `keep_alive` seconds; 0 keeps none.
    """

    def __init__(
        self, *, trust: Trust, proxies: Proxies, max_connections: int = 1000, keep_alive: float = 60.0
    ) -> None:
        self._trust = trust
        self._proxies = proxies
        self._max_connections = max_connections
        self._keep_alive = keep_alive
        self._pools: dict[tuple[Origin, Proxy | None], ConnectionPool] = {}
        self._ways: dict[tuple[str, bool], _Way] = {}
        self._foreign: set[ForeignConnection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def send(self, request: HttpRequest, timeouts: Timeouts, *, past_proxy: bool = False) -> Response:
        """Send a request once, and return when the head of its answer is here. `past_proxy` goes through none.

        To be cancelled closes the connection at once.
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
        """What sends requests like this one, with a body of their own; None where only `send` can."""
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
        """The same with a body that is sent as it comes, in place of the request's own. The answer may begin, and end,
        before the body has ended; what is left of the body is then not sent."""
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
        """What a request to this address needs; most of them go to a few."""
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
            await dial_for(connection, loop, origin, proxy, self._trust, seconds)
            return connection

        pool = ConnectionPool(loop, open_connection, limit=self._max_connections, keep_alive=self._keep_alive)
        self._pools[origin, proxy] = pool
        return pool

    async def connect(
        self, connection: ForeignConnection, url: str, seconds: float, *, past_proxy: bool = False
    ) -> None:
        """Connect a protocol of the caller's to this address, within so many seconds. It is in no pool, but is closed
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
        # Without this, the last bytes of a socket could come when the loop has ended.
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
    """Ask for the list of models. Nothing where it comes, or where only a key is missing; else why it does not."""
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
