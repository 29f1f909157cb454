"""Opens connections: name lookup, TCP, a proxy or its tunnel, and TLS with the trusted certificates.

The addresses of a host are tried in turn, each with a short head start.
"""

import asyncio
import contextlib
import os.path
import re
import socket
import ssl
import sys
import threading
from asyncio.sslproto import SSLProtocol
from asyncio.staggered import staggered_race
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

from sightline.errors import Code, Fault
from sightline.transport.http import faults
from sightline.transport.http.connection import abort
from sightline.transport.http.target import Origin, Proxy, ip_of

_HEAD_START = 0.25
CheckAddress: TypeAlias = Callable[[str, str], None]
"""Raises a Fault for an address to which no connection may lead; also gets the name of the place."""

_Found: TypeAlias = tuple[int, int, int, str, tuple[str | int | bytes, ...]]
_Address: TypeAlias = tuple[int, tuple[str | int | bytes, ...]]


async def connect_socket(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """Connect a socket to the host. Raises the most informative OSError if that fails.

    asyncio's own `create_connection` can lose a socket that connects at the moment when the wait for it ends; here
    every socket that is not returned is closed.
    """
    addresses = await _addresses(loop, host, port)
    if len(addresses) == 1:
        return await _connect(loop, addresses[0])
    made: list[socket.socket] = []
    chosen: socket.socket | None = None

    async def attempt(address: _Address) -> socket.socket:
        raw = await _connect(loop, address)
        made.append(raw)
        return raw

    try:
        chosen, _, errors = await staggered_race([partial(attempt, address) for address in addresses], _HEAD_START)
    finally:
        for raw in made:
            if raw is not chosen:
                raw.close()
    if chosen is None:
        raise _most_informative([error for error in errors if isinstance(error, OSError)])
    return chosen


async def _addresses(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[_Address]:
    if (ip := ip_of(host)) is not None:
        return [(socket.AF_INET, (host, port)) if ip.version == 4 else (socket.AF_INET6, (host, port, 0, 0))]
    found = await _look_up(loop, host, port)
    addresses = [(family, address) for family, _, _, _, address in found]
    # Both families alternate, so that an unreachable one costs only one head start. The system's first address stays
    # first.
    first = [each for each in addresses if each[0] == addresses[0][0]]
    second = [each for each in addresses if each[0] != addresses[0][0]]
    return [each for each in chain.from_iterable(zip_longest(first, second)) if each is not None]


async def _look_up(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[_Found]:
    """The addresses that the system has for a name.

    The look-up cannot be cancelled, and asyncio's own would delay the end of the program until the name server has
    answered; this one uses a daemon thread.
    """
    answer: asyncio.Future[list[_Found]] = loop.create_future()

    def settle(found: list[_Found] | Exception) -> None:
        if answer.cancelled():
            return
        if isinstance(found, Exception):
            answer.set_exception(found)
        else:
            answer.set_result(found)

    def look_up() -> None:
        found: list[_Found] | Exception
        try:
            found = list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:  # noqa: BLE001 - every error is passed to the waiting task
            found = error
        with contextlib.suppress(RuntimeError):  # the loop may have closed meanwhile
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=look_up, name=f"look up {host}", daemon=True).start()
    return await answer


async def _connect(loop: asyncio.AbstractEventLoop, address: _Address) -> socket.socket:
    family, where = address
    # asyncio disables the delay of small writes (Nagle) only for a socket that is declared as TCP.
    raw = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    is_connected = False
    try:
        raw.setblocking(False)
        await loop.sock_connect(raw, where)
        is_connected = True
    finally:
        if not is_connected:
            raw.close()
    return raw


def _most_informative(errors: list[OSError]) -> OSError:
    """A refusal is more informative than a missing route of another address family."""
    return next((error for error in errors if isinstance(error, ConnectionRefusedError)), errors[0])


_LIMIT = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: [^\r\n]*)?\r\n")


class Tunnel(asyncio.Protocol):
    """Asks the proxy for a tunnel; TLS with the origin follows on the same connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._answered: asyncio.Future[int] = loop.create_future()
        self._heard = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports do not inherit from it

    def data_received(self, data: bytes) -> None:
        self._heard += data
        end = self._heard.find(b"\r\n\r\n")
        if end >= 0:
            found = _STATUS.match(self._heard)
            status = int(found[1]) if found else 0
            # In TLS the client sends first: bytes after the proxy's consent are not from the origin.
            is_alone = end + 4 == len(self._heard)
            self._set_status(status if is_alone or not 200 <= status < 300 else 0)
        elif len(self._heard) > _LIMIT:
            self._set_status(0)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_status(0)

    def _set_status(self, status: int) -> None:
        if not self._answered.done():
            self._answered.set_result(status)

    async def connect(self, authority: str, authorization: str) -> int:
        """The status of the proxy's response; 0 if the response is not valid."""
        assert self._transport is not None
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        if authorization:
            lines.append(f"Proxy-Authorization: {authorization}")
        self._transport.write("\r\n".join([*lines, "", ""]).encode("ascii"))
        return await self._answered


# Files that are added to the system's store; other programs use these variables too.
_FILE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_FOLDER_VARIABLE = "SSL_CERT_DIR"
_SETTING = "[network] ca_file"


class Trust:
    """The TLS settings of every connection. The named certificates are added to the system's store and never replace
    it; they are read when the first connection needs them."""

    def __init__(self, *, environment: Mapping[str, str], ca_file: str = "") -> None:
        self._named = [(name, environment.get(name, "")) for name in _FILE_VARIABLES] + [(_SETTING, ca_file)]
        self._folders = environment.get(_FOLDER_VARIABLE, "")
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """TLS 1.2 or later, certificates and host names checked, HTTP/1.1 offered."""
        if self._context is None:
            self._context = self._build_context()
        return self._context

    def _build_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        # A company's own intermediate certificate that is added without its root is trusted on its own.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if sys.platform == "win32":
            context.load_default_certs()
        else:
            _add_openssl_store(context)
        for name, path in self._named:
            if path:
                _add(context, name, path)
        if self._folders:
            _add_folders(context, self._folders)
        return context


def _add_openssl_store(context: ssl.SSLContext) -> None:
    # The paths that OpenSSL was built with, because in its own look-up SSL_CERT_FILE replaces them.
    paths = ssl.get_default_verify_paths()
    file, folder = Path(paths.openssl_cafile), Path(paths.openssl_capath)
    has_file = file.is_file() and file.stat().st_size > 0
    has_folder = folder.is_dir() and any(folder.iterdir())
    if has_file:
        context.load_verify_locations(cafile=file)
    if has_folder:
        context.load_verify_locations(capath=folder)
    if not has_file and not has_folder:
        import certifi

        context.load_verify_locations(cafile=certifi.where())


def _add(context: ssl.SSLContext, name: str, path: str) -> None:
    try:
        if Path(path).is_dir():
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    except FileNotFoundError:
        raise _refusal(name, path, "does not exist") from None
    except (OSError, ValueError) as error:
        # SSLError is an OSError: a file without a certificate, or with an invalid one.
        why = "holds no certificates" if isinstance(error, ssl.SSLError) else "cannot be read"
        raise _refusal(name, path, why) from None


def _add_folders(context: ssl.SSLContext, listed: str) -> None:
    folders = [folder for folder in listed.split(os.path.pathsep) if Path(folder).is_dir()]
    if not folders:
        raise _refusal(_FOLDER_VARIABLE, listed, "is no folder")
    for folder in folders:
        context.load_verify_locations(capath=folder)


def _refusal(name: str, path: str, why: str) -> Fault:
    return Fault(
        Code.CONFIG,
        f"the CA file {path} (from {name}) {why}",
        hint=f"Set {name} to a PEM file of the certificates to trust, or unset it.",
    )


# The time for a handshake is part of the time for the whole connection, so it needs no limit of its own.
_NO_HANDSHAKE_LIMIT = 86_400.0
_ABORT_TAKES_NOTHING = SSLProtocol._abort.__code__.co_argcount == 1
"""In older versions of Python, asyncio raises a TypeError in its own code if TLS inside TLS ends with an error."""

_Speaker = TypeVar("_Speaker", bound=asyncio.Protocol)


@contextlib.asynccontextmanager
async def connecting_to(place: str, seconds: float) -> AsyncIterator[None]:
    """A context manager for connecting: raises the fault of a place that cannot be connected to within this many
    seconds (0: no limit)."""
    try:
        async with asyncio.timeout(seconds or None):
            yield
    except TimeoutError:
        raise faults.connect_timeout(place, seconds) from None


async def dial_for(
    connection: asyncio.Protocol,
    loop: asyncio.AbstractEventLoop,
    origin: Origin,
    proxy: Proxy | None,
    trust: Trust,
    seconds: float,
    *,
    is_tunnelled: bool = False,
    check: CheckAddress | None = None,
) -> None:
    """Connect this protocol to the origin, within this many seconds (0: no limit). With `is_tunnelled`, a proxy makes a
    tunnel even without TLS, which is required for anything but requests. `check` is asked about the address of the
    origin, unless a proxy connects to it."""
    way = _Way(loop, trust, seconds, check)
    if proxy is None:
        async with connecting_to(origin.place, seconds):
            await way.straight(connection, origin)
        return
    async with connecting_to(f"{origin.place} through the proxy {proxy.place}", seconds):
        await way.through(connection, proxy, origin, is_tunnelled=is_tunnelled or origin.is_tls)


async def dial_tunnel(
    loop: asyncio.AbstractEventLoop, origin: Origin, proxy: Proxy, trust: Trust, seconds: float
) -> asyncio.Transport:
    """A connection to the origin through the proxy, without our own TLS, within this many seconds."""
    async with connecting_to(f"{origin.place} through the proxy {proxy.place}", seconds):
        return await _Way(loop, trust, seconds).tunnel(proxy, origin)


@dataclass(frozen=True, slots=True)
class _Way:
    """The steps of connecting. TLS is always started on a connection that is held here: asyncio loses one that is given
    up between connecting and the handshake."""

    loop: asyncio.AbstractEventLoop
    trust: Trust
    seconds: float
    check: CheckAddress | None = None

    async def straight(self, connection: asyncio.Protocol, origin: Origin) -> None:
        if origin.is_tls:
            self.trust.context()
            transport, _ = await self._open(asyncio.Protocol, origin.host, origin.port, origin.place, self.check)
            await self._start_tls(transport, connection, origin.host, origin.place)
        else:
            await self._open(lambda: connection, origin.host, origin.port, origin.place, self.check)

    async def through(self, connection: asyncio.Protocol, proxy: Proxy, origin: Origin, *, is_tunnelled: bool) -> None:
        if not is_tunnelled:
            await self._to_proxy(lambda: connection, proxy)
            return
        if origin.is_tls:
            self.trust.context()
        transport = await self.tunnel(proxy, origin)
        if origin.is_tls:
            await self._start_tls(transport, connection, origin.host, origin.place)
        else:
            transport.set_protocol(connection)
            connection.connection_made(transport)

    async def tunnel(self, proxy: Proxy, origin: Origin) -> asyncio.Transport:
        """A connection to the origin that the proxy has made. Raises a fault if the proxy refuses."""
        transport, tunnel = await self._to_proxy(lambda: Tunnel(self.loop), proxy)
        status = 0
        try:
            status = await tunnel.connect(origin.authority, proxy.authorization)
        finally:
            if not 200 <= status < 300:
                abort(transport)
        if not 200 <= status < 300:
            raise faults.proxy_refused(proxy.place, proxy.variable, status, origin.place)
        return transport

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
        self,
        speaker: Callable[[], _Speaker],
        host: str,
        port: int,
        place: str,
        check: CheckAddress | None = None,
    ) -> tuple[asyncio.Transport, _Speaker]:
        try:
            raw = await connect_socket(self.loop, host, port)
            if check is not None:  # only now the address is known
                try:
                    check(raw.getpeername()[0], place)
                except BaseException:
                    raw.close()
                    raise
            _enable_keepalive(raw)
            return await self.loop.create_connection(speaker, sock=raw)
        except OSError as error:
            raise faults.not_connected(error, place, self.seconds) from None

    async def _start_tls(
        self, transport: asyncio.Transport, speaker: asyncio.Protocol, host: str, place: str
    ) -> asyncio.Transport:
        """Start TLS on a connection, which is closed if that fails."""
        inside = None
        try:
            inside = await self.loop.start_tls(
                transport,
                speaker,
                self.trust.context(),
                server_hostname=host,
                ssl_handshake_timeout=_NO_HANDSHAKE_LIMIT,
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


def _enable_keepalive(raw: socket.socket) -> None:
    """Enable TCP keep-alive: a model may think for minutes, and devices in between drop silent connections."""
    # Not every system has every option, and a connection works without them.
    with contextlib.suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5)):
            if hasattr(socket, option):
                raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
