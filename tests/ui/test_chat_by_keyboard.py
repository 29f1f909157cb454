"""A whole session in the chat by keyboard alone, with the embedded model."""

import json
from pathlib import Path

from playwright.sync_api import expect

from tests.browser import browsing, looking
from tests.chat_page import LOCAL, ChatPage, chat_stage, chatting
from tests.local_model import needs_model

pytestmark = needs_model


def test_a_whole_session(tmp_path: Path) -> None:
    with chat_stage(tmp_path) as desk, browsing() as browser, looking(browser, desk.server) as shown:
        expect(shown.page.get_by_role("row").or_(shown.page.get_by_role("heading")).first).to_be_visible()
        shown.page.keyboard.press("g")
        shown.page.keyboard.press("a")
        chat = ChatPage(shown, shown.page)
        chat.mode("INPUT")
        desk.answers("Said by ", "acme.")  # nothing that the embedded model might say too
        chooses_a_model_and_asks(chat)
        marks_and_filters(chat)
        asks_again_and_swaps(chat)
        changes_the_question_and_leaves_out(chat)
        gives_a_command(chat)
        looks_at_the_request(chat)
        sums_up(chat)
        exports(chat, tmp_path)


def test_focus_is_not_moved_back_after_a_closed_dialog(tmp_path: Path) -> None:
    with chat_stage(tmp_path) as desk, chatting(desk.server) as chat:
        desk.done("PUT", "topics", {"model": "acme/large"})
        chat.ask("One.")
        chat.press("Escape", "w")
        expect(chat.dialog("Edit the texts")).to_be_visible()
        chat.press("Escape", "Control+d")
        expect(chat.dialog("Edit the texts")).to_have_count(0)
        chat.write("c'one'")
        chat.press("Enter", "Control+i")
        chat.write("Two.")
        expect(chat.question).to_have_value("Two.")
        expect(chat.filter).to_have_value("c'one'")
        chat.mode("INPUT")


def chooses_a_model_and_asks(chat: ChatPage) -> None:
    chat.press("Control+m")
    expect(chat.page.get_by_role("combobox", name="Model")).to_be_focused()
    chat.write("smollm")
    expect(chat.page.get_by_role("option", selected=True)).to_contain_text("smollm2")
    chat.press("Enter")
    expect(chat.page.get_by_role("button", name=f"Model: {LOCAL}")).to_be_visible()
    expect(chat.question).to_be_focused()
    chat.ask("Say hello.")
    chat.ask("Name a city.")
    chat.ask("Name a colour.")
    chat.mode("INPUT")
    expect(chat.counter).to_have_text("3 / 3")


def marks_and_filters(chat: ChatPage) -> None:
    chat.press("Escape")
    expect(chat.pair("Name a colour.")).to_be_focused()
    chat.press("k", "3")
    expect(chat.pair("Name a city.").get_by_role("img", name="3 of 3 stars")).to_be_visible()
    chat.press("k", "a", "*")
    expect(chat.pair("Say hello.").get_by_text("grey", exact=True)).to_be_visible()
    expect(chat.pair("Say hello.").get_by_role("img", name="1 of 3 stars")).to_be_visible()
    chat.press("/")
    chat.mode("COMMAND")
    chat.write("s>=1")
    chat.press("Enter")
    chat.mode("VIEW")
    expect(chat.pair("Name a colour.")).to_have_count(0)
    expect(chat.counter).to_have_text("(-) 2 / 2")
    chat.press("Shift+O")
    expect(chat.toast).to_contain_text("All 2 visible pairs are sent.")
    expect(chat.pair("Say hello.")).to_be_focused()
    chat.press("/")
    chat.press("Control+u", "Enter")
    expect(chat.counter).to_have_text("3 / 3")


def asks_again_and_swaps(chat: ChatPage) -> None:
    chat.press("g", "g")
    pair = chat.pair("Say hello.")
    expect(pair).to_be_focused()
    chat.press("e")
    expect(chat.page.get_by_role("combobox", name="Model")).to_be_focused()
    chat.write("acme/large")
    chat.press("Enter")
    expect(pair).to_contain_text("Said by acme.")
    expect(pair.get_by_role("button", name="1 earlier answer")).to_be_visible()
    expect(pair).to_be_focused()
    chat.press("Shift+E")
    expect(pair).not_to_contain_text("Said by acme.")
    chat.press("Shift+E")
    expect(pair).to_contain_text("Said by acme.")


