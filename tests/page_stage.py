"""The page in a real browser over the whole program: clients that wait, a person who looks, a provider that answers."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from anthropic import Anthropic
from openai import OpenAI
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import WIDE, Shown, browsing, looking
from tests.desk_stage import DeskStage, desk_stage
from tests.person import Person

T = TypeVar("T")


@dataclass(frozen=True)
class PageStage:
    """`desk` is everything behind the page, with its configuration and data in `folder`; `pictures` is where it is
    photographed into."""

    desk: DeskStage
    browser: Browser
    folder: Path
    pictures: Path

    @property
    def person(self) -> Person:
        """Somebody who asks the API what the page must show."""
        return self.desk.person

    def look(self, *, size: tuple[int, int] = WIDE, dark: bool = False) -> AbstractContextManager[Shown]:
        """The page, for somebody who sees it for the first time."""
        return looking(self.browser, self.desk.server, size=size, dark=dark)

    @contextmanager
    def visit(
        self, exchange: str = "", tab: str = "sections", *, size: tuple[int, int] = WIDE, dark: bool = False
    ) -> Iterator[Page]:
        """The same where only the page is of interest, at an exchange if one is named."""
        with self.look(size=size, dark=dark) as shown:
            if exchange:
                self.open(shown.page, exchange, tab)
            yield shown.page

    def keep(self, page: Page, name: str) -> None:
        """A picture of what there is to see."""
        Shown(page, page.context).picture(self.pictures, name)

    def client(self, ask: Callable[[OpenAI], T], session: str = "one") -> tuple[str, "Future[T]"]:
        """OpenAI's own library asks, and is held: the exchange, and what it will get."""
        return self._held(lambda: self._openai(ask, session))

    def _openai(self, ask: Callable[[OpenAI], T], session: str) -> T:
        url = f"{self.desk.server.url}/p/acme/s/{session}/v1"
        with OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60) as client:
            return ask(client)

    def anthropic_client(self, ask: Callable[[Anthropic], T], session: str = "one") -> tuple[str, "Future[T]"]:
        """The same by Anthropic's library."""

        def asked() -> T:
            url = f"{self.desk.server.url}/p/acme/s/{session}"
            with Anthropic(base_url=url, api_key="none", max_retries=0, timeout=60) as client:
                return ask(client)

        return self._held(asked)

    def _held(self, ask: Callable[[], T]) -> tuple[str, "Future[T]"]:
        count = len(self.person.get("/api/holds"))
        waiting = self.desk.pool.submit(ask)
        return self.person.held(count + 1)[-1], waiting

    def free(self, ask: Callable[[OpenAI], T], session: str = "one") -> T:
        """OpenAI's library asks, and nobody holds it."""
        return self._openai(ask, session)

    def open(self, page: Page, exchange: str, tab: str = "sections") -> None:
        """Go to an exchange by its address."""
        page.goto(f"{self.desk.server.url}/#/x/{exchange}/{tab}")
        expect(page.get_by_role("tablist", name="Request")).to_be_visible()

    def clean(self) -> None:
        """As it was when it was new: nothing waits, nothing is kept, and every request is held."""
        for exchange in self.person.get("/api/holds"):
            self.person.act(exchange, "drop")
        self.person.put("/api/masks", [])
        self.person.put("/api/rules", [])
        self.person.put("/api/interception", {"mode": "every"})
        self.desk.says()


@contextmanager
def page_stage(folder: Path, spoken: str = "openai-chat", config: str = "") -> Iterator[PageStage]:
    """All of it. Pictures go where SCREENSHOTS says, else into this folder."""
    with browsing() as browser, desk_stage(folder, spoken, config) as desk:
        yield PageStage(desk, browser, folder, gallery(folder))


def gallery(folder: Path) -> Path:
    """Where pictures go."""
    pictures = Path(os.environ.get("SCREENSHOTS") or folder / "pictures")
    pictures.mkdir(parents=True, exist_ok=True)
    return pictures


def chat(*messages: Any, stream: bool = False, **more: Any) -> Callable[[OpenAI], Any]:
    """What a program asks OpenAI's library for: the text of the answer, streamed or whole, and what it calls."""

    def ask(client: OpenAI) -> Any:
        asked = client.chat.completions.create(model="m", messages=list(messages), stream=stream, **more)
        if not stream:
            return asked.choices[0].message
        return "".join(chunk.choices[0].delta.content or "" for chunk in asked if chunk.choices)

    return ask


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def proof(page: Page) -> Locator:
    """The line that says what is shown, and whether that was sent."""
    return page.get_by_role("status", name=re.compile("^(shown|sent|nothing was sent)"))


def card(page: Page, label: str) -> Locator:
    """A section."""
    return page.get_by_role("article", name=re.compile(f"^{re.escape(label)}($|,)"))


def write(page: Page, label: str, text: str) -> None:
    """Open a section's editor, write at its end, and close it; back when the server has taken it."""
    card(page, label).get_by_role("button", name=f"Edit {label}", exact=True).click()
    expect(page.get_by_role("textbox", name=f"Edit {label}")).to_be_focused()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(text)
    page.keyboard.press("Escape")
    expect(card(page, label)).to_contain_text(text.strip())
