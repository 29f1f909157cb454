from typing import Any

import pytest

from sightline.catalog.facts import LongPrices, Prices
from sightline.model.reply import Usage
from sightline.tokens.cost import Cost, cost_of, savings_of

MILLION = 1_000_000
PRICES = Prices(input=3.0, output=15.0, cached=0.3, cache_write=3.75)
LONG = Prices(input=1.0, output=2.0, cached=0.5, long=LongPrices(above=1000, input=10.0))
HOUR = Prices(input=4.0, output=20.0, cached=0.4, cache_write=5.0, cache_write_1h=9.0)
LONG_HOUR = Prices(input=4.0, output=20.0, cache_write=5.0, long=LongPrices(above=10, cache_write_1h=16.0))
FREE_WRITE = Prices(input=4.0, output=20.0, cache_write=0.0)
CHARGED = Prices(
    input=2.0, output=8.0, audio_input=10.0, tiers={"flex": 0.5}, regions={"us": 1.1}, tools={"search": 10.0}
)


def used(input_tokens: int = MILLION, output_tokens: int = 0, **more: Any) -> Usage:
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens, **more)


@pytest.mark.parametrize(
    ("usage", "prices", "dollars"),
    [
        (used(MILLION, 2 * MILLION), PRICES, 33.0),
        (Usage(cost=0.25), PRICES, 0.25),
        # Cached and written tokens are parts of the input.
        (used(cached_tokens=600_000, cache_write_tokens=100_000), PRICES, 0.3 * 3.0 + 0.6 * 0.3 + 0.1 * 3.75),
        (used(10, cached_tokens=MILLION), PRICES, 0.3),
        (used(cache_write_tokens=MILLION), FREE_WRITE, 0.0),
        # A long prompt has prices of its own, as far as it has some.
        (used(1000, 1000), LONG, 0.003),
        (used(1001, 1000, cached_tokens=1), LONG, 0.0120005),
        # So has what the cache keeps for an hour, which is no more than was written.
        (used(cache_write_tokens=500_000, cache_write_1h_tokens=300_000), HOUR, 0.5 * 4.0 + 0.2 * 5.0 + 0.3 * 9.0),
        (used(cache_write_tokens=500_000, cache_write_1h_tokens=300_000), LONG_HOUR, 0.5 * 4 + 0.2 * 5 + 0.3 * 16),
        (used(100, cache_write_tokens=100, cache_write_1h_tokens=MILLION), HOUR, 100 * 9.0 / MILLION),
        # Tiers, regions, audio and tools have their price, or none.
        (used(tier="flex"), CHARGED, 1.0),
        (used(tier="flex", region="us"), CHARGED, 1.1),
        (used(audio_input_tokens=500_000), CHARGED, 6.0),
        (used(server_tools={"search": 5, "idle": 0}), CHARGED, 2.05),
        (used(1, 1, tier="priority"), CHARGED, None),
        (used(1, 1, region="moon"), CHARGED, None),
        (used(1, 1, audio_output_tokens=1), CHARGED, None),
        (used(1, 1, server_tools={"shell": 1}), CHARGED, None),
        # What has no output needs no price of it; what is not known is not guessed.
        (used(), Prices(input=0.5), 0.5),
        (used(MILLION, 1), Prices(input=0.5), None),
        (used(1, 1), Prices(output=1.0), None),
        (used(1, 1), None, None),
        (Usage(input_tokens=1), PRICES, None),
        (Usage(output_tokens=1), PRICES, None),
        # Absurd counts have no price.
        (used(10**400, 1), PRICES, None),
        (used(1, 10**13), PRICES, None),
        (used(1, 1, cached_tokens=10**400), PRICES, None),
        (used(-5, 1), PRICES, None),
        (used(5, 1, cached_tokens=-1), PRICES, None),
    ],
)
def test_what_an_exchange_costs(usage: Usage, prices: Prices | None, dollars: float | None) -> None:
    cost = cost_of(usage, prices)
    assert cost == (None if dollars is None else Cost(pytest.approx(dollars)))


def test_without_a_price_for_what_was_cached_it_is_known_what_it_cost_at_most() -> None:
    bare = Prices(input=3.0, output=15.0)
    assert cost_of(used(cached_tokens=600_000, cache_write_tokens=100_000), bare) == Cost(3.0, is_bound=True)
    assert cost_of(used(1), bare) == Cost(3e-6)
    kept = used(cache_write_tokens=MILLION, cache_write_1h_tokens=MILLION)
    assert cost_of(kept, PRICES) == Cost(6.0, is_bound=True), "twice the input's price"


def test_tokens_from_the_cache_save_what_they_would_have_cost_more() -> None:
    prices = Prices(input=4.0, output=20.0, cached=1.0)
    usage = Usage(input_tokens=1_000, output_tokens=10, cached_tokens=500, cost=9.0)
    assert savings_of(usage, prices) == pytest.approx(500 * 3.0 / 1e6)
    assert savings_of(usage, None) is None
    assert savings_of(Usage(input_tokens=1_000, output_tokens=10), prices) is None
