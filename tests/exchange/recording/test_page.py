import asyncio
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sightline.exchange.recording.page import message_html, page, parts_html, tool_html, words
from sightline.model.exchange import Budgeted, ExchangeCancelled, Fact, Received
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Loss
from sightline.model.request import CustomTool, FunctionTool, Grammar, Message, OpaqueTool, Tool
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
    assert policy.startswith("default-src 'none'")
    for text in ("anthropic → openai-chat", "9 input, 2 output", "1.50 s, first byte after 0.50 s", "temperature",
                  "<b>tool</b>", "a mark", "received", "attempt", "3 pieces", "finished"):  # fmt: skip
        assert text in read.words, text


def test_the_page_is_light_or_dark_as_the_reader_likes(tmp_path: Path) -> None:
    html = page(asyncio.run(one(tmp_path, exchange("x_1", chat_body("hi"), chat_stream("a"))))).decode()
    assert "prefers-color-scheme: dark" in html
    assert 'name="viewport"' in html
    assert "http://" not in html
    assert "https://" not in html


def test_an_exchange_that_failed_and_one_that_cannot_be_read_are_shown_too(tmp_path: Path) -> None:
    told = asyncio.run(one(tmp_path, exchange("x_1", b'{"messages": 7}', [b"no"], stream=False, end=failed(503))))
    read = Reader(page(told).decode())
    for text in ("failed 503 overloaded", "overloaded: busy", "Wait.", "It cannot be read", '{"messages": 7}'):
        assert text in read.words, text


def test_an_exchange_that_was_never_sent_is_shown_as_far_as_it_came(tmp_path: Path) -> None:
    body = chat_body("hi")
    facts: list[Fact] = [Received("openai-chat", "m", sha256(body)), ExchangeCancelled()]
    told = asyncio.run(one(tmp_path, [BodyEntry(sha256(body), body), *noted("x_1", facts)]))
    assert "cancelled" in Reader(page(told).decode()).words


def test_multiple_choices_are_labelled(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (Text(text="a < b"), "a &lt; b"),
        (Refusal(text="I won't"), "refused"),
        (Thinking(text="hm"), "<summary>thinking</summary>"),
        (Thinking(redacted=True), "withheld"),
        (Thinking(signature="s"), "signed"),
        (ToolCall(id="c<1", name="Bash", arguments='{"a":1}'), "c&lt;1"),
        (ToolCall(id="", name="Bash", arguments="not <json>"), "not &lt;json&gt;"),
        (ToolResult(id="c", parts=(Text(text="done"),)), "<h3>result"),
        (ToolResult(id="c", structured={"a": 1}, is_error=True), "<h3>error"),
        (Image(source=Inline("image/png", "aGk=")), 'src="data:image/png;base64,aGk="'),
        (Image(source=Inline("image/svg+xml", "aGk=")), "image/svg+xml, 3 bytes"),
        (Image(source=Inline("image/png", '"><script>')), "picture · image/png"),
        (Image(source=Link("http://x/<y>")), "http://x/&lt;y&gt;"),
        (Document(source=PlainText("text"), title="T"), "document · T · text/plain"),
        (Document(source=FileId("f1")), "document · f1"),
        (Audio(transcript="said"), "kept by the provider"),
        (Opaque(dialect="anthropic", value={"type": "x<"}), "x&lt;"),
        (CacheBreakpoint(), "cached up to here"),
    ],
)
def test_every_part_has_a_form_in_which_it_can_do_no_harm(part: Part, shown: str) -> None:
    html = parts_html([part])
    assert shown in html
    assert "<script" not in html


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        (FunctionTool(name="f<", description="does", schema={"type": "object"}), "f&lt;"),
        (FunctionTool(name="f"), "{}"),
        (CustomTool(name="c", grammar=Grammar("lark", "start: <x>")), "start: &lt;x&gt;"),
        (CustomTool(name="c"), "<summary>c</summary>"),
        (OpaqueTool(dialect="anthropic", value={"type": "web_search"}), "web_search"),
    ],
)
def test_every_tool_is_shown(tool: Tool, shown: str) -> None:
    assert shown in tool_html(tool)


def test_a_message_says_whose_it_is_and_long_words_are_folded_away() -> None:
    html = message_html(Message("user", (Text(text="x" * 4000),), name="Bo<b"))
    assert '<article class="user"><h3>user · Bo&lt;b</h3><details>' in html
    assert "(4,000 characters)" in html
    assert words("") == ""
