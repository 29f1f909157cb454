from typing import Any

import pytest

from sightline.dialects.gemini.parts import call_part, for_client, media_part, read_part
from sightline.dialects.gemini.request import ContentWriter
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
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Addition, Report
from sightline.model.request import Message
from tests.dialects.reports import added_at, losses, named_losses, refused_at


def media(part, place, report, *, same=False):
    return media_part(part, place, report, same=same)


def test_a_call_has_an_id_where_there_is_one():
    report = Report()
    assert call_part(ToolCall("1", "f", '{"a": 1}', namespace="ns"), report) == {
        "functionCall": {"id": "1", "name": "ns__f", "args": {"a": 1}}
    }
    assert call_part(ToolCall("", "f", ""), report) == {"functionCall": {"name": "f", "args": {}}}
    assert named_losses(report) == []
    call_part(ToolCall("", "f", "{}", item="fc_1", at="/c"), report)
    assert named_losses(report) == [("/c", "id of the output item", "identity")]


@pytest.mark.parametrize("text", ["[1]", "not json", '"word"'])
def test_arguments_that_are_no_object_go_whole_under_one_name(text):
    report = Report()
    assert call_part(ToolCall("1", "f", text, at="/c"), report)["functionCall"]["args"] == {"input": text}
    assert named_losses(report) == [("/c", "form of the arguments", "content")]


def test_a_custom_call_has_its_text_as_the_one_argument():
    report = Report()
    call = ToolCall("1", "f", "free text", kind="custom")
    assert call_part(call, report)["functionCall"]["args"] == {"input": "free text"}
    assert named_losses(report) == []


def test_sources():
    report = Report()
    assert media(Image(Inline("image/png", "AA")), "", report) == {
        "inlineData": {"mimeType": "image/png", "data": "AA"}
    }
    assert media(Document(PlainText("hällo")), "", report) == {
        "inlineData": {"mimeType": "text/plain", "data": "aMOkbGxv"}
    }
    assert media(Audio(Link("https://x/a", "audio/wav")), "", report) == {
        "fileData": {"fileUri": "https://x/a", "mimeType": "audio/wav"}
    }
    assert (report.losses, report.additions) == ((), ())


def test_the_type_of_a_link_is_guessed_by_its_end():
    report = Report()
    assert media(Image(Link("https://x/a.JPG?size=1#f")), "/contents/0/parts/1", report) == {
        "fileData": {"fileUri": "https://x/a.JPG?size=1#f", "mimeType": "image/jpeg"}
    }
    assert report.additions == (
        Addition(
            "/contents/0/parts/1/fileData/mimeType", "image/jpeg", "gemini wants the media type of a link", "option"
        ),
    )
    assert media(Image(Link("https://x/a")), "", report) == {"fileData": {"fileUri": "https://x/a"}}


def test_bytes_that_another_provider_has_are_lost():
    report = Report()
    assert media(Image(FileId("file-1"), at="/i"), "", report) is None
    assert media(Audio(None, id="a1", at="/a"), "", report) is None
    assert named_losses(report) == [
        ("/i", "uploaded bytes", "content"),
        ("/a", "id of spoken sound", "identity"),
        ("/a", "uploaded bytes", "content"),
    ]


def test_what_media_say_about_themselves_is_lost():
    report = Report()
    media(Image(Link("https://u", "image/png"), detail="high", at="/i"), "", report)
    media(Image(Link("https://u", "image/png"), detail="auto", at="/j"), "", report)
    media(Document(Link("https://u", "x"), title="T", context="C", cite=True, at="/d"), "", report)
    media(Audio(Link("https://u", "x"), transcript="words", at="/a"), "", report)
    assert named_losses(report) == [
        ("/i", "detail", "option"),
        ("/j", "detail", "identity"),
        ("/d", "title", "identity"),
        ("/d", "context", "content"),
        ("/d", "citations", "option"),
        ("/a", "transcript", "content"),
    ]


def test_the_words_of_sound_that_is_elsewhere_are_carried():
    report = Report()
    assert media(Audio(transcript="words", at="/a"), "", report) == {"text": "words"}
    assert named_losses(report) == [("/a", "spoken sound", "content")]


