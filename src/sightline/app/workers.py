"""The workers of a server: processes that serve clients next to the main one, which starts, watches and ends them.

The main process accepts every client and distributes them in turn among the processes. When a worker ends, its
connections end with it, and it is started again; the recorder ends its exchanges. See `worker` for what a worker does.
"""

import asyncio
import logging
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from sightline.app import worker_messages as messages
from sightline.app.configuration import Configuration
from sightline.app.worker_memory import WorkerCounts, WorkerMemory
from sightline.app.worker_messages import Peer
from sightline.errors import Fault
from sightline.exchange.hub import Hub
from sightline.exchange.interception.holds import Holds
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.relay_messages import read_fault
from sightline.model.exchange import ENDS
from sightline.platform.processes import cores
from sightline.platform.support import is_supported
from sightline.server.channel import Channel
from sightline.server.hand_over import HandOver, is_plain
from sightline.server.listener import ListeningServer
from sightline.store.entries import FactEntry, FramesEntry
from sightline.telemetry.metrics import Metrics
from sightline.tokens.caps import CapUse
from sightline.tokens.ledger import Ledger
from sightline.transport.embedded.process import EmbeddedModel, Running

_LOG = logging.getLogger(__name__)

LEAST_SHARE: Final = 100
"""The least number of connections to a provider for each process. The allowed maximum is divided among the processes,
so that together they never exceed it."""

_COUNT_IN: Final = 0.05
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0
_START: Final = 30.0
_ABORT: Final = 3.0
_CALL_TIMEOUT_S: Final = 2.0
"""Seconds within which a worker has to answer a call."""
_LOOK, _MOST_LATE = 0.2, 10.0
"""Seconds between two checks for the ends of exchanges that a lost worker has left, and for how long to check."""
_TURN = msgspec.msgpack.Decoder(int)
_TURN_OVER = msgspec.msgpack.Decoder(messages.TurnOver)
_CAP_USE = msgspec.msgpack.Decoder(CapUse)


def count_workers(wanted: int | str) -> int:
    """How many processes serve clients: a number, or for `auto`, as many as this program has cores."""
    if wanted != "auto":
        return int(wanted)
    return cores()


def why_alone(count: int, max_connections: int) -> str:
    """Why this number of processes cannot serve clients; empty if it can."""
    if count > 1 and not is_supported("workers"):
        return "this system cannot give a connection from one process to another"
    if count > 1 and max_connections // count < LEAST_SHARE:
        return (
            f"max_connections = {max_connections} in [network] is too few for {count} processes, "
            f"of which each needs {LEAST_SHARE}"
        )
    return ""


