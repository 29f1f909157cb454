"""The workbench: `/`, and everything below `/api`, for whoever has the token."""

from importlib.metadata import version

from sightline.engine.hub import Hub
from sightline.errors import Fault
from sightline.model.json import JsonObject
from sightline.server.asgi import Answer, Receive, Scope, Send
from sightline.server.workbench import replies
from sightline.server.workbench.access import Access
from sightline.server.workbench.events import stream
from sightline.server.workbench.exchanges import Exchanges
from sightline.server.workbench.page import nothing, page
from sightline.server.workbench.replays import Replays

_READING = ("GET", "HEAD")
_ON_THE_PAGE = 20


class Workbench:
    """`address` is where this server is to be found, as a person would write it."""

    def __init__(self, access: Access, exchanges: Exchanges, hub: Hub, address: str, replays: Replays) -> None:
        self._access = access
        self._exchanges = exchanges
        self._replays = replays
        self._hub = hub
        self._address = address
        self._version = version("sightline")

    @staticmethod
    def serves(scope: Scope) -> bool:
        """Whether this path is the workbench's, exactly as it was written."""
        path = scope["raw_path"]
        return path in (b"/", b"/api", b"/favicon.ico") or path.startswith(b"/api/")

    @staticmethod
    def refusal(_scope: Scope, fault: Fault) -> Answer:
        """A request that is not even looked at."""
        return replies.failure(fault)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope["raw_path"]
        if path == b"/favicon.ico":
            await Answer(204, b"", list(replies.GUARDED)).to(send)
        elif path == b"/":
            await (await self._root(scope)).to(send)
        elif path == b"/api/health":
            await self._health(scope).to(send)
        elif not self._access.is_granted(scope["headers"]):
            await replies.no_token().to(send)
        elif path == b"/api/events" and scope["method"] == "GET":
            await stream(self._hub, send)
        else:
            await (await self._api(scope, receive)).to(send)

    async def _root(self, scope: Scope) -> Answer:
        if scope["method"] == "HEAD":
            return Answer(200, b"", list(replies.GUARDED))  # how some clients ask whether anybody is there
        if scope["method"] != "GET":
            return replies.wrong_method(scope["method"])
        if self._access.is_in(scope["query_string"].decode("latin-1")):
            return Answer(303, b"", [(b"location", b"/"), (b"set-cookie", self._access.cookie), *replies.GUARDED])
        if not self._access.is_granted(scope["headers"]):
            return nothing()
        return page(self._address, self._version, await self._exchanges.newest(_ON_THE_PAGE))

    def _health(self, scope: Scope) -> Answer:
        if scope["method"] not in _READING:
            return replies.wrong_method(scope["method"])
        proof = self._access.proof(scope["query_string"].decode("latin-1"))
        health: JsonObject = {"status": "ok", "name": "sightline", "version": self._version}
        if trouble := self._exchanges.trouble:
            health |= {"store": {"trouble": trouble}}
        return replies.json(health | {"proof": proof} if proof else health)

    async def _api(self, scope: Scope, receive: Receive) -> Answer:
        query = scope["query_string"].decode("latin-1")
        segments = scope["raw_path"].decode("latin-1").removeprefix("/api").strip("/").split("/")
        try:
            match segments:
                case ["events"]:
                    return replies.wrong_method(scope["method"])
                case ["exchanges", *rest] if scope["method"] not in _READING and len(rest) < 2:
                    return replies.wrong_method(scope["method"])
                case ["exchanges"]:
                    return replies.json(await self._exchanges.listed(query))
                case ["exchanges", exchange]:
                    return replies.json(await self._exchanges.shown(exchange))
                case ["exchanges", exchange, "body"] if scope["method"] in _READING:
                    return await self._exchanges.body(exchange, query)
                case ["exchanges", _, "body"]:
                    return replies.wrong_method(scope["method"])
                case ["exchanges", exchange, "replay"] if scope["method"] == "POST":
                    return replies.json(await self._replays.start(exchange, receive))
                case ["exchanges", _, "replay"]:
                    return replies.wrong_method(scope["method"], "POST")
                case _:
                    raise replies.not_found(f"{scope['method']} {scope['raw_path'].decode('latin-1')}")
        except Fault as fault:
            return replies.failure(fault)
