"""Canonical values as JSON: tags that tell them apart, and only what is known."""

from typing import Any

import msgspec
import pytest

from sightline.model.events import Ended, Finished, TextReceived
from sightline.model.header_names import (
    CREDENTIAL_HEADERS,
    CREDENTIALS,
    OF_A_BODY,
    OF_A_CONNECTION,
    QUERY_CREDENTIALS,
    TOKEN,
    is_secret_header,
    is_secret_parameter,
    tag_of,
)
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Citation,
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
    media_of,
)
from sightline.model.reply import Usage, is_complete, possible, unusual
from sightline.model.report import Addition, Loss, Report
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    Grammar,
    JsonFormat,
    Message,
    OpaqueTool,
    Options,
    OutputFormat,
    PlainFormat,
    Reasoning,
    Request,
    SchemaFormat,
    Tool,
    ToolChoice,
    change_parts,
    is_same_text,
    of_message,
    of_part,
    of_parts,
    of_tool,
    parts_of,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # What is not set is not there; zero and an empty list are set.
        (Request(), b"{}"),
        (Usage(input_tokens=0), b'{"input_tokens":0}'),
        (Options(temperature=0, stop=()), b'{"temperature":0,"stop":[]}'),
        (ToolChoice("named", ("add",)), b'{"mode":"named","names":["add"]}'),
        # A member of a union has a tag.
        (Text("hi"), b'{"type":"text","text":"hi"}'),
        (Message("user", (Text("hi"),)), b'{"role":"user","parts":[{"type":"text","text":"hi"}]}'),
        (TextReceived(0, "hi"), b'{"event":"text","part":0,"text":"hi"}'),
        (Finished("stop"), b'{"event":"finished","finish":"stop"}'),
        (Ended(), b'{"event":"ended"}'),
    ],
)
def test_a_value_as_json_says_only_what_is_known(value: object, text: bytes) -> None:
    assert msgspec.json.encode(value) == text


TOOLS: list[Tool] = [
    FunctionTool("add", "adds", {"type": "object"}, strict=True, namespace="math"),
    CustomTool("patch", "patches", Grammar("lark", "start: /x/")),
    OpaqueTool("anthropic", {"type": "web_search"}),
]


EVERY_PART: list[Part] = [
    Text(
        "hi", (Citation(url="https://example.com", start=0, end=2, value={"a": [1]}),), at="/content/0", extras={"x": 1}
    ),
    Refusal("no"),
    Image(Inline("image/png", "AAAA"), "high"),
    Image(Link("https://example.com/a.png")),
    Document(FileId("file-1"), "title", "context", cite=True),
    Document(PlainText("words")),
    Audio(Inline("audio/wav", "AAAA"), "a1", "words"),
    Thinking("hm", ("hm",), "r1", "sealed", "anthropic", redacted=False),
    ToolCall("c1", "add", '{"a": 1}', "custom", "ns", "i1"),
    ToolResult("c1", (Text("2"), Image(Link("u"))), "add", is_error=True, structured={"a": 1}),
    CacheBreakpoint("ephemeral", "1h"),
    Opaque("gemini", {"executableCode": {"code": "1"}}),
]


REQUEST = Request(
    model="m",
    messages=(Message("developer", (Text("be kind"),), "ann", bare=True, at="/messages/0"),),
    tools=(
        FunctionTool("add", "adds", {"type": "object"}, strict=True, cache=CacheBreakpoint()),
        CustomTool("patch", grammar=Grammar("lark", "start: /x/")),
        OpaqueTool("gemini", {"googleSearch": {}}),
    ),
    tool_choice=ToolChoice("auto", ("add",)),
    parallel_tool_calls=False,
    options=Options(
        temperature=0.5,
        stop=("END",),
        format=SchemaFormat({"type": "object"}, "answer"),
        reasoning=Reasoning(effort="high", places={"effort": "/reasoning_effort"}),
        places={"stop": "/stop"},
    ),
    dialect="openai-chat",
    extras={"unknown": [1, None]},
)


FORMATS: list[OutputFormat] = [PlainFormat(), JsonFormat(), SchemaFormat({"type": "object"}, "n", "d", strict=True)]
UNIONS: list[tuple[object, list[object]]] = [(Part, EVERY_PART), (Tool, TOOLS), (OutputFormat, FORMATS)]


