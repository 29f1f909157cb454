"""The workbench: `/` and everything below `/api`, for requests with the token."""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from sightline.errors import Fault
from sightline.exchange.hub import SHOWN, Announced, Hub, News
from sightline.exchange.relay_messages import PATH, WAIT_PATH
from sightline.model.json import JsonObject
from sightline.store.entries import FramesEntry, frames_in
from sightline.web import replies
from sightline.web.asgi import AsgiScope, Headers, Receive, Send, WebResponse, header, response_body, response_start
from sightline.web.replies import GUARDED, READING
from sightline.wire.jsontext import encode
from sightline.workbench.command_relay import CommandCalls

if TYPE_CHECKING:
    from sightline.workbench.api import Api

_A_MONTH = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Access:
    """The token and the port. Browsers share cookies between ports, so the cookie's name contains the port."""

    token: str
    port: int

    def is_granted(self, headers: Headers) -> bool:
        scheme, _, shown = header(headers, b"authorization").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(shown.strip()):
            return True
        return any(self._is_token(value) for value in self._cookies(headers))

    def is_in(self, query: str) -> bool:
        """Whether the query contains the token, as that of the printed link does."""
        return any(self._is_token(value) for value in parse_qs(query).get("token", ()))

    def proof(self, query: str) -> str:
        """The response to the challenge in a query, by which another program of the user recognises this server; empty
        without a challenge."""
        challenge = parse_qs(query).get("challenge", [""])[0]
        return proof_of(self.token, challenge) if challenge else ""

    @property
    def cookie(self) -> bytes:
        """The cookie: not readable by scripts, and not sent with requests of other sites."""
        return f"{self._name}={self.token}; Path=/; Max-Age={_A_MONTH}; HttpOnly; SameSite=Strict".encode()

    @property
    def _name(self) -> str:
        return f"sightline_{self.port}"

    def _cookies(self, headers: Headers) -> list[str]:
        pairs = (
            pair.strip().partition("=")
            for name, value in headers
            if name == b"cookie"
            for pair in value.decode("latin-1").split(";")
        )
        return [value for name, _, value in pairs if name == self._name]

    def _is_token(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode(), self.token.encode())


def proof_of(token: str, challenge: str) -> str:
    """The response to a challenge, which proves knowledge of the token without sending it."""
    return hmac.new(token.encode(), f"sightline {challenge}".encode(), hashlib.sha256).hexdigest()


FOLDER: Final = Path(__file__).resolve().parents[1] / "ui"
PREFIX: Final = b"/ui/"
PAGE: Final = "index.html"
TYPES: Final[Mapping[str, bytes]] = {
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".LICENSE": b"text/plain; charset=utf-8",
}
"""The media types of the files that are served, by suffix; others are not served."""

# No inline scripts or styles, and no string may become markup.
POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src blob:; "
    b"connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
_PAGE_HEADERS: Final[Headers] = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY),
    *replies.GUARDED,
]
_IMMUTABLE: Final = (b"cache-control", b"public, max-age=31536000, immutable")
_HASH_LENGTH: Final = 16


@dataclass(frozen=True, slots=True)
class _Tree:
    """The files at one moment. `stamp` changes when any of them does."""

    stamp: tuple[tuple[str, int, int], ...]
    hash: str
    files: Mapping[str, bytes]


