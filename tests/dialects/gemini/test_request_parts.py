from typing import Any

import pytest

from sightline.dialects.gemini.request import ContentWriter
from sightline.model.message import Message
from sightline.model.parts import (
    CacheBreakpoint,
    Citation,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report


def write(message, *others, same=False):
    report = Report()
    writer = ContentWriter(report, same=same)
    for other in others:
        writer.parts(other, "/contents/0/parts")
    content: Any = writer.content(message, writer.parts(message, "/contents/0/parts"))
    return content, [(loss.pointer, loss.what, loss.severity) for loss in report.losses], report


def parts(*given, role="assistant"):
    content, lost, _ = write(Message(role, given, at="/m"))
    return content["parts"], lost


@pytest.mark.parametrize(("role", "word"), [("user", "user"), ("tool", "user"), ("assistant", "model")])
def test_roles(role, word):
    content, lost, _ = write(Message(role, (Text("a"),)))
    assert content == {"role": word, "parts": [{"text": "a"}]}
    assert lost == []


def test_a_later_system_message_is_demoted_in_place():
    content, lost, _ = write(Message("developer", (Text("a"),), at="/m"))
    assert content == {"role": "user", "parts": [{"text": "a"}]}
    assert lost == [("/m", "role of a developer message", "content")]


def test_what_is_empty_is_dropped():
    assert parts(Text("", at="/t"), Refusal("", at="/r")) == (
        [],
        [
            ("/t", "an empty text", "identity"),
            ("/r", "that it is a refusal", "identity"),
            ("/m", "a message without content", "identity"),
        ],
    )
    assert parts() == ([], [("/m", "a message without content", "identity")])
    assert parts(Text(" "), Text("", signature="S", signed_by="gemini")) == (
        [{"text": " "}, {"text": "", "thoughtSignature": "S"}],
        [],
    )


def test_own_seals_are_exact_on_every_part():
    sealed: Any = {"signature": "S", "signed_by": "gemini"}
    assert parts(
        Text("a", **sealed),
        Thinking("b", **sealed),
        Thinking("", **sealed),
        ToolCall("1", "f", "{}", **sealed),
        Image(Inline("image/png", "AA"), **sealed),
    ) == (
        [
            {"text": "a", "thoughtSignature": "S"},
            {"text": "b", "thought": True, "thoughtSignature": "S"},
            {"text": "", "thought": True, "thoughtSignature": "S"},
            {"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "S"},
            {"inlineData": {"mimeType": "image/png", "data": "AA"}, "thoughtSignature": "S"},
        ],
        [],
    )
    assert parts(Thinking("b", signed_by="gemini"))[0] == [{"text": "b", "thought": True}]


def test_a_seal_that_waits_goes_to_the_part_after_it():
    waiting = Thinking(id="next", signature="S", signed_by="gemini")
    assert parts(waiting, CacheBreakpoint(), ToolCall("1", "f", "{}"), Text("a"))[0] == [
        {"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "S"},
        {"text": "a"},
    ]
    assert parts(Text("a"), waiting) == ([{"text": "a"}, {"text": "", "thoughtSignature": "S"}], [])


def test_foreign_reasoning_is_carried_as_text_without_its_seal():
    assert parts(
        Thinking("b", signature="X", signed_by="anthropic", at="/1"),
        Thinking("c", id="rs_1", at="/2"),
        Thinking("", signature="X", signed_by="anthropic", redacted=True, at="/3"),
        Thinking("", id="next", signature="X", signed_by="other", at="/4"),
    ) == (
        [{"text": "b", "thought": True}, {"text": "c", "thought": True}],
        [
            ("/1", "signature", "identity"),
            ("/2", "id of the reasoning", "identity"),
            ("/3", "reasoning without text", "identity"),
            ("/4", "reasoning without text", "identity"),
        ],
    )


def test_what_a_request_cannot_say():
    assert parts(
        Text("a", citations=(Citation(at="/c"), Citation()), at="/1"),
        Refusal("no", at="/2"),
        CacheBreakpoint(at="/3"),
        Opaque("anthropic", {}, at="/4"),
        Opaque("anthropic", {}, mirrored=True, at="/5"),
        Opaque("gemini", {"executableCode": {}}, at="/6"),
        Document(FileId("f"), at="/7"),
    ) == (
        [{"text": "a"}, {"text": "no"}, {"executableCode": {}}],
        [
            ("/c", "citation", "option"),
            ("/1", "citation", "option"),
            ("/2", "that it is a refusal", "identity"),
            ("/3", "cache breakpoint", "option"),
            ("/4", "opaque part of anthropic", "content"),
            ("/7", "uploaded bytes", "content"),
        ],
    )


def result(value, *others, same=False):
    content, lost, report = write(Message("tool", (value,)), *others, same=same)
    return content["parts"][0]["functionResponse"], lost, report


def test_a_result_gets_the_name_of_its_call():
    call = Message("assistant", (ToolCall("1", "f", "{}"),))
    for name, lost in (("f", []), ("other", [("/r", "name on a result", "identity")])):
        assert result(ToolResult("1", (Text("a"),), name=name, at="/r"), call)[:2] == (
            {"id": "1", "name": "f", "response": {"output": "a"}},
            lost,
        )
    assert result(ToolResult("2", (Text("a"),), name="g"), call)[0]["name"] == "g"


def test_a_result_gets_the_name_of_the_last_call_before_it_that_has_its_id():
    answer = Message("tool", (ToolResult("1", (Text("a"),)),))
    calls = [Message("assistant", (ToolCall("1", name, "{}"), ToolCall("", "other", "{}"))) for name in "fg"]
    writer = ContentWriter(Report(), same=False)
    written: list[Any] = [writer.parts(message, "") for message in (calls[0], answer, calls[1], answer)]
    assert [parts[0]["functionResponse"]["name"] for parts in written[1::2]] == ["f", "g"]
    assert result(ToolResult(""), *calls)[0]["name"] == "unknown"


def test_a_result_of_nothing_gets_a_name():
    written, lost, report = result(ToolResult("9", bare=True))
    assert written == {"id": "9", "name": "9", "response": {"output": ""}}
    assert lost == []
    assert [addition.pointer for addition in report.additions] == ["/contents/0/parts/0/functionResponse/name"]
    assert result(ToolResult(""))[0] == {"name": "unknown", "response": {"output": ""}}


def test_forms_of_results():
    assert result(ToolResult("1", (Text("a"),), name="f", is_error=True))[0]["response"] == {"error": "a"}
    assert result(ToolResult("1", name="f", structured={"x": 1}))[:2] == (
        {"id": "1", "name": "f", "response": {"x": 1}},
        [],
    )
    assert result(ToolResult("1", name="f", structured={}, is_error=True, item="o_1", at="/r"))[1] == [
        ("/r", "id of the output item", "identity"),
        ("/r", "error flag", "option"),
    ]
    assert result(ToolResult("1", (Text("a"), Text("b")), name="f", at="/r"))[:2] == (
        {"id": "1", "name": "f", "response": {"output": "ab"}},
        [("/r", "where one text ends", "identity")],
    )


def test_pictures_in_results():
    written, lost, report = result(
        ToolResult(
            "1",
            (
                Image(Inline("image/png", "AA")),
                CacheBreakpoint(at="/2"),
                Image(Link("https://x/a.png")),
                Refusal("no", at="/4"),
            ),
            name="f",
        )
    )
    assert written == {
        "id": "1",
        "name": "f",
        "response": {},
        "parts": [
            {"inlineData": {"mimeType": "image/png", "data": "AA"}},
            {"fileData": {"fileUri": "https://x/a.png", "mimeType": "image/png"}},
        ],
    }
    assert lost == [("/2", "cache breakpoint", "option"), ("/4", "part of a result", "content")]
    assert report.additions[0].pointer == "/contents/0/parts/0/functionResponse/parts/1/fileData/mimeType"
    text = Text("a", citations=(Citation(at="/c"),))
    assert result(ToolResult("1", (text,), name="f"))[1] == [("/c", "citation", "option")]


def test_the_same_dialect_gets_its_own_back():
    message = Message(
        "assistant",
        (
            Text("", at="/1"),
            Thinking("", at="/2", extras={"x": 1}),
            ToolResult("", (Image(Inline("", "AA"), extras={"y": 2}), Opaque("gemini", {"z": 3})), structured={}),
        ),
        extras={"role": None},
    )
    content, lost, report = write(message, same=True)
    assert content == {
        "parts": [
            {"text": ""},
            {"text": "", "thought": True, "x": 1},
            {"functionResponse": {"response": {}, "parts": [{"inlineData": {"data": "AA"}, "y": 2}, {"z": 3}]}},
        ]
    }
    assert (lost, report.additions) == ([], ())
