"""Listening: the sockets, the server on them, and a shutdown that lets streams finish."""

import asyncio
import contextlib
import errno
import gc
import logging
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn

from sightline.errors import Code, Fault
from sightline.server.app import App
from sightline.server.uvicorn_http import ServerConnection
from sightline.web.access import LOOPBACK, host_name

GRACE: Final = 5
"""Seconds in which streams may finish after a shutdown was asked for."""

BACKLOG: Final = 4096
_FILES: Final = 65_536
_KEEP_ALIVE: Final = 75
"""Seconds for which an idle connection is kept; clients that reuse theirs must not find it closed between two turns."""


def bind_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen here. `localhost` is bound for IPv4 and IPv6, because some clients try only one."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise Fault(
            Code.CONFIG, f"the host {host!r} is not known: {error.strerror}", hint="Give an address of this machine."
        ) from None
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    try:
        first = _bind(family, address)
    except OSError as error:
        raise _not_bound(host, port, error) from None
    if first.family != socket.AF_INET or host_name(host) not in LOOPBACK:
        return [first]
    with contextlib.suppress(OSError):
        return [first, _bind(socket.AF_INET6, ("::1", first.getsockname()[1]))]
    return [first]


def _bind(family: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.setblocking(False)
        made.listen(BACKLOG)  # two may be bound to one address, but only one can listen there
    except OSError:
        made.close()
        raise
    return made


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host_name(host) in LOOPBACK or host.startswith("127.")


def allow_many_files() -> None:
    """Raise the limit of open files: each client takes one, and so does the connection to its provider."""
    with contextlib.suppress(ImportError):  # systems without this limit have no module for it
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class ListeningServer(uvicorn.Server):
    """The server. `ending` is run at a shutdown, to end what is under way; `asked_by` is the signal that began it."""

    def __init__(self, app: App, *, ending: Callable[[], Awaitable[None]], grace: int = GRACE) -> None:
        _quiet()
        super().__init__(
            uvicorn.Config(
                app,
                http=ServerConnection,
                ws="none",
                lifespan="off",
                interface="asgi3",
                access_log=False,
                log_config=None,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=grace,
            )
        )
        self._app = app
        self._ending = ending
        self.asked_by: signal.Signals | None = None

    async def run_on(self, listening: list[socket.socket]) -> None:
        """Serve until a signal or `end` asks for a shutdown."""
        await self.serve(listening)
        await self._app.wait_for_aborted()

    def end(self, asked_by: signal.Signals | None = None) -> None:
        """Begin the shutdown; a second call ends it at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self.asked_by = self.asked_by or asked_by

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more clients, and let those that are connected finish."""
        hastening = asyncio.ensure_future(self._ending())
        await super().shutdown(sockets)
        for task in (hastening, *self.server_state.tasks):
            task.cancel()
        await asyncio.gather(hastening, return_exceptions=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Shut down in order on SIGTERM and Ctrl-C."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for each in signals:
            loop.add_signal_handler(each, self.end, each)
        try:
            yield
        finally:
            for each in signals:
                loop.remove_signal_handler(each)


def settle_down() -> None:
    """Collect garbage less often, and never what is loaded now: exchanges leave hardly any cycles, and a collection
    delays all of them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def new_loop() -> asyncio.AbstractEventLoop:
    """A uvloop event loop where that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class _Bugs(logging.Filter):
    """Keeps only log records of failures of our own; clients that disconnect are none."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is not None


def _quiet() -> None:
    logger = logging.getLogger("uvicorn.error")
    logger.setLevel(logging.ERROR)
    if not any(isinstance(each, _Bugs) for each in logger.filters):
        logger.addFilter(_Bugs())


def _not_bound(host: str, port: int, error: OSError) -> Fault:
    match error.errno:
        case errno.EADDRINUSE:
            hint = f"Sightline may be running there already; else choose another port: --port {port + 1}."
            return Fault(Code.CONFIG, f"the port {port} of {host} is in use", hint=hint)
        case errno.EACCES:
            return Fault(Code.CONFIG, f"the port {port} may not be used", hint="Choose one above 1023 with --port.")
        case _:
            hint = "Give an address of this machine with --host."
            return Fault(Code.CONFIG, f"{host}:{port} cannot be listened at: {error.strerror}", hint=hint)
