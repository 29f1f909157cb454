"""The clock is a shape that others fill; the one that tests fill it with is tried here."""

import asyncio

from sightline.transport.clock import Clock
from tests.fake_clock import FakeClock


def test_the_fake_clock_is_a_clock_that_moves_only_by_waiting() -> None:
    async def story() -> None:
        clock: Clock = FakeClock(100.0)
        assert (clock.now(), clock.monotonic()) == (100.0, 100.0)
        await clock.sleep(2.5)
        assert (clock.now(), clock.monotonic()) == (102.5, 102.5)

    asyncio.run(story())


def test_a_held_clock_sleeps_until_it_is_cancelled() -> None:
    async def story() -> None:
        clock = FakeClock(100.0, holds=True)
        async with asyncio.TaskGroup() as group:
            sleeping = group.create_task(clock.sleep(5))
            await clock.asleep.wait()
            assert not sleeping.done()
            sleeping.cancel()
        assert (clock.waits, clock.now()) == ([5], 100.0)

    asyncio.run(story())
