"""The content of a message or of an output, both ways, annotations included."""

import pytest

from sightline.dialects.openai_responses.content import (
    OUTPUT,
    ContentWriter,
    read_annotation,
    read_content,
    read_part,
    read_reasoning,
    write_annotation,
)
from sightline.dialects.openai_responses.names import NAME
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
)
from sightline.model.report import Report
from tests.dialects.reports import added_at, named_losses, refused_at

AT = "/c"


def test_a_string_is_one_bare_text():
    assert read_content("hi", AT) == ((Text("hi", at=AT),), True)


@pytest.mark.parametrize("content", [None, 3, {"type": "input_text"}])
def test_anything_else_is_refused(content):
    assert refused_at(read_content, content, AT) == AT


def test_texts_remember_a_spelling_that_is_not_the_usual_one():
    assert read_part({"type": "input_text", "text": "a"}, AT).extras == {}
    assert read_part({"type": "input_text", "text": "a"}, AT, OUTPUT).extras == {"type": "input_text"}
    assert read_part({"type": "output_text", "text": "a"}, AT, OUTPUT).extras == {"annotations": None}
    assert read_part({"type": "output_text", "text": "a", "annotations": []}, AT).extras == {"type": "output_text"}


def test_reasoning_without_words_of_its_own_has_those_of_its_summary():
    content = [{"type": "reasoning_text", "text": ""}]
    summary = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
    thinking = read_reasoning({"type": "reasoning", "id": "rs_1", "summary": summary, "content": content}, AT)
    expected = Thinking(
        "a\n\nb", ("a", "b"), id="rs_1", signed_by="openai-responses", at=AT, extras={"content": content}
    )
    assert thinking == expected


def test_annotations_become_citations():
    note = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    part = read_part({"type": "output_text", "text": "a", "annotations": [note]}, AT, OUTPUT)
    assert isinstance(part, Text)
    assert [citation.at for citation in part.citations] == ["/c/annotations/0"]
    assert part.extras == {}


@pytest.mark.parametrize(
    ("told", "kept"), [({"logprobs": []}, {"logprobs": None}), ({"logprobs": None}, {}), ({"logprobs": [1]}, None)]
)
def test_an_empty_list_of_logprobs_is_only_remembered(told, kept):
    part = read_part({"type": "output_text", "text": "a", "annotations": [], **told}, AT, OUTPUT)
    assert part.extras == (told if kept is None else kept)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"type": "refusal", "refusal": "no"}, Refusal("no", at=AT)),
        (
            {"type": "input_image", "image_url": "https://e.org/a.png", "detail": "low"},
            Image(Link("https://e.org/a.png"), "low", at=AT),
        ),
        ({"type": "input_image", "image_url": "data:image/png;base64,AAAA"}, Image(Inline("image/png", "AAAA"), at=AT)),
        (
            {"type": "input_image", "file_id": "f", "image_url": None},
            Image(FileId("f"), at=AT, extras={"image_url": None}),
        ),
        (
            {"type": "input_file", "file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf"},
            Document(Inline("application/pdf", "JVBE"), "a.pdf", at=AT),
        ),
        ({"type": "input_file", "file_data": "JVBE"}, Document(Inline("", "JVBE"), at=AT)),
        ({"type": "input_file", "file_url": "data:,x"}, Document(Link("data:,x"), at=AT)),
        (
            {"type": "input_file", "file_id": "f", "detail": "low"},
            Document(FileId("f"), at=AT, extras={"detail": "low"}),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav", "rate": 8}, "x": 1},
            Audio(Inline("audio/wav", "UklG"), at=AT, extras={"x": 1, "input_audio": {"rate": 8}}),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "a", "format": "mp3"}},
            Audio(Inline("audio/mp3", "a"), at=AT),
        ),
        ({"type": "hologram"}, Opaque("openai-responses", {"type": "hologram"}, at=AT)),
        ({"type": "input_image"}, Opaque("openai-responses", {"type": "input_image"}, at=AT)),
        ({"type": "input_file"}, Opaque("openai-responses", {"type": "input_file"}, at=AT)),
    ],
)
def test_parts(value, expected):
    assert read_part(value, AT) == expected


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ("x", "/c"),
        ({}, "/c/type"),
        ({"type": "input_text"}, "/c/text"),
        ({"type": "input_image", "image_url": {"url": "u"}}, "/c/image_url"),
        ({"type": "input_audio"}, "/c/input_audio"),
    ],
)
def test_a_wrong_shape_is_refused_with_its_place(value, pointer):
    assert refused_at(read_part, value, AT) == pointer


