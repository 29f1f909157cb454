import asyncio

from sightline.engine.hub import MOST_WAITING, Hub
from sightline.model.exchange import Dropped, FrameArrived
from sightline.store.entries import Entry, Kept, Noted

FACT = Noted("x_1", 0, 1.0, Dropped("no"))


def test_facts_are_recorded_first_and_then_told_and_frames_are_not_told_twice() -> None:
    async def story() -> None:
        kept: list[Entry] = []
        hub = Hub(kept.extend)
        assert not hub.is_watched
        hub.record([FACT])
        with hub.watch() as watch:
            assert hub.is_watched
            frame = Noted("x_1", 1, 2.0, FrameArrived(b"a"))
            hub.show(frame)
            hub.record([Kept("h", b""), frame, FACT])
        hub.record([FACT])
        assert [noted async for noted in watch] == [frame, FACT]
        assert [noted async for noted in watch] == [], "it stays over"
        assert len(kept) == 5

    asyncio.run(story())


def test_a_watcher_that_falls_far_behind_is_let_go() -> None:
    async def story() -> None:
        hub = Hub(lambda _: None)
        watch = hub.watch()
        for _ in range(MOST_WAITING + 1):
            hub.show(FACT)
        assert not hub.is_watched
        assert len([noted async for noted in watch]) == MOST_WAITING

    asyncio.run(story())


def test_closing_lets_everybody_go() -> None:
    async def story() -> None:
        hub = Hub(lambda _: None)
        watch = hub.watch()
        hub.close()
        assert [noted async for noted in watch] == []
        assert [noted async for noted in hub.watch()] == []
        await watch.aclose()

    asyncio.run(story())
