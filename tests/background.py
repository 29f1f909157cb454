"""Servers in threads of their own, for programs under test that run a loop themselves."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

from tests.upstream import Upstream

Entered = TypeVar("Entered")


@contextmanager
def loop_in_background() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def entered(manager: AbstractAsyncContextManager[Entered], loop: asyncio.AbstractEventLoop) -> Iterator[Entered]:
    """What the manager gives, entered and left in a loop of another thread."""
    given = asyncio.run_coroutine_threadsafe(manager.__aenter__(), loop).result(60)
    try:
        yield given
    finally:
        asyncio.run_coroutine_threadsafe(manager.__aexit__(None, None, None), loop).result(60)


@contextmanager
def upstream_in_background() -> Iterator[Upstream]:
    """An upstream that is listening; set its `script` before the program asks."""
    with loop_in_background() as loop, entered(Upstream(), loop) as upstream:
        yield upstream


def wait_until_gone(upstream: Upstream, connection: int = 0) -> None:
    """Return once the program has closed its side of a connection; within a minute, or it has not."""
    asyncio.run_coroutine_threadsafe(upstream.gone(connection), upstream._loop).result(60)


@contextmanager
def handling(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The URL of a server whose requests this class handles."""

    class Quiet(handler):
        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
