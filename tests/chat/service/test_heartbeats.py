"""Heartbeats of a sender."""

import asyncio

import pytest

from sightline.chat.service import chat as module
from sightline.chat.service.chat import SILENCE, Heartbeats
from sightline.errors import Code, Fault
from tests.chat.service.chat_stage import Lines


def signs_of(lines: Lines, process: str, *running: str, now: float = 1.0) -> Heartbeats:
    return Heartbeats(lines, lambda: now, process, lambda asked: asked in running)


async def test_a_process_elsewhere_lives_as_long_as_it_is_not_silent() -> None:
    lines = Lines()
    one = signs_of(lines, "one:1", now=100.0)
    await one.begin("p")
    assert await one.is_alive("p")
    assert await signs_of(lines, "two:1", now=100.0).is_alive("p")
    assert not await signs_of(lines, "two:1", now=100.0).is_alive("another")
    assert not await signs_of(lines, "two:1", now=100.0 + SILENCE).is_alive("p")
    await one.end()
    assert not await signs_of(lines, "two:1", now=100.0).is_alive("p")
    assert lines.kept == {}


@pytest.mark.parametrize(
    ("running", "now", "is_alive"), [(["h:1"], 1.0, True), ([], 1.0, False), (["h:1"], 99.0, True)]
)
async def test_a_process_of_the_same_machine_is_looked_for(running: list[str], now: float, *, is_alive: bool) -> None:
    lines = Lines()
    one = signs_of(lines, "h:1")
    await one.begin("p")
    assert await signs_of(lines, "h:2", *running, now=now).is_alive("p") is is_alive
    await one.end()


async def test_an_own_sign_that_could_not_be_taken_away_says_nothing() -> None:
    class Stuck(Lines):
        async def forget(self, log: str) -> None:
            raise Fault(Code.NETWORK, "the database is away")

    one = signs_of(Stuck(), "h:1", "h:1")
    await one.begin("p")
    await one.end()
    assert not await one.is_alive("p")


async def test_signs_go_on_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT", 0.0)
    lines, has_beaten, beats = Lines(), asyncio.Event(), []

    def beat(log: str) -> None:
        beats.append(log)
        if len(beats) == 3:
            has_beaten.set()

    lines.before_append = beat
    signs = signs_of(lines, "h:1")
    await signs.begin("p")
    await has_beaten.wait()
    await signs.end()


async def test_a_log_that_cannot_be_written_stops_no_send(caplog: pytest.LogCaptureFixture) -> None:
    def full(_log: str) -> None:
        raise Fault(Code.CONFIG, "the disk is full")

    lines = Lines()
    lines.before_append = full
    signs = signs_of(lines, "h:1")
    await signs.begin("p")

    async def forget(_log: str) -> None:
        full("")

    lines.forget = forget
    await signs.end()
    assert caplog.text.count("the disk is full") == 2
