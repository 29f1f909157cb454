"""The workbench: `/`, and everything below `/api`, for whoever has the token."""

from collections.abc import Callable
from importlib.metadata import version

from sightline.errors import Fault
from sightline.exchange.hub import Hub
from sightline.exchange.relay_messages import PATH, WAIT_PATH
from sightline.model.json import JsonObject
from sightline.web import replies
from sightline.web.asgi import AsgiScope, Receive, Send, WebResponse
from sightline.workbench.access import Access
from sightline.workbench.api import READING, Api
from sightline.workbench.command_relay import CommandCalls
from sightline.workbench.events import stream
from sightline.workbench.static import PREFIX, Static

_RELAY = PATH.encode()
_COMMANDS = (_RELAY, WAIT_PATH.encode())


class Workbench:
    """Shows the page, tells facts as they happen, and leaves the other calls to the API. `trouble` says what is wrong
    with the record at the moment. `commands` is absent where this server answers from the record and sends nothing."""

    def __init__(
        self, access: Access, api: Api, hub: Hub, trouble: Callable[[], str], commands: CommandCalls | None = None
    ) -> None:
        self._access = access
        self._api = api
        self._trouble = trouble
        self._hub = hub
        self._commands = commands
        self._version = version("sightline")
        self._static = Static()

    @staticmethod
    def serves(scope: AsgiScope) -> bool:
        """Whether this path is the workbench's, exactly as it was written."""
        path = scope["raw_path"]
        return path in (b"/", b"/api", b"/favicon.ico") or path.startswith((b"/api/", PREFIX))

    @staticmethod
    def refusal(_scope: AsgiScope, fault: Fault) -> WebResponse:
        """A request that is not even looked at."""
        return replies.failure(fault)

    async def serve(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope["raw_path"]
        if path == b"/favicon.ico":
            await WebResponse(204, b"", list(replies.GUARDED)).to(send)
        elif path == b"/":
            await self._root(scope).to(send)
        elif path.startswith(PREFIX):
            await self._file(scope).to(send)
        elif path == b"/api/health":
            await self._health(scope).to(send)
        elif not self._access.is_granted(scope["headers"]):
            await replies.no_token().to(send)
        elif path == b"/api/events":
            await self._events(scope, send)
        elif self._commands is not None and path in _COMMANDS:
            await self._command(self._commands, scope, receive, send)
        else:
            await (await self._api.answer(scope, receive)).to(send)

    async def _events(self, scope: AsgiScope, send: Send) -> None:
        if scope["method"] == "GET":
            await stream(self._hub, send)
        else:
            await replies.wrong_method(scope["method"], "GET").to(send)

    async def _command(self, commands: CommandCalls, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await replies.wrong_method(scope["method"], "POST").to(send)
        elif scope["raw_path"] == _RELAY:
            await commands.relay(receive, send)
        else:
            await commands.wait(receive, send)

    def _root(self, scope: AsgiScope) -> WebResponse:
        if scope["method"] == "HEAD":
            return WebResponse(200, b"", list(replies.GUARDED))  # how some clients ask whether anybody is there
        if scope["method"] != "GET":
            return replies.wrong_method(scope["method"])
        if self._access.is_in(scope["query_string"].decode("latin-1")):
            return WebResponse(303, b"", [(b"location", b"/"), (b"set-cookie", self._access.cookie), *replies.GUARDED])
        if not self._access.is_granted(scope["headers"]):
            return self._static.nothing()
        return self._static.page()

    def _file(self, scope: AsgiScope) -> WebResponse:
        if scope["method"] not in READING:
            return replies.wrong_method(scope["method"])
        return self._static.file(scope["raw_path"])

    def _health(self, scope: AsgiScope) -> WebResponse:
        if scope["method"] not in READING:
            return replies.wrong_method(scope["method"])
        proof = self._access.proof(scope["query_string"].decode("latin-1"))
        health: JsonObject = {"status": "ok", "name": "sightline", "version": self._version}
        if trouble := self._trouble():
            health |= {"store": {"trouble": trouble}}
        return replies.json(health | {"proof": proof} if proof else health)
