"""Somebody who types in the chat faster than it draws: here every frame and timer comes half a second late."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser import browsing, held_back, looking
from tests.chat_page import ChatPage, chat_stage, chatting, opened

LATE_MS = 500
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))"


def test_arriving_answer_does_not_swallow_typed_characters(tmp_path: Path) -> None:
    with chat_stage(tmp_path) as desk, chatting(desk.server) as first:
        desk.done("PUT", "topics", {"model": "acme/large"})
        first.shown.delay(LATE_MS)
        first.page.reload()
        chat = opened(first.shown, desk.server)
        chat.ask("First?")
        chat.press("Control+i")
        chat.page.evaluate(DRAWN)
        chat.write("Second?")
        expect(chat.question).to_have_value("Second?")
        chat.press("Enter")
        chat.answered("Second?")
        chat.press("Escape", "k", "Control+.", *["ArrowDown"] * 4, "Enter")
        expect(chat.dialog("Chat settings")).to_be_visible()


def test_question_sent_before_the_chat_is_shown_is_asked_once_it_is(tmp_path: Path) -> None:
    with chat_stage(tmp_path) as desk, browsing() as browser, looking(browser, desk.server) as shown:
        desk.done("PUT", "topics", {"model": "acme/large"})
        shown.expected.append("status of 404")  # its size is not known yet
        let_go = held_back(shown.page, re.compile("/api/chat/views/"))
        chat = ChatPage(shown, shown.page)
        chat.page.goto(f"{desk.server.url}/#/chat")
        chat.question.fill("First?")
        chat.press("Enter")
        expect(chat.question).to_have_value("")
        let_go()
        chat.answered("First?")


def test_enter_is_obeyed_when_the_topics_have_come(tmp_path: Path) -> None:
    with chat_stage(tmp_path) as desk, chatting(desk.server) as chat:
        topic = desk.done("POST", "topics", {"name": "Cities"})["id"]
        let_go = held_back(chat.page, "**/api/chat/topics")
        chat.press("Alt+t")
        chat.write("Cities")
        chat.press("Enter")
        expect(chat.page.get_by_role("listbox", name="Topics")).to_contain_text("Loading")
        let_go()
        expect(chat.page.get_by_role("button", name="Topic: Cities")).to_be_visible()
        assert [each["id"] for each in desk.done("GET", "topics") if each["name"] == "Cities"] == [topic]