def written(part, source="anthropic", text="input_text"):
    report = Report()
    parts = ContentWriter(report, source).parts((part,), text)
    return (parts[0] if parts else None), [(what, severity) for _, what, severity in named_losses(report)]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Text("a"), {"type": "input_text", "text": "a"}),
        (Refusal("no"), {"type": "refusal", "refusal": "no"}),
        (Image(Link("u"), "high"), {"type": "input_image", "image_url": "u", "detail": "high"}),
        (Image(Inline("image/png", "AA")), {"type": "input_image", "image_url": "data:image/png;base64,AA"}),
        (Document(Link("u")), {"type": "input_file", "file_url": "u"}),
        (
            Document(Inline("application/pdf", "AA"), "a.pdf"),
            {"type": "input_file", "file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"},
        ),
        (Opaque(NAME, {"type": "x"}), {"type": "x"}),
    ],
)
def test_supported_parts_are_written_without_loss(part, expected):
    assert written(part) == (expected, [])


@pytest.mark.parametrize(
    ("source", "data", "name"),
    [
        (Inline("application/pdf", "AA"), "data:application/pdf;base64,AA", "document.pdf"),
        (PlainText("hi"), "data:text/plain;base64,aGk=", "document.txt"),
        (Inline("", "AA"), "AA", "document"),
    ],
)
def test_a_file_without_a_name_gets_one_because_the_api_demands_it(source, data, name):
    report = Report()
    document = Document(source, at="/d")
    (part,) = ContentWriter(report, "anthropic").parts((document,))
    assert part == {"type": "input_file", "file_data": data, "filename": name}
    assert (added_at(report), report.losses) == (["/d"], ())
    own = Document(Inline("application/pdf", "AA"))
    assert "filename" not in written(own, source=NAME)[0]


def test_a_linked_file_has_no_name_beside_its_address():
    document = Document(Link("u"), "t")
    assert written(document) == ({"type": "input_file", "file_url": "u"}, [("name of a file", "identity")])
    assert written(document, source=NAME) == ({"type": "input_file", "file_url": "u", "filename": "t"}, [])


@pytest.mark.parametrize(
    ("part", "what", "severity"),
    [
        (CacheBreakpoint(), "cache mark", "option"),
        (Image(FileId("f")), "image", "content"),
        (Image(PlainText("x")), "image", "content"),
        (Document(FileId("f")), "document", "content"),
        (Audio(Inline("audio/mpeg", "AA")), "audio", "content"),
        (Audio(id="audio_1"), "audio", "content"),
        (Opaque("gemini", {}), "opaque part of gemini", "content"),
        (Thinking("x"), "part", "content"),
    ],
)
def test_unsupported_parts_are_losses(part, what, severity):
    assert written(part) == (None, [(what, severity)])


def test_files_are_shared_between_the_apis_of_one_vendor():
    assert written(Image(FileId("f")), "openai-chat") == ({"type": "input_image", "file_id": "f"}, [])
    assert written(Document(FileId("f")), "openai-chat") == ({"type": "input_file", "file_id": "f"}, [])


