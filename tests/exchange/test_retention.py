import asyncio
import logging
from typing import Any

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.recording.records import EVERY, Retention
from sightline.store.store import Pruned
from tests.fake_clock import FakeClock

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


def test_limits_are_told_to_the_store(caplog: pytest.LogCaptureFixture) -> None:
    store = Pruning(Pruned(3, 4096, 1))
    with caplog.at_level(logging.INFO):
        asyncio.run(Retention(store, FakeClock(NOW), days=7, megabytes=2).once())  # type: ignore[arg-type]
    assert store.asked == [{"older_than": NOW - 7 * 86_400, "larger_than": 2 << 20}]
    assert "3 exchanges were forgotten" in caplog.text


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"days": 1}, {"older_than": NOW - 86_400, "larger_than": None}),
        ({"megabytes": 1}, {"older_than": None, "larger_than": 1 << 20}),
    ],
)
def test_one_limit_is_enough(limits: dict[str, int], told: dict[str, Any]) -> None:
    store = Pruning()
    asyncio.run(Retention(store, FakeClock(NOW), **limits).once())  # type: ignore[arg-type]
    assert store.asked == [told]


def test_without_a_limit_nothing_is_forgotten() -> None:
    store = Pruning()
    asyncio.run(Retention(store, FakeClock(NOW)).run())  # type: ignore[arg-type]
    assert store.asked == []


def test_it_goes_on_every_hour_also_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    store, clock = Pruning(Fault(Code.CONFIG, "locked")), FakeClock(NOW)

    async def for_a_while() -> None:
        running = asyncio.ensure_future(Retention(store, clock, days=1).run())  # type: ignore[arg-type]
        await store.was_asked_thrice.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(for_a_while())
    assert clock.waits[:2] == [EVERY, EVERY]
    assert "could not be pruned: locked" in caplog.text
