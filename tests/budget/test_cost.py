import pytest

from sightline.budget.cost import Cost, cost_of
from sightline.catalog.facts import LongPrices, Prices
from sightline.model.usage import Usage


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
