"""What the preview shows is what leaves, byte for byte; what is changed in the request editor then leaves instead."""

import json
from pathlib import Path

from playwright.sync_api import Locator, Route, expect

from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import LOCAL, ChatPage, chatting
from tests.local_model import needs_model
from tests.page_stage import card, proof, sha256, write

TOPICS = {"system_prompt": "Be brief."}


def previewed(chat: ChatPage, words: str) -> Locator:
    """The panel, when it shows these words."""
    panel = chat.page.get_by_role("region", name="Preview of the next send")
    if not panel.count():
        chat.press("Alt+p")
    chat.press("Control+i")
    chat.write(words)
    expect(panel.locator(".preview-body")).to_contain_text(words)
    expect(panel).to_have_attribute("aria-busy", "false")
    return panel


def hash_of(panel: Locator) -> str:
    """What the page has worked out for what it shows."""
    shown = panel.get_by_title("SHA-256 of these bytes")
    expect(shown).to_be_visible()
    return (shown.get_attribute("title") or "").rpartition(" ")[2]


def test_the_body_that_is_shown_is_the_body_that_leaves(talk: ChatDesk, tmp_path: Path) -> None:
    with chatting(talk.server) as chat:
        chat.ask("One.")
        panel = previewed(chat, "Two, and “more” — 漢字.")
        expect(panel).to_contain_text("1 pair of the history")
        shown = hash_of(panel)
        chat.keep(tmp_path, "chat-preview")
        panel.get_by_role("button", name="Send exactly this").click()
        chat.answered("Two, and")
        assert sha256(talk.upstream.seen[-1].body) == shown

        panel = previewed(chat, "Three.")
        chat.apply("s1")
        expect(panel).to_contain_text("0 pairs of the history")
        shown = hash_of(panel)
        chat.press("Control+i", "Enter")
        expect(chat.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
        chat.apply("")
        chat.answered("Three.")
        assert sha256(talk.upstream.seen[-1].body) == shown, "also where it is sent as usual"


def test_beside_the_preview_the_input_keeps_room_for_topic_and_model(talk: ChatDesk) -> None:
    with chatting(talk.server, size=(768, 1024)) as chat:
        previewed(chat, "How are you?")
        names = chat.page.locator(".chosen .button:not(.tools-button) .cut")
        without_topic, model = names.evaluate_all("(all) => all.map((each) => each.offsetWidth)")
        assert without_topic == 0, "the icon alone says that there is none"
        assert model > 30, "a few letters of it can be read"
        talk.done("POST", "topics", {"name": "Cities of the north"})
        chat.press("Alt+t")
        chat.page.get_by_role("dialog").get_by_role("combobox").fill("Cities")
        chat.press("Enter")
        expect(names.first).to_contain_text("Cities")
        assert min(names.evaluate_all("(all) => all.map((each) => each.offsetWidth)")) > 30


@needs_model
def test_also_with_the_embedded_model(talk: ChatDesk) -> None:
    talk.done("PUT", "topics", {"model": LOCAL})
    with chatting(talk.server) as chat:
        shown = hash_of(previewed(chat, "Say hello."))
        chat.press("Enter")
        chat.answered("Say hello.")
        exchange = talk.rows()[0]["exchange"]
        assert sha256(talk.server.body(exchange, "sent")) == shown


def test_where_something_changed_meanwhile_nothing_is_sent(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        chat.ask("One.")
        panel = previewed(chat, "Two.")
        (pair,) = talk.rows()
        chat.shown.expected.append("409")

        def first(route: Route) -> None:
            talk.done("POST", "mark", {"ids": [pair["id"]], "hand": "out"})
            route.continue_()

        chat.page.route("**/api/chat/send", first, times=1)
        panel.get_by_role("button", name="Send exactly this").click()
        expect(chat.toast).to_be_visible()
        expect(chat.question).to_have_value("Two.")
    assert len(talk.sent) == 1


def test_what_is_edited_before_sending_is_what_leaves(talk: ChatDesk, tmp_path: Path) -> None:
    with chatting(talk.server) as chat:
        page = chat.page
        chat.ask("One.")
        panel = previewed(chat, "Two.")
        shown = hash_of(panel)
        panel.get_by_role("button", name="Edit before sending").click()
        expect(card(page, "User 2")).to_contain_text("Two.")
        expect(proof(page)).to_have_accessible_name(f"shown {shown}")
        assert len(talk.sent) == 1, "it is held"
        write(page, "User 2", " And three.")
        chat.keep(tmp_path, "chat-edit-before-sending")
        page.get_by_role("button", name="Send", exact=False).first.click()
        expect(proof(page)).to_contain_text("sent = shown")
        page.go_back()
        chat.answered("Two.")
        assert talk.sent[-1]["messages"][-1]["content"] == "Two. And three."
        named = json.loads(talk.server.body(talk.rows()[-1]["exchange"], "sent"))
        assert named["messages"][-1]["content"] == "Two. And three."


def test_what_is_dropped_comes_back_to_the_input(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        panel = previewed(chat, "One.")
        panel.get_by_role("button", name="Edit before sending").click()
        expect(card(chat.page, "User 1")).to_contain_text("One.")
        chat.page.get_by_role("button", name="Drop").first.click()
        expect(chat.page.get_by_text("dropped", exact=True).first).to_be_visible()
        chat.page.go_back()
        expect(chat.question).to_have_value("One.")
        chat.question.click()
        chat.press("Enter")
        chat.answered("One.")
        expect(chat.feed.get_by_role("article")).to_have_count(1)
    assert len(talk.sent) == 1


def test_all_that_is_written_stays_in_sight_when_the_preview_makes_the_input_narrow(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        field = chat.page.get_by_role("textbox", name="Question")
        chat.press("Control+i")
        chat.write("a question of about one line " * 3 + "and more")
        height = field.bounding_box()
        chat.press("Alt+p")
        expect(chat.page.get_by_role("region", name="Preview of the next send")).to_be_visible()
        chat.page.wait_for_function(
            "([id, before]) => document.getElementById(id).offsetHeight > before",
            arg=[field.get_attribute("id"), (height or {"height": 0})["height"]],
        )
        assert field.evaluate("(field) => field.scrollHeight <= field.clientHeight")