@pytest.mark.parametrize(
    ("kind", "value"), [*((kind, value) for kind, values in UNIONS for value in values), (Request, REQUEST)]
)
def test_a_value_comes_back_as_it_was(kind: Any, value: object) -> None:
    assert msgspec.json.decode(msgspec.json.encode(value), type=kind) == value


def test_media_are_found_among_parts_and_in_results() -> None:
    picture, sound, file = Image(Link("https://example.com/a")), Audio(id="a"), Document(FileId("f"))
    assert media_of((Text("x"), sound, ToolResult("c", (Text("y"), picture)), file)) == [sound, picture, file]


def test_messages_with_json_are_not_the_same_text_even_if_python_finds_them_equal() -> None:
    def answer(*parts: Part, **fields: Any) -> Message:
        return Message("tool", (ToolResult("c", parts, **fields),))

    words = answer(Text("4"))
    assert is_same_text(words, answer(Text("4")))
    assert not is_same_text(words, answer(Text("5")))
    assert not is_same_text(answer(structured={"n": 1}), answer(structured={"n": 1.0}))
    assert not is_same_text(answer(Opaque("gemini", 1)), answer(Opaque("gemini", True)))
    assert is_same_text(Message("user", (Text("4"),)), Message("user", (Text("4"),)))


def test_some_dialects_say_elsewhere_whether_calls_may_be_parallel() -> None:
    assert REQUEST.parallel_at == "/parallel_tool_calls"
    inside = Request(options=Options(places={"parallel_tool_calls": "/tool_choice/disable_parallel_tool_use"}))
    assert inside.parallel_at == "/tool_choice/disable_parallel_tool_use"


def test_counts_that_cannot_be_are_left_out() -> None:
    usage = Usage(input_tokens=10**13, output_tokens=5, cached_tokens=-1, extras={"a": 1})
    assert possible(usage) == Usage(output_tokens=5)
    assert possible(Usage(input_tokens=3)) == Usage(input_tokens=3)
    assert possible(None) is None


@pytest.mark.parametrize(("cost", "kept"), [(0.0, 0.0), (12.5, 12.5), (-1.0, None), (1e9, None)])
def test_a_cost_that_cannot_be_is_left_out(cost: float, kept: float | None) -> None:
    assert possible(Usage(input_tokens=3, cost=cost)) == Usage(input_tokens=3, cost=kept)


@pytest.mark.parametrize(("name", "kept"), [("Standard", ""), ("SERVICE_TIER_FLEX", "flex"), ("us", "us"), (None, "")])
def test_the_usual_tier_has_no_name(name: str | None, kept: str) -> None:
    assert unusual(name) == kept
    assert possible(Usage(input_tokens=0, output_tokens=5)) == Usage(output_tokens=5)


def test_losses_and_additions_stand_in_the_order_in_which_they_were_met() -> None:
    report = Report()
    report.lose("/b", "b", "no b", "option")
    report.lose("/a", "a", "no a", "identity")
    report.add("/max_tokens", "limit", "demanded")
    assert report.losses == (Loss("/b", "b", "no b", "option"), Loss("/a", "a", "no a", "identity"))
    assert report.additions == (Addition("/max_tokens", "limit", "demanded", "option"),)


def test_repeated_loss_is_reported_once() -> None:
    report = Report()
    for _ in range(3):
        report.lose("/a", "a", "no a", "content")
    assert len(report.losses) == 1


def test_strict_refuses_on_content_and_options_and_not_on_identity() -> None:
    report = Report()
    report.lose("/id", "id", "no ids", "identity")
    assert not report.refusals
    assert report.refusal_count == 0
    report.lose("/seed", "seed", "no seed", "option")
    report.lose("/messages/0", "words", "no words", "content")
    assert tuple(loss.pointer for loss in report.refusals) == ("/seed", "/messages/0")
    assert report.refusal_count == 2


CITED, CITED_AT = Citation(url="https://example.com"), Citation(url="https://example.com", at="/a/citations/0")


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (Text("hello", (CITED_AT,), at="/a"), Text("hello", (CITED,), at="/b")),
        (ToolCall("c1", "add", "{}", item="fc_1", at="/a"), ToolCall("c1", "add", "{}")),
        (
            ToolResult("c1", (Text("3", at="/a/content"),), bare=True, at="/a"),
            ToolResult("c1", (Text("3", at="/a/content/0"), CacheBreakpoint()), item="o_1", at="/b"),
        ),
        (Thinking("hm", id="rs_1", signature="s"), Thinking("hm", signature="s", at="/x")),
        (Image(Link("https://example.com/a.png"), at="/a"), Image(Link("https://example.com/a.png"))),
    ],
)
def test_a_part_is_the_same_at_another_place_and_without_the_id_of_its_item(here: Part, there: Part) -> None:
    assert of_part(here) == of_part(there)


