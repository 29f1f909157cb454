"""A whole session in the chat by mouse alone; only words are typed."""

import json
import re
from pathlib import Path

from playwright.sync_api import Locator, expect

from tests.browser import browsing, looking
from tests.chat_page import ChatPage, chat_stage

CONFIG = '[models."acme/small"]\ncontext_window = 8000\n'


def test_a_whole_session(tmp_path: Path) -> None:
    with chat_stage(tmp_path, CONFIG) as desk, browsing() as browser, looking(browser, desk.server) as shown:
        shown.page.get_by_role("navigation").get_by_role("link", name="Chat").click()
        chat = ChatPage(shown, shown.page)
        desk.answers("Good ", "day.")
        chooses_a_model_and_asks(chat)
        marks_and_filters(chat)
        desk.answers("Hello ", "there.")
        asks_again_and_swaps(chat)
        changes_the_question_and_leaves_out(chat)
        gives_a_command(chat)
        looks_at_the_request_and_sends_it(chat)
        sums_up(chat)
        exports(chat, tmp_path)


def ask(chat: ChatPage, words: str) -> Locator:
    chat.question.click()
    chat.page.keyboard.insert_text(words)
    chat.page.get_by_role("button", name="Send", exact=True).click()
    return chat.answered(words)


def press(pair: Locator, name: str) -> None:
    """A button of a pair, which shows when the pointer is over it."""
    pair.hover()
    pair.get_by_role("button", name=name).click()


def choose(pair: Locator, name: str) -> None:
    """From the menu of a pair."""
    press(pair, "More for this pair")
    pair.get_by_role("menuitem", name=name).click()


def apply(chat: ChatPage, words: str) -> None:
    chat.filter.click()
    chat.page.keyboard.insert_text(words)
    chat.page.get_by_role("button", name="Apply").click()


def chooses_a_model_and_asks(chat: ChatPage) -> None:
    chat.page.get_by_role("button", name=re.compile("^Model: ")).click()
    chat.page.get_by_role("option", name="small acme").first.click()
    expect(chat.page.get_by_role("button", name="Model: acme/small")).to_be_visible()
    ask(chat, "Say hello.")
    ask(chat, "Name a city.")
    ask(chat, "Name a colour.")
    chat.counter.hover()
    expect(chat.page.get_by_role("tooltip")).to_contain_text("3 of 3 visible pairs are sent with your next question.")


def marks_and_filters(chat: ChatPage) -> None:
    press(chat.pair("Name a city."), "Stars: 0")
    expect(chat.pair("Name a city.").get_by_role("img", name="1 of 3 stars")).to_be_visible()
    choose(chat.pair("Say hello."), "Flag grey")
    expect(chat.pair("Say hello.").get_by_text("grey", exact=True)).to_be_visible()
    apply(chat, "s1 | g")
    expect(chat.pair("Name a colour.")).to_have_count(0)
    expect(chat.counter).to_have_text("(-) 2 / 2")
    chat.page.get_by_role("button", name="Saved filters").click()
    chat.page.get_by_role("menuitem", name="Save this filter").click()
    expect(chat.dialog("Save the filter").get_by_role("textbox", name="Name")).to_be_focused()
    chat.page.keyboard.insert_text("mine")
    chat.dialog("Save the filter").get_by_role("button", name="Save", exact=True).click()
    chat.page.get_by_role("button", name="Clear the filter").click()
    expect(chat.counter).to_have_text("3 / 3")
    chat.page.get_by_role("button", name="Saved filters").click()
    chat.page.get_by_role("menuitem", name="@mine").first.click()
    expect(chat.counter).to_have_text("(-) 2 / 2")
    chat.page.get_by_role("button", name="Clear the filter").click()
    expect(chat.counter).to_have_text("3 / 3")


