"""What a person changes while an answer is on its way does not touch that request."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import chat_stage, chatting
from tests.upstream import Play, chunk, head, pieces

Stage = tuple[ChatDesk, Browser]
OVERFLOW = {"error": {"code": "context_length_exceeded", "message": "The maximum context length is exceeded"}}


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with chat_stage(tmp_path_factory.mktemp("flight"), '[models."acme/other"]\ncontext_window = 4000\n') as made:
        made[0].done("PUT", "topics", {"model": "acme/large"})
        yield made


def said(desk: ChatDesk, number: int = -1) -> list[str]:
    return [each["content"] for each in desk.sent[number]["messages"]]


def test_another_filter_hides_the_pair_and_not_its_answer(stage: Stage) -> None:
    desk, browser = stage
    with chatting(browser, desk.server) as chat:
        chat.ask("One.")
        chat.press("Escape", "2")
        gate = desk.stops_after("Half ", "of it")
        chat.press("Control+i")
        chat.write("Two.")
        chat.press("Enter")
        expect(chat.pair("Two.")).to_contain_text("Half of it")
        chat.apply("s2")
        expect(chat.pair("Two.")).to_have_count(0)
        expect(chat.page.get_by_text("thinking…").last).to_be_visible()
        desk.open(gate)
        expect(chat.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
        expect(chat.pair("Two.")).to_have_count(0)
        chat.apply("")
        expect(chat.answered("Two.")).to_contain_text("Half of it")
    assert said(desk) == ["One.", "Hello there.", "Two."]


def test_another_model_is_for_the_next_question(stage: Stage) -> None:
    desk, browser = stage
    with chatting(browser, desk.server) as chat:
        gate = desk.stops_after("Half ", "of it")
        chat.write("One.")
        chat.press("Enter")
        expect(chat.pair("One.")).to_contain_text("Half of it")
        chat.press("Control+m")
        expect(chat.page.get_by_role("combobox", name="Model")).to_be_focused()
        chat.write("acme/other")
        chat.press("Enter")
        expect(chat.page.get_by_role("button", name="Model: acme/other")).to_be_visible()
        expect(chat.pair("One.")).to_contain_text("acme/large")
        desk.open(gate)
        expect(chat.answered("One.")).to_contain_text("acme/large")
        desk.answers("Yes.")
        expect(chat.ask("Two.")).to_contain_text("acme/other")
    assert [each["model"] for each in desk.sent] == ["large", "other"]


def test_other_settings_are_for_the_next_question(stage: Stage) -> None:
    desk, browser = stage
    with chatting(browser, desk.server) as chat:
        chat.ask("One.")
        gate = desk.stops_after("Half ", "of it")
        chat.write("Two.")
        chat.press("Enter")
        expect(chat.pair("Two.")).to_contain_text("Half of it")
        chat.press("Control+,")
        asked = chat.dialog("Chat settings")
        allowance = asked.get_by_label("Reserved for your question")
        allowance.fill("7900")
        allowance.press("Enter")
        expect(asked.get_by_text("saved", exact=True)).to_be_visible()
        chat.press("Escape")
        expect(asked).to_have_count(0)
        expect(chat.counter).to_have_text("0 / 2")
        desk.open(gate)
        chat.answered("Two.")
        desk.answers("Yes.")
        chat.ask("Three.")
    assert said(desk, 1) == ["One.", "Hello there.", "Two."]
    assert said(desk) == ["Three."]


def test_another_filter_stops_the_trimming_with_a_notice(stage: Stage, tmp_path: Path) -> None:
    desk, browser = stage
    with chatting(browser, desk.server) as chat:
        chat.ask("One.")
        chat.press("Escape", "2")
        gate = asyncio.Event()
        desk.upstream.script = [overflows_after(gate)]
        chat.press("Control+i")
        chat.write("Two.")
        chat.press("Enter")
        expect(chat.pair("Two.")).to_contain_text("thinking…")
        chat.apply("s2 | c'Two'")
        desk.open(gate)
        trouble = chat.pair("Two.").get_by_role("group", name="Error")
        expect(trouble).to_contain_text("[error:")
        expect(trouble).to_contain_text("filter")
        chat.keep(tmp_path, "chat-filter-changed")
    assert len(desk.sent) == 2, "it was not tried again"


def overflows_after(gate: asyncio.Event) -> Play:
    body = json.dumps(OVERFLOW).encode()
    return pieces(gate, head(400, [("Content-Type", "application/json")]), chunk(body), chunk(b""))