@pytest.mark.parametrize(
    "part",
    [
        Image(Link("file:///x.png"), at="/p"),
        Document(Link("ftp://x/y.pdf", "application/pdf"), at="/p"),
        Image(Inline("", "AA"), at="/p"),
        Audio(Inline("audio", "AA"), at="/p"),
        Document(Inline("application/octet-stream", "AA"), at="/p"),
    ],
)
def test_what_the_api_cannot_get_or_read_is_lost(part):
    report = Report()
    assert media(part, "", report) is None
    assert losses(report) == [("/p", "content")]


def test_audio_without_a_media_type_is_sent_as_its_transcript():
    report = Report()
    assert media(Audio(Inline("", "AA"), transcript="words", at="/a"), "", report) == {"text": "words"}
    assert named_losses(report) == [("/a", "spoken sound", "content")]


@pytest.mark.parametrize(
    ("source", "wire"),
    [
        (Inline("", "AA"), {"inlineData": {"data": "AA"}}),
        (Link("https://x/a.png"), {"fileData": {"fileUri": "https://x/a.png"}}),
        (Link("files/abc", "image/png"), {"fileData": {"fileUri": "files/abc", "mimeType": "image/png"}}),
    ],
)
def test_own_media_stay_as_they_stood(source, wire):
    report = Report()
    assert media(Document(source), "", report, same=True) == wire
    assert (report.losses, report.additions) == ((), ())


def read(part):
    return read_part(part, "/p")


def test_text_and_thoughts_with_their_signatures():
    assert read({"text": "a"}) == Text("a", at="/p")
    assert read({"text": "", "thoughtSignature": "S"}) == Text("", signature="S", signed_by="gemini", at="/p")
    assert read({"text": "a", "thought": True, "thought_signature": "S", "x": 1}) == Thinking(
        "a", signature="S", signed_by="gemini", at="/p", extras={"x": 1}
    )
    assert read({"text": "a", "thought": False}) == Text("a", at="/p", extras={"thought": False})
    assert read({"text": "a", "thoughtSignature": None}) == Text("a", at="/p")


def test_foreign_signatures_are_unwrapped():
    wrapped = for_client("SIG", "anthropic", None)
    assert read({"text": "a", "thought": True, "thoughtSignature": wrapped}) == Thinking(
        "a", signature="SIG", signed_by="anthropic", at="/p"
    )
    redacted = for_client("DATA", "anthropic", "redacted")
    assert read({"text": "", "thought": True, "thoughtSignature": redacted}) == Thinking(
        "", signature="DATA", signed_by="anthropic", redacted=True, at="/p"
    )
    bound = for_client("ENC", "openai-responses", "rs_1")
    assert read({"text": "", "thought": True, "thoughtSignature": bound}).id == "rs_1"


def test_calls_in_either_spelling_even_mixed():
    assert read({"functionCall": {"id": "1", "name": "f", "args": {"a": 1}}}) == ToolCall("1", "f", '{"a":1}', at="/p")
    assert read({"function_call": {"name": "f", "args": {}}, "thoughtSignature": "S"}) == ToolCall(
        "", "f", "{}", signature="S", signed_by="gemini", at="/p"
    )
    assert read({"functionCall": None, "function_call": {"name": "f", "args": {}}}) == ToolCall("", "f", "{}", at="/p")
    twice: dict[str, Any] = {"functionCall": {"name": "f", "args": {}}, "function_call": {"name": "g", "args": {}}}
    assert read(twice) == ToolCall("", "f", "{}", at="/p")
    assert read({"functionCall": {"name": "f", "willContinue": True}, "thought": True}) == ToolCall(
        "", "f", "{}", at="/p", extras={"thought": True, "functionCall": {"willContinue": True, "args": None}}
    )


