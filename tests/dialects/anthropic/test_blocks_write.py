import pytest

from sightline.dialects.anthropic.blocks import BlockWriter, arguments_object, bare_text, read_content
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
from sightline.model.report import Report


def write(*parts, same=False):
    report = Report()
    return BlockWriter(report, same=same).write(parts), report


def losses(report):
    return [(loss.pointer, loss.severity) for loss in report.losses]


OWN = [
    {"type": "text", "text": "", "citations": [{"type": "strange"}], "new": 1},
    {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "scope": "x"}},
    {"type": "image", "source": {"type": "file", "file_id": "f", "n": 1}, "transformations": {}},
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


def test_foreign_citations_and_seals_are_lost():
    citation = Citation(url="https://e.com", value={"type": "url_citation"}, at="/c")
    blocks, report = write(Text("t", (citation,), signature="s", signed_by="gemini", at="/t"))
    assert blocks == [{"type": "text", "text": "t"}]
    assert losses(report) == [("/t", "identity"), ("/c", "option")]


def test_pictures_lose_their_detail_and_seal():
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


def test_own_seals_come_home_from_another_dialect():
    blocks, report = write(
        Thinking("hm", signature="EqQB", signed_by="anthropic"),
        Thinking(signature="EmwK", signed_by="anthropic", redacted=True),
    )
    assert blocks == [
        {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
        {"type": "redacted_thinking", "data": "EmwK"},
    ]
    assert not report.losses


def test_what_stands_beside_an_own_seal_cannot_be_sent():
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
    call = ToolCall(
        "c",
        "patch",
        "*** Begin",
        kind="custom",
        item="ctc_1",
        signature="s",
        signed_by="gemini",
        at="/c",
    )
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
        ToolCall("c", "f", "{}"),
        ToolResult("c", (Text("x"), picture), is_error=True, name="f", item="fco_1", at="/r"),
    )
    source = {"type": "base64", "media_type": "image/png", "data": "AA"}
    content = [{"type": "text", "text": "x"}, {"type": "image", "source": source}]
    assert blocks == [{"type": "tool_result", "tool_use_id": "c", "content": content, "is_error": True}]
    assert losses(report) == [("/r", "identity")]


def test_a_name_that_no_call_says_is_lost():
    _, report = write(ToolResult("c", name="f", at="/r"))
    assert losses(report) == [("/r", "identity")]


def test_a_name_is_said_by_the_last_call_before_it_that_has_its_id():
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


def test_a_foreign_part_is_a_loss_unless_it_is_said_elsewhere():
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


def test_arguments_are_an_object_or_nothing():
    assert arguments_object("") == {}
    assert arguments_object('{"a":1}') == {"a": 1}
    assert arguments_object("{") is None
