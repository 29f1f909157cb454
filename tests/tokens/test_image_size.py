import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.tokens.message_count import image_size
from tests.picture_files import gif, jpeg, png, webp

SIDES = st.integers(1, 16_000)


@given(width=SIDES, height=SIDES)
def test_each_kind_of_file_tells_its_size(width: int, height: int) -> None:
    for file in (
        png(width, height),
        gif(width, height),
        jpeg(width, height),
        jpeg(width, height, marker=0xC2),
        webp(width, height),
        webp(width, height, kind=b"VP8L"),
        webp(width, height, kind=b"VP8 "),
    ):
        assert image_size(file) == (width, height)


def test_a_frame_behind_much_metadata_is_found() -> None:
    assert image_size(jpeg(640, 480, comment=60_000)) == (640, 480)


def test_either_alphabet_and_broken_lines_are_read() -> None:
    file = png(1023, 767)
    assert image_size(file.replace("+", "-").replace("/", "_").rstrip("=")) == (1023, 767)
    assert image_size(file[:20] + "\r\n" + file[20:]) == (1023, 767)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "A",
        "not base64 at all: \u00e9",
        png(0, 10),
        png(5, 5)[:20],
        gif(3, 0),
        gif(3, 3)[:8],
        webp(5, 5, kind=b"ALPH"),
        webp(5, 5)[:24],
        jpeg(640, 480)[:30],
        jpeg(640, 480, marker=0xC4),
        "/9gAAAAAAAAAAAAAAAAAAAAA",
        "JVBERi0xLjQKJcOkw7zDtsOfCg==",
    ],
)
def test_what_does_not_tell_is_not_guessed(data: str) -> None:
    assert image_size(data) is None


@given(data=st.text(max_size=200))
def test_no_text_is_too_strange(data: str) -> None:
    assert image_size(data) is None or isinstance(image_size(data), tuple)


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Watched(str):
    """A text that tells how much of it was looked at."""

    looked_at = 0

    def __getitem__(self, key: object) -> str:
        part = super().__getitem__(key)  # type: ignore[index]
        Watched.looked_at += len(part)
        return part


@pytest.mark.parametrize("filler", [b"\xff", b"\xff\xe1\x00\x02"])
def test_no_more_than_the_first_megabyte_is_searched_for_a_frame(filler: bytes) -> None:
    data = Watched(coded(b"\xff\xd8" + filler * (4_000_000 // len(filler))))
    Watched.looked_at = 0
    assert image_size(data) is None
    assert Watched.looked_at < 2_000_000


def test_a_frame_behind_a_few_large_segments_is_found() -> None:
    profile = b"\xff\xe2\xff\xff" + bytes(65_533)
    frame = base64.b64decode(jpeg(640, 480))[2:]
    assert image_size(coded(b"\xff\xd8" + profile * 10 + frame)) == (640, 480)
    assert image_size(coded(b"\xff\xd8" + profile * 20 + frame)) is None


@pytest.mark.parametrize("size", [(4_294_967_295, 1), (1, 70_000), (65_000, 65_000), (2**31, 2**31)])
def test_a_size_that_no_picture_has_is_not_believed(size: tuple[int, int]) -> None:
    assert image_size(png(*size)) is None


def test_nor_in_a_webp() -> None:
    head = base64.b64decode(webp(5, 5))[:24]
    assert image_size(coded(head + b"\xff\xff\xff\x00\x00\x00")) is None
    assert image_size(png(65_535, 1)) == (65_535, 1)
    assert image_size(png(20_000, 20_000)) == (20_000, 20_000)
