"""The chat in a real browser, with the embedded model: a question, its answer, and the filter that is the context."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import NARROW, Shown, browsing, looking
from tests.gateway_server import Served, served
from tests.page_stage import gallery
from tests.person import Person

ANSWER_MS = 120_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Sightline as it comes: nothing is configured, so the embedded model answers; in few words, which a slow machine
    has soon."""
    with served(tmp_path_factory.mktemp("chat"), "") as found:
        Person(found).put("/api/chat/topics", {"parameters": {"max_tokens": 24}})
        yield found


def to_chat(shown: Shown, server: Served) -> Page:
    shown.page.goto(f"{server.url}/#/chat")
    expect(shown.page.get_by_role("status", name="Mode: INPUT")).to_be_visible()
    return shown.page


def counter(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile("^Context: "))


def pair(page: Page, words: str) -> Locator:
    return page.get_by_role("feed", name="History").get_by_role("article", name=words)


def test_question_is_answered_and_the_filter_selects_the_context(server: Served, tmp_path: Path) -> None:
    pictures = gallery(tmp_path)
    with browsing() as browser, looking(browser, server) as shown:
        page = to_chat(shown, server)
        expect(page.get_by_role("heading", name="What you see is what is sent")).to_be_visible()
        expect(counter(page)).to_have_text("0 / 0")
        shown.picture(pictures, "chat-empty")
        page.keyboard.press("Escape")
        expect(page.get_by_role("status", name="Mode: VIEW")).to_be_visible()
        page.keyboard.press("Enter")

        page.keyboard.type("Say hello.")
        expect(page.locator("#chat-estimate")).to_have_text(re.compile(r"^\d+"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("textbox", name="Question")).to_have_value("")
        first = pair(page, "Say hello.")
        expect(first).to_contain_text(re.compile(r"predicted, \d+ counted"), timeout=ANSWER_MS)
        expect(counter(page)).to_have_text("1 / 1")
        expect(page.get_by_role("status", name="Mode: INPUT")).to_be_visible()

        page.keyboard.press("Escape")
        expect(first).to_be_focused()
        page.keyboard.press("2")
        expect(first.get_by_role("img", name="2 of 3 stars")).to_be_visible()
        page.keyboard.press("Enter")
        page.keyboard.type("Say goodbye.")
        page.keyboard.press("Enter")
        expect(pair(page, "Say goodbye.")).to_contain_text(re.compile(r"predicted, \d+ counted"), timeout=ANSWER_MS)
        expect(counter(page)).to_have_text("2 / 2")

        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        expect(page.get_by_role("status", name="Mode: COMMAND")).to_be_visible()
        page.keyboard.type("s>=2")
        page.keyboard.press("Enter")
        expect(pair(page, "Say goodbye.")).to_have_count(0)
        expect(first).to_be_visible()
        expect(counter(page)).to_have_text("(-) 1 / 1")
        expect(page.get_by_role("status", name="Mode: VIEW")).to_be_visible()
        counter(page).focus()
        expect(page.get_by_role("tooltip")).to_contain_text("The newest pair is hidden by the filter.")
        shown.picture(pictures, "chat-filtered")

        page.reload()
        expect(first).to_be_visible()
        expect(pair(page, "Say goodbye.")).to_have_count(0)


def test_it_fits_on_a_phone_in_the_dark(server: Served, tmp_path: Path) -> None:
    with browsing() as browser, looking(browser, server, size=NARROW, dark=True) as shown:
        page = to_chat(shown, server)
        page.keyboard.type("Say something.")
        page.keyboard.press("Enter")
        expect(pair(page, "Say something.")).to_contain_text(re.compile(r"predicted, \d+ counted"), timeout=ANSWER_MS)
        page.keyboard.press("Escape")
        expect(page.get_by_role("status", name="Mode: VIEW")).to_be_visible()
        page.keyboard.press("Shift+H")
        expect(page.get_by_role("complementary", name="HUD")).to_contain_text("PARAMETERS")
        sizes = page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
        assert sizes[0] <= sizes[1]
        shown.picture(gallery(tmp_path), "chat-narrow-dark")