def divide_connections(loaded: Configuration, count: int) -> tuple[Configuration, Configuration]:
    """The configurations of the main process and of a worker. Together, all processes open at most the configured
    number of connections to a provider."""
    most = loaded.settings.network.max_connections
    return _with_connections(loaded, most - most // count * (count - 1)), _with_connections(loaded, most // count)


def _with_connections(loaded: Configuration, most: int) -> Configuration:
    network = msgspec.structs.replace(loaded.settings.network, max_connections=most)
    return replace(loaded, settings=msgspec.structs.replace(loaded.settings, network=network))


@dataclass(frozen=True, slots=True)
class MainParts:
    """The parts of the main process that workers use."""

    hub: Hub
    holds: Holds
    ledger: Ledger
    embedded: EmbeddedModel
    facts: Callable[[str], Awaitable[list[FactEntry]]]
    """The facts of an exchange that are in the database."""
    read: Callable[[str], Awaitable[RecordedExchange]]
    """Reads an exchange; raises a Fault if it is not recorded."""
    now: Callable[[], float]
    on_cap: Callable[[CapUse], None] | None = None
    """Called with each cap that a worker has found nearly reached."""


@dataclass(slots=True)
class _Turn:
    """A turn of the embedded model that a worker has or waits for."""

    over: "asyncio.Future[Fault | None]"
    task: "asyncio.Task[None]"


@dataclass(slots=True)
class _Running:
    """A running worker, and those of its exchanges in progress that were shown to watchers."""

    process: asyncio.subprocess.Process
    memory: WorkerMemory
    counts: WorkerCounts
    peer: Peer
    is_ready: bool = False
    was_ready: bool = False
    metrics: bytes = b""
    """Its metrics, from the last time it was asked."""
    asked_for: bytes = messages.NO_FACTS
    """Which facts it was asked to send."""
    exchanges: set[str] = field(default_factory=set)
    turns: dict[int, _Turn] = field(default_factory=dict)


class Workers:
    """The workers of a server. `parameters` creates the input of a worker from the descriptors of its channel and its
    shared memory. `restarts` counts how often one was started again."""

    def __init__(
        self, count: int, parts: MainParts, folder: Path, loaded: Configuration, parameters: Callable[[int, int], bytes]
    ) -> None:
        self.restarts = 0
        self._parts = parts
        self._folder = folder
        self._environment = dict(loaded.environment)
        self._parameters = parameters
        self._count = count
        self._running: list[_Running] = []
        self._past_metrics: Metrics | None = None
        """The metrics of workers that are gone; None before metrics are first requested."""
        self._next = 0
        self._closing = asyncio.Event()
        self._supervising: list[asyncio.Task[None]] = []
        self._showing: set[asyncio.Task[None]] = set()
        self._server: ListeningServer | None = None
        self._worker = HandOver(self._has_worker_for, self._send_back)

    @property
    def serving(self) -> int:
        """How many processes serve clients now, including the main one."""
        return 1 + len(self._ready)

    @property
    def _ready(self) -> list[_Running]:
        return [each for each in self._running if each.is_ready]

    async def start(self, server: ListeningServer) -> None:
        """Start all workers, and return once each serves or has failed. `server` is that of the main process."""
        self._server = server
        server.share = self._share
        self._parts.hub.spread = self.watch
        self._parts.holds.on_change = self._show_rules
        self._parts.ledger.catch_up = self.count_in
        loop = asyncio.get_running_loop()
        first: list[asyncio.Future[None]] = [loop.create_future() for _ in range(self._count)]
        self._supervising = [loop.create_task(self._supervise(each)) for each in first]
        self._supervising.append(loop.create_task(self._count_in_regularly()))
        await asyncio.wait(first, timeout=_START)

    # --- clients ---

    def _share(self, accepted: socket.socket) -> bool:
        """Give a connection to the next process in turn; returns False if the main process serves it."""
        ready = self._ready
        self._next = (self._next + 1) % (len(ready) + 1)
        if not self._next or not self._parts.holds.is_idle:
            return False
        if not ready[self._next - 1].peer.send(messages.Connection(), accepted.fileno()):
            return False
        accepted.close()
        return True

    def _has_worker_for(self, first: bytes) -> bool:
        """Whether a connection that a worker has handed over can go back to a worker."""
        return is_plain(first) and self._parts.holds.is_idle and bool(self._ready)

    def _send_back(self, first: bytes, descriptor: int) -> bool:
        ready = self._ready
        return bool(ready) and ready[self._next % len(ready)].peer.send(messages.Connection(first), descriptor)

    def _show_rules(self) -> None:
        for each in self._running:
            each.memory.set_wants_all(wants_all=not self._parts.holds.is_idle)

    # --- facts and counts of the workers ---

    def count_in(self) -> None:
        for each in self._running:
            each.counts.count_in()

    async def _count_in_regularly(self) -> None:
        while True:
            await asyncio.sleep(_COUNT_IN)
            self.count_in()

    async def watch(self) -> None:
        """Make the workers send the facts that watchers need to the hub. Once this returns, none of them is missed."""
        for each in self._running:
            each.asked_for = self._wanted_facts
        await self._call_all("watch", self._wanted_facts)

    @property
    def _wanted_facts(self) -> bytes:
        hub = self._parts.hub
        if hub.is_watched_closely:
            return messages.ALL_FACTS
        return messages.FEW_FACTS if hub.is_watched else messages.NO_FACTS

    async def unwritten(self, exchange: str) -> list[FactEntry]:
        """Facts of a worker's exchange that are not on record yet."""
        found = await self._call_all("unwritten", exchange.encode())
        return [entry for _, facts in found for entry in messages.decode_facts(facts)]

    async def wait_until_learned(self) -> None:
        """Wait until the workers' estimates have learned from everything that providers have counted so far."""
        await self._call_all("learned")

    async def metrics(self) -> list[bytes]:
        """The metrics of all workers, including those that are gone: a sum that became smaller would look like a
        counter reset. For a worker that does not answer in time, its last metrics are used."""
        if self._past_metrics is None:
            self._past_metrics = Metrics(0)
        for worker, metrics in await self._call_all("metrics"):
            worker.metrics = metrics
        return [self._past_metrics.pack(), *(each.metrics for each in self._running if each.metrics)]

    async def _call_all(self, name: str, data: bytes = b"") -> list[tuple[_Running, bytes]]:
        """Call all workers, and return the answers in time. A worker that is gone has nothing to answer."""
        asked = self._ready
        calls = [asyncio.wait_for(each.peer.call(name, data), _CALL_TIMEOUT_S) for each in asked]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        return [(each, answer) for each, answer in zip(asked, answers, strict=True) if isinstance(answer, bytes)]

    # --- starting and ending ---

    def begin_end(self) -> None:
        """Tell the workers to end as soon as their clients have their answers. They are told only once: a second
        message would end them at once."""
        if self._closing.is_set():
            return
        self._closing.set()
        for each in self._running:
            each.peer.send(messages.End())

    async def close(self, grace: float) -> None:
        """Wait so many seconds for clients, and a few more for workers to notice the end; then kill the workers that
        are left."""
        self.begin_end()
        if not self._supervising:
            return
        *supervising, counting = self._supervising
        for task in (counting, *self._showing):
            task.cancel()
        _, late = await asyncio.wait(supervising, timeout=grace and grace + _ABORT)
        for each in self._running:
            with suppress(ProcessLookupError):
                each.process.kill()
        if late:
            await asyncio.wait(late)
        await asyncio.gather(counting, return_exceptions=True)
        self._parts.ledger.catch_up = None
        self._parts.hub.spread = None
        self._parts.holds.on_change = None

    async def _supervise(self, first: "asyncio.Future[None]") -> None:
        """Keep one worker running. `first` is done when it serves for the first time, or could not be started."""
        wait = _FIRST_WAIT
        while not self._closing.is_set():
            try:
                how, was_ready = await self._run(first)
            except OSError as error:
                how, was_ready = error.strerror or "unknown", False
            if not first.done():
                first.set_result(None)
            if self._closing.is_set():
                return
            self.restarts += 1
            wait = _FIRST_WAIT if was_ready else min(2 * wait, _LONGEST_WAIT)
            _LOG.warning("a worker ended (%s) and is started again; its clients were disconnected", how)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), wait)

    async def _run(self, first: "asyncio.Future[None]") -> tuple[str, bool]:
        """Run a worker until it ends; returns how it ended, and whether it ever served."""
        memory = WorkerMemory.create(self._folder)
        memory.set_wants_all(wants_all=not self._parts.holds.is_idle)
        here, there = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "sightline.app.worker",
                stdin=asyncio.subprocess.PIPE,
                env=self._environment,
                pass_fds=(there.fileno(), memory.file),
            )
        except BaseException:
            here.close()
            memory.close()
            raise
        finally:
            parameters = self._parameters(there.fileno(), memory.file)
            there.close()
        worker: _Running

        def on_message(message: messages.Message, descriptor: int) -> None:
            self._on_message(worker, message, descriptor, first)

        calls: dict[str, messages.Serve] = {}
        peer = Peer(calls, on_message)
        worker = _Running(process, memory, WorkerCounts(memory, self._parts.ledger, self._parts.now), peer)
        calls |= self.calls_for(worker)
        peer.open(Channel(here, peer.hear, on_end=lambda: self._drop_worker(worker)))
        self._running.append(worker)
        try:
            assert process.stdin is not None
            process.stdin.write(parameters)
            process.stdin.close()
            if self._closing.is_set():
                peer.send(messages.End())
            code = await process.wait()
        finally:
            self._drop_worker(worker)
            self._running.remove(worker)
            if self._past_metrics is not None and worker.metrics:
                self._past_metrics.add(worker.metrics)
            worker.counts.count_in()
            memory.close()
        return (f"signal {-code}" if code < 0 else f"exit code {code}"), worker.was_ready

    def _on_message(
        self, worker: _Running, message: messages.Message, descriptor: int, first: "asyncio.Future[None]"
    ) -> None:
        match message:
            case messages.Ready():
                worker.is_ready = worker.was_ready = True
                worker.asked_for = self._wanted_facts
                worker.peer.tell("watch", worker.asked_for)
                if self._past_metrics is not None:
                    worker.peer.tell("metrics", b"")  # it counts from now on
                if not first.done():
                    first.set_result(None)
            case messages.Connection(data):
                accepted = socket.socket(fileno=descriptor)
                if self._server is None:
                    accepted.close()
                else:
                    self._server.adopt(accepted, self._worker, data)
            case messages.FactsShared(packed, has_more):
                self._show(worker, messages.decode_news(packed))
                if has_more:
                    self._parts.hub.leave_out()
            case _:
                raise AssertionError(message)

    def _show(self, worker: _Running, entries: list[FactEntry | FramesEntry]) -> None:
        """Show facts of a worker to watchers here. If they need fewer, the worker is told to send fewer."""
        hub = self._parts.hub
        if worker.asked_for != self._wanted_facts:
            worker.asked_for = self._wanted_facts
            worker.peer.tell("watch", worker.asked_for)
        for entry in entries:
            if isinstance(entry, FactEntry) and isinstance(entry.fact, ENDS):
                worker.exchanges.discard(entry.exchange)
            else:
                worker.exchanges.add(entry.exchange)
            hub.show(entry)

    def _drop_worker(self, worker: _Running) -> None:
        """End the exchanges and turns of a worker that is gone or no longer responds."""
        worker.is_ready = False
        worker.peer.close()
        for turn in worker.turns.values():
            turn.task.cancel()
        if worker.exchanges:
            task = asyncio.get_running_loop().create_task(self._show_ends(list(worker.exchanges)))
            self._showing.add(task)
            task.add_done_callback(self._showing.discard)
        worker.exchanges.clear()

    async def _show_ends(self, exchanges: list[str]) -> None:
        """Show how the exchanges of a lost worker have ended, once the recorder has recorded it."""
        parts = self._parts
        for _ in range(int(_MOST_LATE / _LOOK)):
            await asyncio.sleep(_LOOK)
            for exchange in exchanges[:]:
                with suppress(Fault):  # the record is not available, which the page reports
                    facts = await parts.facts(exchange)
                    if facts and isinstance(facts[-1].fact, ENDS):
                        parts.hub.show(facts[-1])
                        exchanges.remove(exchange)
            if not exchanges:
                return

    # --- calls of a worker ---

    def calls_for(self, worker: _Running) -> dict[str, messages.Serve]:
        """The calls that a worker may make."""
        return {
            "model": lambda _data: self._find_model(),
            "turn": lambda data: self._grant_turn(worker, _TURN.decode(data)),
            "recorded": self._read_recorded,
            "cap": self._notice_cap,
            "turn over": lambda data: self._end_turn(worker, _TURN_OVER.decode(data)),
        }

    async def _read_recorded(self, exchange: bytes) -> bytes:
        return msgspec.msgpack.encode(await self._parts.read(exchange.decode()))

    async def _notice_cap(self, use: bytes) -> bytes:
        if self._parts.on_cap is not None:
            self._parts.on_cap(_CAP_USE.decode(use))
        return b""

    async def _find_model(self) -> bytes:
        return msgspec.json.encode(await self._parts.embedded.running())

    async def _grant_turn(self, worker: _Running, number: int) -> bytes:
        """Wait for a turn of the model. It lasts until the worker reports its end, or has ended itself."""
        loop = asyncio.get_running_loop()
        granted: asyncio.Future[Running] = loop.create_future()
        over: asyncio.Future[Fault | None] = loop.create_future()
        task = loop.create_task(self._hold_turn(granted, over))
        worker.turns[number] = _Turn(over, task)
        either: list[asyncio.Future[Running] | asyncio.Task[None]] = [granted, task]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not granted.done():
            worker.turns.pop(number, None)  # it is gone already if the worker has cancelled the call
            await task  # raises the reason why there is no turn
        return msgspec.json.encode(granted.result())

    async def _hold_turn(self, granted: "asyncio.Future[Running]", over: "asyncio.Future[Fault | None]") -> None:
        async with self._parts.embedded.turn() as running:
            granted.set_result(running)
            if (fault := await over) is not None:
                raise fault

    async def _end_turn(self, worker: _Running, over: messages.TurnOver) -> bytes:
        """End a turn. Raises the fault that the worker's client gets, if there is one."""
        turn = worker.turns.pop(over.number, None)
        if turn is None:
            return b""
        if over.is_cancelled:
            turn.task.cancel()
            return b""
        turn.over.set_result(read_fault(over.fault) if over.fault else None)
        await turn.task
        return b""
