"""The proxy for child processes of `sightline run --tls`, which send it CONNECT requests.

Connections to known hosts are opened: TLS ends here, and each request goes to the gateway. All others are tunnelled
without being inspected. Only clients with the password of a run are served.
"""

import asyncio
import base64
import hmac
import logging
import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote, urlsplit

from sightline.catalog.provider import KnownHost, KnownHosts
from sightline.errors import Code, Fault
from sightline.gateway.gateway import Gateway, place_of
from sightline.server.http_call import Application
from sightline.server.http_connection import ClientConnection
from sightline.server.tunnel import connect_to, forward, join, refuse_own_machine
from sightline.transport.http.client import HttpClient
from sightline.transport.http.connection import abort
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Origin, Proxies
from sightline.web.asgi import AsgiScope, ClientWriter, Headers, Receive, Upstream, header

if TYPE_CHECKING:
    from sightline.server.certificates import Authority
    from sightline.server.http2_connection import Http2Connection as _Http2

_LOG = logging.getLogger("sightline.proxy")
_MOST_HEAD: Final = 16 * 1024
_MOST_HEADS: Final = 512
_HEAD_SECONDS: Final = 20.0
_HANDSHAKE_SECONDS: Final = 20.0
_SHUTDOWN_SECONDS: Final = 2.0
"""Seconds to wait for a client to complete the TLS shutdown; the server may be shutting down too."""

_REQUEST = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\x00]*?)[ \t]*")
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})")
_LOGIN = re.compile(r"/oauth2?(?:/|$)", re.IGNORECASE)
"""Paths at which tokens are issued, in bodies. They are passed on and not recorded."""

_PORT = re.compile(r":\d*$")
_PLAIN: Final = {"content-type": "text/plain; charset=utf-8", "connection": "close"}
_REFUSAL_ALERTS: Final = frozenset({"UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE", "ACCESS_DENIED"})


def login_of(token: str, session: str) -> tuple[str, str]:
    """The user name and the password of a run. The name is its session, which labels its traffic; the password is
    derived from the token of the data folder, so that every server of the folder can check it without communicating."""
    name = base64.urlsafe_b64encode(session.encode()).decode("ascii").rstrip("=")
    return name, hmac.new(token.encode(), b"proxy\0" + session.encode(), sha256).hexdigest()


def session_in(authorization: str, token: str) -> str | None:
    """The session to which this password belongs; None if it is not valid."""
    scheme, _, coded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, password = base64.b64decode(coded.strip(), validate=True).decode("ascii").partition(":")
        session = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
    except ValueError:
        return None
    return session if hmac.compare_digest(password, login_of(token, session)[1]) else None


@dataclass(frozen=True, slots=True)
class RefusedHost:
    """A host for which a client did not accept our certificate, and the reason that its TLS reported."""

    session: str
    host: str
    why: str


@dataclass(slots=True)
class ProxySettings:
    """What the proxy needs to serve clients. `token` is that of the data folder; with `tunnels_refused`, hosts for
    which a client has not accepted our certificate are tunnelled from then on. `outside` connects to no address of this
    machine. `refused` has those hosts by session and
    name, `heads` one object for each request head, by its destination and its content."""

    gateway: Gateway
    hosts: KnownHosts
    authority: "Authority"
    token: str
    client: HttpClient
    outside: HttpClient
    trust: Trust
    proxies: Proxies
    connections: set[ClientConnection]
    tunnels_refused: bool = False
    refused: dict[tuple[str, str], RefusedHost] = field(default_factory=dict)
    open: set["ProxyConnection"] = field(default_factory=set)
    heads: dict[tuple[Upstream, object], object] = field(default_factory=dict)

    def note_refusal(self, session: str, host: str, why: str) -> None:
        if (session, host) in self.refused:
            return
        self.refused[session, host] = RefusedHost(session, host, why)
        then = "its connections there are tunnelled from now on" if self.tunnels_refused else "its requests there fail"
        _LOG.warning("a client of session %s refuses our certificate for %s (%s); %s", session, host, why, then)


class OpenedHost:
    """The application for connections to one host that one run has opened."""

    def __init__(self, settings: ProxySettings, upstream: Upstream, host: str) -> None:
        self._settings = settings
        self._upstream = upstream
        self._host = host

    def __call__(self, scope: AsgiScope, receive: Receive, send: ClientWriter) -> Awaitable[None]:
        scope["upstream"] = self._upstream
        scope["head"] = self._find_head(scope)
        gateway = self._settings.gateway
        named = header(scope["headers"], b"host").lower()
        if _PORT.sub("", named).rstrip(".") != self._host:
            hint = "Connect to the host that the request is for."
            fault = Fault(Code.PERMISSION, f"this connection was opened to {self._host}", hint=hint, status=421)
            return gateway.refusal(scope, fault).to(send)
        if _LOGIN.search(place_of(scope).path):  # it must not be recorded
            return forward(self._settings.client, self._upstream.origin, scope, receive, send)
        return gateway.serve(scope, receive, send)

    def _find_head(self, scope: AsgiScope) -> object:
        """One object for all requests of this run to this host with this head, as plain-text connections have one by
        the bytes: what follows from a head is computed once. The same head means something else to another host or in
        another run."""
        known = scope.get("head")
        if known is None:
            headers = tuple([each for each in scope["headers"] if each[0] != b"content-length"])
            known = scope["method"], scope["raw_path"], scope["query_string"], headers
        heads = self._settings.heads
        if len(heads) >= _MOST_HEADS:
            heads.clear()
        return heads.setdefault((self._upstream, known), object())


