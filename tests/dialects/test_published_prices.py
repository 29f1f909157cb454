"""Worked examples that vendors publish themselves, read from replies of their form and priced by our catalogue.

Each has the page it is from and the day on which a copy of that page was made or read. Figures are the vendor's. Where
a page gives a usage block or a number of tokens and no amount, the amount is computed here with fractions from the
unit prices of the vendor's price page; that is said at the example.

OpenAI's price page has tables and no worked sum: its examples are the usage blocks and picture sizes of its guides.
No reply reports, and so no cost of ours has: session hours of Managed Agents and containers (Anthropic), minutes of
GPT-Live, container sessions and storage (OpenAI), storage of an explicit cache by the hour (Google), and monthly free
quotas of searches.
"""

import json
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

from sightline.app.configuration import configuration
from sightline.catalog.catalog import facts_of, prices_at_address
from sightline.model.reply import Usage
from sightline.tokens.cost import cost_of
from sightline.tokens.media_count import count_image
from tests.dialects.test_usage_shapes import (
    CHAT,
    chat_whole,
    gemini_whole,
    messages_whole,
    openai_usage,
    responses_body,
    usage_in,
)

CATALOG = configuration(None).catalog
MILLION = 1_000_000


class Page(NamedTuple):
    url: str
    read: str


ANTHROPIC = Page("https://platform.claude.com/docs/en/about-claude/pricing", "2026-09-26")
CACHING = Page("https://platform.claude.com/docs/en/build-with-claude/prompt-caching", "2026-09")
VISION = Page("https://platform.claude.com/docs/en/build-with-claude/vision", "2026-02")
OPENAI = Page("https://developers.openai.com/api/docs/pricing", "2026-09")
OPENAI_CACHING = Page("https://developers.openai.com/api/docs/guides/prompt-caching", "2026-09")
OPENAI_REASONING = Page("https://developers.openai.com/api/docs/guides/reasoning", "2026-09")
OPENAI_IMAGES = Page("https://developers.openai.com/api/docs/guides/images-vision", "2026-06")
OPENAI_REGIONS = Page("https://developers.openai.com/api/docs/guides/your-data", "2026-09-10")
GOOGLE = Page("https://ai.google.dev/gemini-api/docs/pricing", "2026-08-11")
XAI = Page("https://docs.x.ai/developers/pricing", "2026-10")
XAI_REGIONS = Page("https://docs.x.ai/developers/advanced-api-usage/regions", "2026-10")
MISTRAL_REGIONS = Page("https://docs.mistral.ai/studio/regional-inference", "2026-11")


class Example(NamedTuple):
    """`dollars` is the vendor's amount; `places` are the decimal places that it is rounded to, None if it is exact."""

    name: str
    page: Page
    provider: str
    model: str
    reply: bytes
    dollars: Fraction
    places: int | None = None


def claude(**usage: Any) -> bytes:
    return messages_whole({"output_tokens": 0, "service_tier": "standard", "inference_geo": "global", **usage})


def responses(usage: dict[str, Any], **around: Any) -> bytes:
    return json.dumps(responses_body(usage, **around)).encode()


def gemini_picture(tokens: int, tier: str = "standard") -> bytes:
    """A reply whose whole output is one picture of so many tokens."""
    usage = {
        "promptTokenCount": 1,
        "candidatesTokenCount": tokens,
        "totalTokenCount": tokens + 1,
        "serviceTier": tier,
        "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": tokens}],
    }
    return gemini_whole(usage)


def money(*parts: tuple[int, str]) -> Fraction:
    """Tokens at a price for a million each."""
    return sum((count * Fraction(price) for count, price in parts), Fraction()) / MILLION