def test_other_words_and_another_call_are_not_the_same() -> None:
    assert of_part(Text("hello", at="/a")) != of_part(Text("hullo", at="/a"))
    assert of_part(ToolCall("c1", "add", "{}")) != of_part(ToolCall("c2", "add", "{}"))


def test_a_message_is_the_same_with_and_without_marks() -> None:
    marked = Message("user", (Text("hello", at="/m/0"), CacheBreakpoint(at="/m/0/cache_control")), at="/m", id="msg_1")
    assert of_message(marked) == of_message(Message("user", (Text("hello"),), bare=True))
    assert of_parts(marked.parts) == (Text("hello"),)


def test_a_tool_is_the_same_with_and_without_a_mark() -> None:
    assert of_tool(FunctionTool("add", cache=CacheBreakpoint(), at="/tools/0")) == FunctionTool("add")


def test_every_name_is_one_that_can_be_compared() -> None:
    for name in CREDENTIALS | QUERY_CREDENTIALS | OF_A_CONNECTION | OF_A_BODY:
        assert name == name.lower()
        assert TOKEN.fullmatch(name)


def test_what_would_end_a_line_or_a_name_is_no_token() -> None:
    for text in ("", "a b", "a\r\nb", "a:", "ä"):
        assert not TOKEN.fullmatch(text)


def test_every_credential_is_a_secret_in_any_case() -> None:
    assert set(CREDENTIAL_HEADERS) < CREDENTIALS
    for name in CREDENTIALS:
        assert is_secret_header(name.title())
    for name in QUERY_CREDENTIALS:
        assert is_secret_parameter(name.upper())
    assert is_secret_parameter("%6bey")


def test_what_is_called_like_a_secret_is_one() -> None:
    for name in ("authentication", "X-Authentication", "helicone-auth", "x-portkey-api-key", "x-functions-key"):
        assert is_secret_header(name)
    for name in ("auth_token", "authtoken", "client_secret", "jwt", "X-Amz-Signature", "x-amz-credential", "x-api-key"):
        assert is_secret_parameter(name)


def test_names_that_only_sound_like_secrets_are_none() -> None:
    for name in ("idempotency-key", "x-cache-key", "sec-websocket-key", "content-type", "x-session-id"):
        assert not is_secret_header(name)
    for name in ("page_token", "pageToken", "max_tokens", "key_id", "upload_id", "api-version", "alt", "monkey"):
        assert not is_secret_parameter(name)


def test_a_tag_is_that_of_the_header_or_of_the_session() -> None:
    assert tag_of("fix@shop", ()) == ""
    assert tag_of("fix@shop#nightly", (("accept", "*"),)) == "nightly"
    assert tag_of("fix#nightly", (("X-Sightline-Tag", " release "),)) == "release"
    assert tag_of("fix#nightly", (("x-sightline-tag", " "),)) == "nightly"
    assert tag_of("", (("x-sightline-tag", "x" * 200),)) == "x" * 100


@pytest.mark.parametrize(
    ("usage", "is_whole"),
    [
        (None, False),
        (Usage(input_tokens=1), False),
        (Usage(input_tokens=0, output_tokens=0), False),
        (Usage(input_tokens=1, output_tokens=0), True),
        (Usage(cost=0.5), True),
    ],
)
def test_usage_is_complete_where_the_cost_follows_from_it(usage: Usage | None, is_whole: bool) -> None:
    assert is_complete(possible(usage)) == is_whole


def test_parts_are_changed_by_kind_and_messages_without_a_change_stay_the_same() -> None:
    call = ToolCall("c", "name", "{}")
    messages = (Message("user", (Text("a"),)), Message("assistant", (Text("b"), call)), Message("user", ()))
    assert parts_of(messages) == [Text("a"), Text("b"), call]

    renamed = ToolCall("c", "other", "{}")
    changed = change_parts(messages, frozenset({ToolCall}), lambda _: renamed)
    assert changed == (messages[0], Message("assistant", (Text("b"), renamed)), messages[2])
    assert changed[0] is messages[0]

    kept = change_parts(messages, frozenset({ToolCall, Text}), lambda part: part)
    assert all(one is other for one, other in zip(kept, messages, strict=True))
