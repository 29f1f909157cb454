import base64

import pytest

from sightline.chat.core.attachment import attachment, kind_of, name_of, text_in
from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Document, Image, Inline, Part, Refusal, Text

PNG, PDF, WAV = b"\x89PNG\r\n\x1a\n rest", b"%PDF-1.7 rest", b"RIFF\0\0\0\0WAVE rest"


def inline(kind: str, data: bytes) -> Inline:
    return Inline(kind, base64.b64encode(data).decode())


@pytest.mark.parametrize(
    ("data", "name", "part", "kind"),
    [
        (b"a = 1\n", "a.py", Text("File: a.py\n```\na = 1\n```\n"), "text"),
        (b"```\nx\n```", "x.md", Text("File: x.md\n````\n```\nx\n```\n````\n"), "text"),
        (b"<svg/>", "a.svg", Text("File: a.svg\n```\n<svg/>\n```\n"), "text"),
        (PNG, "a.txt", Image(inline("image/png", PNG)), "image"),
        (PDF, "a.pdf", Document(inline("application/pdf", PDF), "a.pdf"), "document"),
        (WAV, "a.wav", Audio(inline("audio/wav", WAV)), "audio"),
    ],
)
def test_a_file_is_what_its_bytes_are(data: bytes, name: str, part: Part, kind: str) -> None:
    made = attachment(data, name)
    assert (made, kind_of(made)) == (part, kind)


def test_what_was_put_around_a_text_can_be_taken_off_again() -> None:
    made = attachment(b"one\ntwo\n", "notes.txt")
    assert isinstance(made, Text)
    assert (name_of(made), text_in(made.text)) == ("notes.txt", "one\ntwo")
    assert (name_of(Text("only words")), text_in("only words")) == ("", "only words")


def test_what_it_is_called() -> None:
    assert name_of(attachment(PDF, "a.pdf")) == "a.pdf"
    assert name_of(Document(inline("application/pdf", PDF))) == ""
    assert name_of(Image(inline("image/png", PNG))) == ""
    assert kind_of(Refusal("no")) == "other"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" \n", "a.bin: the file has no text"),
        (b"PK\x03\x04", "a.bin: application/zip cannot be attached"),
        (b"\0\0\0", "a.bin: an unknown kind of file cannot be attached"),
        (b"caf\xe9", "a.bin: this is not valid UTF-8 text: byte 3"),
        (b"\xff\xfea\0\0\0", "a.bin: an unknown kind of file cannot be attached"),
    ],
)
def test_what_cannot_be_attached(data: bytes, message: str) -> None:
    with pytest.raises(Fault) as caught:
        attachment(data, "a.bin")
    assert (caught.value.code, caught.value.message) == (Code.USAGE, message)
    assert caught.value.hint


def test_a_mistake_names_the_place_where_the_file_lies() -> None:
    with pytest.raises(Fault, match="over/there: "):
        attachment(b"\0", "there", "over/there")
