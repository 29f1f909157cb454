import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.recording.records import (
    EVERY,
    RETENTION_LOG,
    Records,
    Retention,
    RetentionRule,
    RetentionSettings,
    forget_exchanges,
    read_selection,
    read_summaries,
)
from sightline.filters.parsing import parse
from sightline.model.exchange import ExchangeFinished, FrameArrived, Received
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.sqlite import SqliteStore
from sightline.store.store import LoggedValue, Pruned, Store
from tests.fake_clock import FakeClock
from tests.recordings import store_with
from tests.store.traffic import NOON, answered, chat_body, chat_stream, noted, prices, received

FIRST = chat_body("hi")
SECOND = chat_body("hi", "Hello", "and now?")


def recorded(folder: Path) -> AbstractAsyncContextManager[SqliteStore]:
    """The third of these is a replay of the first."""
    answer = chat_stream("Hello")
    return store_with(
        folder,
        [*received("x_1", FIRST), *answered("x_1", FIRST, answer)],
        received("x_2", SECOND),
        [*received("x_3", FIRST, origin="x_1"), *answered("x_3", FIRST, answer)],
    )


def over(store: Store, unwritten: Callable[[str], list[FactEntry]] | None = None) -> Records:
    async def find_unwritten(exchange: str) -> list[FactEntry]:
        return [] if unwritten is None else unwritten(exchange)

    return Records(store, lambda: NOON, prices, find_unwritten)


async def test_an_exchange_has_its_facts_and_what_the_record_has_read_in_it(tmp_path: Path) -> None:
    async with recorded(tmp_path) as store:
        records = over(store)
        facts = await records.facts("x_2")
        summary = await records.summary("x_2", facts)
        assert (summary.title, summary.previous) == ("and now?", "x_1")
        assert (await records.read("x_1")).sent == FIRST


async def test_facts_that_are_not_written_yet_stand_behind_those_that_are(tmp_path: Path) -> None:
    async with recorded(tmp_path) as store:
        frame = FactEntry("x_2", 1, NOON, FrameArrived(b"data: {}\n\n", 0.1))
        records = over(store, lambda exchange: [frame] if exchange == "x_2" else [])
        assert [noted.n for noted in await records.facts("x_2")] == [0, 1]
        store.record([frame])
        assert [noted.n for noted in await records.facts("x_2")] == [0, 1], "what was written meanwhile is there once"


async def test_an_exchange_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    async with recorded(tmp_path) as store:
        with pytest.raises(Fault) as caught:
            await over(store).facts("x_")
        assert caught.value.status == 404


async def test_the_one_before_is_found_also_for_one_that_has_not_been_sent(tmp_path: Path) -> None:
    async with recorded(tmp_path) as store:
        records = over(store)
        before = await records.previous("x_2")
        assert (before.id, before.sent) == ("x_1", FIRST)
        assert await records.previous("x_1") is None
        assert await records.previous("x_nothing") is None


async def test_one_whose_bodies_are_gone_is_not_there(tmp_path: Path) -> None:
    class Forgetful:
        """A record of which retention has taken the bodies."""

        def __init__(self, store: Store) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        async def body(self, _exchange: str, _sha256: str) -> None:
            return None

    async with recorded(tmp_path) as store:
        assert await over(Forgetful(store)).previous("x_2") is None  # type: ignore[arg-type]


async def test_replays_name_the_one_that_they_repeat(tmp_path: Path) -> None:
    async with recorded(tmp_path) as store:
        assert await over(store).replays("x_1") == ("x_3",)
        assert await over(store).replays("x_2") == ()


NOW = 1_760_000_000.0


