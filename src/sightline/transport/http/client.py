"""The way out: one request, one answer, over a connection that is kept for the next."""

import asyncio
from typing import Self

from sightline.transport.http import faults
from sightline.transport.http.connection import HttpConnection
from sightline.transport.http.dialling import dial
from sightline.transport.http.pool import ConnectionPool
from sightline.transport.http.proxies import Proxies, Proxy
from sightline.transport.http.request_head import request_head
from sightline.transport.http.response import Response
from sightline.transport.http.target import HttpTarget, Origin, target
from sightline.transport.http.timeouts import Timeouts
from sightline.transport.http.trust import Trust
from sightline.wire.call import HttpRequest

_PROXY_AUTHENTICATION_REQUIRED = 407
_MOST_WAYS = 1024


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
        self._ways: dict[tuple[str, bool], tuple[HttpTarget, Proxy | None, ConnectionPool]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def send(self, request: HttpRequest, timeouts: Timeouts, *, direct: bool = False) -> Response:
        """Send a request once, and return when the head of its answer is here. `direct` goes through no proxy.

        To be cancelled closes the connection at once.
        """
        aim, proxy, pool = self._ways.get((request.url, direct)) or self._way(request.url, direct=direct)
        head = request_head(request, aim, proxy)
        connection = await pool.acquire(timeouts.connect)
        answer = await connection.exchange(head, request.body, timeouts, bodiless=request.method == "HEAD")
        response = Response(connection, answer, pool)
        if answer.status == _PROXY_AUTHENTICATION_REQUIRED and proxy is not None and not aim.origin.is_tls:
            await response.close()
            raise faults.proxy_refused(proxy.place, proxy.variable, answer.status, aim.origin.place)
        return response

    def _way(self, url: str, *, direct: bool) -> tuple[HttpTarget, Proxy | None, ConnectionPool]:
        """What a request to this address needs; most of them go to a few."""
        aim = target(url)
        proxy = None if direct else self._proxies.for_origin(aim.origin)
        pool = self._pools.get((aim.origin, proxy)) or self._new_pool(aim.origin, proxy)
        if len(self._ways) >= _MOST_WAYS:
            self._ways.clear()
        self._ways[url, direct] = way = (aim, proxy, pool)
        return way

    def _new_pool(self, origin: Origin, proxy: Proxy | None) -> ConnectionPool:
        if self._is_closed:
            raise faults.client_closing()
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        assert self._loop is loop, "a client belongs to one loop"

        async def open_connection(seconds: float) -> HttpConnection:
            return await dial(loop, origin, proxy, self._trust, seconds)

        pool = ConnectionPool(loop, open_connection, limit=self._max_connections, keep_alive=self._keep_alive)
        self._pools[origin, proxy] = pool
        return pool

    async def close(self) -> None:
        """Close every connection, those in use too."""
        self._is_closed = True
        for pool in self._pools.values():
            await pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