def test_results_in_their_forms():
    def result(**fields):
        return read({"functionResponse": {"name": "f", **fields}})

    at = "/p/functionResponse/response"
    assert result(response={"output": "a"}) == ToolResult("", (Text("a", at=f"{at}/output"),), name="f", at="/p")
    assert result(response={"error": "a"}) == ToolResult(
        "", (Text("a", at=f"{at}/error"),), name="f", is_error=True, at="/p"
    )
    forms: list[Any] = [{"result": "a"}, {"output": 1}, {"output": "a", "error": "b"}, {}]
    for structured in forms:
        assert result(response=structured) == ToolResult("", name="f", structured=structured, at="/p")
    assert result(id="1", scheduling="SILENT") == ToolResult(
        "1", name="f", at="/p", extras={"functionResponse": {"scheduling": "SILENT", "response": None}}
    )


def test_pictures_in_results():
    part = {
        "function_response": {
            "response": {"output": "a"},
            "parts": [{"inline_data": {"mime_type": "image/png", "data": "AA"}}, {"new": 1}],
        }
    }
    at = "/p/function_response"
    assert read(part) == ToolResult(
        "",
        (
            Text("a", at=f"{at}/response/output"),
            Image(Inline("image/png", "AA"), at=f"{at}/parts/0"),
            Opaque("gemini", {"new": 1}, at=f"{at}/parts/1"),
        ),
        at="/p",
    )


def test_media_by_their_type():
    assert read({"inlineData": {"mimeType": "image/png", "data": "AA"}, "thoughtSignature": "S"}) == Image(
        Inline("image/png", "AA"), signature="S", signed_by="gemini", at="/p"
    )
    assert read({"inline_data": {"mimeType": "audio/wav", "data": "AA"}, "thoughtSignature": "S"}) == Audio(
        Inline("audio/wav", "AA"), at="/p", extras={"thoughtSignature": "S"}
    )
    assert read({"fileData": {"fileUri": "https://x/a"}, "videoMetadata": {"fps": 1}}) == Document(
        Link("https://x/a"), at="/p", extras={"videoMetadata": {"fps": 1}}
    )
    assert read({"file_data": {"file_uri": "u", "mime_type": "image/png", "displayName": "d"}}) == Image(
        Link("u", "image/png"), at="/p", extras={"file_data": {"displayName": "d"}}
    )


@pytest.mark.parametrize(
    "part", [{}, {"text": None}, {"executableCode": {"code": "x"}}, {"text": "a", "functionCall": {"name": "f"}}]
)
def test_what_is_unknown_or_says_two_things_stays_whole(part):
    assert read(part) == Opaque("gemini", part, at="/p")


@pytest.mark.parametrize(
    ("part", "pointer"),
    [
        (5, "/p"),
        ({"text": 5}, "/p/text"),
        ({"text": "a", "thought": "yes"}, "/p/thought"),
        ({"functionCall": []}, "/p/functionCall"),
        ({"function_call": {}}, "/p/function_call/name"),
        ({"functionCall": {"name": "f", "args": "{}"}}, "/p/functionCall/args"),
        ({"functionResponse": {"response": "a"}}, "/p/functionResponse/response"),
        ({"functionResponse": {"parts": {}}}, "/p/functionResponse/parts"),
        ({"inlineData": {}}, "/p/inlineData/data"),
        ({"fileData": {"file_uri": 5}}, "/p/fileData/file_uri"),
    ],
)
def test_wrong_shapes_are_named(part, pointer):
    assert refused_at(read, part) == pointer


def write(message, *others, same=False):
    report = Report()
    writer = ContentWriter(report, same=same)
    for other in others:
        writer.parts(other, "/contents/0/parts")
    content: Any = writer.content(message, writer.parts(message, "/contents/0/parts"))
    return content, named_losses(report), report


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


def test_own_signatures_are_exact_on_every_part():
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


def test_a_signature_that_waits_goes_to_the_part_after_it():
    waiting = Thinking(id="next", signature="S", signed_by="gemini")
    assert parts(waiting, CacheBreakpoint(), ToolCall("1", "f", "{}"), Text("a"))[0] == [
        {"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "S"},
        {"text": "a"},
    ]
    assert parts(Text("a"), waiting) == ([{"text": "a"}, {"text": "", "thoughtSignature": "S"}], [])


def test_foreign_reasoning_is_carried_as_text_without_its_signature():
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
    assert added_at(report) == ["/contents/0/parts/0/functionResponse/name"]
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


def test_pictures_in_results_of_a_request():
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
