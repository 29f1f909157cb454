import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.budget.image_size import image_size
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