def asks_again_and_swaps(chat: ChatPage) -> None:
    pair = chat.pair("Say hello.")
    press(pair, "Ask again on a model")
    chat.page.get_by_role("option", name="large acme").first.click()
    expect(pair).to_contain_text("Hello there.")
    pair.get_by_role("button", name="1 earlier answer").click()
    chat.dialog("Earlier answers").get_by_role("button", name="Use this answer").click()
    expect(pair).not_to_contain_text("Hello there.")
    choose(pair, "Swap with the answer before")
    expect(pair).to_contain_text("Hello there.")


def changes_the_question_and_leaves_out(chat: ChatPage) -> None:
    press(chat.pair("Name a colour."), "Change the question and ask")
    expect(chat.question).to_have_value("Name a colour.")
    expect(chat.question).to_be_focused()
    chat.page.keyboard.insert_text(" A warm one.")
    chat.page.get_by_role("button", name="Send", exact=True).click()
    chat.answered("Name a colour. A warm one.")
    expect(chat.feed.get_by_role("article")).to_have_count(3)
    press(chat.pair("Say hello."), "Leave out of the context")
    expect(chat.pair("Say hello.").get_by_text("left out", exact=True)).to_be_visible()
    expect(chat.counter).to_have_text("2 / 2")
    press(chat.pair("Say hello."), "Put back into the context")
    expect(chat.counter).to_have_text("3 / 3")


def gives_a_command(chat: ChatPage) -> None:
    apply(chat, "s1 :delete")
    asked = chat.dialog("Delete 1 pair?")
    expect(asked).to_contain_text("Name a city.")
    asked.get_by_role("button", name="Delete 1 pair").click()
    expect(chat.pair("Name a city.")).to_have_count(0)
    chat.page.get_by_role("button", name="Undo").click()
    expect(chat.pair("Name a city.")).to_be_visible()
    expect(chat.page.get_by_role("button", name="Undo")).to_have_count(0)


def looks_at_the_request_and_sends_it(chat: ChatPage) -> None:
    chat.page.get_by_role("button", name="Preview of the request").click()
    chat.question.click()
    chat.page.keyboard.insert_text("And now?")
    panel = chat.page.get_by_role("region", name="Preview of the next send")
    expect(panel).to_contain_text("And now?")
    panel.get_by_role("button", name="Send exactly this").click()
    chat.answered("And now?")
    expect(panel).to_have_count(0)
    choose(chat.pair("And now?"), "Delete")
    expect(chat.pair("And now?")).to_have_count(0)


def sums_up(chat: ChatPage) -> None:
    chat.page.get_by_role("button", name=re.compile("^Model: ")).click()
    chat.page.get_by_role("option", name="large acme").first.click()
    expect(chat.page.get_by_role("button", name="Model: acme/large")).to_be_visible()
    chat.pair("Say hello.").locator(".pair-question").click()
    chat.pair("Name a city.").locator(".pair-question").click(modifiers=["Shift"])
    choose(chat.pair("Name a city."), "Summarize… (all chosen)")
    asked = chat.dialog("Summarize 2 pairs")
    asked.get_by_role("button", name="Let the model draft it").click()
    expect(asked.get_by_role("button", name="Draft again")).to_be_visible()
    asked.get_by_role("textbox", name="Summary").click(click_count=3)
    chat.page.keyboard.insert_text("We greeted each other. ")
    asked.get_by_role("button", name="Replace the pairs").click()
    summary = chat.feed.get_by_role("article").filter(has_text="summary of 2")
    expect(summary).to_contain_text("We greeted each other.")
    choose(summary, "Undo the summary")
    expect(summary).to_have_count(0)
    expect(chat.feed.get_by_role("article")).to_have_count(3)


def exports(chat: ChatPage, folder: Path) -> None:
    chat.page.locator(".command-line").get_by_role("button", name="Chat", exact=True).click()
    chat.page.get_by_role("menuitem", name="Export").click()
    asked = chat.dialog("Export the chat")
    asked.get_by_role("radio", name="JSON Everything").click()
    with chat.page.expect_download() as download:
        asked.get_by_role("button", name="Download").click()
    download.value.save_as(folder / "all.json")
    kept = json.dumps(json.loads((folder / "all.json").read_text()))
    assert "Name a city." in kept
    assert "Say hello." in kept