class Pruning:
    """A store of which only this is asked."""

    def __init__(self, *outcomes: Pruned | Fault) -> None:
        self.asked: list[dict[str, Any]] = []
        self.was_asked_thrice = asyncio.Event()
        self._outcomes = list(outcomes)

    async def prune(self, **limits: Any) -> Pruned:
        self.asked.append(limits)
        if len(self.asked) == 3:
            self.was_asked_thrice.set()
        outcome = self._outcomes.pop(0) if self._outcomes else Pruned(0, 0, 0)
        if isinstance(outcome, Fault):
            raise outcome
        return outcome


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"days": 7, "megabytes": 2}, {"older_than": NOW - 7 * 86_400, "larger_than": 2 << 20}),
        ({"days": 1}, {"older_than": NOW - 86_400, "larger_than": None}),
        ({"megabytes": 1}, {"older_than": None, "larger_than": 1 << 20}),
    ],
)
async def test_retention_limits_are_passed_to_the_store(
    limits: dict[str, int], told: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    store = Pruning(Pruned(3, 4096, 1))
    caplog.set_level(logging.INFO)
    await Retention(store, FakeClock(NOW), **limits).once()  # type: ignore[arg-type]
    assert store.asked == [told]
    assert "3 exchanges were forgotten" in caplog.text


async def test_without_a_limit_nothing_is_forgotten() -> None:
    store = Pruning()
    await Retention(store, FakeClock(NOW)).run()  # type: ignore[arg-type]
    assert store.asked == []


async def test_it_goes_on_every_hour_also_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    store, clock = Pruning(Fault(Code.CONFIG, "locked")), FakeClock(NOW)
    running = asyncio.ensure_future(Retention(store, clock, days=1).run())  # type: ignore[arg-type]
    await store.was_asked_thrice.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert clock.waits[:2] == [EVERY, EVERY]
    assert "could not be pruned: locked" in caplog.text


async def test_what_the_page_keeps_counts_in_place_of_the_configuration(tmp_path: Path) -> None:
    def lived(name: str, age: int, session: str) -> list[Entry]:
        facts = [Received("openai-chat", "m", "aa", session=session), ExchangeFinished("stop", 200)]
        return [BodyEntry("aa", b"{}"), *noted(name, facts, at=NOW - age * 86_400)]

    exchanges = lived("x_1", 9, "demo"), lived("x_2", 9, "kept"), lived("x_3", 1, "demo")
    async with store_with(tmp_path, *exchanges) as store:
        kept = LoggedValue(store.logbook, RETENTION_LOG, RetentionSettings, lambda: NOW)
        retention = Retention(store, FakeClock(NOW), days=5, kept=kept)  # type: ignore[arg-type]
        wanted = RetentionSettings(0, 0, (RetentionRule("session:demo", 7),))
        await retention.set(wanted)
        assert [each.id for each in await store.find(parse(""), now=NOW)] == ["x_3", "x_2"]
        assert await retention.settings() == (wanted, False)
        await retention.set(RetentionSettings(2, 0, ()))
        assert [each.id for each in await store.find(parse(""), now=NOW)] == ["x_3"]


async def test_more_exchanges_than_a_filter_has_terms_are_forgotten_at_once_and_no_others(tmp_path: Path) -> None:
    async with recorded(tmp_path) as store:
        ids = [f"x_{number:04}" for number in range(100, 700)]
        for name in ids:
            store.record([*received(name, FIRST), *answered(name, FIRST, chat_stream("Hello"))])
        await store.settle()
        wanted = read_selection("", [*ids[::2], "x_none"])
        assert [line.id async for line in read_summaries(store, wanted, NOON)] == ids[::2][::-1]
        gone, named = await forget_exchanges(store, wanted, now=NOON)
        assert (gone.exchanges, sorted(named)) == (300, ids[::2])
        assert [line.id for line in await store.find(parse("id:x_0*"), now=NOON, limit=500)] == ids[1::2][::-1]


def test_a_filter_beside_a_list_of_exchanges_is_refused() -> None:
    with pytest.raises(Fault, match="both a filter and a list"):
        read_selection("session:one", ["x_1"])
