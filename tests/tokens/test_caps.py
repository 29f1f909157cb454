"""Caps as arithmetic: buckets, bounds and what was used."""

from datetime import UTC

import pytest

from sightline.catalog.facts import Facts, Prices
from sightline.model.parts import Text
from sightline.model.reply import Usage
from sightline.model.request import Message, Options, Request
from sightline.settings import CapSettings
from sightline.tokens.caps import (
    BILLION,
    BucketKey,
    CapUse,
    RequestBound,
    amount_used,
    amount_words,
    bucket_of,
    cap_words,
    limit_in,
    limit_of,
    measure_bound,
    measure_raw_bound,
    share_of,
    unit_of,
    usage_so_far,
    values_of,
)

NOON = 1_790_000_000.0  # 2026-09-21 in UTC
PRICES = Prices(input=3.0, output=15.0, cached=0.3, cache_write=3.75, cache_write_1h=6.0)
NOTHING_KNOWN = Facts()


def asked(**options: int) -> Request:
    return Request("m", (Message("user", (Text("hi"),)),), options=Options(**options))


def cap(**fields: object) -> CapSettings:
    return CapSettings(**{"name": "daily", "dollars": 2.5, **fields})  # type: ignore[arg-type]


def test_a_cap_counts_in_dollars_or_in_tokens() -> None:
    assert (unit_of(cap()), limit_of(cap())) == ("dollars", 2_500_000_000)
    assert (unit_of(cap(dollars=None, tokens=7)), limit_of(cap(dollars=None, tokens=7))) == ("tokens", 7)
    assert limit_of(cap(dollars=1e-12)) == 1  # a share of nothing could not be shown
    assert limit_of(cap(dollars=float("inf"))) == limit_of(cap(dollars=None, tokens=10**30)) == 10**18


@pytest.mark.parametrize(("window", "period"), [("day", "2026-09-21"), ("month", "2026-09"), ("always", "")])
def test_a_bucket_is_for_the_values_that_a_cap_is_per_and_for_its_window(window: str, period: str) -> None:
    key = bucket_of(cap(window=window, per=("session", "key")), {"session": 'a"@b'}, NOON, UTC)
    assert (key.period, values_of(key)) == (period, ('a"@b', ""))


def test_a_bucket_that_is_none_has_no_values() -> None:
    assert values_of(BucketKey("a", "tokens", "{}", "")) == ()


def test_a_bound_takes_the_longest_reply_of_the_request_and_the_dearest_input() -> None:
    bound = measure_bound(asked(max_tokens=100, n=2), 1_000, NOTHING_KNOWN, PRICES, b"{}")
    assert bound == RequestBound(1_000, 200, round((1_000 * 3.75 + 200 * 15) / 1e6 * BILLION))
    assert (bound.amount("tokens"), bound.amount("dollars")) == (1_200, bound.billionths)


def test_a_bound_counts_a_cache_of_an_hour_at_its_own_price() -> None:
    bound = measure_bound(asked(max_tokens=1), 1_000, NOTHING_KNOWN, PRICES, b'{"ttl": "1h"}')
    assert bound.billionths == round((1_000 * 6 + 15) / 1e6 * BILLION)


def test_a_bound_without_a_longest_reply_takes_that_of_the_model_or_a_large_one() -> None:
    assert measure_bound(asked(), 10, Facts(max_output=500), None, b"").output_tokens == 500
    assert measure_bound(asked(), 10, NOTHING_KNOWN, None, b"") == RequestBound(10, 32_000, None)


def test_a_negative_limit_is_none_as_local_servers_read_it() -> None:
    for limit in (-1, -(10**6)):
        assert measure_bound(asked(max_tokens=limit), 10, Facts(max_output=500), None, b"").output_tokens == 500
        assert measure_bound(asked(max_tokens=limit), 10, NOTHING_KNOWN, PRICES, b"").output_tokens == 32_000


@pytest.mark.parametrize("options", [{"max_tokens": 10**13}, {"max_tokens": 10**30}, {"max_tokens": 9, "n": 2**63}])
def test_an_absurd_limit_still_has_a_cost_and_fits_into_a_database(options: dict[str, int]) -> None:
    bound = measure_bound(asked(**options), 10, NOTHING_KNOWN, PRICES, b"")
    assert bound.output_tokens == 10**12
    assert bound.billionths is not None
    assert BILLION < bound.billionths < 2**63


def test_a_body_that_cannot_be_read_counts_as_many_tokens_as_bytes() -> None:
    assert measure_bound(None, 0, Facts(max_output=5), Prices(input=1.0, output=1.0), b"12345") == RequestBound(
        5, 5, 10_000
    )


@pytest.mark.parametrize(
    ("usage", "dollars", "tokens"),
    [
        (Usage(input_tokens=1_000, output_tokens=10), 3_150_000, 1_010),
        (Usage(input_tokens=1_000, cached_tokens=1_000, output_tokens=0), 300_000, 1_000),
        (Usage(output_tokens=3), 99, 23),
        (Usage(input_tokens=5), 99, 35),
        (Usage(input_tokens=-5, output_tokens=3), 99, 23),
        (None, 99, 50),
    ],
)
def test_what_was_not_counted_counts_as_it_was_reserved(usage: Usage | None, dollars: int, tokens: int) -> None:
    bound = RequestBound(20, 30, 99)
    assert amount_used("dollars", usage, bound, PRICES) == dollars
    assert amount_used("tokens", usage, bound, PRICES) == tokens


def test_money_without_a_price_is_nothing_where_it_was_let_through() -> None:
    assert amount_used("dollars", None, RequestBound(20, 30, None), None) == 0


def test_an_answer_that_broke_off_counts_what_came_of_it() -> None:
    bound = RequestBound(20, 30, None)
    assert usage_so_far(None, 5, bound) == Usage(input_tokens=20, output_tokens=3)
    assert usage_so_far(Usage(input_tokens=18, output_tokens=9), 5, bound) == Usage(input_tokens=18, output_tokens=9)
    assert usage_so_far(None, 10_000, bound).output_tokens == 30


def test_a_raised_limit_counts_where_it_is_the_larger_one() -> None:
    use = CapUse(BucketKey("a", "tokens", "[]", ""), spent=50, raised=200)
    assert (limit_in(use, 100), share_of(use, 100)) == (200, 0.25)
    assert limit_in(use, 300) == 300


def test_amounts_and_buckets_are_put_into_words() -> None:
    assert amount_words("tokens", 12_000) == "12,000 tokens"
    assert [amount_words("dollars", amount) for amount in (2_500_000_000, 5_000_000_000)] == ["$2.5", "$5"]
    key = BucketKey("daily", "tokens", '["fix@shop",""]', "2026-09-21")
    assert cap_words(key, ("session", "key")) == "daily (session fix@shop, key none, 2026-09-21)"
    assert cap_words(BucketKey("daily", "tokens", "[]", ""), ()) == "daily"


def test_a_request_that_no_dialect_reads_counts_by_its_bytes() -> None:
    embedding = Prices(input=2.0)
    assert measure_raw_bound(b"x" * 500, Facts(), embedding, has_output=False) == RequestBound(500, 0, 1_000_000)
    assert measure_raw_bound(b"x" * 500, Facts(), embedding, has_output=True) == RequestBound(500, 32_000, None)
    assert measure_raw_bound(b"", Facts(max_output=9), None, has_output=True) == RequestBound(0, 9, None)
