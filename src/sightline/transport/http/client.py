"""The way out: one request, one answer, over a connection that is kept for the next."""

import asyncio
import re
from functools import cache, lru_cache
from importlib import import_module
from typing import Self

from sightline.errors import Code, Fault
from sightline.model.header_names import OF_A_CONNECTION, TOKEN
from sightline.transport.http import faults
from sightline.transport.http.connection import HttpConnection
from sightline.transport.http.dialling import dial
from sightline.transport.http.pool import ConnectionPool
from sightline.transport.http.proxies import Proxies, Proxy
from sightline.transport.http.response import Response
from sightline.transport.http.target import HttpTarget, Origin, target
from sightline.transport.http.timeouts import Timeouts
from sightline.transport.http.trust import Trust
from sightline.wire.call import HttpRequest

# Anything but a tab and what is visible; a byte above ASCII may stand for itself.
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_WITHOUT_BODY = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "TRACE"})


def request_head(request: HttpRequest, target: HttpTarget, proxy: Proxy | None) -> bytes:
    """The request line and the headers: ours first, then the given ones in their order and spelling."""
    before, after, told = _around_length(
        request.method, request.headers, target, proxy, is_passed_on=request.is_passed_on
    )
    size = len(request.body)
    if told is None and (size or request.method not in _WITHOUT_BODY):
        return b"%bContent-Length: %d\r\n%b" % (before, size, after)
    if told is not None and told != str(size):
        raise _refusal("the header Content-Length does not tell the size of the body", hint="Leave it out.")
    return before + after


@lru_cache(maxsize=512)
def _around_length(
    method: str, headers: tuple[tuple[str, str], ...], target: HttpTarget, proxy: Proxy | None, *, is_passed_on: bool
) -> tuple[bytes, bytes, str | None]:
    """What stands before and behind our Content-Length, and the one that was given. All but the length is the same for
    each request of a client."""
    if not TOKEN.fullmatch(method) or method == "CONNECT":
        raise _refusal("the method of the request cannot be sent")
    given = {name.lower(): value for name, value in headers}
    forwarded = proxy is not None and not target.origin.is_tls
    before = [f"{method} {_absolute(target) if forwarded else target.path} HTTP/1.1"]
    if "host" not in given:
        before.append(f"Host: {target.origin.place}")
    after = []
    if "accept-encoding" not in given:
        after.append("Accept-Encoding: identity")
    if "user-agent" not in given and not is_passed_on:
        after.append(f"User-Agent: {_user_agent()}")
    if forwarded and proxy is not None and proxy.authorization:
        after.append(f"Proxy-Authorization: {proxy.authorization}")
    seen: set[str] = set()
    after += [_line(name, value, seen) for name, value in headers]
    return _lines(before), _lines(after) + b"\r\n", given.get("content-length")


def _lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def _line(name: str, value: str, seen: set[str]) -> str:
    key = name.lower()
    if not TOKEN.fullmatch(name):
        raise _refusal(f"the header name {name!r} cannot be sent")
    if not _VALUE.fullmatch(value):
        raise _refusal(f"the value of the header {name} has characters that cannot be sent")
    if key in OF_A_CONNECTION:
        raise _refusal(f"the header {name} is about the connection and cannot be given", hint=f"Leave {name} out.")
    if key in ("host", "content-length"):
        if key in seen:
            raise _refusal(f"the header {name} is given twice")
        seen.add(key)
    return f"{name}: {value}"


@cache
def _user_agent() -> str:
    # The module behind this is slow to import, and a request that names its own agent does not need it.
    return f"sightline/{import_module('importlib.metadata').version('sightline')}"


def _absolute(target: HttpTarget) -> str:
    return f"{target.origin.scheme}://{target.origin.place}{target.path}"


def _refusal(message: str, *, hint: str = "Check the headers of the provider and of the request.") -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=hint)


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
