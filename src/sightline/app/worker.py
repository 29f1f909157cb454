"""A worker of the server: `python -m sightline.app.worker`, which the main process starts and keeps running.

It serves plain requests of clients that the main process hands to it, with the same code, and records them in its own
journal. Everything that exists only once is in the main process: the page, rules, holds and kept edits, the ledger, the
embedded model. The worker ends when the main process tells it to, or is gone.
"""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from sightline.app import worker_messages as messages
from sightline.app.configuration import Configuration, load_named
from sightline.app.engine import RelayResources, http_client, make_caps, make_embedded_model, make_relay
from sightline.app.machine import SystemClock
from sightline.app.worker_memory import WorkerLedger, WorkerMemory
from sightline.app.worker_messages import Peer
from sightline.catalog.catalog import Catalog
from sightline.errors import Fault
from sightline.exchange.hub import SHOWN, Announced, FactQueue, Hub, News
from sightline.exchange.memory import Memory, save_regularly
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.relay_messages import write_fault
from sightline.filters.expression import Expression
from sightline.gateway.gateway import Gateway
from sightline.platform.processes import ENDING, allow_many_files, ignore_signals, new_loop
from sightline.server.channel import Channel
from sightline.server.hand_over import HandOver, is_plain
from sightline.server.listener import GRACE, ListeningServer, settle_down
from sightline.settings import Settings
from sightline.store.entries import FramesEntry, KeptEntry
from sightline.store.journal import JournalWriter, encode_entries
from sightline.telemetry.metrics import Metrics
from sightline.transport.embedded.process import EmbeddedModel, Running
from sightline.web.access import OriginGuard
from sightline.web.asgi import AsgiScope, ClientWriter, Receive

_BATCH_SECONDS = 0.005
"""Seconds in which facts for watchers are collected."""
_LATE = 0.1
_MAX_BACKLOG = 32 << 20
"""How many bytes the main process may be behind. Beyond that it gets no frames, which are also in the record."""


_pack = msgspec.msgpack.encode
_RUNNING = msgspec.json.Decoder(Running)
_RECORDED = msgspec.msgpack.Decoder(RecordedExchange)


class WorkerParameters(msgspec.Struct, frozen=True):
    """What a worker reads from its input: its data folder, the configuration, the descriptors of its channel and its
    shared memory, where the server listens, which hosts and origins may call it, and the plug-ins."""

    folder: str
    catalog: Catalog
    settings: Settings
    channel: int
    memory: int
    host: str
    port: int
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    log_level: int
    store: str = ""
    plugin_folder: str = ""


class BorrowedModel(EmbeddedModel):
    """The embedded model, which the main process runs. It grants one turn at a time to all processes."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(environment={}, make_key=str)
        self._peer = peer
        self._turns = 0

    async def running(self) -> Running:
        """The address of the running model."""
        return _RUNNING.decode(await self._peer.call("model"))

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Running]:
        """A turn, in which one request may be sent."""
        self._turns += 1
        number = self._turns
        try:
            yield _RUNNING.decode(await self._peer.call("turn", _pack(number)))
        except Fault as fault:
            # If its model has ended, the main process raises that in place of a broken connection.
            await self._peer.call("turn over", _pack(messages.TurnOver(number, write_fault(fault))))
            raise
        except BaseException:
            self._peer.tell("turn over", _pack(messages.TurnOver(number, is_cancelled=True)))
            raise
        await self._peer.call("turn over", _pack(messages.TurnOver(number)))


class BorrowedRecords:
    """The record, which the main process reads."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def read(self, exchange: str) -> RecordedExchange:
        """Read an exchange. Raises a Fault if it is not recorded."""
        return _RECORDED.decode(await self._peer.call("recorded", exchange.encode()))

    async def list_ids(self, _wanted: Expression) -> list[str]:
        """Not supported: only the main process serves requests that are not a POST."""
        raise AssertionError


class FactForwarder(FactQueue):
    """Sends the facts of this worker's exchanges to the main process while they are watched there; with `is_brief`,
    only those that a brief watcher is shown."""

    most_waiting = sys.maxsize

    def __init__(self, hub: Hub, peer: Peer, *, is_brief: bool) -> None:
        super().__init__(hub, is_brief=is_brief)
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._next = 0.0
        """A brief watcher gets nothing more before this time."""

    def tell(self, news: News) -> None:
        """Send a fact soon, together with those that arrive in the meantime."""
        if isinstance(news, Announced) or (isinstance(news, FramesEntry) and self._peer.backlog > _MAX_BACKLOG):
            return
        if not self._waiting:
            self._loop.call_at(max(self._loop.time() + _BATCH_SECONDS, self._next), self.flush)
        super().tell(news)

    def flush(self) -> None:
        if self.is_brief:
            self._next = self._loop.time() + SHOWN
        has_more = self.has_more
        facts = [each for each in self.take_waiting() if not isinstance(each, Announced)]
        if facts:
            self._peer.send(messages.FactsShared(messages.encode_facts(facts), has_more))


