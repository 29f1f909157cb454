"""The gateway as an ASGI application, for mounting in another one or running with any ASGI server."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self, TypeAlias
from urllib.parse import quote

from sightline.app.configuration import configuration
from sightline.app.engine import open_relay
from sightline.app.machine import SystemClock
from sightline.errors import Code, Fault
from sightline.gateway.gateway import Gateway
from sightline.server.listener import GRACE
from sightline.web import asgi
from sightline.web.access import LOOPBACK, OriginGuard

_LOG = logging.getLogger("sightline.gateway")

AsgiMessage: TypeAlias = MutableMapping[str, Any]
AsgiReceive: TypeAlias = Callable[[], Awaitable[Any]]
AsgiSend: TypeAlias = Callable[[Any], Awaitable[None]]


class GatewayApp:
    """The gateway without the page: it serves clients of all dialects at the same paths as `sightline serve`, and
    relays and records their requests in the same way. Enter it with `async with` when the application starts; a server
    that runs it on its own does that through the lifespan protocol.

    `config` and `data` are as on the command line. `hosts` are the names by which clients may call it. Other hosts, and
    pages of origins that are not in `[server] allowed_origins`, are refused, so that no web page can spend your keys.
    Rules that would hold a request for a person do not hold it, because there is no page to release it.
    """

    def __init__(self, *, config: str | None = None, data: str | None = None, hosts: Sequence[str] = LOOPBACK) -> None:
        self._loaded = configuration(config)
        self._data = data
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(map(str.lower, self._loaded.settings.server.allowed_origins))
        self._guards: dict[int, OriginGuard] = {}
        self._gateway: Gateway | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open the record and the connections. Raises a Fault if the record cannot be opened."""
        clock = SystemClock()
        relay, _ = await self._stack.enter_async_context(open_relay(self._loaded, self._data, unattended=_warn_unheld))
        self._stack.push_async_callback(relay.close, GRACE)
        self._gateway = Gateway(relay, self._loaded.catalog, self._loaded.has_key, clock.monotonic)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._gateway = None
        await self._stack.aclose()

    async def __call__(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        """Handle one request, or the lifespan of the server."""
        match scope["type"]:
            case "lifespan":
                await self._run_lifespan(receive, send)
            case "http":
                await self._answer(scope, receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1003})

    async def _run_lifespan(self, receive: AsgiReceive, send: AsgiSend) -> None:
        await receive()
        try:
            await self.__aenter__()
        except Fault as fault:
            await send({"type": "lifespan.startup.failed", "message": f"{fault.message}. {fault.hint}"})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.__aexit__()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        gateway = self._gateway
        if gateway is None:
            hint = "Enter it with `async with` in the lifespan of your application."
            raise Fault(Code.USAGE, "the gateway is not open", hint=hint)
        asked = _scope_for_gateway(scope)
        port = (scope.get("server") or ("", 80))[1] or 80
        guard = self._guards.setdefault(port, OriginGuard(port, self._hosts, self._origins))
        writer = _PlainWriter(send)
        refusal = guard.refusal(asked["headers"])
        if refusal is not None:
            await gateway.refusal(asked, refusal).to(writer)
            return
        client = _Client(receive)

        async def serve() -> None:
            await gateway.serve(asked, client.receive, writer)
            await writer.until_writable()

        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(serve())
            leaving = tasks.create_task(client.wait_until_gone())
            # The request to the provider must end when the client has gone: most servers silently discard what is sent
            # to it.
            leaving.add_done_callback(lambda _task: serving.cancel())
            serving.add_done_callback(lambda _task: leaving.cancel())


class _Client:
    """The client of a request: its body, and after that its disconnect."""

    def __init__(self, receive: AsgiReceive) -> None:
        self._receive = receive
        self._has_body = asyncio.Event()

    async def receive(self) -> asgi.RequestEvent:
        """The next piece of the body."""
        event: asgi.RequestEvent = await self._receive()
        if event["type"] == "http.disconnect" or not event.get("more_body"):
            self._has_body.set()
        return event

    async def wait_until_gone(self) -> None:
        """Return when the client has gone. It receives only after the body has ended, because two may not receive at
        once."""
        await self._has_body.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _scope_for_gateway(scope: AsgiMessage) -> asgi.AsgiScope:
    """The request as the gateway takes it, with the path relative to where the application is mounted."""
    root = str(scope.get("root_path") or "").rstrip("/")
    # The raw path; servers need not provide it, and then the decoded path is encoded again.
    raw = scope.get("raw_path") or quote(scope["path"], safe="/:@!$&'()*+,;=~-._").encode()
    path = raw.decode("latin-1")
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :] or "/"
    return {
        "type": "http",
        "method": scope["method"],
        "raw_path": path.encode("latin-1"),
        "query_string": scope.get("query_string", b""),
        "headers": [(bytes(name).lower(), bytes(value)) for name, value in scope["headers"]],
    }


def _warn_unheld() -> None:
    _LOG.warning("a rule would hold this request, but there is no page to decide on; it was sent")


class _PlainWriter:
    """Writes a response through the `send` of any ASGI server, which takes one message at a time. Data that is written
    without waiting is kept until the next wait; meanwhile the writer is paused."""

    def __init__(self, send: AsgiSend) -> None:
        self._send = send
        self._kept: list[asgi.ResponseStart | asgi.ResponseChunk] = []

    @property
    def is_paused(self) -> bool:
        return bool(self._kept)

    def respond(self, status: int, headers: asgi.Headers, body: bytes, /) -> None:
        self._kept += [asgi.response_start(status, headers), asgi.response_body(body, more=False)]

    def write(self, data: bytes, /) -> None:
        if data:
            self._kept.append(asgi.response_body(data, more=True))

    def chunk_writer(self) -> None:
        """None: the other server frames the body."""

    def take_body(self) -> bytes | None:
        """None: the body arrives from the other server in pieces."""
        return None

    def write_interim(self, status: int, headers: asgi.Headers, /) -> None:
        """Do nothing: ASGI has no 1xx responses, and they do not change the final one."""

    async def until_writable(self) -> None:
        kept, self._kept = self._kept, []
        for message in kept:
            await self._send(message)

    async def __call__(self, message: asgi.ResponseStart | asgi.ResponseChunk, /) -> None:
        """Send a message after the kept ones."""
        await self.until_writable()
        await self._send(message)
