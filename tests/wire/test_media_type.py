import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.wire.media_type import encoding_of, is_text, sniff

ZEROS = bytes(16)
FILES = {
    "image/png": b"\x89PNG\r\n\x1a\n" + ZEROS,
    "image/jpeg": b"\xff\xd8\xff\xe0" + ZEROS,
    "image/gif": b"GIF89a" + ZEROS,
    "image/webp": b"RIFF\x24\x00\x00\x00WEBPVP8 ",
    "image/bmp": b"BM\x36\x0a\x0a\x00\x00\x00\x00\x00\x36\x00",
    "image/tiff": b"II*\x00" + ZEROS,
    "image/avif": b"\x00\x00\x00\x1cftypavif" + ZEROS,
    "image/heic": b"\x00\x00\x00\x1cftypheic" + ZEROS,
    "audio/mp4": b"\x00\x00\x00\x1cftypM4A " + ZEROS,
    "video/mp4": b"\x00\x00\x00\x1cftypisom" + ZEROS,
    "application/pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "audio/wav": b"RIFF\x0a\x00\x00\x00WAVEfmt ",
    "video/x-msvideo": b"RIFF\x24\x00\x00\x00AVI LIST",
    "audio/mpeg": b"ID3\x04\x00" + ZEROS,
    "audio/aac": b"\xff\xf1\x50\x80" + ZEROS,
    "audio/ogg": b"OggS\x00\x02" + ZEROS,
    "audio/flac": b"fLaC\x00\x00\x00\x22" + ZEROS,
    "video/webm": b"\x1aE\xdf\xa3" + ZEROS,
    "application/zip": b"PK\x03\x04" + ZEROS,
    "application/gzip": b"\x1f\x8b\x08" + ZEROS,
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_known_by_what_it_begins_with(kind: str) -> None:
    assert sniff(FILES[kind], "a") == kind
    assert sniff(FILES[kind], "lies.txt") == kind
    assert not is_text(kind)


def test_an_mp3_may_begin_with_a_frame() -> None:
    assert sniff(b"\xff\xfb\x90\x64" + ZEROS, "a.mp3") == "audio/mpeg"
    assert sniff(b"\xff\xfb\xf0\x64" + ZEROS, "a.mp3") == "application/octet-stream"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.docx", "wordprocessingml.document"), ("A.XLSX", "spreadsheetml.sheet"), ("b.epub", "epub+zip"), ("c", "zip")],
)
def test_archive_type_is_determined_by_its_name(name: str, kind: str) -> None:
    assert sniff(FILES["application/zip"], name).endswith(kind)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("README.md", "text/markdown"),
        ("table.CSV", "text/csv"),
        ("data.json", "application/json"),
        ("page.html", "text/html"),
        ("tool.py", "text/x-python"),
        ("drawing.svg", "image/svg+xml"),
        ("picture.png", "text/plain"),
        ("Makefile", "text/plain"),
        ("py", "text/plain"),
        ("", "text/plain"),
    ],
)
def test_text_has_the_type_of_its_name(name: str, kind: str) -> None:
    assert sniff(b"some words", name) == kind
    assert is_text(kind)


@pytest.mark.parametrize(
    "words",
    [
        "BMW is a car", "ID3 tags hold titles", "fLaC is spelled so", "OggS starts a page", "PK is a key",
        "The ftyp box comes first", "see ftypmp42", "RIFF", "Motörhead", "\x1b[1mbold\x1b[0m", "",
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_words_that_look_like_something_else_are_words(words: str, encoding: str) -> None:
    assert sniff(words.encode(encoding), "a.txt") == "text/plain"


@pytest.mark.parametrize(
    "data", [b"a\0b", b"\xffabc", b"Gr\xfc\xdfe", b"\xff\xfea", b"\xff\xfe\x00\xd8", b"\xfe\xff\x00\x00"], ids=repr
)
def test_what_is_no_text_is_binary(data: bytes) -> None:
    assert sniff(data, "a.txt") == "application/octet-stream"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_byte_order_mark_tells_the_encoding(encoding: str) -> None:
    data = "\ufeffwords".encode(encoding)
    assert sniff(data, "a") == "text/plain"
    assert data.decode(encoding_of(data)) == "words"


@given(st.binary(), st.text(max_size=10))
def test_any_bytes_have_a_type(data: bytes, name: str) -> None:
    kind = sniff(data, name)
    assert "/" in kind
    if is_text(kind):
        data.decode(encoding_of(data))
