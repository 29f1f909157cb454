"""Work that is broken off."""

import asyncio

import pytest

from sightline.chat.service.abortable import Breaking, BrokenOff


def test_what_is_done_brings_what_it_brings_and_what_is_broken_off_does_not() -> None:
    async def story() -> None:
        breaking, begun = Breaking(), asyncio.Event()

        async def work() -> str:
            begun.set()
            await asyncio.Event().wait()
            return "never"

        assert await breaking.run(asyncio.sleep(0, "done")) == "done"
        doing = asyncio.ensure_future(breaking.run(work()))
        await begun.wait()
        breaking.break_off("shutdown")
        with pytest.raises(BrokenOff):
            await doing
        assert (breaking.is_broken, breaking.reason) == (True, "shutdown")
        with pytest.raises(BrokenOff):
            await breaking.run(work())

    asyncio.run(story())


def test_who_is_cancelled_takes_the_work_along() -> None:
    async def story() -> None:
        breaking, begun, ended = Breaking(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        doing = asyncio.ensure_future(breaking.run(work()))
        await begun.wait()
        doing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doing
        assert ended.is_set()

    asyncio.run(story())