SESSION = {"input_tokens": 50_000, "output_tokens": 15_000}
CACHED_SESSION = {"input_tokens": 10_000, "cache_read_input_tokens": 40_000, "output_tokens": 15_000}
SEARCHED = {
    "input_tokens": 105,
    "output_tokens": 6_039,
    "cache_read_input_tokens": 7_123,
    "cache_creation_input_tokens": 7_345,
    "server_tool_use": {"web_search_requests": 1},
}
FETCHED = {"input_tokens": 25_039, "output_tokens": 931, "server_tool_use": {"web_fetch_requests": 1}}
MIXED = {
    "input_tokens": 2_048,
    "cache_read_input_tokens": 1_800,
    "cache_creation_input_tokens": 248,
    "output_tokens": 503,
    "cache_creation": {"ephemeral_5m_input_tokens": 148, "ephemeral_1h_input_tokens": 100},
}


def _written(tokens: int, hour: int) -> dict[str, Any]:
    split = {"ephemeral_5m_input_tokens": tokens - hour, "ephemeral_1h_input_tokens": hour}
    return {"input_tokens": 0, "cache_creation_input_tokens": tokens, "cache_creation": split}


OPUS, SONNET = "claude-opus-5", "claude-sonnet-4-5"


def priced(
    name: str, model: str, dollars: str | Fraction, page: Page = ANTHROPIC, places: int | None = None, **usage: Any
) -> Example:
    return Example(name, page, "anthropic", model, claude(**usage), Fraction(dollars), places)


ANTHROPICS = [
    # The page's total of 0.705 and 0.525 has an hour of session runtime at 0.08 in it, which no reply reports.
    priced("an hour of coding", OPUS, "0.625", **SESSION),
    priced("with a cache", OPUS, "0.445", **CACHED_SESSION),
    # 37.00 for 10,000 conversations of about 3,700 tokens, all of them at the price of the input.
    priced("a support ticket", "claude-haiku-4-5", Fraction("37.00") / 10_000, input_tokens=3_700),
    # The usage blocks of the page; amounts from its tables.
    priced(
        "a web search",
        OPUS,
        money((105, "5"), (6_039, "25"), (7_123, "0.5"), (7_345, "6.25")) + Fraction("0.01"),
        **SEARCHED,
    ),
    priced("a web fetch", OPUS, money((25_039, "5"), (931, "25")), **FETCHED),
    priced(
        "writes for five minutes and an hour",
        SONNET,
        money((2_048, "3"), (1_800, "0.3"), (148, "3.75"), (100, "6"), (503, "15")),
        CACHING,
        **MIXED,
    ),
    # The multipliers of its table: 1.25, 2, 0.1, and for two models less.
    *(
        priced(f"a million of {model} {kind}", model, Fraction(base) * Fraction(times), **usage)
        for model, base, read in (
            (OPUS, "5", "0.1"),
            ("claude-sonnet-4-6", "3", "0.1"),
            ("claude-fable-5-1", "10", "0.025"),
            ("claude-opus-5-5", "4", "0.05"),
        )
        for kind, usage, times in (
            ("written for five minutes", _written(MILLION, 0), "1.25"),
            ("written for an hour", _written(MILLION, MILLION), "2"),
            ("read", {"input_tokens": 0, "cache_read_input_tokens": MILLION}, read),
        )
    ),
    # Inference in the US costs 1.1 times from Claude 4.6 on, and with batches and cache.
    *(
        priced(f"{model} in the US", model, "5.5", input_tokens=MILLION, inference_geo="us")
        for model in ("claude-opus-4-6", OPUS)
    ),
    priced(
        "batch, cache and US together",
        OPUS,
        "0.275",
        input_tokens=0,
        cache_read_input_tokens=MILLION,
        service_tier="batch",
        inference_geo="us",
    ),
    # Fast mode has its own prices, on which the cache's multipliers apply.
    *(
        priced(f"{model}, fast", model, total, input_tokens=MILLION, output_tokens=MILLION, speed="fast")
        for model, total in (("claude-opus-5-5", "48"), (OPUS, "60"), ("claude-opus-4-8", "60"))
    ),
    # A prompt of 900,000 tokens costs as much a token as one of 9,000.
    *(
        priced(f"{tokens:,} tokens", "claude-sonnet-4-6", money((tokens, "3")), input_tokens=tokens)
        for tokens in (9_000, 900_000)
    ),
    # The table of pictures, at 3 dollars a million.
    *(
        priced(f"{tokens} tokens of a picture", SONNET, each, VISION, places, input_tokens=tokens)
        for tokens, each, places in ((54, "0.00016", 5), (1_334, "0.004", 3), (1_590, "0.0048", 4))
    ),
]