def changes_the_question_and_leaves_out(chat: ChatPage) -> None:
    chat.press("Shift+G")
    expect(chat.pair("Name a colour.")).to_be_focused()
    chat.press("Shift+R")
    expect(chat.question).to_be_focused()
    expect(chat.question).to_have_value("Name a colour.")
    chat.press("End")
    chat.write(" A warm one.")
    chat.press("Enter")
    chat.answered("Name a colour. A warm one.")
    expect(chat.feed.get_by_role("article")).to_have_count(3)
    chat.press("Escape", "g", "g", "x")
    expect(chat.pair("Say hello.").get_by_text("left out", exact=True)).to_be_visible()
    expect(chat.counter).to_have_text("2 / 2")
    chat.press("x")
    expect(chat.counter).to_have_text("3 / 3")


def gives_a_command(chat: ChatPage) -> None:
    chat.press("Shift+:")
    chat.mode("COMMAND")
    chat.press("Control+u")
    chat.write("s3 :delete --dry-run")
    chat.press("Enter")
    told = chat.dialog(":delete")
    expect(told).to_contain_text("1 pair to delete")
    chat.press("Escape")
    expect(told).to_have_count(0)
    expect(chat.feed.get_by_role("article")).to_have_count(3)
    chat.press("Shift+:")
    chat.press("Control+u")
    chat.write("s3 :delete")
    chat.press("Enter")
    asked = chat.dialog("Delete 1 pair?")
    expect(asked.get_by_role("list", name="The first of them")).to_contain_text("Name a city.")
    expect(asked.get_by_role("button", name="Delete 1 pair")).to_be_focused()
    chat.press("Enter")
    expect(chat.pair("Name a city.")).to_have_count(0)
    expect(chat.toast.last).to_contain_text("1 pair deleted.")
    chat.mode("VIEW")
    chat.press("Control+z")
    expect(chat.pair("Name a city.")).to_be_visible()
    expect(chat.page.get_by_role("button", name="Undo")).to_have_count(0)


def looks_at_the_request(chat: ChatPage) -> None:
    chat.press("Control+i")
    chat.write("And now?")
    chat.press("Alt+p")
    panel = chat.page.get_by_role("region", name="Preview of the next send")
    expect(panel).to_contain_text("3 pairs of the history")
    expect(panel).to_contain_text("And now?")
    chat.press("Alt+p")
    expect(panel).to_have_count(0)
    expect(chat.question).to_have_value("And now?")
    chat.press("Control+u")


def sums_up(chat: ChatPage) -> None:
    # A small model may go on for very long, and nothing limits a summary.
    chat.press("Control+m")
    chat.write("acme/large")
    chat.press("Enter")
    expect(chat.page.get_by_role("button", name="Model: acme/large")).to_be_visible()
    chat.press("Escape", "g", "g", "Shift+J")
    chat.press("Shift+C")
    asked = chat.dialog("Summarize 2 pairs")
    expect(asked).to_be_visible()
    chat.tab_to(asked.get_by_role("textbox", name="What to keep"))
    chat.press("Enter")
    expect(asked.get_by_role("button", name="Draft again")).to_be_visible()
    chat.tab_to(asked.get_by_role("textbox", name="Summary"))
    chat.press("Control+a")
    chat.page.keyboard.insert_text("We greeted each other and spoke of a city.")
    chat.tab_to(asked.get_by_role("button", name="Replace the pairs"))
    expect(asked.get_by_role("status")).to_contain_text("fewer")
    chat.press("Enter")
    expect(asked).to_have_count(0)
    summary = chat.feed.get_by_role("article").filter(has_text="summary of 2")
    expect(summary).to_contain_text("We greeted each other and spoke of a city.")
    expect(chat.feed.get_by_role("article")).to_have_count(2)
    chat.mode("VIEW")
    chat.press("Control+z")
    expect(summary).to_have_count(0)
    expect(chat.feed.get_by_role("article")).to_have_count(3)


def exports(chat: ChatPage, folder: Path) -> None:
    chat.press("Control+d", "Control+u")
    with chat.page.expect_download() as download:
        chat.write("s3 :export json --filename best.json")
        chat.press("Enter")
    assert download.value.suggested_filename == "best.json"
    download.value.save_as(folder / "best.json")
    kept = json.loads((folder / "best.json").read_text())
    assert "Name a city." in json.dumps(kept)
    assert "Say hello." not in json.dumps(kept)
