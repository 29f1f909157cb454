"""Making a connection: to the origin itself, to a proxy that forwards, or through a proxy's tunnel."""

import asyncio
import contextlib
import socket
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sightline.errors import Fault
from sightline.transport.http import faults
from sightline.transport.http.addresses import connect_socket
from sightline.transport.http.connection import HttpConnection, abort
from sightline.transport.http.proxies import Proxy
from sightline.transport.http.target import Origin
from sightline.transport.http.trust import Trust
from sightline.transport.http.tunnel import Tunnel

# The time for a handshake is part of the time for the whole connection, so it needs no limit of its own.
_A_DAY = 86_400.0
_ABORT_TAKES_NOTHING = SSLProtocol._abort.__code__.co_argcount == 1
"""In older versions asyncio fails over its own arguments when TLS inside TLS ends by an error."""

_Speaker = TypeVar("_Speaker", bound=asyncio.Protocol)


async def dial(
    loop: asyncio.AbstractEventLoop, origin: Origin, proxy: Proxy | None, trust: Trust, seconds: float
) -> HttpConnection:
    """A connection over which requests for the origin can go, within so many seconds (0: no limit)."""
    way = _Way(loop, trust, seconds)
    try:
        async with asyncio.timeout(seconds or None):
            return await (way.straight(origin) if proxy is None else way.through(proxy, origin))
    except TimeoutError:
        place = origin.place if proxy is None else f"{origin.place} through the proxy {proxy.place}"
        raise faults.connect_timeout(place, seconds) from None


@dataclass(frozen=True, slots=True)
class _Way:
    """The steps to a connection. TLS is always put on top of a connection that is held here: asyncio loses one that
    is given up in the moment between its connecting and its handshake."""

    loop: asyncio.AbstractEventLoop
    trust: Trust
    seconds: float

    async def straight(self, origin: Origin) -> HttpConnection:
        connection = HttpConnection(self.loop, origin.place)
        if origin.is_tls:
            self.trust.context()
            transport, _ = await self._open(asyncio.Protocol, origin.host, origin.port, origin.place)
            await self._start_tls(transport, connection, origin.host, origin.place)
        else:
            await self._open(lambda: connection, origin.host, origin.port, origin.place)
        return connection

    async def through(self, proxy: Proxy, origin: Origin) -> HttpConnection:
        connection = HttpConnection(self.loop, origin.place)
        if not origin.is_tls:
            await self._to_proxy(lambda: connection, proxy)
            return connection
        self.trust.context()
        transport, tunnel = await self._to_proxy(lambda: Tunnel(self.loop), proxy)
        status = 0
        try:
            status = await tunnel.connect(origin.authority, proxy.authorization)
        finally:
            if not 200 <= status < 300:
                abort(transport)
        if not 200 <= status < 300:
            raise faults.proxy_refused(proxy.place, proxy.variable, status, origin.place)
        await self._start_tls(transport, connection, origin.host, origin.place)
        return connection

    async def _to_proxy(self, speaker: Callable[[], _Speaker], proxy: Proxy) -> tuple[asyncio.Transport, _Speaker]:
        place = f"the proxy {proxy.place}"
        try:
            if not proxy.is_tls:
                return await self._open(speaker, proxy.host, proxy.port, place)
            self.trust.context()
            transport, _ = await self._open(asyncio.Protocol, proxy.host, proxy.port, place)
            inside = speaker()
            secured = await self._start_tls(transport, inside, proxy.host, place)
            if _ABORT_TAKES_NOTHING:
                secured._force_close = lambda _: abort(secured)  # type: ignore[attr-defined]
            return secured, inside
        except Fault as fault:
            fault.hint = f"{fault.hint} The proxy was named by {proxy.variable}."
            raise

    async def _open(
        self, speaker: Callable[[], _Speaker], host: str, port: int, place: str
    ) -> tuple[asyncio.Transport, _Speaker]:
        try:
            raw = await connect_socket(self.loop, host, port)
            _keep_awake(raw)
            return await self.loop.create_connection(speaker, sock=raw)
        except OSError as error:
            raise faults.not_connected(error, place, self.seconds) from None

    async def _start_tls(
        self, transport: asyncio.Transport, speaker: asyncio.Protocol, host: str, place: str
    ) -> asyncio.Transport:
        """TLS on top of a connection, which is closed if that fails."""
        inside = None
        try:
            inside = await self.loop.start_tls(
                transport, speaker, self.trust.context(), server_hostname=host, ssl_handshake_timeout=_A_DAY
            )
            if inside is None:
                raise faults.no_answer(place, clean=True)
        except OSError as error:
            raise faults.not_connected(error, place, self.seconds) from None
        finally:
            if inside is None:
                abort(transport)
        speaker.connection_made(inside)
        return inside


def _keep_awake(raw: socket.socket) -> None:
    """Let the system ask now and then whether the other side is still there: a model may think for minutes, and what
    stands between forgets silent connections."""
    # Not every system knows every option, and a connection that lacks one still works.
    with contextlib.suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5)):
            if hasattr(socket, option):
                raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
