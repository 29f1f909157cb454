from sightline.dialects.raw.content import ContentWriter
from sightline.model.parts import (
    CacheBreakpoint,
    Citation,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from sightline.model.report import Loss, Report


def written(*parts, same=False):
    report = Report()
    return ContentWriter(report, same=same).parts(parts), report.losses


def test_kinds_of_the_schema_are_written_as_such():
    parts, losses = written(
        Text("a"),
        Image(Inline("image/png", "AAAA"), "high"),
        Image(Link("https://x")),
        CacheBreakpoint("ephemeral"),
        Thinking("hm"),
    )
    assert parts == [
        {"type": 1, "text": "a"},
        {"type": 0, "imageUrl": {"url": "data:image/png;base64,AAAA", "detail": "high"}},
        {"type": 0, "imageUrl": {"url": "https://x"}},
        {"type": 3, "cacheType": "ephemeral"},
        {"type": 2, "value": {"type": "thinking", "thinking": {"text": "hm"}}},
    ]
    assert losses == ()


def test_what_a_kind_has_no_field_for_stands_beside():
    parts, losses = written(
        Text("a", (Citation(url="u", at="/9"),), "s", "gemini"),
        Image(Link("https://x", "image/webp"), signature="s", signed_by="gemini"),
    )
    assert parts[0]["sightline"] == {"signature": "s", "signed_by": "gemini", "citations": [{"url": "u"}]}
    assert parts[1]["sightline"] == {"signature": "s", "signed_by": "gemini", "media_type": "image/webp"}
    assert losses == ()


def test_other_kinds_are_carried():
    parts, losses = written(Refusal("No."), Image(FileId("f")), Opaque("anthropic", {"a": 1}))
    assert [part["value"]["type"] for part in parts] == ["sightline"] * 3
    assert losses == ()


def test_opaque_parts_of_our_own_are_written_as_they_were():
    value = {"type": 2, "value": 5, "scope": 1}
    assert written(Opaque("raw", value), same=True)[0] == [value]


def test_the_life_of_a_cache_mark_is_lost():
    parts, losses = written(CacheBreakpoint("ephemeral", "1h", at="/m/0"))
    assert parts == [{"type": 3, "cacheType": "ephemeral"}]
    assert losses == (Loss("/m/0", "life of a cache mark", "raw has no field for it", "option"),)


def test_unknown_fields_go_back_to_their_own_dialect_only():
    text = Text("a", extras={"x": 1})
    mark = CacheBreakpoint(extras={"cacheType": None, "y": 2})
    assert written(text, mark, same=True)[0] == [{"type": 1, "text": "a", "x": 1}, {"type": 3, "y": 2}]
    assert written(text, mark)[0] == [{"type": 1, "text": "a"}, {"type": 3, "cacheType": "ephemeral"}]


def test_calls_are_functions_whatever_they_were():
    writer = ContentWriter(Report(), same=False)
    assert writer.call(ToolCall("a", "f", "", namespace="ns", item="i", extras={"x": 1}), "a") == {
        "id": "a",
        "type": "function",
        "function": {"name": "ns__f", "arguments": "{}"},
        "sightline": {"item": "i"},
    }
    custom = writer.call(ToolCall("a", "f", "words", kind="custom"), "a")
    assert custom["function"] == {"name": "f", "arguments": '{"input":"words"}'}


def test_a_call_of_our_own_keeps_even_empty_arguments():
    call = ContentWriter(Report(), same=True).call(ToolCall("a", "f", "", extras={"x": 1}), "a")
    assert call == {"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}, "x": 1}


def test_a_detail_that_the_schema_does_not_know_is_reported_and_not_written():
    parts, losses = written(Image(Link("https://x"), "auto", at="/a"), Image(Link("https://x"), "original", at="/b"))
    assert parts == [{"type": 0, "imageUrl": {"url": "https://x"}}] * 2
    assert [(loss.pointer, loss.severity) for loss in losses] == [("/a", "identity"), ("/b", "option")]
    assert written(Image(Link("https://x"), "auto"), same=True)[0][0]["imageUrl"]["detail"] == "auto"
