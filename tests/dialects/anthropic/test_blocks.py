"""Content blocks to parts, with citations and sources."""

from typing import Any

import msgspec
import pytest

from sightline.dialects.anthropic.blocks import (
    BlockWriter,
    bare_text,
    read_citation,
    read_content,
    write_citation,
)
from sightline.dialects.anthropic.sources import foreign_source
from sightline.errors import Fault
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
)
from sightline.model.report import Report
from tests.dialects.reports import losses, refused_at


def write(*parts, same=False):
    report = Report()
    return BlockWriter(report, same=same).write(parts), report


OWN = [
    {"type": "text", "text": "", "citations": [{"type": "strange"}], "new": 1},
    {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "scope": "x"}},
    {"type": "image", "source": {"type": "file", "file_id": "f", "n": 1}, "transformations": {}},
    {"type": "image", "source": {"type": "url", "url": "https://example.com/a"}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    {"type": "document", "source": {"type": "content", "content": "x"}, "citations": {"enabled": False, "n": 1}},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "title": "T"},
    {"type": "thinking", "thinking": "", "signature": "EqQB", "cache_control": {"type": "ephemeral"}},
    {"type": "thinking", "thinking": "unsigned"},
    {"type": "redacted_thinking", "data": "EmwK"},
    {"type": "tool_use", "id": "a.b", "name": "f", "input": {"a": 1.0}, "caller": {"type": "direct"}},
    {"type": "tool_result", "tool_use_id": "a.b", "content": "", "is_error": False},
    {"type": "tool_result", "tool_use_id": "a.b", "content": [{"type": "text", "text": " "}], "toolset_name": "x"},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
]


@pytest.mark.parametrize("block", OWN)
def test_an_own_block_is_written_back_as_it_was(block):
    parts, _ = read_content([block], "")
    blocks, report = write(*parts, same=True)
    assert blocks == [block]
    assert not report.losses


def test_empty_and_blank_text_is_dropped_because_the_api_rejects_it():
    blocks, report = write(Text("", at="/a"), Text(" \n", at="/b"), Text("c"))
    assert blocks == [{"type": "text", "text": "c"}]
    assert losses(report) == [("/a", "identity"), ("/b", "content")]


def test_a_refusal_becomes_text():
    blocks, report = write(Refusal("I cannot.", at="/r"))
    assert blocks == [{"type": "text", "text": "I cannot."}]
    assert losses(report) == [("/r", "identity")]


def test_foreign_citations_and_signatures_are_lost():
    citation = Citation(url="https://e.com", value={"type": "url_citation"}, at="/c")
    blocks, report = write(Text("t", (citation,), signature="s", signed_by="gemini", at="/t"))
    assert blocks == [{"type": "text", "text": "t"}]
    assert losses(report) == [("/t", "identity"), ("/c", "option")]


def test_pictures_lose_their_detail_and_signature():
    blocks, report = write(Image(Link("https://e.com/a"), detail="high", signature="s", signed_by="gemini", at="/i"))
    assert blocks == [{"type": "image", "source": {"type": "url", "url": "https://e.com/a"}}]
    assert losses(report) == [("/i", "identity"), ("/i", "option")]
    assert losses(write(Image(Link("https://e.com/a"), detail="auto", at="/i"))[1]) == [("/i", "identity")]


def test_a_file_of_another_provider_is_dropped():
    blocks, report = write(Document(FileId("file-1"), at="/d"), Audio(Inline("audio/wav", "AA"), at="/a"))
    assert blocks == []
    assert losses(report) == [("/d", "content"), ("/a", "content")]


def test_a_document_keeps_its_name():
    blocks, report = write(Document(PlainText("x"), title="a.txt", cite=True))
    source = {"type": "text", "media_type": "text/plain", "data": "x"}
    assert blocks == [{"type": "document", "source": source, "title": "a.txt", "citations": {"enabled": True}}]
    assert not report.losses