class _Handshake(asyncio.Protocol):
    """Keeps what arrives between the end of the handshake and the choice of the protocol."""

    def __init__(self) -> None:
        self.came: list[bytes] = []
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.came.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True


class ProxyConnection(asyncio.Protocol):
    """The connection of a child process, until it is known what it asks for; then a tunnel or a server takes it
    over."""

    transport: asyncio.Transport

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._buffer = bytearray()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transports do not inherit from it
        self._settings.open.add(self)
        self._timer = self._loop.call_later(_HEAD_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left before it was served, or while a connection was made for it."""
        self._cleanup()
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MOST_HEAD:
                self._answer(431, "the head of the request is larger than 16 KiB")
            return
        if self._timer is not None:
            self._timer.cancel()
        self.transport.pause_reading()
        head, rest = bytes(self._buffer[:end]), bytes(self._buffer[end + 4 :])
        self._buffer.clear()
        self.task = self._loop.create_task(self._serve(head, rest))

    async def _serve(self, head: bytes, rest: bytes) -> None:
        try:
            await self._serve_request(head, rest)
        except Fault as fault:
            self._answer(fault.status or 502, f"{fault.message}. {fault.hint}")
        except asyncio.CancelledError:
            abort(self.transport)
            raise
        except Exception:  # noqa: BLE001 - a failing connection must not affect the others
            _LOG.exception("a connection of the proxy failed")
            abort(self.transport)
        finally:
            self._cleanup()

    async def _serve_request(self, head: bytes, rest: bytes) -> None:
        line, *lines = head.split(b"\r\n")
        asked = _REQUEST.fullmatch(line)
        fields = [_FIELD.fullmatch(each) for each in lines]
        if asked is None or not all(fields):
            raise Fault(Code.INVALID_REQUEST, "this is not a request to a proxy", hint="Send CONNECT.", status=400)
        headers: Headers = [(found[1].lower(), found[2]) for found in fields if found is not None]
        session = session_in(header(headers, b"proxy-authorization"), self._settings.token)
        if session is None:
            self._answer(407, "this proxy is for programs that `sightline run --tls` has started")
            return
        wanted = asked[2].decode("latin-1")
        if asked[1] != b"CONNECT":
            self._forward(asked[1], wanted, headers, rest)
            return
        found = _AUTHORITY.fullmatch(wanted)
        port = int(found[3]) if found else 0
        if found is None or not 0 < port < 65_536:
            raise Fault(Code.INVALID_REQUEST, "CONNECT names no host and port", hint="Send HOST:PORT.", status=400)
        host = (found[1] or found[2]).lower().rstrip(".")
        known = self._settings.hosts.find(host, port)
        is_tunnelled = self._settings.tunnels_refused and (session, host) in self._settings.refused
        if known is not None and not is_tunnelled:
            await self._open(known, port, session, rest)
        else:
            await self._tunnel(Origin("https", host, port), rest)

    async def _tunnel(self, origin: Origin, rest: bytes) -> None:
        settings = self._settings
        there = await connect_to(origin, settings.proxies, settings.trust)
        if self.transport.is_closing():
            there.close()
            return
        self.transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        sent, came = await join(self.transport, there, rest)
        _LOG.info("tunnelled %s: %d bytes there, %d back", origin.authority, sent, came)

    async def _open(self, known: KnownHost, port: int, session: str, rest: bytes) -> None:
        if rest:
            hint = "Wait for the answer to CONNECT."
            raise Fault(Code.INVALID_REQUEST, "bytes came before the tunnel was open", hint=hint, status=400)
        settings, handshake = self._settings, _Handshake()
        context = settings.authority.context_for(known.name)
        self.transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            inside = await self._loop.start_tls(
                self.transport,
                handshake,
                context,
                server_side=True,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
            )
        except OSError as error:  # includes TLS errors
            self._note_refusal(error, session, known.name)
            abort(self.transport)
            return
        if inside is None or handshake.is_lost:
            return
        authority = known.name if port == 443 else f"{known.name}:{port}"
        upstream = Upstream(f"https://{authority}", known.provider, known.bases, session)
        app = OpenedHost(settings, upstream, known.name)
        serve_inside(inside, handshake, app, settings.connections)

    def _note_refusal(self, error: OSError, session: str, host: str) -> None:
        reason = str(getattr(error, "reason", None) or "")
        if isinstance(error, ssl.SSLError) and "ALERT" in reason and any(each in reason for each in _REFUSAL_ALERTS):
            self._settings.note_refusal(session, host, reason.rpartition("ALERT_")[2].replace("_", " ").lower())
        else:
            _LOG.info("no TLS with a client for %s: %s", host, reason or error)

    def _forward(self, method: bytes, url: str, headers: Headers, rest: bytes) -> None:
        """Serve one plain-text request by passing it on; the connection ends with its response."""
        try:
            parts = urlsplit(url)
        except ValueError:  # brackets that hold no address
            parts = urlsplit("")
        if parts.scheme != "http" or not parts.hostname or "@" in parts.netloc:
            hint = "Give its address as a base URL instead, if you want Sightline itself."
            raise Fault(Code.INVALID_REQUEST, "this is a proxy, and the request names no host", hint=hint, status=400)
        refuse_own_machine(parts.hostname, parts.netloc)
        client = self._settings.outside

        def app(scope: AsgiScope, receive: Receive, send: ClientWriter) -> Awaitable[None]:
            return forward(client, f"http://{parts.netloc}", scope, receive, send)

        path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}".encode("latin-1")
        kept = [each for each in headers if each[0] not in (b"proxy-authorization", b"proxy-connection", b"connection")]
        lines = [b"%b %b HTTP/1.1" % (method, path), *(b"%b: %b" % each for each in kept), b"connection: close"]
        connection = ClientConnection(app, self._settings.connections)
        self.transport.set_protocol(connection)
        connection.connection_made(self.transport)
        connection.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + rest)
        self.transport.resume_reading()

    def _answer(self, status: int, text: str) -> None:
        body = f"{text}\n".encode()
        named = {**_PLAIN, "content-length": str(len(body))}
        if status == 407:
            named["proxy-authenticate"] = 'Basic realm="sightline"'
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{key}: {value}" for key, value in named.items())]
        self.transport.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        self.transport.close()

    def _cleanup(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._settings.open.discard(self)


def serve_inside(
    transport: asyncio.Transport, handshake: _Handshake, app: Application, connections: set[ClientConnection]
) -> None:
    """Let the server of the negotiated protocol take over the connection, with what has arrived already."""
    secured = transport.get_extra_info("ssl_object")
    speaker: ClientConnection | _Http2
    if secured is not None and secured.selected_alpn_protocol() == "h2":
        # Most clients of models speak HTTP/1.1, and most servers never open TLS connections: importing h2 is slow.
        from sightline.server.http2_connection import Http2Connection

        speaker = Http2Connection(app, cast("set[_Http2]", connections))  # both kinds are closed in the same way
    else:
        speaker = ClientConnection(app, connections)
    transport.set_protocol(speaker)
    speaker.connection_made(transport)
    for data in handshake.came:
        speaker.data_received(data)


class ProxyServer:
    """The proxy, which starts to listen when the first run asks for it. `make` creates its settings."""

    def __init__(self, make: Callable[[], ProxySettings], port: int) -> None:
        self._make = make
        self._port = port
        self._server: asyncio.Server | None = None
        self._settings: ProxySettings | None = None
        self._lock = asyncio.Lock()

    async def open(self, session: str) -> tuple[str, str]:
        """The URL of the proxy with the password of this session, and the certificate to trust, as PEM. Raises a fault
        if the port cannot be used."""
        async with self._lock:
            settings = self._settings = self._settings or self._make()
            certificate = settings.authority.certificate
            if self._server is None:
                self._server = await self._listen(settings)
        port = self._server.sockets[0].getsockname()[1]
        name, password = login_of(settings.token, session)
        return f"http://{quote(name)}:{password}@127.0.0.1:{port}", certificate

    async def _listen(self, settings: ProxySettings) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        try:
            return await loop.create_server(lambda: ProxyConnection(settings), "127.0.0.1", self._port)
        except OSError as error:
            hint = "Set [server] proxy_port to another port, or to 0 for any free one."
            why = f"the port {self._port} cannot be used for the proxy: {error.strerror}"
            raise Fault(Code.CONFIG, why, hint=hint, status=409) from None

    def refusals(self, session: str) -> list[RefusedHost]:
        """The hosts for which clients of this session did not accept our certificate."""
        return (
            []
            if self._settings is None
            else [each for each in self._settings.refused.values() if each.session == session]
        )

    async def close(self) -> None:
        """Stop listening, and close connections that the gateway does not serve."""
        server, settings, self._server = self._server, self._settings, None
        if server is None or settings is None:
            return
        server.close()
        connections = list(settings.open)
        tasks = [each.task for each in connections if each.task is not None]
        for connection in connections:
            abort(connection.transport)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await settings.client.close()
        await settings.outside.close()
