import pytest

from sightline.dialects.openai_responses.content import OUTPUT, read_content, read_part
from sightline.errors import Fault
from sightline.model.parts import Audio, Document, FileId, Image, Inline, Link, Opaque, Refusal, Text

AT = "/c"


def test_a_string_is_one_bare_text():
    assert read_content("hi", AT) == ((Text("hi", at=AT),), True)


@pytest.mark.parametrize("content", [None, 3, {"type": "input_text"}])
def test_anything_else_is_refused(content):
    with pytest.raises(Fault) as caught:
        read_content(content, AT)
    assert caught.value.pointer == AT


def test_texts_remember_a_spelling_that_is_not_the_usual_one():
    assert read_part({"type": "input_text", "text": "a"}, AT).extras == {}
    assert read_part({"type": "input_text", "text": "a"}, AT, OUTPUT).extras == {"type": "input_text"}
    assert read_part({"type": "output_text", "text": "a"}, AT, OUTPUT).extras == {"annotations": None}
    assert read_part({"type": "output_text", "text": "a", "annotations": []}, AT).extras == {"type": "output_text"}


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
    with pytest.raises(Fault) as caught:
        read_part(value, AT)
    assert caught.value.pointer == pointer
