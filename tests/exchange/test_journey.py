import asyncio

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.exchange import Journey
from sightline.exchange.hub import Hub
from sightline.exchange.recorder import Recorder
from sightline.store.entries import Entry
from tests.fake_clock import FakeClock


def test_others_time_is_no_overhead_and_losses_are_counted() -> None:
    async def story() -> None:
        clock = FakeClock(10.0)
        journey = Journey(ClientRequest("gemini", b"", (), "/", received=9.5), "x_1", clock, (), lambda _: None)
        with journey.waiting():
            await clock.sleep(1)
            assert (b"x-sightline-overhead-ms", b"500.000") in journey.own_headers()
            with journey.waiting():
                await clock.sleep(2)
        journey.losses = 2
        kept: list[Entry] = []
        journey.live = Recorder(journey.asked, "x_1", Hub(kept.extend), clock, ())
        assert journey.own_headers() == [
            (b"x-sightline-exchange", b"x_1"),
            (b"x-sightline-overhead-ms", b"500.000"),
            (b"x-sightline-losses", b"2"),
        ]
        assert len(kept) == 2, "what has left is on record"

    asyncio.run(story())


def test_no_id_leaves_for_what_is_not_on_record() -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    async def story() -> None:
        journey = Journey(ClientRequest("gemini", b"", (), "/"), "x_1", FakeClock(), (), lambda _: None)
        assert [name for name, _ in journey.own_headers()] == [b"x-sightline-overhead-ms"]
        journey.live = Recorder(journey.asked, "x_1", Hub(full), FakeClock(), ())
        assert [name for name, _ in journey.own_headers()] == [b"x-sightline-overhead-ms"]

    asyncio.run(story())


def test_an_answer_that_is_looked_at_first_is_not_passing_yet() -> None:
    async def story() -> None:
        ended: list[Journey] = []
        journey = Journey(ClientRequest("gemini", b"", (), "/"), "x_1", FakeClock(), (), ended.append)
        journey.passes(None)  # type: ignore[arg-type] # it is not asked
        journey.is_stopped = True
        assert not journey.is_passing
        journey.is_done()
        assert ended == []
        journey.abort(Fault(Code.OVERLOADED, "enough"))
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        assert journey.reason == Fault(Code.OVERLOADED, "enough")

    asyncio.run(story())
