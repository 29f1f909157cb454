"""Listening: the sockets, the server on them with its application, and a shutdown that lets streams finish."""

import asyncio
import contextlib
import errno
import gc
import logging
import signal
import socket
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from sightline.errors import Code, Fault
from sightline.gateway.gateway import Gateway
from sightline.platform.processes import (
    MemoryTrimmer,
    allow_rebinding,
    can_watch_sockets,
    handle_signals,
    signals_named,
)
from sightline.server.direct_queue import DirectQueue
from sightline.server.hand_over import HandOver
from sightline.server.http_call import Application
from sightline.server.http_connection import ClientConnection
from sightline.web.access import LOOPBACK, OriginGuard, host_name
from sightline.web.asgi import AsgiScope, BeginDirectly, ClientWriter, Receive
from sightline.workbench.workbench import Workbench

_LOG = logging.getLogger("sightline.server")

GRACE: Final = 5
"""Seconds in which streams may finish after a shutdown was requested."""

BACKLOG: Final = 4096
_KEEP_ALIVE: Final = 75
"""Seconds for which an idle connection is kept; a client that reuses its connection must not find it closed between two
turns."""

_SWEEP: Final = 1
"""Seconds between two checks for idle connections, and for memory that can be returned to the system."""

_MOST_ACCEPTED: Final = 256
_ACCEPT_AGAIN: Final = 1.0
_LOOK: Final = 0.05
_MOST_KNOWN: Final = 512


def bind_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen at this address. `localhost` is bound for IPv4 and IPv6, because some clients try only one.
    Raises a fault if the address cannot be used."""
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
        allow_rebinding(made)
        made.bind(address)
        made.setblocking(False)
        made.listen(BACKLOG)  # two sockets may be bound to one address, but only one can listen there
    except OSError:
        made.close()
        raise
    return made


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach this host."""
    return host_name(host) in LOOPBACK or host.startswith("127.")


class App:
    """A bare ASGI callable: checks the origin of each request and passes it to the gateway or the workbench. Paths are
    used as they were written, so that no alternative spelling bypasses a rule."""

    def __init__(self, guard: OriginGuard, gateway: Gateway, workbench: Workbench) -> None:
        self._guard: Final = guard
        self._gateway: Final = gateway
        self._workbench: Final = workbench
        self._allowed_heads: set[object] = set()
        """Heads of requests that are known to be for the gateway, and not from a foreign page."""

    def __call__(self, scope: AsgiScope, receive: Receive, send: ClientWriter) -> Awaitable[None]:
        """Answer one request; the result is awaited by the caller. A coroutine around another would cost time for each
        chunk."""
        head = scope.get("head")
        if head in self._allowed_heads:
            return self._gateway.serve(scope, receive, send)
        serving = self._workbench if self._workbench.serves(scope) else self._gateway
        refusal = self._guard.refusal(scope["headers"])
        if refusal is not None:
            return serving.refusal(scope, refusal).to(send)
        if head is not None and serving is self._gateway:
            if len(self._allowed_heads) >= _MOST_KNOWN:
                self._allowed_heads.clear()
            self._allowed_heads.add(head)
        return serving.serve(scope, receive, send)