class ServingWorker:
    """A running worker."""

    def __init__(self, parameters: WorkerParameters) -> None:
        self._parameters = parameters
        self._memory = WorkerMemory(parameters.memory)
        self._peer = Peer(
            {"watch": self._watch, "unwritten": self._unwritten, "learned": self._learn, "metrics": self._pack_metrics},
            self._on_message,
        )
        self._teller: FactForwarder | None = None
        self._main = HandOver(lambda first: self._memory.wants_all or not is_plain(first), self._hand_to_main)

    async def run(self) -> None:
        """Serve until the main process tells the worker to end."""
        parameters, clock = self._parameters, SystemClock()
        plugins = load_named(parameters.settings.plugins, Path(parameters.plugin_folder))
        catalog = parameters.catalog if plugins is None else plugins.refuse_missing(parameters.catalog)
        loaded = Configuration(catalog, parameters.settings, None, dict(os.environ), plugins=plugins)
        folder = Path(parameters.folder)
        async with AsyncExitStack() as stack:
            journal = JournalWriter(folder / "journal", is_forced=parameters.settings.store.fsync == "records")
            stack.callback(journal.close)
            self._learning = Memory(folder, clock.now)
            self._learning.ledger = WorkerLedger(self._memory)
            stack.callback(self._learning.save)
            embedded = make_embedded_model(loaded)
            means = RelayResources(
                self._learning,
                embedded if embedded.elsewhere else BorrowedModel(self._peer),
                http_client(loaded),
                make_caps(loaded, folder, self._learning, stack, parameters.store),
            )
            if means.caps is not None:
                means.caps.forward = lambda use: self._peer.tell("cap", _pack(use))
            stack.push_async_callback(means.client.close)
            stack.callback(asyncio.create_task(save_regularly(self._learning)).cancel)
            stack.callback(asyncio.create_task(self._flush_overflow()).cancel)

            def record(entries: Sequence[KeptEntry]) -> None:
                journal.append(encode_entries(entries))

            own = frozenset({(parameters.host, parameters.port)})
            is_counting = bool(loaded.settings.telemetry.otlp_endpoint)
            self._metrics = Metrics(clock.now(), loaded.prices, is_counting=is_counting)
            self._relay, self._hub = await make_relay(
                loaded, means, record, stack, own=own, is_observed=True, metrics=self._metrics, append=journal.append
            )
            self._relay.read_from(BorrowedRecords(self._peer))
            guard = OriginGuard(parameters.port, frozenset(parameters.hosts), frozenset(parameters.origins))
            gateway = Gateway(self._relay, loaded.catalog, loaded.has_key, clock.monotonic, self._relay)

            async def ending() -> None:
                await self._relay.close(GRACE)

            def app(scope: AsgiScope, receive: Receive, send: ClientWriter) -> Awaitable[None]:
                refusal = guard.refusal(scope["headers"])
                if refusal is not None:
                    return gateway.refusal(scope, refusal).to(send)
                return gateway.serve(scope, receive, send)

            self._server = ListeningServer(
                app, ending=ending, grace=GRACE + 2, heeds_signals=False, begin=gateway.begin
            )
            self._peer.open(
                Channel(socket.socket(fileno=parameters.channel), self._peer.hear, on_end=self._end_at_once)
            )
            settle_down()
            serving = asyncio.create_task(self._server.run_on([]))
            await asyncio.sleep(0)
            self._peer.send(messages.Ready())
            await serving
            if self._teller is not None:
                self._teller.flush()
            self._hub.close()

    @staticmethod
    def _end_at_once() -> None:
        """End at once: the main process is gone, and with it everything that exists only once. What is recorded is in
        the journal."""
        os._exit(1)

    def _hand_to_main(self, first: bytes, descriptor: int) -> bool:
        """Hand a connection to the main process. If that fails, the connection ends: a rule could apply to this
        request, so it is not served here."""
        self._peer.send(messages.Connection(first), descriptor)
        return True

    def _on_message(self, message: messages.Message, descriptor: int) -> None:
        match message:
            case messages.Connection(first):
                self._server.adopt(socket.socket(fileno=descriptor), self._main, first)
            case messages.End():
                self._server.end()
            case _:
                raise AssertionError(message)

    async def _flush_overflow(self) -> None:
        """Regularly write changes that did not fit into a full ring."""
        while True:
            await asyncio.sleep(_LATE)
            self._memory.add_late()

    # --- calls of the main process ---

    async def _watch(self, data: bytes) -> bytes:
        """Send facts from now on, all of them or those for brief watchers; or stop sending."""
        is_brief = data == messages.FEW_FACTS
        if self._teller is not None and (data == messages.NO_FACTS or self._teller.is_brief != is_brief):
            self._teller.flush()
            self._teller.close()
            self._teller = None
        if self._teller is None and data != messages.NO_FACTS:
            self._teller = FactForwarder(self._hub, self._peer, is_brief=is_brief)
            self._hub.add_watcher(self._teller)
        return b""

    async def _unwritten(self, data: bytes) -> bytes:
        """Facts of an exchange of this worker that are not on record yet."""
        return messages.encode_facts(self._relay.unwritten(data.decode()))

    async def _pack_metrics(self, _data: bytes) -> bytes:
        """The metrics of this worker. Counting begins with the first call."""
        self._metrics.is_counting = True
        return self._metrics.pack()

    async def _learn(self, _data: bytes) -> bytes:
        """Learn from everything that providers have counted so far, and save it."""
        await self._relay.wait_until_learned()
        self._learning.save()
        return b""


def main() -> None:
    """Serve until the main process tells the worker to end."""
    ignore_signals(*ENDING)  # the main process gets them, too, and ends the worker in time
    parameters = msgspec.json.decode(sys.stdin.buffer.read(), type=WorkerParameters)
    logging.basicConfig(stream=sys.stderr, level=parameters.log_level, format="%(levelname)s: %(message)s")
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    allow_many_files()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(ServingWorker(parameters).run())


if __name__ == "__main__":
    main()