def test_an_assistant_speaks_output_text_and_shows_no_pictures():
    expected = {"type": "output_text", "text": "a", "annotations": []}
    assert written(Text("a"), text=OUTPUT) == (expected, [])
    assert written(Image(Link("u")), text=OUTPUT) == (None, [("image of the assistant", "content")])
    assert written(Image(Link("u")), NAME, OUTPUT) == ({"type": "input_image", "image_url": "u"}, [])


def test_citations_stand_in_output_only():
    cited = Text("a", (Citation(url="u", start=0, end=1), Citation(title="no place")))
    document, lost = written(cited, text=OUTPUT)
    assert [note["url"] for note in document["annotations"]] == ["u"]
    assert lost == [("a citation", "option")]
    assert written(cited) == ({"type": "input_text", "text": "a"}, [("citations", "option")])


@pytest.mark.parametrize(
    ("part", "what", "severity"),
    [
        (Text("a", signature="s", signed_by="gemini"), "signature", "identity"),
        (Image(Link("u"), signature="s", signed_by="gemini"), "signature", "identity"),
        (Image(Link("u", "image/png")), "media type image/png", "identity"),
        (Image(Link("u"), "ultra"), "detail 'ultra' of an image", "option"),
        (Document(Link("u"), context="c"), "context of a document", "content"),
        (Document(Link("u"), cite=True), "citations requested", "option"),
    ],
)
def test_what_a_part_has_besides_is_a_loss(part, what, severity):
    document, lost = written(part)
    assert document is not None
    assert lost == [(what, severity)]


def test_our_own_spelling_comes_back():
    assert written(Text("a", extras={"type": "input_text", "x": 1}), NAME, OUTPUT) == (
        {"type": "input_text", "text": "a", "x": 1},
        [],
    )
    assert written(Text("a", extras={"annotations": None}), NAME, OUTPUT) == ({"type": "output_text", "text": "a"}, [])
    assert written(Text("a", extras={"logprobs": None}), NAME)[0] == {"type": "input_text", "text": "a", "logprobs": []}
    assert written(Image(Link("u"), "ultra"), NAME)[0] == {"type": "input_image", "image_url": "u", "detail": "ultra"}
    own = Audio(Inline("audio/flac", "AA"), extras={"input_audio": {"rate": 8}})
    assert written(own, NAME)[0] == {"type": "input_audio", "input_audio": {"data": "AA", "format": "flac", "rate": 8}}


URL = {"type": "url_citation", "url": "https://e.org", "title": "E", "start_index": 1, "end_index": 4}


def test_a_url_is_read_with_its_place_and_kept_whole():
    citation = read_annotation(URL, "/a")
    assert (citation.url, citation.title, citation.start, citation.end) == ("https://e.org", "E", 1, 4)
    assert citation.value == URL
    assert write_annotation(citation, Report()) is URL


def test_a_file_is_known_by_its_name():
    assert (
        read_annotation({"type": "file_citation", "filename": "a.md", "file_id": "f", "index": 3}, "/a").title == "a.md"
    )


def test_a_place_that_is_no_number_is_refused():
    assert refused_at(read_annotation, {**URL, "start_index": "one"}, "/a") == "/a/start_index"


def test_a_foreign_citation_with_url_and_place_is_written():
    report = Report()
    chat = {"type": "url_citation", "url_citation": {"url": "u"}}
    citation = Citation(url="u", title="", cited_text="said", start=0, end=2, value=chat, at="/x")
    assert write_annotation(citation, report) == {**URL, "url": "u", "title": "", "start_index": 0, "end_index": 2}
    assert named_losses(report) == [("/x", "the quotation of a citation", "option")]


@pytest.mark.parametrize("citation", [Citation(url="u", at="/x"), Citation(start=0, end=1, at="/x"), Citation(at="/x")])
def test_without_url_or_place_it_is_a_loss(citation):
    report = Report()
    assert write_annotation(citation, report) is None
    assert named_losses(report) == [("/x", "a citation", "option")]