CACHED_PROMPT = openai_usage(2_006, 300, 1_920, CHAT, completion_tokens_details={"reasoning_tokens": 0})
REASONED = {
    "input_tokens": 75,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 1_186,
    "output_tokens_details": {"reasoning_tokens": 1_024},
    "total_tokens": 1_261,
}


def _responses_of(fresh: int, cached: int, written: int, output: int, **around: Any) -> bytes:
    prompt = fresh + cached + written
    usage = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + output,
    }
    return responses(usage, **around)


def _column(model: str, tier: str, prices: tuple[str, str, str | None, str], *, is_long: bool = False) -> Example:
    """A row of one of the tables: input, cached input, cache writes and output, for 100,000 tokens each or twice."""
    fresh, cached, written, output = prices
    size = 100_000 if is_long else 50_000
    writes = 0 if written is None else size
    reply = _responses_of(size, size, writes, size, service_tier=tier)
    amount = money((size, fresh), (size, cached), (writes, written or "0"), (size, output))
    shown = f"{model} {tier} {'long' if is_long else 'short'}"
    return Example(shown, OPENAI, "openai", model, reply, amount)


OPENAIS = [
    # Usage blocks of the guides; amounts from the price page.
    Example("a cached prompt", OPENAI_CACHING, "openai", "gpt-4o", chat_whole(CACHED_PROMPT),
            money((86, "2.5"), (1_920, "1.25"), (300, "10"))),
    Example("reasoning", OPENAI_REASONING, "openai", "gpt-5", responses(REASONED),
            money((75, "1.25"), (1_186, "10"))),
    # Cells of the tables Standard, Batch, Flex and Fast mode, short and long context.
    _column("gpt-6-astra", "default", ("10", "1", "12.5", "50")),
    _column("gpt-6-astra", "default", ("20", "2", "25", "75"), is_long=True),
    _column("gpt-6-astra", "flex", ("5", "0.5", "6.25", "25")),
    _column("gpt-6-astra", "fast", ("20", "2", "25", "100")),
    _column("gpt-6-astra", "priority", ("40", "4", "50", "150"), is_long=True),
    _column("gpt-5.6-sol", "default", ("4", "0.4", "5", "20")),
    _column("gpt-5.6-sol", "batch", ("4", "0.4", "5", "15"), is_long=True),
    _column("gpt-5.6-terra", "default", ("2", "0.2", "2.5", "12")),
    _column("gpt-5.6-luna", "flex", ("0.1", "0.01", "0.125", "0.6")),
    _column("gpt-5.5", "fast", ("12.5", "1.25", None, "75")),
    _column("gpt-5.4-mini", "fast", ("1.5", "0.15", None, "9")),
    _column("gpt-5-mini", "priority", ("0.45", "0.045", None, "3.6")),
    _column("gpt-4.1", "priority", ("3.5", "0.875", None, "14")),
    _column("gpt-4o", "priority", ("4.25", "2.125", None, "17")),
    _column("o3", "flex", ("1", "0.25", None, "4")),
    # Audio has prices of its own: 32 and 64 dollars a million beside text at 2.5 and 10.
    Example("spoken", OPENAI, "openai", "gpt-audio-1.5",
            chat_whole({"prompt_tokens": 1_000, "completion_tokens": 500, "total_tokens": 1_500,
                        "prompt_tokens_details": {"audio_tokens": 900},
                        "completion_tokens_details": {"audio_tokens": 400}}),
            money((100, "2.5"), (900, "32"), (100, "10"), (400, "64"))),
]  # fmt: skip

