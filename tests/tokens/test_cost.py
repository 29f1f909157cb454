import pytest

from sightline.catalog.facts import LongPrices, Prices
from sightline.model.usage import Usage
from sightline.tokens.cost import Cost, cost_of, total_cost


def dollars(usage: Usage, prices: Prices) -> float:
    cost = cost_of(usage, prices)
    assert cost is not None
    assert not cost.is_bound
    return cost.dollars


PRICES = Prices(input=3.0, output=15.0, cached=0.3, cache_write=3.75)


def test_input_and_output_have_prices() -> None:
    assert dollars(Usage(input_tokens=1_000_000, output_tokens=2_000_000), PRICES) == pytest.approx(33.0)


def test_cached_and_written_tokens_are_parts_of_the_input() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=0, cached_tokens=600_000, cache_write_tokens=100_000)
    assert dollars(usage, PRICES) == pytest.approx(0.3 * 3.0 + 0.6 * 0.3 + 0.1 * 3.75)


def test_without_a_price_for_what_was_cached_it_is_known_what_it_cost_at_most() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=0, cached_tokens=600_000, cache_write_tokens=100_000)
    assert cost_of(usage, Prices(input=3.0, output=15.0)) == Cost(3.0, is_bound=True)
    assert cost_of(Usage(input_tokens=1, output_tokens=0), Prices(input=3.0, output=15.0)) == Cost(3e-6)


def test_a_provider_that_counts_more_cached_than_input_does_not_earn_us_money() -> None:
    usage = Usage(input_tokens=10, output_tokens=0, cached_tokens=1_000_000)
    assert dollars(usage, PRICES) == pytest.approx(0.3)


def test_a_long_prompt_has_prices_of_its_own_as_far_as_it_has_some() -> None:
    prices = Prices(input=1.0, output=2.0, cached=0.5, long=LongPrices(above=1000, input=10.0))
    assert dollars(Usage(input_tokens=1000, output_tokens=1000), prices) == pytest.approx(0.003)
    assert dollars(Usage(input_tokens=1001, output_tokens=1000, cached_tokens=1), prices) == pytest.approx(0.0120005)


@pytest.mark.parametrize(
    ("usage", "prices"),
    [
        (Usage(input_tokens=1, output_tokens=1), None),
        (Usage(input_tokens=1), PRICES),
        (Usage(output_tokens=1), PRICES),
        (Usage(input_tokens=1, output_tokens=1), Prices(input=1.0)),
        (Usage(input_tokens=1, output_tokens=1), Prices(output=1.0)),
    ],
)
def test_what_is_not_known_is_not_guessed(usage: Usage, prices: Prices | None) -> None:
    assert cost_of(usage, prices) is None


def test_a_count_that_nobody_can_mean_has_no_price() -> None:
    prices = Prices(input=3.0, output=15.0)
    assert cost_of(Usage(input_tokens=10**400, output_tokens=1), prices) is None
    assert cost_of(Usage(input_tokens=1, output_tokens=10**13), prices) is None
    assert cost_of(Usage(input_tokens=1, output_tokens=1, cached_tokens=10**400), prices) is None


def test_what_the_cache_keeps_for_an_hour_has_a_price_of_its_own() -> None:
    prices = Prices(input=4.0, output=20.0, cached=0.4, cache_write=5.0, cache_write_1h=8.0)
    usage = Usage(input_tokens=1_000_000, output_tokens=0, cache_write_tokens=500_000, cache_write_1h_tokens=300_000)
    assert dollars(usage, prices) == pytest.approx(0.5 * 4.0 + 0.2 * 5.0 + 0.3 * 8.0)
    long = Prices(input=4.0, output=20.0, cache_write=5.0, long=LongPrices(above=10, cache_write_1h=16.0))
    assert dollars(usage, long) == pytest.approx(0.5 * 4.0 + 0.2 * 5.0 + 0.3 * 16.0)


def test_without_a_price_for_an_hour_it_is_twice_the_inputs_at_most() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=0, cache_write_tokens=1_000_000, cache_write_1h_tokens=10**6)
    assert cost_of(usage, PRICES) == Cost(6.0, is_bound=True)


def test_more_kept_for_an_hour_than_was_written_is_no_more_than_that() -> None:
    usage = Usage(input_tokens=100, output_tokens=0, cache_write_tokens=100, cache_write_1h_tokens=10**6)
    prices = Prices(input=4.0, output=20.0, cache_write_1h=8.0)
    assert dollars(usage, prices) == pytest.approx(100 * 8.0 / 1e6)


def test_a_write_that_costs_nothing_costs_nothing() -> None:
    prices = Prices(input=4.0, output=20.0, cache_write=0.0)
    assert dollars(Usage(input_tokens=10**6, output_tokens=0, cache_write_tokens=10**6), prices) == 0.0


def test_a_negative_count_has_no_price() -> None:
    assert cost_of(Usage(input_tokens=-5, output_tokens=1), PRICES) is None
    assert cost_of(Usage(input_tokens=5, output_tokens=1, cached_tokens=-1), PRICES) is None


def test_a_sum_with_something_unknown_is_not_known() -> None:
    assert total_cost([]) == 0.0
    assert total_cost([0.25, 0.0, 0.5]) == 0.75
    assert total_cost([0.25, None]) is None
