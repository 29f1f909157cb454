"""A hundred thousand pairs: the page opens, scrolls, filters, goes to the boundary and is asked without complaint."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.chat_page import chat_stage, chatting

PAIRS = 100_000
SLOW_MS = 120_000


def history() -> bytes:
    """As Markdown, which is read like anything that comes from elsewhere."""
    asked = (f"## User\n\nquestion {n}\n\n## Assistant\n\nanswer {n} of many\n" for n in range(PAIRS))
    return ("# Many\n\n" + "\n".join(asked)).encode()


def test_a_large_history(tmp_path: Path) -> None:
    with chat_stage(tmp_path) as desk:
        desk.done("PUT", "topics", {"model": "acme/large"})
        told = desk.raw("POST", "import?name=many.md", history())
        assert told.json()["pairs"] == PAIRS
        with chatting(desk.server) as chat:
            expect(chat.counter).to_have_text(re.compile(r"^\d+ / 100000$"), timeout=SLOW_MS)
            expect(chat.pair("question 99999")).to_be_visible()
            assert chat.page.get_by_role("article").count() < 100, "only what is in sight is drawn"

            chat.press("Escape", "g", "g")
            expect(chat.pair("Off: question 0")).to_be_focused()
            chat.press("Shift+O")
            expect(chat.page.get_by_role("separator", name=re.compile("^Boundary: "))).to_be_visible()
            for place in (0.1, 0.77, 0.5):
                chat.feed.evaluate("(each, place) => each.scrollTo(0, each.scrollHeight * place)", place)
                expect(chat.feed.get_by_role("article").first).to_be_visible()
            chat.press("Shift+G")
            expect(chat.pair("question 99999")).to_be_focused()
            chat.press("k", "k")
            expect(chat.pair("question 99997")).to_be_focused()

            chat.apply("c'question 4242'")
            expect(chat.counter).to_have_text(re.compile(r"^\(-\) 11 / 11$"), timeout=SLOW_MS)
            expect(chat.pair("question 42429")).to_be_visible()
            chat.apply("")
            expect(chat.counter).to_have_text(re.compile(r"^\d+ / 100000$"), timeout=SLOW_MS)
            chat.ask("And one more.")
            expect(chat.counter).to_have_text(re.compile(r"/ ?100001$"), timeout=SLOW_MS)
            chat.press("Escape", "3")
            expect(chat.pair("And one more.").get_by_role("img", name="3 of 3 stars")).to_be_visible()
            chat.fits()
            chat.keep(tmp_path, "chat-scale")