GOOGLES = [
    # The page's prices of one picture, which it rounds: 1,290 tokens at 30 dollars a million, and so on. For batches it
    # halves the rounded price.
    *(
        Example(
            f"{model}, {tokens} tokens, {tier}",
            GOOGLE,
            "gemini",
            model,
            gemini_picture(tokens, tier),
            Fraction(each),
            places,
        )
        for model, tokens, tier, each, places in (
            ("gemini-2.5-flash-image", 1_290, "standard", "0.039", 3),
            ("gemini-2.5-flash-image", 1_290, "batch", "0.0195", 3),
            ("gemini-3-pro-image", 1_120, "standard", "0.134", 3),
            ("gemini-3-pro-image", 2_000, "standard", "0.24", 2),
            ("gemini-3.1-flash-image", 1_120, "standard", "0.0672", 4),
            ("gemini-3.1-flash-image", 1_680, "standard", "0.1008", 4),
            ("gemini-3.1-flash-image", 2_520, "standard", "0.1512", 4),
            ("gemini-3.1-flash-image", 2_520, "batch", "0.0756", 4),
        )
    ),
]

EXAMPLES = [*ANTHROPICS, *OPENAIS, *GOOGLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_of_a_vendors_page_costs_what_the_page_says(example: Example) -> None:
    spoken = CATALOG.providers[example.provider].dialect
    name = "openai-chat" if b"chat.completion" in example.reply else spoken
    usage = usage_in(name, example.reply)
    assert usage is not None
    cost = cost_of(usage, facts_of(CATALOG, example.provider, example.model).prices)
    assert cost is not None
    assert not cost.is_bound
    # Pictures were asked for with a prompt of one token, since none cannot be; to a rounded amount that adds nothing.
    off = abs(Fraction(cost.dollars) - example.dollars)
    assert off < (Fraction(1, 10**9) if example.places is None else Fraction(6, 10 ** (example.places + 1)))


def tools(**calls: int) -> Usage:
    return Usage(input_tokens=MILLION, output_tokens=0, server_tools=calls)


@pytest.mark.parametrize(
    ("page", "provider", "model", "usage", "dollars"),
    [
        # Above 200,000 tokens the whole prompt costs twice as much; audio has a price of its own.
        (GOOGLE, "gemini", "gemini-2.5-pro", Usage(input_tokens=200_000, output_tokens=1_000), "0.26"),
        (GOOGLE, "gemini", "gemini-2.5-pro", Usage(input_tokens=300_000, output_tokens=1_000), "0.765"),
        (
            GOOGLE,
            "gemini",
            "gemini-2.5-flash",
            Usage(input_tokens=10_000, output_tokens=0, audio_input_tokens=10_000),
            "0.01",
        ),
        # Searches: 35 dollars for 1,000 grounded prompts, from Gemini 3 on 14 for 1,000 queries.
        (GOOGLE, "gemini", "gemini-2.5-flash", tools(google_search=3, grounded_prompt=1), "0.335"),
        (GOOGLE, "gemini", "gemini-3-flash-preview", tools(google_search=3, grounded_prompt=1), "0.542"),
        # 10 dollars for 1,000 web searches, 2.5 for 1,000 file searches.
        (OPENAI, "openai", "gpt-4.1", tools(web_search=2, file_search=1), "2.0225"),
    ],
)
def test_unit_prices_of_the_vendors_tables(page: Page, provider: str, model: str, usage: Usage, dollars: str) -> None:
    cost = cost_of(usage, facts_of(CATALOG, provider, model).prices)
    assert cost is not None, page
    assert abs(Fraction(cost.dollars) - Fraction(dollars)) < Fraction(1, 10**9)


def test_a_code_run_is_billed_by_the_hour_of_its_container_and_so_has_no_known_cost() -> None:
    """The page's usage block: 105 and 239 tokens and one run."""
    usage = usage_in(
        "anthropic", claude(input_tokens=105, output_tokens=239, server_tool_use={"code_execution_requests": 1})
    )
    assert usage is not None
    assert cost_of(usage, facts_of(CATALOG, "anthropic", "claude-opus-5").prices) is None


@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        # The tiles and patches of OpenAI's guide (OPENAI_IMAGES); its amounts are tokens.
        ("gpt-4o", (1_024, 1_024), "high", 765),
        ("gpt-4o", (2_048, 4_096), "high", 1_105),
        ("gpt-4o", (4_096, 8_192), "low", 85),
        ("gpt-4.1-mini", (1_024, 1_024), None, 1_659),  # 1,024 patches times 1.62
        ("gpt-4.1-mini", (1_800, 2_400), None, 2_353),  # 1,452 patches
    ],
)
def test_the_pictures_of_the_guides_have_the_tokens_that_they_name(
    model: str, size: tuple[int, int], detail: str | None, tokens: int
) -> None:
    provider = CATALOG.models[model].providers[0]
    assert count_image(facts_of(CATALOG, provider, model).image, size, detail).tokens == tokens


