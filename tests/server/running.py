"""A server that really listens, in a thread of its own, with a relay that says what it is told to."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sightline.app.configuration import Configuration
from sightline.app.server import Parts, make_workbench
from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.errors import Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.hub import Hub
from sightline.exchange.memory import Memory
from sightline.gateway.gateway import Gateway
from sightline.platform.processes import new_loop
from sightline.server.listener import App, ListeningServer, bind_sockets
from sightline.settings import Settings
from sightline.store.entries import BodyEntry, Entry, FactEntry, KeptEntry, plain_entries
from sightline.store.summary import Summary, summary_of
from sightline.web.access import OriginGuard
from sightline.web.asgi import ClientWriter
from sightline.workbench.workbench import Access
from tests.http_call import call
from tests.logbook_fake import MemoryLogbook

TOKEN = "token-of-the-tests-0123456789"
CATALOG = Catalog(
    providers={
        "acme": Provider(dialect="openai-chat", base_url="http://127.0.0.1:9/v1", key_env="ACME_KEY"),
        "local": Provider(dialect="openai-chat", embedded=True, default_model="smol"),
    }
)


@dataclass
class Told:
    """An answer that a test has written: pieces of its body, events to wait for, a fault to break off with."""

    pieces: Sequence[bytes | asyncio.Event | Fault] = (b"{}",)
    status: int = 200
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    exchange: str = "x_1"
    was_left: threading.Event = field(default_factory=threading.Event)
    is_over: bool = False
    whole_body: bytes | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self.is_over:
            self.was_left.set()

    @property
    def body(self) -> Self:
        return self

    async def write_to(self, client: ClientWriter) -> None:
        async for piece in self:
            client.write(piece)
            await client.until_writable()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, bytes):
                yield piece
            elif isinstance(piece, Fault):
                raise piece
            else:
                await piece.wait()
        self.is_over = True


Answering = Callable[[ClientRequest], Awaitable[Told]]


class ToldRelay:
    """Answers with `answer`, or as `answering` says; `asked` is what came."""

    def __init__(self) -> None:
        self.asked: list[ClientRequest] = []
        self.answer = Told()
        self.answering: Answering | None = None

    async def start(self, asked: ClientRequest) -> Told:
        self.asked.append(asked)
        return self.answer if self.answering is None else await self.answering(asked)


class ListStore:
    """Keeps entries in a list; of filters it knows none."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.found: list[tuple[object, str, int]] = []
        self.trouble: Fault | None = None
        self.logbook = MemoryLogbook()

    def record(self, entries: Sequence[KeptEntry]) -> None:
        self.entries.extend(plain_entries(entries))

    async def settle(self) -> None:
        """All of it can be read."""

    async def facts(self, exchange: str) -> list[FactEntry]:
        return [each for each in self.entries if isinstance(each, FactEntry) and each.exchange == exchange]

    async def body(self, _exchange: str, sha256: str) -> bytes | None:
        return next((each.data for each in self.entries if isinstance(each, BodyEntry) and each.sha256 == sha256), None)

    async def find(self, wanted: object, *, now: float, before: str = "", limit: int = 100) -> list[Summary]:
        self.found.append((wanted, before, limit))
        ids = sorted({each.exchange for each in self.entries if isinstance(each, FactEntry)}, reverse=True)
        return [
            summary_of(each, await self.facts(each), lambda _provider, _model: None)
            for each in ids
            if not before or each < before
        ][:limit]

    async def sums(self, _wanted: object, _by: object, *, now: float) -> None:
        """They are added up one by one."""


@dataclass
class Running:
    """`loop` is the server's; `hub` tells facts to whoever listens."""

    port: int
    loop: asyncio.AbstractEventLoop
    relay: ToldRelay
    store: ListStore
    hub: Hub
    listening: ListeningServer

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def event(self) -> asyncio.Event:
        """An event of the server's loop; set it with `set`."""
        return asyncio.Event()

    def set(self, event: asyncio.Event) -> None:
        self.loop.call_soon_threadsafe(event.set)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own: status, headers, body."""
        answer = call(method, f"http://127.0.0.1:{self.port}{path}", body, headers=headers)
        return answer.status, answer.headers, answer.body

    def api(self, path: str, method: str = "GET") -> tuple[int, Any]:
        """One request to the API with the token: status, JSON."""
        status, _, body = self.ask(method, path, headers={"authorization": f"Bearer {TOKEN}"})
        return status, json.loads(body)

    def raw(self, data: bytes) -> bytes:
        """All that the server says to these bytes until it hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as talk:
            talk.sendall(data)
            said = b""
            while some := talk.recv(65536):
                said += some
            return said

    def post(self, path: str, value: Any, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], Any]:
        """JSON to the gateway: status, headers, JSON."""
        status, said, body = self.ask(
            "POST", path, json.dumps(value).encode(), {"content-type": "application/json", **(headers or {})}
        )
        return status, said, json.loads(body) if body else None


def has_key(provider: Provider) -> bool:
    return provider.key_env != "MISSING"


@contextmanager
def running(catalog: Catalog = CATALOG, *, grace: int = 5, guard: OriginGuard | None = None) -> Iterator[Running]:
    """A server that is listening."""
    sockets = bind_sockets("127.0.0.1", 0)
    port = sockets[0].getsockname()[1]
    relay, store = ToldRelay(), ListStore()
    hub = Hub(store.record)
    started: list[asyncio.AbstractEventLoop] = []
    ready = threading.Event()

    async def serve() -> None:
        started.append(asyncio.get_running_loop())
        ready.set()
        await listening.run_on(sockets)

    clock = iter(float(number) for number in range(10**9))

    def now() -> float:
        return 1_760_000_000.0

    keyed = [each for each in catalog.providers.values() if has_key(each)]
    workbench = make_workbench(
        Parts(
            access=Access(TOKEN, port),
            hub=hub,
            store=store,  # type: ignore[arg-type]
            memory=Memory(Path("/nonexistent"), now),
            loaded=Configuration(catalog, Settings(), None, {each.key_env: "k" for each in keyed}),
            address=f"http://127.0.0.1:{port}",
            now=now,
        )
    )
    gateway = Gateway(relay, catalog, has_key, lambda: next(clock))  # type: ignore[arg-type]
    app = App(guard or OriginGuard(port), gateway, workbench)

    async def ending() -> None:
        hub.close()

    listening = ListeningServer(app, ending=ending, grace=grace)

    def run() -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(60)
        yield Running(port, started[0], relay, store, hub, listening)
    finally:
        listening.end()
        thread.join(60)
        assert not thread.is_alive()