class Static:
    """Reads the files once, and again only after one of them has changed on the disk."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._tree: _Tree | None = None

    def page(self) -> WebResponse:
        """The page, with links to the current files."""
        tree = self._current()
        html = tree.files[PAGE].replace(b"{ui}", PREFIX + tree.hash.encode())
        return WebResponse(200, html, list(_PAGE_HEADERS))

    def nothing(self) -> WebResponse:
        """A blank page, for requests without the token."""
        html = b'<!doctype html><html lang="en"><title>Sightline</title><link rel="icon" href="data:,">'
        return WebResponse(401, html, list(_PAGE_HEADERS))

    def file(self, path: bytes) -> WebResponse:
        """One file by its exact path."""
        named, _, name = path.removeprefix(PREFIX).decode("latin-1").partition("/")
        tree = self._tree or self._current()
        media_type = TYPES.get(Path(name).suffix)
        body = tree.files.get(name)
        if named != tree.hash or media_type is None or body is None:
            return replies.failure(replies.not_found(f"file {name[:200]!r} of the page; load the page again"))
        kept = [header for header in replies.GUARDED if header[0] != b"cache-control"]
        return WebResponse(200, body, [(b"content-type", media_type), _IMMUTABLE, *kept])

    def _current(self) -> _Tree:
        paths = sorted(path for path in self._folder.rglob("*") if path.suffix in TYPES or path.name == PAGE)
        stamp = tuple((str(path), (stat := path.stat()).st_mtime_ns, stat.st_size) for path in paths)
        if self._tree is None or self._tree.stamp != stamp:
            files = {path.relative_to(self._folder).as_posix(): path.read_bytes() for path in paths}
            state = hashlib.sha256()
            for name, body in files.items():
                state.update(f"{name}\0{len(body)}\0".encode())
                state.update(body)
            self._tree = _Tree(stamp, state.hexdigest()[:_HASH_LENGTH], files)
        return self._tree


PING = 15.0
"""After so many idle seconds a comment is sent, so that no proxy considers the connection dead."""
PAUSE = 0.03
"""Seconds in which facts are collected before they are sent: the eye cannot follow more, and sending each fact
separately costs half as much as the request that it is about."""


async def stream(hub: Hub, send: Send, *, with_frames: bool = True, is_brief: bool = False, ping: float = PING) -> None:
    """Send facts until the hub is closed; facts that arrive within a moment are sent together. No fact after the first
    comment is missed. Without `with_frames`, one event reports when frames arrived and how large they were, without
    their data. With `is_brief`, no more facts are sent than a page can show; see `FactQueue`."""
    with hub.watch(is_brief=is_brief) as watch:
        if hub.spread is not None:
            await hub.spread()
        await send(response_start(200, [(b"content-type", b"text/event-stream"), *GUARDED]))
        await send(response_body(b": listening\n\n", more=True))
        coming = aiter(watch)
        while True:
            try:
                async with asyncio.timeout(ping):
                    news = await anext(coming)
            except TimeoutError:
                await send(response_body(b": still here\n\n", more=True))
            except StopAsyncIteration:
                break
            else:
                await asyncio.sleep(PAUSE)
                events = [event(each, with_frames=with_frames) for each in (news, *watch.take_waiting())]
                await send(response_body(b"".join(events), more=True))
                if is_brief:
                    await asyncio.sleep(SHOWN - PAUSE)
        await send(response_body(b"", more=False))


def event(news: News, *, with_frames: bool = True) -> bytes:
    """A fact, or an announcement under its name, as an event. Frames become one event each, or one for all without
    `with_frames`."""
    from sightline.workbench.exchange_views import write_fact, write_frames

    if isinstance(news, Announced):
        return b"event: " + news.event.encode() + b"\ndata: " + encode(news.value) + b"\n\n"
    if isinstance(news, FramesEntry):
        frames = map(write_fact, frames_in(news)) if with_frames else (write_frames(news),)
        return b"".join(b"data: " + each + b"\n\n" for each in frames)
    return b"data: " + write_fact(news) + b"\n\n"


EXAMPLE: Final = b"/example/"
"""Below this path, the page shows the example in place of the user's record."""

_RELAY = PATH.encode()
_COMMANDS = (_RELAY, WAIT_PATH.encode())


class Example:
    """A record that is part of the package, for users who have none yet. It is opened when the page first requests it,
    and closed when the user leaves it. Its `workbench` is None while it is not open."""

    def __init__(self, open_workbench: Callable[[], AbstractAsyncContextManager["Workbench"]]) -> None:
        self._open = open_workbench
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()
        self.workbench: Workbench | None = None

    async def open(self) -> None:
        """Create the workbench of the example, unless it is open."""
        async with self._lock:
            if self.workbench is None:
                self.workbench = await self._stack.enter_async_context(self._open())

    async def close(self) -> None:
        """Remove everything of the example. The next call of `open` starts from scratch."""
        async with self._lock:
            self.workbench = None
            await self._stack.aclose()