class _Continued(ClientConnection):
    """A connection on which the client has sent `first` before this process got it; its later requests may be for
    `next_other`."""

    first = b""
    next_other: HandOver | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Process what was sent before."""
        super().connection_made(transport)
        if self.first:
            self.data_received(self.first)
            self.first = b""
        self.other = self.next_other


class ListeningServer:
    """The server. `ending` is run at a shutdown, to end active exchanges; streams may finish within `grace` seconds.
    `begin` answers requests without a task, if possible.

    `asked_by` is the signal that began the shutdown; with `force_exit`, the shutdown waits for nothing. `share` may
    pass a new client to another process, and returns whether it did. Without `heeds_signals`, only `end` ends the
    server.
    """

    def __init__(
        self,
        app: Application,
        *,
        ending: Callable[[], Awaitable[None]],
        grace: float = GRACE,
        heeds_signals: bool = True,
        begin: BeginDirectly | None = None,
    ) -> None:
        self.share: Callable[[socket.socket], bool] | None = None
        self._app = app
        self._begin = begin
        self._queue: DirectQueue | None = None
        self._ending = ending
        self._grace = grace
        self._heeds_signals = heeds_signals
        self.connections: set[ClientConnection] = set()
        """The open connections: idle ones are closed after a while, and all at a shutdown."""
        self._accepting: set[asyncio.Task[object]] = set()
        self._acceptors: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._change = asyncio.Event()
        self._is_ending = False
        self.force_exit = False
        self.asked_by: signal.Signals | None = None

    async def run_on(self, listening: list[socket.socket]) -> None:
        """Serve until a signal or `end` requests a shutdown."""
        loop = self._loop = asyncio.get_running_loop()
        self._queue = None if self._begin is None else DirectQueue(self._begin)
        sweeping = loop.create_task(self._sweep())
        with self._signals():
            for each in listening:
                self._accept_from(each)
            while not self._is_ending:
                await self._wait_for_change()
            for task in self._acceptors:
                task.cancel()
            for each in listening:
                if can_watch_sockets(loop):
                    loop.remove_reader(each)
                each.close()
            sweeping.cancel()
            await self._shut_down()

    def end(self, asked_by: signal.Signals | None = None) -> None:
        """Begin the shutdown, from any thread; a second call ends it at once."""
        self.force_exit = self._is_ending
        self._is_ending = True
        self.asked_by = self.asked_by or asked_by
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server has ended already
                self._loop.call_soon_threadsafe(self._change.set)

    def adopt(self, accepted: socket.socket, other: HandOver | None = None, first: bytes = b"") -> None:
        """Serve a client that has connected. `first` is what it has sent already, which is answered here; its later
        requests may go to the `other` process."""
        if self._loop is None or self._is_ending:
            accepted.close()
            return

        def make_connection() -> ClientConnection:
            connection = _Continued(self._app, self.connections, self._queue)
            connection.next_other, connection.first = other, first
            return connection

        accepted.setblocking(False)
        task = self._loop.create_task(self._loop.connect_accepted_socket(make_connection, accepted))
        self._accepting.add(task)  # the loop keeps no reference
        task.add_done_callback(self._accepting.discard)

    def _accept_from(self, listening: socket.socket) -> None:
        assert self._loop is not None
        if can_watch_sockets(self._loop):
            self._loop.add_reader(listening, self._accept, listening)
        else:
            self._acceptors.append(self._loop.create_task(self._accept_one_by_one(listening)))

    async def _accept_one_by_one(self, listening: socket.socket) -> None:
        """Accept clients on a loop that cannot watch sockets, such as that of Windows."""
        assert self._loop is not None
        while not self._is_ending:
            try:
                accepted, _ = await self._loop.sock_accept(listening)
            except OSError as error:  # most likely there are too many open files
                _LOG.error("no client can connect for a moment: %s", error)
                await asyncio.sleep(_ACCEPT_AGAIN)
            else:
                self.adopt(accepted)

    def _accept(self, listening: socket.socket) -> None:
        """Accept many clients in one iteration of the loop. libuv accepts only one, so that the last of 256 clients
        that connect at once would wait for 255 iterations, in all of which the first ones are served."""
        assert self._loop is not None
        for _ in range(_MOST_ACCEPTED):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # most likely there are too many open files
                _LOG.error("no client can connect for a moment: %s", error)
                self._loop.remove_reader(listening)
                self._loop.call_later(_ACCEPT_AGAIN, self._accept_again, listening)
                return
            if self.share is None or not self.share(accepted):
                self.adopt(accepted)

    def _accept_again(self, listening: socket.socket) -> None:
        if not self._is_ending:
            self._accept_from(listening)

    async def _sweep(self) -> None:
        """Close connections that have long been idle, with one timer for all of them; and return memory to the system
        when there are no requests."""
        freed = MemoryTrimmer()
        while True:
            await asyncio.sleep(_SWEEP)
            now = asyncio.get_running_loop().time()
            before = now - _KEEP_ALIVE
            for connection in [each for each in self.connections if each.is_idle and each.idle_since < before]:
                connection.transport.close()
            if freed.is_due(now):
                freed.give_back()

    async def _shut_down(self) -> None:
        ending = asyncio.ensure_future(self._ending())
        for connection in list(self.connections):
            connection.shut_down()
        try:
            async with asyncio.timeout(self._grace):
                while self.connections and not self.force_exit:
                    await self._wait_for_change()
        except TimeoutError:
            _LOG.info("%d connections are closed before their responses are complete", len(self.connections))
        tasks = [each.task for each in self.connections]
        for task in (ending, *tasks):
            task.cancel()
        await asyncio.gather(ending, *tasks, return_exceptions=True)

    async def _wait_for_change(self) -> None:
        """Wait for another call of `end`, or during a shutdown for a moment: connections end without notice."""
        self._change.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK if self._is_ending else None):
                await self._change.wait()

    def _signals(self) -> contextlib.AbstractContextManager[None]:
        """Shut down gracefully on SIGTERM and Ctrl-C."""
        if not self._heeds_signals or threading.current_thread() is not threading.main_thread():
            return contextlib.nullcontext()
        numbers = signals_named("SIGINT", "SIGTERM", "SIGBREAK")
        return handle_signals({each: partial(self.end, each) for each in numbers})


def settle_down() -> None:
    """Collect garbage less often, and never what is loaded now: exchanges leave hardly any cycles, and a collection
    delays all of them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


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
