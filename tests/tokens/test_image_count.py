import pytest

from sightline.catalog.facts import ImageCost
from sightline.tokens.estimate import Estimate
from sightline.tokens.message_count import count_image

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
