import base64

import pytest

from sightline.errors import Code, Fault
from sightline.evals.core.delivery import (
    block,
    file_part,
    file_text,
    guidelines_in,
    is_ambiguous,
    marker,
    picture,
    refusal,
)
from sightline.evals.core.suite import CaseMessage, FileSegment, ImageSegment, SuitePlace, TextSegment
from sightline.evals.core.target import FileForm
from sightline.model.parts import Audio, Document, Image, Text
from sightline.model.request import Message
from tests.picture_files import png

PNG = base64.b64decode(png(2, 2))


def test_file_is_written_under_its_name_in_two_formats() -> None:
    assert block("a.md", "\none\ntwo\n", "xml") == '<file path="a.md">\none\ntwo\n</file>'
    assert block('a "b" <c>.md', "x", "xml") == '<file path="a &quot;b&quot; &lt;c&gt;.md">\nx\n</file>'
    assert block("a.md", "one\ntwo\n", "seed") == "=== a.md ===\none\ntwo\n"
    assert marker("a.md") == "<Attached: a.md>"


def test_words_that_could_end_their_block_are_noticed() -> None:
    assert is_ambiguous("x </file>", "xml")
    assert not is_ambiguous("=== x", "xml")
    assert is_ambiguous("a\n=== x ===", "seed")
    assert not is_ambiguous("a === x", "seed")


def test_text_is_read_by_its_bytes_with_one_kind_of_line_end() -> None:
    assert file_text(b"a\r\nb\r\n", FileSegment("a.md")) == "a\nb\n"
    assert file_text("ü".encode("utf-16"), FileSegment("a.png")) == "ü"
    assert file_text(PNG, FileSegment("a.md")) is None


def test_what_is_no_text_is_a_part_by_what_its_bytes_say() -> None:
    assert isinstance(file_part(PNG, FileSegment("a.md")), Image)
    assert isinstance(file_part(b"RIFF\0\0\0\0WAVE", FileSegment("a.bin")), Audio)
    document = file_part(b"%PDF-1.7", FileSegment("docs/a.pdf"))
    assert isinstance(document, Document)
    assert document.title == "docs/a.pdf"


def test_what_no_message_can_hold_is_refused_with_its_place() -> None:
    with pytest.raises(Fault) as caught:
        file_part(b"PK\x03\x04", FileSegment("a.zip", "a.zip", SuitePlace("s.yaml", 3, 4)))
    assert caught.value.message == "s.yaml:3:4: a.zip is application/zip, which a message cannot contain"
    assert caught.value.code is Code.USAGE
    assert refusal(SuitePlace(), "x", "y").message == "x"


def test_pictures_are_bytes_that_are_pictures() -> None:
    assert picture(PNG, ImageSegment("a.txt")).source.media_type == "image/png"  # type: ignore[union-attr]
    svg = picture(b"<svg/>", ImageSegment("a.svg"))
    assert svg.source.media_type == "image/svg+xml"  # type: ignore[union-attr]
    with pytest.raises(Fault, match=r"a\.png is not a picture: it is text/plain"):
        picture(b"words", ImageSegment("a.png"))


PATTERNS = ("**/*.instructions.md",)
FILES = {"x/a.instructions.md": b"Be kind.\r\n", "b.md": b"B", "p.instructions.md": b"\x89PNG\r\n\x1a\n"}


def message(*paths: str, folder: str = "") -> CaseMessage:
    return CaseMessage(role="user", segments=tuple(FileSegment(path, folder + path) for path in paths))


def taken(*messages: CaseMessage | Message, patterns: tuple[str, ...] = PATTERNS, form: FileForm = "xml") -> list[str]:
    found = guidelines_in(messages, FILES, patterns, form)
    assert all(segment.resolved == place for place, (segment, _) in found.items())
    return [words for _, words in found.values()]


def test_files_that_a_pattern_names_are_taken_once() -> None:
    said = [message("a.instructions.md", "b.md", folder="x/"), message("a.instructions.md", folder="x/")]
    assert taken(*said) == ['<file path="a.instructions.md">\nBe kind.\n</file>']


def test_the_place_where_a_file_lies_counts_as_well() -> None:
    found = taken(message("a.instructions.md", folder="x/"), patterns=("x/**",), form="seed")
    assert found == ["=== a.instructions.md ===\nBe kind.\n"]


def test_without_patterns_or_words_there_are_none() -> None:
    assert taken(message("a.instructions.md", folder="x/"), patterns=()) == []
    assert taken(message("p.instructions.md")) == []
    assert taken(message("gone.instructions.md")) == []
    texts = CaseMessage(role="user", segments=(TextSegment("x"),))
    assert taken(Message("assistant", (Text("x"),)), texts) == []
