import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.faults import numbers_of
from sightline.errors import UNSTATED, Numbers


@pytest.mark.parametrize(
    ("message", "limit", "requested", "excess"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000, 10_000),
        ("prompt is too long: 210,000 tokens > 200,000 maximum", 200_000, 210_000, 10_000),
        ("This model's maximum context length is 128k tokens. However, you requested 140.5K", 128_000, 140_500, 12_500),
        ("maximum context length is 1M tokens, however you requested 1,048,577 tokens", 1_000_000, 1_048_577, 48_577),
        ("maximum context length is 4096 tokens. However, you requested 4104tokens", 4096, 4104, 8),
        ("exceed context limit: 199759 + 8192 > 200000, decrease", 200_000, 207_951, 7951),
        ("`inputs` must have less than 1024 tokens. Given: 1244", 1024, 1244, 220),
        ("Your request exceeded model token limit: 262144 (requested: 300000)", 262_144, 300_000, 37_856),
        ("Input prompt (36893 tokens) is too long and exceeds limit of 1000", 1000, 36_893, 35_893),
        ("length of prompt_tokens (163280) must be less than max_seq_len (32768).", 32_768, 163_280, 130_512),
        ("Prompt tokens limit exceeded: 230799 > 91442. To increase", 91_442, 230_799, 139_357),
        ("Input length 1581 exceeds context length 1500", 1500, 1581, 81),
        ("Prompt too long: 41911 tokens exceeds max context window of 32768 tokens", 32_768, 41_911, 9143),
        ("You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only "
         "202752 tokens", 202_752, 202_753, 1),
        ("input token count is 1200000 but model only supports up to 1048576", 1_048_576, 1_200_000, 151_424),
        ("prompt token count of 131000 exceeds the limit of 128000", 128_000, 131_000, 3000),
        ("Range of input length should be [1, 129024]", 129_024, None, None),
        ("TPM: Limit 30000, Used 29937, Requested 385.", 30_000, 385, None),
        ("exceeded max context length by 15935 tokens", None, None, 15_935),
        ("This model's maximum context length is 8192 tokens", 8192, None, None),
        ("Requested tokens exceed context window of 512", 512, None, None),
    ],
)  # fmt: skip
def test_every_provider_has_its_own_sentence(
    message: str, limit: int | None, requested: int | None, excess: int | None
) -> None:
    assert numbers_of(message) == Numbers(limit, requested, excess)


@pytest.mark.parametrize("message", ["", "Overloaded", "max_tokens must be at least 1, got -186.", "status 400"])
def test_what_is_not_stated_is_not_guessed(message: str) -> None:
    assert numbers_of(message) == UNSTATED


def test_fields_are_more_exact_than_sentences() -> None:
    told = {"n_prompt_tokens": 4031, "n_ctx": 2048}
    assert numbers_of("request (1 tokens) exceeds the available context size (2 tokens)", told) == Numbers(
        2048, 4031, 1983
    )
    assert numbers_of("", {"n_ctx": 2048, "n_prompt_tokens": "many"}) == Numbers(limit=2048)
    assert numbers_of("", {"n_ctx": True, "n_prompt_tokens": -1}) == UNSTATED
    assert numbers_of("", ["n_ctx"]) == UNSTATED


@given(limit=st.integers(1, 10**9), over=st.integers(1, 10**9))
def test_the_excess_follows_from_the_other_two(limit: int, over: int) -> None:
    stated = numbers_of(f"prompt is too long: {limit + over:,} tokens > {limit} maximum")
    assert stated == Numbers(limit, limit + over, over)


@given(st.text(alphabet="0123456789,.km> :()tokensmaximulgrequd+", max_size=400))
def test_any_text_is_read(message: str) -> None:
    stated = numbers_of(message)
    assert stated.excess is None or stated.excess >= 0