def test_own_signatures_come_home_from_another_dialect():
    blocks, report = write(
        Thinking("hm", signature="EqQB", signed_by="anthropic"),
        Thinking(signature="EmwK", signed_by="anthropic", redacted=True),
    )
    assert blocks == [
        {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
        {"type": "redacted_thinking", "data": "EmwK"},
    ]
    assert not report.losses


def test_fields_beside_a_native_signature_are_losses():
    blocks, report = write(
        Thinking("hm", id="t1", signature="EqQB", signed_by="anthropic", at="/a"),
        Thinking("seen", signature="EmwK", signed_by="anthropic", redacted=True, at="/b"),
        Thinking("hm", ("in short",), signature="EqQC", signed_by="anthropic", at="/c"),
    )
    assert [block["type"] for block in blocks] == ["thinking", "redacted_thinking", "thinking"]
    assert losses(report) == [("/a", "identity"), ("/b", "content"), ("/c", "content")]


@pytest.mark.parametrize("same", [True, False])
def test_foreign_thinking_is_never_offered(same):
    blocks, report = write(
        Thinking("hm", id="rs_1", signature="gAAA", signed_by="openai-responses", at="/a"),
        Thinking("", signature="gAAA", signed_by="openai-responses", at="/b"),
        Thinking("", id="next", signature="sig", signed_by="gemini", at="/c"),
        same=same,
    )
    assert blocks == []
    assert losses(report) == [("/a", "identity"), ("/a", "content"), ("/b", "identity"), ("/c", "identity")]


def test_unsigned_thinking_cannot_be_sent():
    blocks, report = write(Thinking("hm", at="/a"))
    assert blocks == []
    assert losses(report) == [("/a", "content")]


def test_a_call_becomes_an_object():
    blocks, report = write(ToolCall("call_1", "f", '{"a": 1}'), ToolCall("call_2", "g", ""))
    assert blocks == [
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "call_2", "name": "g", "input": {}},
    ]
    assert not report.losses


@pytest.mark.parametrize("arguments", ["not json", "[1]"])
def test_arguments_that_are_no_object_are_wrapped_and_reported(arguments):
    blocks, report = write(ToolCall("c", "f", arguments, at="/c"))
    assert blocks == [{"type": "tool_use", "id": "c", "name": "f", "input": {"input": arguments}}]
    assert losses(report) == [("/c", "content")]


def test_a_custom_call_becomes_one_string():
    call = ToolCall("c", "patch", "*** Begin", kind="custom", item="ctc_1", signature="s", signed_by="gemini", at="/c")
    blocks, report = write(call)
    assert blocks == [{"type": "tool_use", "id": "c", "name": "patch", "input": {"input": "*** Begin"}}]
    assert losses(report) == [("/c", "identity"), ("/c", "identity")]


def test_an_id_that_the_api_rejects_is_mapped_the_same_way_on_both_sides():
    blocks, report = write(ToolCall("call.1", "f", "", at="/c"), ToolResult("call.1", at="/r"))
    use, result = blocks
    assert use["id"] == result["tool_use_id"] != "call.1"
    assert losses(report) == [("/c", "identity"), ("/r", "identity")]


def test_results_with_pictures_and_flags():
    picture = Image(Inline("image/png", "AA"))
    (_, *blocks), report = write(
        ToolCall("c", "f", "{}"), ToolResult("c", (Text("x"), picture), is_error=True, name="f", item="fco_1", at="/r")
    )
    source = {"type": "base64", "media_type": "image/png", "data": "AA"}
    content = [{"type": "text", "text": "x"}, {"type": "image", "source": source}]
    assert blocks == [{"type": "tool_result", "tool_use_id": "c", "content": content}]
    assert losses(report) == [("/r", "identity"), ("/r", "option")]


@pytest.mark.parametrize(
    ("parts", "content", "has_flag"),
    [
        ((Text("no"), Text("way")), [{"type": "text", "text": "no"}, {"type": "text", "text": "way"}], True),
        (
            (Image(Link("https://e.org/a")),),
            [{"type": "image", "source": {"type": "url", "url": "https://e.org/a"}}],
            False,
        ),
        ((), None, False),
    ],
)
def test_a_result_that_is_an_error_is_text_and_nothing_else(parts, content, has_flag):
    """The API answers 400 to a picture or to nothing beside `is_error`."""
    ((block,), report) = write(ToolResult("c", parts, is_error=True, at="/r"))
    assert (block.get("content"), block.get("is_error")) == (content, True if has_flag else None)
    assert losses(report) == ([] if has_flag else [("/r", "option")])
    assert write(ToolResult("c", parts, is_error=True), same=True)[0][0]["is_error"] is True
    assert write(ToolResult("c", parts, is_error=False))[0][0]["is_error"] is False


