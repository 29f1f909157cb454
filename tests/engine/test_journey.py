import asyncio

from sightline.engine.asked import Asked
from sightline.engine.journey import Journey
from tests.fake_clock import FakeClock


def test_others_time_is_no_overhead_and_losses_are_counted() -> None:
    async def story() -> None:
        clock = FakeClock(10.0)
        journey = Journey(Asked("gemini", b"", (), "/", received=9.5), "x_1", clock, (), lambda _: None)
        with journey.waiting():
            await clock.sleep(3)
        journey.losses = 2
        assert journey.own_headers() == [
            (b"x-sightline-exchange", b"x_1"),
            (b"x-sightline-overhead-ms", b"500.000"),
            (b"x-sightline-losses", b"2"),
        ]

    asyncio.run(story())
