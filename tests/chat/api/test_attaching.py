import base64

import pytest

from sightline.chat.api.bodies import AttachmentWanted
from sightline.chat.api.uploads import parts_from_uploads
from sightline.errors import Fault
from sightline.model.parts import Audio, Document, Image, Inline, Text

PNG, JPEG, PDF, WAV = b"\x89PNG\r\n\x1a\n rest", b"\xff\xd8\xff rest", b"%PDF-1.7 rest", b"RIFF\0\0\0\0WAVE rest"


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_files_become_parts_in_their_order() -> None:
    parts = parts_from_uploads(
        (
            AttachmentWanted(coded(PNG), "a.png", "image/png"),
            AttachmentWanted(coded(b"words\n"), "a.txt", "text/plain; charset=utf-8"),
            AttachmentWanted(coded(PDF), "", "application/pdf"),
            AttachmentWanted(coded(WAV), "a.wav", "audio/x-wav"),
        )
    )
    assert parts == (
        Image(Inline("image/png", coded(PNG))),
        Text("File: a.txt\n```\nwords\n```\n"),
        Document(Inline("application/pdf", coded(PDF)), "file 3.pdf"),
        Audio(Inline("audio/wav", coded(WAV))),
    )


def test_one_picture_under_the_name_of_another_is_taken_for_what_it_is() -> None:
    assert parts_from_uploads((AttachmentWanted(coded(JPEG), "a.png", "image/png"),)) == (
        Image(Inline("image/jpeg", coded(JPEG))),
    )


def test_a_drawing_is_a_text() -> None:
    [part] = parts_from_uploads((AttachmentWanted(coded(b"<svg/>"), "a.svg", "image/svg+xml"),))
    assert isinstance(part, Text)


def test_what_would_break_the_line_of_a_name_is_taken_out_of_it() -> None:
    [part] = parts_from_uploads((AttachmentWanted(coded(b"x"), "a\nb" + "c" * 300, ""),))
    assert isinstance(part, Text)
    assert part.text.startswith("File: a?bccc")
    assert len(part.text.partition("\n")[0]) == len("File: ") + 200


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (AttachmentWanted("no base64!", "a.png", "image/png"), "a.png: the data is no base64"),
        (AttachmentWanted("YQ", "a.png"), "a.png: the data is no base64"),
        (AttachmentWanted("ä", "a.png"), "a.png: the data is no base64"),
        (AttachmentWanted("", "a.png"), "a.png: the file is empty"),
        (
            AttachmentWanted(coded(b"text"), "a.png", "image/png"),
            'a.png: it says that it is "image/png", and its bytes are text',
        ),
        (
            AttachmentWanted(coded(PNG), "a.pdf", "application/pdf"),
            'a.pdf: it says that it is "application/pdf", and its bytes are image/png',
        ),
        (
            AttachmentWanted(coded(PNG), "a.svg", "image/svg+xml"),
            'a.svg: it says that it is "image/svg+xml", and its bytes are image/png',
        ),
        (
            AttachmentWanted(coded(b"<svg/>"), "a.svg", "image/png"),
            'a.svg: it says that it is "image/png", and its bytes are text',
        ),
        (AttachmentWanted(coded(b"\0\1"), "a.bin"), "a.bin: an unknown kind of file cannot be attached"),
    ],
)
def test_what_is_not_what_it_says_is_refused(wanted: AttachmentWanted, message: str) -> None:
    with pytest.raises(Fault) as caught:
        parts_from_uploads((wanted,))
    assert (caught.value.status, caught.value.message) == (422, message)
    assert caught.value.hint
