"""The gateway as an ASGI application, to be mounted in another one or run by any ASGI server."""

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
    """The gateway without the page: clients of all dialects at the paths that `sightline serve` has, relayed and
    recorded as there. Enter it with `async with` where the application starts; a server that runs it alone does that by
    the lifespan protocol.

    `config` and `data` are as on the command line. `hosts` are the names by which clients may call it: others, and
    pages of other origins than `[server] allowed_origins`, are refused, so that no web page can spend your keys. Rules
    that would hold a request for a person do not: there is no page to decide on.
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
        relay, _ = await self._stack.enter_async_context(open_relay(self._loaded, self._data, unattended=_note_unheld))
        self._stack.push_async_callback(relay.close, GRACE)
        self._gateway = Gateway(relay, self._loaded.catalog, self._loaded.has_key, clock.monotonic)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._gateway = None
        await self._stack.aclose()

    async def __call__(self, scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        """Answer one request, or follow the server through its life."""
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                await self._answer(scope, receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1003})

    async def _live(self, receive: AsgiReceive, send: AsgiSend) -> None:
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
        asked = _scope_within(scope)
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
            # A provider must not go on for a client that has left: most servers swallow what is sent to it.
            leaving.add_done_callback(lambda _task: serving.cancel())
            serving.add_done_callback(lambda _task: leaving.cancel())


class _Client:
    """The other side of a request: its body, and after that the word that it has gone."""

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
        """Return when the client has gone. No one else may receive by then."""
        await self._has_body.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _scope_within(scope: AsgiMessage) -> asgi.AsgiScope:
    """The request as the gateway takes it: with the path below the place where it is mounted."""
    root = str(scope.get("root_path") or "").rstrip("/")
    # The path as it was sent; servers need not say, and what they decoded is then written again.
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


def _note_unheld() -> None:
    _LOG.warning("a rule would hold this request, but there is no page to decide on; it was sent")


class _PlainWriter:
    """Writes a response through the `send` of any ASGI server, which takes one message at a time. What is written
    without waiting is kept until the next wait, and asks for one."""

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
        """Nothing: the body comes from the other server, piece by piece."""
        return None

    def write_interim(self, status: int, headers: asgi.Headers, /) -> None:
        """ASGI has no responses of 1xx, and they change nothing in the one that follows."""

    async def until_writable(self) -> None:
        kept, self._kept = self._kept, []
        for message in kept:
            await self._send(message)

    async def __call__(self, message: asgi.ResponseStart | asgi.ResponseChunk, /) -> None:
        """Send a message behind what is kept."""
        await self.until_writable()
        await self._send(message)