def test_a_name_that_no_call_says_is_lost():
    _, report = write(ToolResult("c", name="f", at="/r"))
    assert losses(report) == [("/r", "identity")]


def test_result_name_is_matched_to_the_latest_call_with_its_id():
    first, second = ToolResult("c", name="f", at="/1"), ToolResult("c", name="f", at="/2")
    _, report = write(ToolCall("c", "f", "{}"), first, ToolCall("c", "g", "{}"), second)
    assert losses(report) == [("/2", "identity")]


def test_a_bare_result_stays_a_string_and_an_empty_one_says_nothing():
    blocks, _ = write(ToolResult("c", (Text("x"),), bare=True), ToolResult("d", (Text(""),), bare=True))
    assert blocks == [
        {"type": "tool_result", "tool_use_id": "c", "content": "x"},
        {"type": "tool_result", "tool_use_id": "d"},
    ]


def test_a_structured_result_becomes_compact_json():
    blocks, _ = write(ToolResult("c", structured={"a": [1, None]}), ToolResult("d", (Text("x"),), structured={}))
    assert blocks == [
        {"type": "tool_result", "tool_use_id": "c", "content": '{"a":[1,null]}'},
        {
            "type": "tool_result",
            "tool_use_id": "d",
            "content": [{"type": "text", "text": "{}"}, {"type": "text", "text": "x"}],
        },
    ]


def test_foreign_part_is_a_loss_unless_it_is_mirrored():
    blocks, report = write(
        Opaque("gemini", {"executableCode": {}}, at="/a"), Opaque("openai-responses", {}, mirrored=True, at="/b")
    )
    assert blocks == []
    assert losses(report) == [("/a", "content")]


def test_a_cache_mark_goes_on_the_block_before_it():
    blocks, report = write(Text("a"), CacheBreakpoint("ephemeral", "1h"), Text("b"))
    assert blocks == [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"type": "text", "text": "b"},
    ]
    assert not report.losses


def test_a_cache_mark_that_has_no_block_is_lost():
    signed = Thinking("x", signature="s", signed_by="anthropic")
    _, report = write(
        CacheBreakpoint(at="/first"),
        Text("a"),
        CacheBreakpoint(),
        CacheBreakpoint(at="/second"),
        signed,
        CacheBreakpoint(at="/thinking"),
    )
    assert losses(report) == [("/first", "option"), ("/second", "option"), ("/thinking", "option")]


def test_a_cache_mark_at_the_head_of_a_message_goes_to_the_message_before():
    report = Report()
    writer = BlockWriter(report, same=False)
    before = writer.write((Text("a"),))
    writer.write((CacheBreakpoint(), Text("b")))
    assert before == [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]


def test_a_system_prompt_takes_words_only():
    report = Report()
    parts = (Text("a"), Image(Link("https://e.com/a"), at="/i"), CacheBreakpoint())
    blocks = BlockWriter(report, same=False).write_words(parts)
    assert blocks == [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]
    assert losses(report) == [("/i", "content")]


def test_an_own_system_prompt_is_not_judged():
    report = Report()
    opaque = Opaque("anthropic", {"type": "new"})
    assert BlockWriter(report, same=True).write_words((opaque,)) == [{"type": "new"}]


def test_bare_text_is_one_plain_block():
    assert bare_text([{"type": "text", "text": "a"}]) == "a"
    assert bare_text([{"type": "text", "text": 5}]) is None
    assert bare_text([{"type": "text", "text": "a", "cache_control": {}}]) is None
    assert bare_text([]) is None


