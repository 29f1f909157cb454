import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from sightline.exchange.hub import MOST_OWED, MOST_WAITING, Announced, Hub
from sightline.model.exchange import (
    AttemptStarted,
    Budgeted,
    Dropped,
    ExchangeFinished,
    Fact,
    Held,
    Received,
    Released,
)
from sightline.store.entries import BodyEntry, FactEntry, FramesEntry, KeptEntry

FACT = FactEntry("x_1", 0, 1.0, Dropped("no"))
HELD = Held()


async def test_facts_are_recorded_before_delivery_and_frames_delivered_once() -> None:
    kept: list[KeptEntry] = []
    hub = Hub(kept.extend)
    assert not hub.is_watched
    hub.record([FACT])
    with hub.watch() as watch:
        assert hub.is_watched
        early, late = (FramesEntry("x_1", n, [2.0 * n], [0.0], [b"a"]) for n in (1, 2))
        hub.show(early)
        both = FramesEntry("x_1", 1, [2.0, 4.0], [0.0, 0.0], [b"a", b"a"])
        hub.record([BodyEntry("h", b""), early, FACT], shown=2)
        hub.record([both, FACT], shown=2)
    hub.record([FACT])
    assert [noted async for noted in watch] == [early, FACT, late, FACT]
    assert [noted async for noted in watch] == [], "it stays over"
    assert len(kept) == 7


async def test_encoded_entries_are_appended_as_they_are_and_shown_decoded() -> None:
    kept: list[KeptEntry] = []
    appended: list[bytes] = []
    hub = Hub(kept.extend, appended.append)
    data = msgspec.msgpack.encode([BodyEntry("h", b"x"), FACT])
    hub.append(data, "x_1")
    with hub.watch() as watch:
        hub.append(data, "x_1")
        assert watch.take_waiting() == [FACT]
    assert (appended, kept) == ([data, data], [])


def test_encoded_entries_are_recorded_in_the_usual_way_where_nothing_appends_or_more_is_owed() -> None:
    kept: list[KeptEntry] = []
    data = msgspec.msgpack.encode([FACT])
    Hub(kept.extend).append(data, "x_1")
    assert kept == [FACT]
    appended: list[bytes] = []
    hub = Hub(kept.extend, appended.append)
    assert hub.owe([FACT])
    hub.append(data, "x_1")
    assert (kept, appended) == ([FACT] * 3, [])
    hub.lose("x_1")
    hub.append(data, "x_1")
    assert (kept, appended) == ([FACT] * 3, []), "nothing more of it is written"


async def test_a_watcher_that_falls_far_behind_is_let_go() -> None:
    hub = Hub(lambda _: None)
    watch = hub.watch()
    for _ in range(MOST_WAITING + 1):
        hub.show(FACT)
    assert not hub.is_watched
    assert len([noted async for noted in watch]) == MOST_WAITING


async def test_closing_the_hub_ends_all_watchers() -> None:
    hub = Hub(lambda _: None)
    watch = hub.watch()
    hub.close()
    assert [noted async for noted in watch] == []
    assert [noted async for noted in hub.watch()] == []
    await watch.aclose()


