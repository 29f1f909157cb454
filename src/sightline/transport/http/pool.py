"""The connections to one origin. The most recently used one is reused first; waiting requests are served in order."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from sightline.transport.http import faults
from sightline.transport.http.connection import HttpConnection

Dial = Callable[[float], Awaitable[HttpConnection]]


class ConnectionPool:
    """At most `limit` connections; those idle for longer than `keep_alive` seconds are closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, dial: Dial, *, limit: int, keep_alive: float) -> None:
        self._loop = loop
        self._dial = dial
        self._limit = limit
        self._keep_alive = keep_alive
        self._taken = 0
        self._open: set[HttpConnection] = set()
        # In the order in which they became idle, with the time.
        self._idle: dict[HttpConnection, float] = {}
        # Waiting requests. They get a connection, or None for permission to dial one.
        self._queue: deque[asyncio.Future[HttpConnection | None]] = deque()
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    def take_idle(self) -> HttpConnection | None:
        """An open idle connection, or None."""
        while self._idle and not self._is_closed:
            connection, since = self._idle.popitem()
            # The timer that closes expired ones may be late.
            if self._loop.time() - since < self._keep_alive and connection.is_usable():
                return connection
            connection.abort()
        return None

    async def acquire(self, connect: float) -> HttpConnection:
        """A connection for one exchange: an idle one, a new one dialled within `connect` seconds, or, at the limit, the
        next that becomes free."""
        while not self._is_closed:
            if (connection := self.take_idle()) is not None:
                return connection
            if self._taken < self._limit:
                self._taken += 1
                return await self._dial_connection(connect)
            handed = await self._turn()
            if handed is None:
                return await self._dial_connection(connect)
            if handed.is_usable():
                return handed
            handed.abort()
        raise faults.client_closing()

    async def _dial_connection(self, connect: float) -> HttpConnection:
        """Dial a connection that is already counted in `_taken`."""
        connection = None
        try:
            connection = await self._dial(connect)
        finally:
            if connection is None:
                self._give_up_place()
        if connection.is_lost:
            self._give_up_place()
        else:
            self._open.add(connection)
            connection.on_lost = self._forget
        if self._is_closed:
            connection.abort()
            raise faults.client_closing()
        return connection

    async def _turn(self) -> HttpConnection | None:
        waiter: asyncio.Future[HttpConnection | None] = self._loop.create_future()
        self._queue.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                # The turn came at the moment of the cancellation: pass it on.
                handed = waiter.result()
                if handed is None:
                    self._give_up_place()
                else:
                    self._return(handed)
            raise

    def _next_in_queue(self) -> asyncio.Future[HttpConnection | None] | None:
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                return waiter
        return None

    def release(self, connection: HttpConnection) -> None:
        """Take a connection back after an exchange, or close it if it cannot be reused."""
        if connection.release() and not self._is_closed:
            self._return(connection)
        else:
            connection.abort()

    def _return(self, connection: HttpConnection) -> None:
        if self._queue and (waiter := self._next_in_queue()) is not None:
            waiter.set_result(connection)
        elif self._keep_alive > 0 and connection in self._open:
            self._idle[connection] = self._loop.time()
            if self._sweeper is None:
                self._sweeper = self._loop.call_later(self._keep_alive, self._sweep)
        else:
            connection.abort()

    def _give_up_place(self) -> None:
        waiter = self._next_in_queue()
        if waiter is not None:
            waiter.set_result(None)
        else:
            self._taken -= 1

    def _forget(self, connection: HttpConnection) -> None:
        self._open.discard(connection)
        self._idle.pop(connection, None)
        self._give_up_place()

    def _sweep(self) -> None:
        """Close connections that have been idle for too long, the longest idle first."""
        self._sweeper = None
        now = self._loop.time()
        for connection, since in list(self._idle.items()):
            if now - since < self._keep_alive:
                self._sweeper = self._loop.call_at(since + self._keep_alive, self._sweep)
                return
            del self._idle[connection]
            connection.abort()

    async def close(self) -> None:
        """Close every connection. Waiting requests get a fault."""
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        while (waiter := self._next_in_queue()) is not None:
            waiter.set_exception(faults.client_closing())
        connections = list(self._open)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.wait_until_closed()
