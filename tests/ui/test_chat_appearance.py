"""The chat on a phone in the dark: in every state all of it fits, and what can be used has a name."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import NARROW
from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import ChatPage, chat_stage, chatting
from tests.ui.test_appearance import check
from tests.ui.test_chat_hostile import RICH
from tests.upstream import answer

CONFIG = '[models."acme/small"]\ncontext_window = 700\n[models."acme/slow"]\ncontext_window = 8000\nrpm = 1\n'
LONG_WORD = "antidisestablishmentarianism/" * 12
DIALOGS = (
    ("Control+m", "model", "The next question goes to"),
    ("Alt+t", "topic", "The next question belongs to"),
    ("Alt+Shift+T", "topics", "Topics"),
    ("Control+,", "settings", "Chat settings"),
    ("w", "edit", "Edit the texts"),
    ("Shift+C", "compact", "Summarize 1 pair"),
    ("?", "keys", "Keyboard shortcuts"),
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    """A history of some pairs, more than the small model takes."""
    with chat_stage(tmp_path_factory.mktemp("looks"), CONFIG) as desk:
        above = desk.done("POST", "topics", {"name": "Geometry"})["id"]
        topic = desk.done("POST", "topics", {"name": "Circles", "parent": above, "system_prompt": "Be exact."})["id"]
        desk.done("PUT", "topics", {"model": "acme/small"})
        desk.look(model="acme/large")
        for words in ("What is a circle?", f"And {LONG_WORD}?", "Which of them is larger, and why is that so?"):
            desk.answers("A circle is the set of points at one distance from a point. " * 6)
            desk.ask(words)
        desk.answers(RICH)
        desk.look(model="acme/large", topic=topic)
        last = desk.ask("Show me everything.")["id"]
        desk.done("POST", f"pairs/{last}/reask", {"view": "v"})
        desk.ended(last)
        desk.done("POST", "mark", {"ids": [last], "star": 2})
        desk.done("POST", "mark", {"ids": [desk.rows()[2]["id"]], "hand": "out"})
        refused = json.dumps({"error": {"message": "Incorrect API key provided.", "code": "invalid_api_key"}}).encode()
        desk.upstream.script = [answer(401, refused, [("Content-Type", "application/json")])]
        desk.ask("Will this work?")
        desk.answers("Yes.")
        yield desk


def test_appearance_of_the_history_and_side_panels(stage: ChatDesk, tmp_path: Path) -> None:
    with chatting(stage.server, size=NARROW, dark=True) as chat:
        expect(chat.pair("Will this work?").get_by_role("group", name="Error")).to_be_visible()
        seen(chat, tmp_path, "chat-end")
        chat.press("Escape", "Shift+O")
        expect(chat.page.get_by_role("separator", name="Boundary")).to_be_visible()
        seen(chat, tmp_path, "chat-boundary")
        chat.counter.focus()
        expect(chat.page.get_by_role("tooltip")).to_be_visible()
        seen(chat, tmp_path, "chat-counter")
        chat.press("Control+i", "Escape", "k", "k", "Shift+H")
        expect(chat.page.get_by_role("complementary", name="HUD")).to_be_visible()
        seen(chat, tmp_path, "chat-hud")
        chat.press("Shift+H", "Control+i")
        chat.write("A question that is not sent yet, with some words in it.")
        chat.press("Alt+p")
        expect(chat.page.get_by_role("region", name="Preview of the next send")).to_contain_text("sha256")
        seen(chat, tmp_path, "chat-preview")
        chat.press("Alt+p", "Control+d")
        chat.write("s")
        expect(chat.page.get_by_role("listbox", name="Completions")).to_be_visible()
        seen(chat, tmp_path, "chat-completions")
        chat.press("Control+u")
        chat.write("nothing:here")
        chat.press("Enter")
        expect(chat.page.get_by_role("alert")).to_contain_text("nothing")
        seen(chat, tmp_path, "chat-wrong-filter")
        chat.shown.expected.append("422")
        chat.press("Control+u", "Escape")
        chat.apply("s3")
        expect(chat.page.get_by_role("heading", name="No pair matches this filter")).to_be_visible()
        seen(chat, tmp_path, "chat-nothing-found")


def test_dialogs_and_menus(stage: ChatDesk, tmp_path: Path) -> None:
    with chatting(stage.server, size=NARROW, dark=True) as chat:
        chat.press("Escape", "k")
        expect(chat.pair("Show me everything.")).to_be_focused()
        for keys, name, title in DIALOGS:
            chat.press(keys)
            expect(chat.dialog(title)).to_be_visible()
            expect(chat.page.get_by_text("Loading…")).to_have_count(0)
            seen(chat, tmp_path, f"chat-{name}")
            chat.close()
        for entry, name, title in (("Import", "import", "Import chats"), ("Export", "export", "Export the chat")):
            chat.press("Control+.")
            chat.page.get_by_role("menuitem", name=entry).click()
            expect(chat.dialog(title)).to_be_visible()
            seen(chat, tmp_path, f"chat-{name}")
            chat.close()
        pair = chat.pair("Show me everything.")
        pair.hover()
        pair.get_by_role("button", name="More for this pair").click()
        expect(pair.get_by_role("menuitem", name="Delete")).to_be_visible()
        seen(chat, tmp_path, "chat-menu")
        chat.press("Escape")
        pair.get_by_role("button", name="1 earlier answer").click()
        expect(chat.dialog("Earlier answers").get_by_role("button", name="Use this answer")).to_be_visible()
        seen(chat, tmp_path, "chat-earlier")
        chat.close()
        chat.press("Control+d", "Control+u")
        chat.write("c'circle' :delete")
        chat.press("Enter")
        expect(chat.dialog("Delete 3 pairs?")).to_be_visible()
        seen(chat, tmp_path, "chat-command")
        chat.close()


def test_the_name_of_the_model_takes_the_room_that_there_is(stage: ChatDesk) -> None:
    with chatting(stage.server, size=NARROW) as chat:
        chat.press("Control+m")
        chat.write("acme/large-preview")
        chat.press("Enter")
        name = chat.page.get_by_role("button", name="Model: acme/large-preview").locator(".cut")
        expect(name).to_be_visible()
        assert name.evaluate("(it) => it.scrollWidth <= it.clientWidth"), "it is cut"


def test_while_it_answers(stage: ChatDesk, tmp_path: Path) -> None:
    with chatting(stage.server, size=NARROW, dark=True) as chat:
        gate = stage.stops_after("Half of an answer, ", "which goes on")
        chat.press("Control+i")
        chat.write("Please go on.")
        chat.press("Enter")
        pair = chat.pair("Please go on.")
        expect(pair).to_contain_text("which goes on")
        chat.write("Meanwhile")
        seen(chat, tmp_path, "chat-answering")
        chat.press("Control+i", "Escape")
        expect(pair.get_by_text("interrupted")).to_be_visible()
        seen(chat, tmp_path, "chat-broken-off")
        stage.open(gate)
        stage.answers("Yes.")
        pair.hover()
        pair.get_by_role("button", name="More for this pair").click()
        pair.get_by_role("menuitem", name="Delete").click()
        expect(chat.toast).to_contain_text("1 pair deleted.")
        seen(chat, tmp_path, "chat-toast")


def seen(chat: ChatPage, folder: Path, name: str) -> None:
    check(chat.shown)
    chat.keep(folder, name)
