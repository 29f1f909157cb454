import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.facts import Facts, ImageCost
from sightline.dialects.registry import dialect
from sightline.model.parts import FileId, Inline, Link, PlainText, Source
from sightline.tokens.estimate import Estimate
from sightline.tokens.media_count import count_image, count_media, image_size
from sightline.tokens.text_count import TextCounter
from tests.picture_files import gif, jpeg, png, webp

TEXTS = TextCounter(Facts(tokenizer="o200k_base"))


def inline(media_type: str, data: bytes) -> Inline:
    return Inline(media_type, base64.b64encode(data).decode())


def wav(seconds: float, rate: int = 48_000) -> bytes:
    head = b"RIFF" + bytes(4) + b"WAVEfmt " + bytes(12) + rate.to_bytes(4, "little") + bytes(12)
    return head + bytes(int(seconds * rate) - len(head))


WORDS = "one two three four"
FOUR_PAGES = inline("application/pdf", b"%PDF-1.4 /Type /Pages " + b"<< /Type /Page >> <</Type/Page\n>>" * 2)


@pytest.mark.parametrize(
    ("source", "dialect_name", "estimate"),
    [
        # Text, and a frame around it; what is not base64 is text too.
        (PlainText(WORDS), "anthropic", (4, 16, 54)),
        (inline("text/csv", WORDS.encode()), "anthropic", (4, 16, 54)),
        (Inline("text/plain", "é" * 7), "gemini", (7, 19, 57)),
        # A PDF counts by its pages, and by its length where it hides them; it has one at least.
        (FOUR_PAGES, "gemini", (4 * 250, 4 * 560, 4 * 1400 + 50)),
        (FOUR_PAGES, "anthropic", (4 * 1000, 4 * 2200, 4 * 5000 + 50)),
        (FOUR_PAGES, "openai-chat", (0, 4 * 900, 4 * 4500 + 50)),
        (inline("application/pdf", b"%PDF" + bytes(100)), "anthropic", (1000, 2200, 5050)),
        (inline("application/pdf", b"%PDF" + bytes(600_000)), "anthropic", (1000, 22_000, 1_500_060)),
        # Sound counts by the second, with a wide band where it does not tell its length; film with a wider one.
        (inline("audio/wav", wav(6)), "gemini", (150, 192, 192 + 50)),
        (inline("audio/wav", wav(6)), "openai-chat", (42, 60, 150 + 50)),
        (inline("audio/mp3", b"ID3" + bytes(32_000)), "openai-chat", (4, 20, 851)),
        (inline("audio/mp3", wav(1)[:28] + bytes(32_000)), "openai-chat", (4, 20, 851)),
        (inline("video/mp4", bytes(1_000_000)), "gemini", (16, 1052, 15_050)),
        # A file elsewhere may hold anything.
        (Link("https://example.com/a.pdf"), "gemini", (0, 2000, 200_000)),
        (FileId("file-1"), "gemini", (0, 2000, 200_000)),
    ],
)
def test_a_file_counts_by_its_text_its_pages_or_its_seconds(
    source: Source, dialect_name: str, estimate: tuple[int, int, int]
) -> None:
    found = count_media(source, dialect(dialect_name).tokens, TEXTS)
    assert (found.low, found.tokens, found.high) == estimate


GPT_4O = ImageCost(kind="tiles", base=85, tile=170)
GPT_4O_MINI = ImageCost(kind="tiles", base=2833, tile=5667)
GPT_5 = ImageCost(kind="tiles", base=70, tile=140)
PATCHES = ImageCost(kind="patches", limit=1536)
GPT_4_1_MINI = ImageCost(kind="patches", factor=1.62, limit=1536)
GPT_4_1_NANO = ImageCost(kind="patches", factor=2.46, limit=1536)
CLAUDE = ImageCost(kind="patches", patch=28, longest=1568, limit=1568)
CLAUDE_4_7 = ImageCost(kind="patches", patch=28, longest=2576, limit=4784)
OLDER_CLAUDE = ImageCost(kind="area", longest=1568, limit=1600)
GEMINI_2 = ImageCost(kind="squares", tile=258)
GEMINI_3 = ImageCost(kind="flat", base=1120)