NEW = {"type": "char_location", "cited_text": "a", "document_title": "Report"}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}
PARTS: list[tuple[dict[str, Any], Part]] = [
    (
        {"type": "text", "text": "t", "citations": [NEW], "new": 1},
        Text("t", (Citation(title="Report", cited_text="a", value=NEW, at="/c/0/citations/0"),), extras={"new": 1}),
    ),
    ({"type": "text", "text": "t", "cache_control": None}, Text("t")),
    (
        {"type": "image", "source": {"type": "url", "url": "https://e.com/a", "new": 1}, "transformations": {}},
        Image(Link("https://e.com/a"), extras={"transformations": {}, "source": {"new": 1}}),
    ),
    ({"type": "image", "source": {"type": "file", "file_id": "f"}}, Image(FileId("f"))),
    ({"type": "document", "source": {"type": "text", "media_type": "m", "data": "w"}}, Document(PlainText("w", "m"))),
    (
        {"type": "document", "source": PDF, "title": "T", "context": "C", "citations": {"enabled": True, "style": "s"}},
        Document(Inline("application/pdf", "JVBE"), "T", "C", cite=True, extras={"citations": {"style": "s"}}),
    ),
    ({"type": "thinking", "thinking": "", "signature": "EqQB"}, Thinking(signature="EqQB", signed_by="anthropic")),
    ({"type": "thinking", "thinking": "hm"}, Thinking("hm")),
    (
        {"type": "thinking", "thinking": "hm", "signature": "sightline:openai-responses:rs_1:gAAA"},
        Thinking("hm", id="rs_1", signature="gAAA", signed_by="openai-responses"),
    ),
    (
        {"type": "redacted_thinking", "data": "EmwK"},
        Thinking(signature="EmwK", signed_by="anthropic", redacted=True),
    ),
    (
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}},
        ToolCall("t1", "f", '{"a":1}', extras={"caller": {"type": "direct"}}),
    ),
    ({"type": "tool_use", "id": "t1", "name": "f"}, ToolCall("t1", "f", "{}")),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": "x", "is_error": True},
        ToolResult("t", (Text("x", at="/c/0/content"),), is_error=True, bare=True),
    ),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}]},
        ToolResult("t", (Text("x", at="/c/0/content/0"),)),
    ),
    ({"type": "tool_result", "tool_use_id": "t"}, ToolResult("t")),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_result"}]},
        ToolResult("t", (Opaque("anthropic", {"type": "tool_result"}, at="/c/0/content/0"),)),
    ),
    *(
        (block, Opaque("anthropic", block))
        for block in (
            {"type": "image", "source": {"type": "hologram"}},
            {"type": "document", "source": {"type": "hologram"}},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "cache_control": {"type": "ephemeral"}},
        )
    ),
    *(
        ({"type": "search_result", **block}, Opaque("anthropic", {"type": "search_result", **block}, text=text))
        for block, text in (
            ({"source": "u", "title": "KB", "content": [{"type": "text", "text": "So."}]}, "KB\nu\n\nSo."),
            ({"source": "https://kb/1", "title": 7, "content": []}, "https://kb/1"),
            ({}, ""),
        )
    ),
    *(
        (
            {"type": "document", "source": {"type": "content", "content": content}},
            Document(PlainText(words), extras={"source": {"type": "content", "content": content}}),
        )
        for content, words in (
            ("words", "words"),
            ([{"type": "text", "text": "one"}, {"type": "image"}, 5, {"type": "text", "text": "two"}], "one\n\ntwo"),
            (None, ""),
        )
    ),
]


@pytest.mark.parametrize(("block", "part"), PARTS)
def test_each_block_is_one_part_and_keeps_what_is_not_modelled(block, part):
    assert read_content([block], "/c") == ((msgspec.structs.replace(part, at="/c/0"),), False)


def test_a_string_is_one_bare_text():
    assert read_content("words", "/c") == ((Text("words", at="/c"),), True)


@pytest.mark.parametrize("content", [None, 5, {"type": "text"}])
def test_content_is_a_string_or_a_list(content):
    with pytest.raises(Fault, match="a string or a list of blocks"):
        read_content(content, "/c")


def test_cache_control_is_read_as_a_breakpoint_after_its_block():
    control: Any = {"type": "ephemeral", "ttl": "1h", "scope": "global"}
    parts, _ = read_content([{"type": "text", "text": "t", "cache_control": control}], "/c")
    mark = CacheBreakpoint("ephemeral", "1h", at="/c/0/cache_control", extras={"scope": "global"})
    assert parts == (Text("t", at="/c/0"), mark)


