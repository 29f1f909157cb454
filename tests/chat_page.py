"""The chat in a real browser: what a person sees there, and how they ask."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser import WIDE, Shown, browsing, looking
from tests.chat.api.http_stage import ChatDesk, chat_desk
from tests.gateway_server import Served
from tests.page_stage import gallery

ANSWER_MS = 120_000
LOCAL = "local/smollm2-135m-instruct"
ANSWERED = re.compile(r"\d+ counted")


class ChatPage:
    """One tab with the chat in it."""

    def __init__(self, shown: Shown, page: Page) -> None:
        self.shown = shown
        self.page = page
        self.feed = page.get_by_role("feed", name="History")
        self.counter = page.get_by_role("button", name=re.compile("^Context: "))
        self.question = page.get_by_role("textbox", name="Question")
        self.filter = page.get_by_role("combobox", name="Filter")
        self.toast = page.locator(".toast")

    def pair(self, words: str) -> Locator:
        """The pair whose question has these words, however it stands. Its name has 80 characters of them at most."""
        return self.feed.get_by_role("article", name=re.compile(re.escape(words[:80])))

    def dialog(self, title: str | re.Pattern[str]) -> Locator:
        """The dialog of this name."""
        return self.page.get_by_role("dialog", name=title)

    def mode(self, name: str) -> None:
        """It is in this mode."""
        expect(self.page.get_by_role("status", name=f"Mode: {name}")).to_be_visible()

    def press(self, *keys: str) -> None:
        """Keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, wanted: Locator) -> None:
        """By the Tab key, as often as it takes."""
        for _ in range(30):
            if wanted.evaluate("each => each === document.activeElement"):
                return
            self.press("Tab")
        expect(wanted).to_be_focused()

    def close(self) -> None:
        """The dialog that is open, by Escape."""
        self.press("Escape")
        expect(self.page.get_by_role("dialog")).to_have_count(0)

    def write(self, words: str) -> None:
        """Letters, as they are typed."""
        self.page.keyboard.type(words)

    def apply(self, words: str) -> None:
        """A filter, by Enter; back when it holds."""
        self.press("Control+d")
        self.mode("COMMAND")
        self.press("Control+u")
        self.write(words)
        self.press("Enter")
        self.mode("VIEW")

    def ask(self, words: str) -> Locator:
        """From the input, by Enter: the pair, when its answer has come."""
        self.press("Control+i")
        self.write(words)
        self.press("Enter")
        return self.answered(words)

    def answered(self, words: str) -> Locator:
        """The pair, when its answer has come."""
        pair = self.pair(words)
        expect(pair).to_contain_text(ANSWERED, timeout=ANSWER_MS)
        expect(pair.get_by_role("button", name="Stop")).to_have_count(0)
        return pair

    def keep(self, folder: Path, name: str) -> None:
        """A picture, for people."""
        self.shown.picture(gallery(folder), name)

    def fits(self) -> None:
        """Nothing sticks out to the side."""
        sizes = self.page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
        assert sizes[0] <= sizes[1], sizes


@contextmanager
def chatting(server: Served, *, size: tuple[int, int] = WIDE, dark: bool = False) -> Iterator[ChatPage]:
    """The chat of this server, for somebody who has just come."""
    with browsing() as browser, looking(browser, server, size=size, dark=dark) as shown:
        yield opened(shown, server)


def opened(shown: Shown, server: Served, page: Page | None = None) -> ChatPage:
    """The chat by its address, in the first tab or in another one."""
    tab = page or shown.page
    tab.goto(f"{server.url}/#/chat")
    expect(tab.get_by_role("textbox", name="Question")).to_be_visible()
    expect(tab.get_by_role("button", name=re.compile("^Context: "))).to_be_visible()
    return ChatPage(shown, tab)


@contextmanager
def chat_stage(folder: Path, config: str = "") -> Iterator[ChatDesk]:
    """A program with the scripted provider `acme` and the embedded model, whose answers are short."""
    with chat_desk(folder, config) as desk:
        desk.done("PUT", "topics", {"parameters": {"max_tokens": 24}})
        yield desk