class Waits:
    """Somebody with facts that are not written down."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.commits = 0
        self.has_written = asyncio.Event()

    def commit(self) -> None:
        self.commits += 1
        self.hub.stop_expecting(self)
        self.has_written.set()


async def test_expected_facts_are_written_after_a_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.exchange.hub.SOON", 0.0)
    hub = Hub(lambda _: None)
    slow, quick = Waits(hub), Waits(hub)
    hub.expect(slow)
    hub.expect(quick)
    quick.commit()
    await slow.has_written.wait()
    assert (slow.commits, quick.commits) == (1, 1)
    quick.has_written.clear()
    hub.expect(quick)
    await quick.has_written.wait()


async def test_what_is_announced_comes_between_the_facts_and_is_on_no_record() -> None:
    kept: list[KeptEntry] = []
    hub = Hub(kept.extend)
    hub.announce("chat", {"kind": "missed"})
    with hub.watch() as watch:
        hub.announce("chat", {"kind": "topics"})
        hub.record([FACT])
    assert [news async for news in watch] == [Announced("chat", {"kind": "topics"}), FACT]
    assert kept == [FACT]


class Disk:
    """A store that may be full."""

    def __init__(self) -> None:
        self.kept: list[KeptEntry] = []
        self.is_full = False
        self.was_written = asyncio.Event()

    def record(self, entries: Sequence[KeptEntry]) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.kept += entries
        if len(self.kept) == 2:
            self.was_written.set()


def fact(exchange: str, n: int, what: Fact = HELD) -> FactEntry:
    return FactEntry(exchange, n, 1.0, what)


def test_what_is_owed_is_written_before_anything_else() -> None:
    disk = Disk()
    hub = Hub(disk.record)
    disk.is_full = True
    with pytest.raises(OSError, match="No space"):
        hub.record([fact("x_1", 0)])
    assert hub.owe([fact("x_1", 0)])
    assert hub.is_missing("x_1")
    with pytest.raises(OSError, match="No space"):
        hub.record([fact("x_1", 1)])
    disk.is_full = False
    hub.record([fact("x_1", 1)])
    assert disk.kept == [fact("x_1", 0), fact("x_1", 1)]
    assert not hub.is_missing("x_1")


async def test_what_is_owed_is_written_when_there_is_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.exchange.hub.TRY_AGAIN", 0.01)
    disk = Disk()
    hub = Hub(disk.record)
    disk.is_full = True
    hub.owe([fact("x_1", 0)])
    hub.owe([fact("x_2", 0)])
    await asyncio.sleep(0.05)
    assert not disk.kept
    disk.is_full = False
    await asyncio.wait_for(disk.was_written.wait(), 10)
    assert disk.kept == [fact("x_1", 0), fact("x_2", 0)]


def test_what_is_owed_is_tried_once_more_at_the_end() -> None:
    disk = Disk()
    hub = Hub(disk.record)
    hub.owe([fact("x_1", 0)])
    hub.close()
    assert disk.kept == [fact("x_1", 0)]


def test_not_everything_can_be_owed_but_an_end_can() -> None:
    hub = Hub(Disk().record)
    assert hub.owe([BodyEntry("aa", b"x" * (MOST_OWED - 2000))])
    assert not hub.owe([FramesEntry("x_1", 0, [1.0], [0.0], [b"x" * 9000])])
    assert hub.owe([fact("x_2", 5)])


def test_nothing_more_is_written_of_an_exchange_that_misses_a_part() -> None:
    disk = Disk()
    hub = Hub(disk.record)
    hub.lose("x_1")
    assert hub.is_missing("x_1")
    hub.record([fact("x_1", 3), fact("x_2", 0)])
    assert disk.kept == [fact("x_2", 0)]
    for number in range(10_000):
        hub.lose(f"y_{number}")
    assert not hub.is_missing("x_1")


def test_what_no_store_takes_holds_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    kept: list[KeptEntry] = []

    def record(entries: Sequence[KeptEntry]) -> None:
        if entries and entries[0] == fact("x_1", 0):
            raise OverflowError("too large")
        kept.extend(entries)

    hub = Hub(record)
    hub.owe([fact("x_1", 0)])
    hub.record([fact("x_2", 0)])
    assert kept == [fact("x_2", 0)]
    assert "is lost" in caplog.text


def life(exchange: str) -> list[FactEntry | FramesEntry]:
    """The facts of an exchange that begins and ends."""
    return [
        fact(exchange, 0, Received("openai-chat", "m", "")),
        fact(exchange, 1, AttemptStarted(1, "acme", "")),
        FramesEntry(exchange, 2, [1.0], [0.0], [b"x"]),
        fact(exchange, 3, ExchangeFinished("stop")),
    ]


MORE = Announced("more", {})


async def test_a_brief_watcher_gets_whole_exchanges_and_is_told_of_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.exchange.hub.FEW", 5)
    hub = Hub(lambda _: None, lambda _: None)
    with hub.watch(is_brief=True) as brief, hub.watch() as close:
        assert hub.is_watched_closely
        lives = [life(f"x_{number}") for number in range(4)]
        for number, entries in enumerate(lives):
            hub.append(msgspec.msgpack.encode([BodyEntry("h", b""), *entries]), f"x_{number}")
        assert brief.take_waiting() == [*lives[0], *lives[1], MORE], "and no half of an exchange"
        assert close.take_waiting() == [entry for entries in lives for entry in entries]
        hub.record(lives[0])
        assert brief.take_waiting() == lives[0], "there is room again, and nothing was left out"
    assert not hub.is_watched_closely


async def test_a_brief_watcher_gets_all_of_what_it_saw_begin_and_every_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sightline.exchange.hub.FEW", 2)
    hub = Hub(lambda _: None, lambda _: None)
    with hub.watch(is_brief=True) as brief:
        first, other = life("x_1"), life("x_2")
        hub.record(first[:2])
        hub.record(other[:2])
        hub.append(msgspec.msgpack.encode(first[2:]), "x_1")
        hub.announce("cap", {})
        assert brief.take_waiting() == [*first, Announced("cap", {}), MORE]
        hub.record([first[0], first[1]])
        held, released = fact("x_2", 2, Held()), fact("x_2", 3, Released("h"))
        hub.record([held, released])
        assert brief.take_waiting() == [*first[:2], held, released], "from its hold on, it is followed"
        hub.leave_out()
        assert brief.take_waiting() == [MORE], "another process has more"


async def test_what_is_said_of_an_exchange_after_its_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.exchange.hub.FEW", 1)
    hub = Hub(lambda _: None)
    with hub.watch(is_brief=True) as brief:
        late = fact("x_1", 4, Budgeted({}))
        hub.record([*life("x_1"), late])
        hub.record(life("x_2"))
        assert brief.take_waiting() == [*life("x_1"), MORE]
        assert not brief._followed
