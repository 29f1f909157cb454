import asyncio

import pytest

from sightline.engine.asked import Asked
from sightline.engine.journey import Journey
from sightline.errors import Code, Fault
from tests.fake_clock import FakeClock


def test_others_time_is_no_overhead_and_losses_are_counted() -> None:
    async def story() -> None:
        clock = FakeClock(10.0)
        journey = Journey(Asked("gemini", b"", (), "/", received=9.5), "x_1", clock, (), lambda _: None)
        with journey.waiting():
            await clock.sleep(1)
            assert (b"x-sightline-overhead-ms", b"500.000") in journey.own_headers()
            with journey.waiting():
                await clock.sleep(2)
        journey.losses = 2
        assert journey.own_headers() == [
            (b"x-sightline-exchange", b"x_1"),
            (b"x-sightline-overhead-ms", b"500.000"),
            (b"x-sightline-losses", b"2"),
        ]

    asyncio.run(story())


def test_an_answer_that_is_looked_at_first_is_not_passing_yet() -> None:
    async def story() -> None:
        ended: list[Journey] = []
        journey = Journey(Asked("gemini", b"", (), "/"), "x_1", FakeClock(), (), ended.append)
        journey.passes(None)  # type: ignore[arg-type] # it is not asked
        journey.is_stopped = True
        assert not journey.is_passing
        journey.is_done()
        assert ended == []
        journey.cut(Fault(Code.OVERLOADED, "enough"))
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        assert journey.reason == Fault(Code.OVERLOADED, "enough")

    asyncio.run(story())