@dataclass(slots=True)
class Workbench:
    """Serves the page and live events, and passes other calls to the API, which `open_api` creates when it is needed.
    `trouble` returns what is wrong with the record. `commands` and `example` are None if this server answers from the
    record and sends nothing."""

    access: Access
    open_api: Callable[[], Awaitable["Api"]]
    hub: Hub
    trouble: Callable[[], str]
    commands: CommandCalls | None
    example: Example | None
    _static: Static = field(default_factory=Static)
    _opening: "asyncio.Future[Api] | None" = None

    @staticmethod
    def serves(scope: AsgiScope) -> bool:
        """Whether this exact path belongs to the workbench."""
        path = scope["raw_path"]
        return path in (b"/", b"/api", b"/favicon.ico") or path.startswith((b"/api/", PREFIX, EXAMPLE))

    @staticmethod
    def refusal(_scope: AsgiScope, fault: Fault) -> WebResponse:
        """The response to a request that the guard refused."""
        return replies.failure(fault)

    async def serve(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        path = scope["raw_path"]
        if path == b"/favicon.ico":
            await WebResponse(204, b"", list(replies.GUARDED)).to(send)
        elif path == b"/":
            await self._root(scope).to(send)
        elif path.startswith(PREFIX) or path == b"/api/health":
            await self._read(scope).to(send)
        elif not self.access.is_granted(scope["headers"]):
            await replies.no_token().to(send)
        elif path.startswith(EXAMPLE):
            await self._show_example(scope, receive, send)
        elif path == b"/api/events":
            await self._events(scope, send)
        elif self.commands is not None and path in _COMMANDS:
            await self._command(self.commands, scope, receive, send)
        else:
            api = await self.open_api()
            await (await api.answer(scope, receive)).to(send)

    async def _show_example(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve the same page and API for the example. Requesting its page opens it, and `DELETE /example/` removes
        it."""
        example, is_page = self.example, scope["raw_path"] == EXAMPLE
        if example is not None and is_page and scope["method"] == "DELETE":
            await example.close()
            await WebResponse(204, b"", list(replies.GUARDED)).to(send)
            return
        if example is not None and is_page:
            await example.open()
        workbench = None if example is None else example.workbench
        if workbench is None:
            await replies.failure(replies.not_found("open example")).to(send)
        else:
            inner: AsgiScope = {**scope, "raw_path": scope["raw_path"].removeprefix(EXAMPLE[:-1])}
            await workbench.serve(inner, receive, send)

    async def _events(self, scope: AsgiScope, send: Send) -> None:
        if scope["method"] == "GET":
            asked = scope["query_string"].split(b"&")
            await stream(self.hub, send, with_frames=b"frames=0" not in asked, is_brief=b"brief=1" in asked)
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
            return WebResponse(200, b"", list(replies.GUARDED))  # some clients check this way for a running server
        if scope["method"] != "GET":
            return replies.wrong_method(scope["method"])
        if self.access.is_in(scope["query_string"].decode("latin-1")):
            self._preload_api()
            return WebResponse(303, b"", [(b"location", b"/"), (b"set-cookie", self.access.cookie), *replies.GUARDED])
        if not self.access.is_granted(scope["headers"]):
            return self._static.nothing()
        self._preload_api()
        return self._static.page()

    def _preload_api(self) -> None:
        """Create the API while the browser loads the page, so that its first call need not wait."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self.open_api())
            self._opening.add_done_callback(
                lambda opening: opening.cancelled() or opening.exception()
            )  # the API call raises it, too

    def _read(self, scope: AsgiScope) -> WebResponse:
        """A file of the page, or the health of this server: neither needs the token."""
        if scope["method"] not in READING:
            return replies.wrong_method(scope["method"])
        if scope["raw_path"].startswith(PREFIX):
            return self._static.file(scope["raw_path"])
        from importlib.metadata import version

        proof = self.access.proof(scope["query_string"].decode("latin-1"))
        health: JsonObject = {"status": "ok", "name": "sightline", "version": version("sightline")}
        if trouble := self.trouble():
            health |= {"store": {"trouble": trouble}}
        return replies.json(health | {"proof": proof} if proof else health)