@pytest.mark.parametrize(
    ("block", "pointer"),
    [
        (5, "/c/0"),
        ({"text": "t"}, "/c/0/type"),
        ({"type": "text"}, "/c/0/text"),
        ({"type": "text", "text": "t", "cache_control": "x"}, "/c/0/cache_control"),
        ({"type": "text", "text": "t", "cache_control": {}}, "/c/0/cache_control/type"),
        ({"type": "text", "text": "t", "citations": ["no"]}, "/c/0/citations/0"),
        ({"type": "image"}, "/c/0/source"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png"}}, "/c/0/source/data"),
        ({"type": "document", "source": []}, "/c/0/source"),
        ({"type": "tool_use", "id": "t", "name": "f", "input": "{}"}, "/c/0/input"),
        ({"type": "tool_result", "content": "x"}, "/c/0/tool_use_id"),
        ({"type": "tool_result", "tool_use_id": "t", "content": 5}, "/c/0/content"),
    ],
)
def test_a_malformed_block_names_the_offending_value(block, pointer):
    assert refused_at(read_content, [block], "/c") == pointer


FOUND: dict[str, Any] = {
    "type": "web_search_result_location",
    "url": "https://example.com",
    "title": "News",
    "cited_text": "It is so.",
    "encrypted_index": "Eo8B",
}
PAGE: dict[str, Any] = {"type": "page_location", "cited_text": "Blue.", "document_index": 0, "document_title": "Report"}


def test_a_citation_is_kept_whole_with_what_others_understand_of_it():
    citation = read_citation(FOUND, "/c")
    assert (citation.url, citation.title, citation.cited_text) == ("https://example.com", "News", "It is so.")
    assert (citation.value, citation.at) == (FOUND, "/c")


@pytest.mark.parametrize("value", [FOUND, PAGE, {"type": "some_new_location"}])
def test_an_own_citation_is_written_as_it_was(value):
    report = Report()
    assert write_citation(read_citation(value, ""), report) == value
    assert not report.losses


@pytest.mark.parametrize("value", [None, {"type": "url_citation", "url": "https://e.com"}, {"type": 1}])
def test_foreign_citation_is_dropped_with_a_loss(value):
    report = Report()
    assert write_citation(Citation(url="https://e.com", value=value, at="/c"), report) is None
    assert losses(report) == [("/c", "option")]


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (Image(Inline("image/png", "AAAA")), {"type": "base64", "media_type": "image/png", "data": "AAAA"}),
        (Image(Link("https://e.com/a.png")), {"type": "url", "url": "https://e.com/a.png"}),
        (Document(Link("http://e.com/a.pdf")), {"type": "url", "url": "http://e.com/a.pdf"}),
        (
            Document(Inline("application/pdf", "JVBE")),
            {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
        ),
        (
            Document(Inline("application/pdf;name=a.pdf", "JVBE")),
            {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
        ),
        (Document(PlainText("a")), {"type": "text", "media_type": "text/plain", "data": "a"}),
        (Document(Inline("text/plain", "YSxi")), {"type": "text", "media_type": "text/plain", "data": "a,b"}),
    ],
)
def test_what_another_dialect_holds_is_sent_where_the_api_can_take_it(part, written):
    report = Report()
    assert foreign_source(part, report) == written
    assert not report.losses


@pytest.mark.parametrize(
    ("part", "severity"),
    [
        (Image(FileId("file-openai"), at="/p"), "content"),
        (Document(FileId("file-openai"), at="/p"), "content"),
        (Image(Link("gs://bucket/a.png"), at="/p"), "content"),
        (Image(PlainText("no picture"), at="/p"), "content"),
        (Image(Inline("", "AAAA"), at="/p"), "content"),
        (Image(Inline("image/bmp", "AAAA"), at="/p"), "content"),
        (Document(Inline("", "AAAA"), at="/p"), "content"),
        (Document(Inline("application/zip", "AAAA"), at="/p"), "content"),
        (Document(Inline("text/plain", "not base64!"), at="/p"), "content"),
        (Document(Inline("text/plain", "/w=="), at="/p"), "content"),
        (Image(Link("https://e.com/a.png", "image/png"), at="/p"), "identity"),
        (Document(PlainText("a", "text/markdown"), at="/p"), "identity"),
        (Document(Inline("text/csv", "YSxi"), at="/p"), "identity"),
        (Image(Inline("image/jpg", "AAAA"), at="/p"), "identity"),
        (Image(Inline("image/PNG;x=1", "AAAA"), at="/p"), "identity"),
    ],
)
def test_what_the_api_cannot_take_is_lost_and_what_it_calls_otherwise_is_renamed(part, severity):
    report = Report()
    assert (foreign_source(part, report) is None) == (severity == "content")
    assert losses(report) == [("/p", severity)]
