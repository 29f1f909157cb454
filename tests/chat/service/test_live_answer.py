"""An answer while it comes: its blocks, and the deltas that pages get."""

import asyncio
from collections.abc import Callable

import pytest

from sightline.chat.core.pair import ChatAnswer, answer_of
from sightline.chat.service.blocks import (
    EVERY,
    CallBlock,
    Deltas,
    LiveAnswer,
    MediaBlock,
    TextBlock,
    blocks_of,
    partial_of,
)
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Finished,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.fold import fold
from sightline.model.json import JsonObject
from sightline.model.parts import Citation, Image, Inline, Opaque, Text, ToolCall, ToolResult
from sightline.model.request import Message
from tests.contract.cases import Case, cases
from tests.reply_samples import CALLS, SAYS


def told_of(*replies: list[StreamEvent]) -> tuple[LiveAnswer, list[JsonObject]]:
    """What was told of these replies, and the answer at the end."""

    async def story() -> tuple[LiveAnswer, list[JsonObject]]:
        told: list[JsonObject] = []
        deltas = Deltas("p", told.append, lambda: True)
        live = LiveAnswer("openai-chat", deltas)
        for events in replies:
            for event in events:
                live.add_event(event)
        deltas.close()
        return live, told

    return asyncio.run(story())


def grown(told: list[JsonObject]) -> dict[int, tuple[str, str]]:
    """The blocks as a page has them that puts the pieces together."""
    blocks: dict[int, tuple[str, str]] = {}
    for each in told:
        number, text = int(str(each["block"])), str(each["text"])
        before = blocks.get(number, (str(each["type"]), ""))[1]
        assert len(before.encode("utf-16-le")) // 2 == each["offset"]
        blocks[number] = str(each["type"]), before + text
    return blocks


def shown(answer: ChatAnswer) -> dict[int, tuple[str, str]]:
    """The blocks of the whole answer in the same form; those without words are left out."""
    blocks: dict[int, tuple[str, str]] = {}
    for number, block in enumerate(blocks_of(answer)):
        if isinstance(block, CallBlock):
            blocks[number] = "call", block.arguments
        elif not isinstance(block, MediaBlock) and block.text:
            kind = str(type(block).__struct_config__.tag)
            blocks[number] = kind, block.text
    return blocks


@pytest.mark.parametrize("case", [case for case in cases("stream.sse") if case.dialect != "raw"], ids=str)
def test_what_a_page_puts_together_is_what_the_whole_answer_shows(case: Case) -> None:
    hearing = ReplyDecoder(dialect(case.dialect))
    events = [*hearing.feed(case.file("stream.sse")), *hearing.close()]
    live, told = told_of(events)
    assert live.answer == answer_of(fold(events))
    page = {number: block for number, block in grown(told).items() if block[1] or block[0] == "call"}
    assert page == shown(live.answer)


def test_replies_of_a_run_come_one_behind_the_other() -> None:
    live, told = told_of(CALLS, SAYS)
    assert grown(told) == {0: ("text", "Let me look."), 1: ("call", '{"city":"Rome"}'), 2: ("text", "Hello there.")}
    assert live.answer.text == "Let me look.\n\nHello there."
    assert next(each.get("name") for each in told if each["type"] == "call") == "weather"


def test_only_the_first_of_several_answers_is_the_chats() -> None:
    live, told = told_of([TextReceived(0, "a"), TextReceived(0, "b", choice=1), Finished("stop"), Ended()])
    assert grown(told) == {0: ("text", "a")}
    assert live.answer.text == "a"


def test_pieces_of_a_reasoning_are_apart_and_parts_without_words_have_their_place() -> None:
    live, told = told_of(
        [
            SignatureReceived(0, "sealed", "openai-responses"),
            ThinkingReceived(1, "first", piece=0, summary=True),
            ThinkingReceived(1, " step", piece=0, summary=True),
            ThinkingReceived(1, "second", piece=1, summary=True),
            PartReceived(2, Opaque("gemini", {})),
            PartReceived(3, Image(Inline("image/png", "aGk="))),
            CitationReceived(4, Citation(url="https://example.org")),
            RefusalReceived(5, "no"),
            ToolCallBegun(6, "c", "look"),
            ArgumentsReceived(6, "{}"),
            ToolCallCompleted(6),
        ]
    )
    assert grown(told) == {1: ("thinking", "first step\n\nsecond"), 4: ("refusal", "no"), 5: ("call", "{}")}
    assert len(blocks_of(live.answer)) == 6
    assert not live.is_empty


def test_nothing_is_no_partial_answer() -> None:
    live, _ = told_of([])
    assert live.is_empty
    assert partial_of(live.answer, "cancelled", "x", 1.0) is None
    some, _ = told_of([TextReceived(0, "a")])
    partial = partial_of(some.answer, "cancelled", "x", 1.0)
    assert (partial.text, partial.finish, partial.exchange, partial.at) == ("a", "cancelled", "x", 1.0)


async def test_tool_result_is_shown_in_place_and_the_next_reply_follows_it() -> None:
    told: list[JsonObject] = []
    deltas = Deltas("p", told.append, lambda: True)
    live = LiveAnswer("openai-chat", deltas)
    for event in (TextReceived(0, "Look: "), ToolCallBegun(1, "c1", "count"), ArgumentsReceived(1, "{}"), Ended()):
        live.add_event(event)
    asked = Message("assistant", (Text("Look: "), ToolCall("c1", "count", '{"n":9}')))
    live.went((asked, Message("tool", (ToolResult("c1", (Text("nine"),)),))))
    live.add_event(TextReceived(0, "Nine."))
    deltas.close()
    words, call, last = blocks_of(live.answer)
    assert (call.arguments, call.result.text) == ('{"n":9}', "nine")
    assert (words, last) == (TextBlock("Look: "), TextBlock("Nine."))
    assert grown(told)[2] == ("text", "Nine.")
    assert not live.is_empty


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


async def test_first_text_is_sent_at_once_and_later_text_is_batched(monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_the_end_tells_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    timers, told = Timers(monkeypatch), list[JsonObject]()
    deltas = Deltas("p", told.append, lambda: True)
    deltas.add(0, "text", "a")
    deltas.add(0, "text", "b")
    deltas.close()
    assert "".join(str(each["text"]) for each in told) == "ab"
    assert timers.waiting == []
    deltas.close()
    assert len(told) == 2


async def test_each_block_has_its_own_places_and_a_call_its_name_once(monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_without_watchers_nothing_is_sent_and_later_offsets_are_correct(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timers, told, watching = Timers(monkeypatch), list[JsonObject](), []
    deltas = Deltas("p", told.append, lambda: bool(watching))
    deltas.add(0, "text", "unheard")
    timers.go_off()
    watching.append("somebody")
    deltas.add(0, "text", "heard")
    deltas.close()
    assert [(each["offset"], each["text"]) for each in told] == [(7, "heard")]


async def test_another_attempt_begins_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Timers(monkeypatch)
    told = list[JsonObject]()
    deltas = Deltas("p", told.append, lambda: True)
    deltas.add(0, "text", "first try")
    deltas.restart()
    deltas.add(0, "text", "again")
    assert told[-1]["offset"] == 0
    deltas.close()
