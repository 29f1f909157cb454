"""Providers on loopback for the tests of other programs, each in its own thread."""

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from os import PathLike
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from sightline.app.machine import SystemClock
from sightline.catalog.catalog import Catalog
from sightline.dialects.endpoint import provider_dialects
from sightline.dialects.registry import DEFAULT
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.recording.library import Library
from sightline.exchange.replay_handler import ReplayHandler
from sightline.filters.expression import Expression
from sightline.filters.parsing import parse
from sightline.gateway.gateway import Gateway
from sightline.model.json import Json
from sightline.server.listener import GRACE, ListeningServer, bind_sockets
from sightline.store.archive import load
from sightline.store.sqlite import open_store
from sightline.store.summary import price_list
from sightline.testing.script import Script, ScriptedProvider, ScriptedRound
from sightline.wire.jsontext import MISFIT, decode

T = TypeVar("T")

ScriptedReply: TypeAlias = str | Mapping[str, Json] | ScriptedRound | Fault
"""A text, a round as in a script (`{"deltas": […], "usage": {…}}`), or a Fault that the client gets as an error."""


class ServedProvider:
    """A provider that is being served. `url` is its address without a path, which is the base URL for Anthropic's and
    Google's clients; OpenAI's take `url + "/v1"`."""

    def __init__(self, url: str, bodies: list[bytes], misses: Callable[[], list[str]]) -> None:
        self.url = url
        self._bodies = bodies
        self._misses = misses

    @property
    def requests(self) -> list[Json]:
        """The bodies of the requests so far, decoded."""
        return [decode(each) for each in self._bodies]

    @property
    def misses(self) -> list[str]:
        """The requests that it could not answer so far, and why."""
        return self._misses()

    def check(self) -> None:
        """Raise an AssertionError that names every request without an answer."""
        if misses := self.misses:
            raise AssertionError("\n\n".join(misses))


@contextmanager
def scripted_provider(*replies: ScriptedReply, dialect: str = DEFAULT, delay: float = 0.0) -> Iterator[ServedProvider]:
    """A provider of this dialect that answers each request with the next reply, streamed or whole as the client asks.
    The chunks of a stream are `delay` seconds apart. Raises an AssertionError at the end of the block if there was a
    request without a reply, and a Fault for an invalid reply."""
    known = [each.name for each in provider_dialects()]
    if dialect not in known:
        raise Fault(Code.USAGE, f"no provider speaks {dialect!r}", hint=f"There are {', '.join(known)}.")
    script = Script(tuple(_round(each, number) for number, each in enumerate(replies, 1)))
    faults = {number: each for number, each in enumerate(replies) if isinstance(each, Fault)}
    opening = ScriptedProvider(script, dialect, sleep=SystemClock().sleep, delay=delay, faults=faults)
    with _in_background(opening) as provider:

        def misses() -> list[str]:
            return [
                f"request {number} found no reply: the script has {len(replies)}"
                for number in range(len(replies) + 1, len(provider.requests) + 1)
            ]

        served = ServedProvider(provider.url, provider.requests, misses)
        yield served
    served.check()


def _round(reply: ScriptedReply, number: int) -> ScriptedRound:
    match reply:
        case ScriptedRound():
            return reply
        case Fault():
            return ScriptedRound()
        case str():
            return ScriptedRound(deltas=(reply,))
        case _:
            try:
                return msgspec.convert(reply, ScriptedRound)
            except MISFIT as error:
                hint = 'A reply is a text, a Fault, or {"deltas": ["text", {"call": "name", "arguments": {}}]}.'
                raise Fault(Code.USAGE, f"reply {number} is none: {error}", hint=hint) from None


@contextmanager
def recorded_provider(archive: str | PathLike[str], *, filter: str = "") -> Iterator[ServedProvider]:  # noqa: A002
    """A provider that answers from the recordings in an archive of `sightline export`, or from those that match
    `filter`. It answers in any dialect, and nothing is ever sent to a real provider. Raises an AssertionError at the
    end of the block if a request has no recording; it names the most similar one and the lines that differ. Raises a
    Fault if the file is not an archive."""
    path = Path(archive)
    if not path.is_file():
        hint = "Make one: sightline export 'session:demo' -o demo.jsonl"
        raise Fault(Code.USAGE, f"there is no archive {str(path)!r}", hint=hint)
    wanted = parse(filter)
    with _in_background(_serve_recordings(path, wanted)) as served:
        yield served
    served.check()


class _TrackingReplay:
    """Answers from the recordings, and remembers the requests and those without an answer."""

    def __init__(self, replay: ReplayHandler) -> None:
        self._replay = replay
        self.bodies: list[bytes] = []
        self.misses: list[str] = []

    async def start(self, request: ClientRequest) -> ClientResponse:
        """The recorded answer, or a refusal in the client's dialect."""
        self.bodies.append(request.body)
        response = await self._replay.start(request)
        if response.fault is not None and not response.exchange:
            self.misses.append(response.fault.message)
        return response

    async def close(self, grace: float) -> None:
        await self._replay.close(grace)


@asynccontextmanager
async def _serve_recordings(archive: Path, wanted: Expression) -> AsyncIterator[ServedProvider]:
    clock, catalog = SystemClock(), Catalog(providers={})
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sightline-"))
        store = await open_store(Path(folder), prices=price_list(catalog), now=clock.now)
        stack.push_async_callback(store.close)
        with archive.open("rb") as lines:
            load(store, lines)
        await store.settle()
        library = Library(store)
        await library.fill(wanted, now=clock.now())
        handler = _TrackingReplay(ReplayHandler(library, clock, fast=True))
        gateway = Gateway(handler, catalog, lambda _provider: True, clock.monotonic)
        sockets = bind_sockets("127.0.0.1", 0)

        async def ending() -> None:
            await handler.close(GRACE)

        server = ListeningServer(gateway.serve, ending=ending)
        serving = asyncio.ensure_future(server.run_on(sockets))
        try:
            url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
            yield ServedProvider(url, handler.bodies, lambda: handler.misses)
        finally:
            server.end()
            await serving


@contextmanager
def _in_background(opening: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Keep this open in a separate event loop, so that the program under test can run its own or none."""
    opened: Future[tuple[T, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def hold() -> None:
        done = asyncio.Event()
        async with opening as value:
            opened.set_result((value, asyncio.get_running_loop(), done))
            await done.wait()

    def serve() -> None:
        try:
            asyncio.run(hold())
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)

    thread = threading.Thread(target=serve, name="sightline-testing", daemon=True)
    thread.start()
    value, loop, done = opened.result()
    try:
        yield value
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(2 * GRACE)  # while the interpreter shuts down, the thread never ends
