import base64

import pytest

from sightline.chat.api.downloads import download, media, size_of
from sightline.errors import Fault
from sightline.model.parts import Audio, Document, FileId, Image, Inline, Link, Part, PlainText, Refusal, Text

PNG, PDF = b"\x89PNG\r\n\x1a\n rest", b"%PDF-1.7 rest"


def inline(kind: str, data: bytes) -> Inline:
    return Inline(kind, base64.b64encode(data).decode())


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff rest", "image/jpeg"),
        (b"GIF89a rest", "image/gif"),
        (b"RIFF\0\0\0\0WEBP rest", "image/webp"),
    ],
)
def test_pictures_are_shown_as_what_they_are(data: bytes, kind: str) -> None:
    answer = media(Image(inline("text/html", data)))
    headers = dict(answer.headers)
    assert (answer.status, answer.body, headers[b"content-type"]) == (200, data, kind.encode())
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert b"sandbox" in headers[b"content-security-policy"]
    assert b"content-disposition" not in headers


@pytest.mark.parametrize(
    ("part", "data", "name"),
    [
        (Image(inline("image/svg+xml", b"<svg onload=alert(1)/>")), b"<svg onload=alert(1)/>", "file"),
        (Image(inline("image/png", b"<script>1</script>")), b"<script>1</script>", "file"),
        (Document(inline("application/pdf", PDF), "a.pdf"), PDF, "a.pdf"),
        (Document(PlainText("words"), "a.txt"), b"words", "a.txt"),
        (Audio(inline("audio/wav", b"RIFF....WAVE")), b"RIFF....WAVE", "file"),
        (Text("File: a.html\n```\n<b>\n```\n"), b"<b>", "a.html"),
    ],
)
def test_everything_else_is_only_to_be_kept(part: Part, data: bytes, name: str) -> None:
    answer = media(part)
    headers = dict(answer.headers)
    assert answer.body == data
    assert headers[b"content-type"] == b"application/octet-stream"
    assert headers[b"content-disposition"].startswith(f'attachment; filename="{name}"'.encode())
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert b"sandbox" in headers[b"content-security-policy"]


@pytest.mark.parametrize(
    "part",
    [
        Image(Link("https://example.com/a.png")),
        Document(FileId("file_1")),
        Audio(),
        Refusal("no"),
        Image(Inline("image/png", "x")),
    ],
)
def test_what_is_not_here_is_not_there(part: Part) -> None:
    with pytest.raises(Fault) as caught:
        media(part)
    assert caught.value.status == 404


def test_a_name_of_any_letters_goes_into_a_header() -> None:
    told = dict(download(b"x", 'Ärger "1"\n.md').headers)[b"content-disposition"]
    assert told == b"attachment; filename=\"_rger _1__.md\"; filename*=UTF-8''%C3%84rger%20%221%22%0A.md"


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Text("File: a\n```\nabc\n```\n"), ("text/plain", 3)),
        (Image(inline("image/png", PNG)), ("image/png", len(PNG))),
        (Image(inline("image/png", PNG + b"1")), ("image/png", len(PNG) + 1)),
        (Document(PlainText("äb")), ("text/plain", 3)),
        (Image(Link("https://example.com/a", "image/png")), ("image/png", 0)),
        (Document(FileId("f")), ("", 0)),
        (Audio(inline("audio/wav", b"12345")), ("audio/wav", 5)),
        (Audio(), ("", 0)),
        (Refusal("no"), ("", 0)),
    ],
)
def test_how_large_a_file_is(part: Part, told: tuple[str, int]) -> None:
    assert size_of(part) == told
