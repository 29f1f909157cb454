"""Words told as they come: not too often, in their places, and all of them."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from sightline.chat.service import live_answer as module
from sightline.chat.service.live_answer import EVERY, Deltas
from sightline.model.json import JsonObject


class Timers:
    """Timers of the loop that go off when a story says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.delays: list[float] = []
        monkeypatch.setattr(asyncio.BaseEventLoop, "call_later", self._call_later)

    def _call_later(self, delay: float, callback: Callable[[], None]) -> "Timers":
        self.delays.append(delay)
        self.waiting.append(callback)
        return self

    def cancel(self) -> None:
        self.waiting.clear()

    def go_off(self) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()


def play(story: Callable[[], Coroutine[None, None, None]]) -> None:
    loop = asyncio.SelectorEventLoop()
    try:
        loop.run_until_complete(story())
    finally:
        loop.close()


def test_the_first_words_are_told_at_once_and_the_others_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        timers, told = Timers(monkeypatch), list[JsonObject]()
        deltas = Deltas("p", told.append, lambda: True)
        for text in ("one", " two", " three"):
            deltas.add(0, "text", text)
        assert [each["text"] for each in told] == ["one"]
        assert told[0] == {"kind": "delta", "pair": "p", "block": 0, "type": "text", "offset": 0, "text": "one"}
        timers.go_off()
        assert (told[1]["text"], told[1]["offset"]) == (" two three", 3)
        timers.go_off()
        assert len(told) == 2
        assert timers.waiting == [], "a pause needs no timer"
        deltas.add(0, "text", " four")
        assert told[2]["text"] == " four"
        assert set(timers.delays) == {EVERY}

    play(story)


def test_the_end_tells_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        timers, told = Timers(monkeypatch), list[JsonObject]()
        deltas = Deltas("p", told.append, lambda: True)
        deltas.add(0, "text", "a")
        deltas.add(0, "text", "b")
        deltas.close()
        assert "".join(str(each["text"]) for each in told) == "ab"
        assert timers.waiting == []
        deltas.close()
        assert len(told) == 2

    play(story)


def test_each_block_has_its_own_places_and_a_call_its_name_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        timers, told = Timers(monkeypatch), list[JsonObject]()
        deltas = Deltas("p", told.append, lambda: True)
        deltas.add(0, "text", "😀é")
        deltas.add(1, "call", "", "search")
        deltas.add(1, "call", '{"q"')
        deltas.add(0, "text", "!")
        timers.go_off()
        deltas.add(1, "call", ":1}")
        deltas.close()
        places = [(each["block"], each["offset"], each["text"], each.get("name")) for each in told]
        assert places == [(0, 0, "😀é", None), (0, 3, "!", None), (1, 0, '{"q"', "search"), (1, 4, ":1}", None)]

    play(story)


def test_where_nobody_watches_nothing_is_told_and_places_are_right_for_who_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        timers, told, watching = Timers(monkeypatch), list[JsonObject](), []
        deltas = Deltas("p", told.append, lambda: bool(watching))
        deltas.add(0, "text", "unheard")
        timers.go_off()
        watching.append("somebody")
        deltas.add(0, "text", "heard")
        deltas.close()
        assert [(each["offset"], each["text"]) for each in told] == [(7, "heard")]

    play(story)


def test_another_attempt_begins_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        Timers(monkeypatch)
        told = list[JsonObject]()
        deltas = Deltas("p", told.append, lambda: True)
        deltas.add(0, "text", "first try")
        deltas.restart()
        deltas.add(0, "text", "again")
        assert told[-1]["offset"] == 0
        deltas.close()

    play(story)


def test_it_is_about_thirty_times_a_second() -> None:
    assert 1 / 40 < module.EVERY < 1 / 20