@pytest.mark.parametrize(
    ("page", "provider", "model", "host", "times"),
    [
        # A tenth more at hosts of a region, for models released on or after 2026-03-05.
        (OPENAI_REGIONS, "openai", "gpt-6.1-terra", "eu.api.openai.com", "1.1"),
        (OPENAI_REGIONS, "openai", "gpt-5.4", "us.api.openai.com", "1.1"),
        (OPENAI_REGIONS, "openai", "gpt-5.4-nano", "jp.api.openai.com", "1.1"),
        (OPENAI_REGIONS, "openai", "gpt-5.4", "api.openai.com", "1"),
        (OPENAI_REGIONS, "openai", "gpt-5.2", "eu.api.openai.com", "1"),
        (OPENAI_REGIONS, "openai", "gpt-4o", "eu.api.openai.com", "1"),
        # Azure has these models at the same prices, and hosts of its own.
        (OPENAI_REGIONS, "azure", "gpt-5.4", "eu.api.openai.com", "1"),
        (XAI_REGIONS, "xai", "grok-4.6", "us.api.x.ai", "1.1"),
        (XAI_REGIONS, "xai", "grok-4.6", "api.x.ai", "1"),
        (MISTRAL_REGIONS, "mistral", "mistral-medium-latest", "api.eu.mistral.ai", "1.1"),
        (MISTRAL_REGIONS, "mistral", "mistral-medium-latest", "api.mistral.ai", "1"),
    ],
)
def test_a_region_costs_more_where_its_vendor_says_so(
    page: Page, provider: str, model: str, host: str, times: str
) -> None:
    prices = facts_of(CATALOG, provider, model).prices
    assert prices is not None, page
    usage = Usage(input_tokens=1_000, output_tokens=100)
    usual, there = cost_of(usage, prices), cost_of(usage, prices_at_address(prices, f"https://{host}/v1/responses"))
    assert usual is not None
    assert there is not None
    assert there.dollars == pytest.approx(usual.dollars * float(times), abs=1e-12)


@pytest.mark.parametrize(("tokens", "dollars"), [(199_999, "0.399998"), (200_000, "0.8")])
def test_a_prompt_of_200000_tokens_is_long_at_xai(tokens: int, dollars: str) -> None:
    """XAI: from 200,000 tokens on, the long prices are for all of a request."""
    cost = cost_of(Usage(input_tokens=tokens, output_tokens=0), facts_of(CATALOG, "xai", "grok-4.7").prices)
    assert cost is not None
    assert abs(Fraction(cost.dollars) - Fraction(dollars)) < Fraction(1, 10**9)


@pytest.mark.parametrize("model", ["claude-opus-4-5", "claude-haiku-4-5"])
def test_models_before_claude_4_6_cost_the_same_in_the_us(model: str) -> None:
    prices = facts_of(CATALOG, "anthropic", model).prices
    usage = Usage(input_tokens=1_000, output_tokens=100)
    assert cost_of(usage, prices) == cost_of(Usage(input_tokens=1_000, output_tokens=100, region="us"), prices)
