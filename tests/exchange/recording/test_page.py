import asyncio
import json
from html.parser import HTMLParser
from pathlib import Path

from sightline.exchange.recording.page import page
from sightline.model.exchange import Budgeted, ExchangeCancelled, Fact, Received
from sightline.model.report import Loss
from sightline.store.entries import BodyEntry, FactEntry
from tests.recordings import exchange, failed, one
from tests.store.traffic import NOON, chat_body, chat_stream, noted, sha256

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
ANTHROPIC = json.dumps(
    {"model": "m", "max_tokens": 5, "system": EVIL, "messages": [{"role": "user", "content": EVIL}]}
).encode()


class Reader(HTMLParser):
    """What a browser would make of the page: its elements and its words. An element that is not closed is a mistake."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_everything_is_on_the_page_as_text_and_nothing_on_it_acts(tmp_path: Path) -> None:
    body = chat_body(EVIL, system=EVIL, tools=["<b>tool</b>"], temperature=0)
    loss = Loss("/x", "a mark", EVIL, "option")
    told = asyncio.run(
        one(tmp_path, exchange("x_1", ANTHROPIC, chat_stream(EVIL), asked="anthropic", sent=body, losses=(loss,)))
    )
    read = Reader(page(told).decode())
    assert {tag for tag, _ in read.tags}.isdisjoint({"script", "img", "iframe", "link", "object", "form", "a"})
    assert not [attrs for _, attrs in read.tags if any(name.startswith("on") for name in attrs)]
    assert read.words.count(EVIL) >= 4
    policy = next(attrs["content"] for _, attrs in read.tags if attrs.get("http-equiv") == "content-security-policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    for words in ("anthropic → openai-chat", "9 input, 2 output", "1.50 s, first byte after 0.50 s", "temperature",
                  "<b>tool</b>", "a mark", "received", "attempt", "3 pieces", "finished"):  # fmt: skip
        assert words in read.words, words


def test_the_page_is_light_or_dark_as_the_reader_likes(tmp_path: Path) -> None:
    html = page(asyncio.run(one(tmp_path, exchange("x_1", chat_body("hi"), chat_stream("a"))))).decode()
    assert "prefers-color-scheme: dark" in html
    assert 'name="viewport"' in html
    assert "http://" not in html
    assert "https://" not in html


def test_an_exchange_that_failed_and_one_that_cannot_be_read_are_shown_too(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", b'{"messages": 7}', [b"no"], stream=False, end=failed(503))))
    read = Reader(page(told).decode())
    for words in ("failed 503 overloaded", "overloaded: busy", "Wait.", "It cannot be read", '{"messages": 7}'):
        assert words in read.words, words


def test_an_exchange_that_was_never_sent_is_shown_as_far_as_it_came(tmp_path: Path) -> None:
    body = chat_body("hi")
    facts: list[Fact] = [Received("openai-chat", "m", sha256(body)), ExchangeCancelled()]
    told = asyncio.run(one(tmp_path, [BodyEntry(sha256(body), body), *noted("x_1", facts)]))
    assert "cancelled" in Reader(page(told).decode()).words


def test_several_answers_are_told_apart(tmp_path: Path) -> None:
    choices = [
        {"index": n, "message": {"role": "assistant", "content": f"no. {n}"}, "finish_reason": "stop"} for n in (0, 1)
    ]
    reply = json.dumps({"id": "r", "choices": choices}).encode()
    told = asyncio.run(one(tmp_path, exchange("x_1", chat_body("hi"), [reply], stream=False)))
    words = Reader(page(told).decode()).words
    assert "assistant, choice 1" in words
    assert "assistant, choice 2" in words


def test_what_a_chat_has_planned_is_one_line(tmp_path: Path) -> None:
    entries = exchange("x_1", chat_body("hi"), chat_stream("yes"))
    budgeted = FactEntry("x_1", 99, NOON, Budgeted({"stage": "success", "messages": [{"content": "not again"}]}))
    read = Reader(page(asyncio.run(one(tmp_path, [*entries, budgeted]))).decode())
    assert "stage success" in read.words
    assert "not again" not in read.words