@pytest.mark.parametrize(
    ("cost", "size", "detail", "tokens"),
    [
        # OpenAI's guide works out the first three, for GPT-4o.
        (GPT_4O, (1024, 1024), "high", 765),
        (GPT_4O, (2048, 4096), "high", 1105),
        (GPT_4O, (4096, 8192), "low", 85),
        (GPT_4O, (512, 512), None, 255),
        (GPT_4O, (513, 512), "auto", 425),
        (GPT_4O, (3008, 2000), "high", 1105),
        (GPT_4O_MINI, (1024, 1024), "high", 25501),
        (GPT_5, (1024, 1024), "high", 630),
        (GPT_5, (1024, 1024), "low", 70),
        # Two that the guide works out for 32-pixel patches, then with the factors of the smaller models.
        (PATCHES, (1024, 1024), None, 1024),
        (PATCHES, (1800, 2400), None, 1452),
        (GPT_4_1_MINI, (1024, 1024), None, 1659),
        (GPT_4_1_MINI, (1800, 2400), None, 2353),
        (GPT_4_1_NANO, (540, 360), None, 502),
        (PATCHES, (32, 32), None, 1),
        (PATCHES, (8000, 33), None, 500),
        (PATCHES, (100_000, 33), None, 1536),
        # Anthropic's guide: 28-pixel patches within a longest side and a number of patches.
        (CLAUDE, (200, 200), None, 64),
        (CLAUDE, (540, 360), None, 260),
        (CLAUDE, (597, 566), None, 462),
        (CLAUDE, (1000, 1000), None, 1296),
        (CLAUDE, (1092, 1092), None, 1521),
        (CLAUDE_4_7, (1000, 1000), None, 1296),
        (CLAUDE_4_7, (200, 200), None, 64),
        (OLDER_CLAUDE, (1000, 1000), None, 1334),
        (OLDER_CLAUDE, (4000, 4000), None, 1600),
        (ImageCost(kind="area"), (1500, 1000), None, 2000),
        # Google's guide: one square for a small picture, else crops of two thirds of the shorter side.
        (GEMINI_2, (384, 384), None, 258),
        (GEMINI_2, (960, 540), None, 6 * 258),
        (GEMINI_2, (3008, 2000), None, 12 * 258),
        (GEMINI_2, (540, 360), None, 6 * 258),
        (GEMINI_3, (960, 540), None, 1120),
    ],
)
def test_published_formulas(cost: ImageCost, size: tuple[int, int], detail: str | None, tokens: int) -> None:
    estimate = count_image(cost, size, detail)
    assert estimate.tokens == tokens
    assert estimate.low <= tokens <= estimate.high


def test_patches_never_exceed_their_limit() -> None:
    for size in [(1, 1), (6000, 6000), (8000, 1), (1, 8000), (1568, 1568), (3000, 2999)]:
        assert 1 <= count_image(CLAUDE, size).tokens <= 1568


def test_a_whole_crop_more_is_in_the_band_where_endpoints_count_the_overview_too() -> None:
    """Seen on both of Google's endpoints: 1806 and 3354 tokens for the pictures of these sizes."""
    for size, reported in (((540, 360), 1806), ((3008, 2000), 3354), ((300, 300), 258)):
        estimate = count_image(GEMINI_2, size)
        assert estimate.low == 258
        assert estimate.low <= reported <= estimate.high


def test_formulas_that_are_exact_have_no_band() -> None:
    assert count_image(GPT_4O, (800, 600)).is_exact
    assert count_image(GEMINI_3, None) == Estimate(1120, 1120, 1120, "image of unknown size")


def test_a_low_detail_needs_no_size() -> None:
    assert count_image(GPT_4O, None, "low").is_exact


def test_a_picture_of_unknown_size_may_be_the_smallest_or_the_largest() -> None:
    estimate = count_image(GPT_4O, None)
    assert (estimate.low, estimate.high) == (255, 765)
    wide = count_image(CLAUDE_4_7, None)
    assert wide.low <= 4
    assert wide.high >= 4700
    assert wide.low < wide.tokens < wide.high


def test_where_no_formula_is_known_the_band_is_wide() -> None:
    estimate = count_image(None, (800, 600))
    assert (estimate.low, estimate.high) == (85, 6000)


@pytest.mark.parametrize("size", [(4_294_967_295, 1), (1, 4_294_967_295)])
def test_a_line_is_a_row_of_tiles(size: tuple[int, int]) -> None:
    assert count_image(GPT_4O, size).tokens == 85 + 4 * 170
    assert count_image(CLAUDE, size).tokens == 56


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


@pytest.mark.parametrize("kind", [b"VP8X", b"VP8L", b"VP8 "])
def test_each_form_of_webp_has_its_size(kind: bytes) -> None:
    assert image_size(webp(640, 480, kind=kind)) == (640, 480)


def test_a_frame_behind_much_metadata_is_found() -> None:
    assert image_size(jpeg(640, 480, comment=60_000)) == (640, 480)


def test_either_alphabet_and_broken_lines_are_read() -> None:
    file = png(1023, 767)
    assert image_size(file.replace("+", "-").replace("/", "_").rstrip("=")) == (1023, 767)
    assert image_size(file[:20] + "\r\n" + file[20:]) == (1023, 767)


@pytest.mark.parametrize(
    "data",
    [
        "", "A", "not base64 at all: \u00e9", png(0, 10), png(5, 5)[:20], gif(3, 0), gif(3, 3)[:8],
        webp(5, 5, kind=b"ALPH"), webp(5, 5)[:24], jpeg(640, 480)[:30], jpeg(640, 480, marker=0xC4),
        "/9gAAAAAAAAAAAAAAAAAAAAA", "JVBERi0xLjQKJcOkw7zDtsOfCg==",
    ],
)  # fmt: skip
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
