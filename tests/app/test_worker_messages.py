"""The two ends of a channel in one loop: calls, faults, and the embedded model's turns of a worker."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sightline.app.configuration import Configuration
from sightline.app.worker import BorrowedModel, FactForwarder
from sightline.app.worker_messages import Connection, FactsShared, Message, Peer, decode_news
from sightline.app.workers import MainParts, Workers, _Running
from sightline.catalog.catalog import Catalog
from sightline.errors import Code, Fault
from sightline.exchange.hub import Hub
from sightline.exchange.interception.holds import Holds
from sightline.exchange.memory import Memory
from sightline.model.exchange import Received
from sightline.server.channel import Channel
from sightline.settings import Settings
from sightline.store.entries import FactEntry
from sightline.transport.embedded.process import EmbeddedModel
from tests.transport.embedded.stand_in import STARTED, StandIn


class Pair:
    """Two peers that are connected. `heard` is what the second was told besides calls."""

    def __init__(self, calls: dict[str, Callable[[bytes], Awaitable[bytes]]]) -> None:
        self.heard: list[tuple[Message, int]] = []
        self.ended = asyncio.Event()
        self.first = Peer({}, lambda _message, _descriptor: None)
        self.second = Peer(calls, lambda message, descriptor: self.heard.append((message, descriptor)))
        one, other = socket.socketpair()
        self.first.open(Channel(one, self.first.hear, self.first.close))
        self.second.open(Channel(other, self.second.hear, self.ended.set))


async def echo(data: bytes) -> bytes:
    return data


async def refuse(_data: bytes) -> bytes:
    raise Fault(Code.USAGE, "not now", hint="Later.")


async def fail(_data: bytes) -> bytes:
    raise ValueError


async def test_a_call_has_an_answer_or_a_fault_however_large_it_is() -> None:
    pair = Pair({"echo": echo, "refuse": refuse, "fail": fail})
    large = b"x" * 5_000_000
    assert await asyncio.gather(pair.first.call("echo", large), pair.first.call("echo", b"2")) == [large, b"2"]
    with pytest.raises(Fault, match="not now"):
        await pair.first.call("refuse")
    with pytest.raises(Fault, match="has ended"):
        await pair.first.call("fail")
    pair.second.close()
    with pytest.raises(Fault, match="has ended"):
        await pair.first.call("echo")
    pair.first.close()


async def test_a_call_under_way_ends_with_the_other_process() -> None:
    pair = Pair({"wait": lambda _data: asyncio.Event().wait()})  # type: ignore[dict-item, return-value]
    waiting = asyncio.ensure_future(pair.first.call("wait"))
    await asyncio.sleep(0.01)
    pair.second.close()
    with pytest.raises(Fault, match="has ended"):
        await waiting
    pair.first.close()


async def test_an_open_connection_goes_along_with_what_has_come_on_it() -> None:
    pair = Pair({"echo": echo})
    here, there = socket.socketpair()
    pair.first.send(Connection(b"POST /v1" * 200_000), there.fileno())
    there.close()
    await pair.first.call("echo")
    ((message, descriptor),) = pair.heard
    assert message == Connection(b"POST /v1" * 200_000)
    with socket.socket(fileno=descriptor) as given:
        given.send(b"it is the same")
        assert here.recv(100) == b"it is the same"
        assert not given.get_inheritable()
    here.close()
    pair.first.close()
    await asyncio.wait_for(pair.ended.wait(), 60)


def model_stage(folder: Path, model: EmbeddedModel) -> tuple[Workers, BorrowedModel, _Running, Pair]:
    """A worker's model, and the main process that has the real one."""
    memory = Memory(folder, lambda: 0.0)

    async def no_facts(_exchange: str) -> list[object]:
        return []

    parts = MainParts(
        Hub(lambda _entries: None), Holds(memory, lambda: 0.0), memory.ledger, model, no_facts, no_facts, lambda: 0.0
    )  # type: ignore[arg-type]
    main = Workers(1, parts, folder, Configuration(Catalog(), Settings(), None, {}), lambda _channel, _memory: b"")
    pair = Pair({})
    worker = _Running(None, None, None, pair.second)  # type: ignore[arg-type]
    pair.second._calls = main.calls_for(worker)
    return main, BorrowedModel(pair.first), worker, pair


async def test_the_embedded_model_answers_one_process_at_a_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = EmbeddedModel(python=str(StandIn(tmp_path, f"{STARTED}; cat").path), environment={}, make_key=lambda: "k")
    _, borrowed, worker, pair = model_stage(tmp_path, model)
    order: list[str] = []
    async with model.turn() as own:
        waiting = asyncio.ensure_future(ask(borrowed, order))
        left = asyncio.ensure_future(ask(borrowed, order))
        await asyncio.sleep(0.05)
        left.cancel()  # its client has gone before its turn came
        assert order == []
        order.append("main")
    assert (await waiting, await borrowed.running()) == (own, own)
    assert order == ["main", "worker"]
    async with model.turn():
        order.append("main")
    with pytest.raises(Fault, match="broken"):
        async with borrowed.turn():
            raise Fault(Code.UPSTREAM_PROTOCOL, "broken")
    held = borrowed.turn()
    await held.__aenter__()
    assert len(worker.turns) == 1
    for turn in worker.turns.values():
        turn.task.cancel()  # as when the worker is gone
    async with model.turn():
        order.append("main")
    pair.first.close()
    pair.second.close()
    await model.close()
    assert caplog.messages == []  # a client that leaves is no error


async def ask(model: EmbeddedModel, order: list[str]) -> object:
    async with model.turn() as turn:
        order.append("worker")
        return turn


async def test_a_model_that_cannot_start_is_the_same_fault_for_a_worker(tmp_path: Path) -> None:
    model = EmbeddedModel(python=str(tmp_path / "nowhere"), environment={}, make_key=lambda: "k")
    _, borrowed, worker, pair = model_stage(tmp_path, model)
    with pytest.raises(Fault) as caught:
        async with borrowed.turn():
            pass
    assert "nowhere" in caught.value.message + caught.value.hint + str(caught.value.details)
    assert not worker.turns
    pair.first.close()
    pair.second.close()


async def test_a_worker_tells_brief_watchers_a_few_facts_and_that_there_are_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sightline.exchange.hub.FEW", 2)
    pair, hub = Pair({"nothing": echo}), Hub(lambda _: None)
    teller = FactForwarder(hub, pair.first, is_brief=True)
    hub.add_watcher(teller)
    many = [FactEntry(f"x_{number}", 0, 3.0, Received("gemini", "m", "cc")) for number in range(9)]
    hub.announce("cap", {})
    hub.record(many)
    async with asyncio.timeout(20):
        while not pair.heard:  # noqa: ASYNC110 - the other end has no event to wait for
            await asyncio.sleep(0.001)
    hub.record(many[8:])
    teller.flush()
    teller.flush()
    await pair.first.call("nothing")  # what was told before has arrived
    told = [message for message, _ in pair.heard if isinstance(message, FactsShared)]
    assert [(decode_news(each.packed), each.has_more) for each in told] == [(many[:2], True), (many[8:], False)]
    teller.close()
    pair.second.close()
