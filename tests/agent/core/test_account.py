import pytest

from sightline.agent.core.limits import Repeats, RunUsage, charge, total_usage, usage_of
from sightline.agent.core.output import text_outcome
from sightline.catalog.facts import Prices
from sightline.model.usage import Usage

PRICES = Prices(input=1.0, output=2.0)


def test_what_the_provider_tells_counts_before_what_was_estimated() -> None:
    told, guess = Usage(input_tokens=1, output_tokens=2), Usage(input_tokens=8, output_tokens=9)
    assert usage_of(told, guess) == told
    assert usage_of(None, guess) == guess
    assert usage_of(told, None) == told
    assert usage_of(None, None) is None
    assert usage_of(Usage(input_tokens=1), guess) == Usage(input_tokens=1, output_tokens=9)
    assert usage_of(Usage(output_tokens=2), guess) == Usage(input_tokens=8, output_tokens=2)


def test_a_count_that_cannot_be_is_none() -> None:
    assert usage_of(Usage(input_tokens=-5, output_tokens=1), Usage(input_tokens=3)) == Usage(
        input_tokens=3, output_tokens=1
    )


def test_a_reply_is_charged_for_its_tokens_and_their_price() -> None:
    spent, cost = charge(RunUsage(tokens=5, cost=1.0), Usage(input_tokens=10, output_tokens=5), PRICES)
    assert (spent.tokens, spent.unmeasured) == (20, ())
    assert cost == pytest.approx(0.00002)
    assert spent.cost == pytest.approx(1.00002)


@pytest.mark.parametrize("usage", [None, Usage(input_tokens=1), Usage(output_tokens=1)])
def test_what_cannot_be_counted_is_marked_once(usage: Usage | None) -> None:
    spent, cost = charge(RunUsage(unmeasured=("cost",)), usage, PRICES)
    assert (set(spent.unmeasured), len(spent.unmeasured), cost) == ({"tokens", "cost"}, 2, None)


def test_without_prices_only_the_cost_is_unknown() -> None:
    spent, cost = charge(RunUsage(), Usage(input_tokens=1, output_tokens=1), None)
    assert (spent.tokens, spent.unmeasured, cost) == (2, ("cost",), None)


def test_an_estimate_holds_limits_and_is_no_known_cost() -> None:
    spent, cost = charge(RunUsage(), Usage(input_tokens=10, output_tokens=5), PRICES, is_estimated=True)
    assert (spent.tokens, spent.unmeasured, cost, spent.known_cost) == (15, (), None, None)
    assert spent.cost == pytest.approx(0.00002)
    later, cost = charge(spent, Usage(input_tokens=10, output_tokens=5), PRICES)
    assert cost == pytest.approx(0.00002)
    assert later.known_cost is None


def test_the_same_call_is_the_same_however_its_arguments_are_ordered() -> None:
    repeats = Repeats()
    assert repeats.add("f", {"a": 1, "b": 2}, text_outcome("x")) == 1
    assert repeats.add("f", {"b": 2, "a": 1}, text_outcome("x")) == 2
    assert repeats.add("g", {"a": 1, "b": 2}, text_outcome("x")) == 1
    assert repeats.add("f", {"a": 1, "b": 2}, text_outcome("y")) == 1
    assert repeats.add("f", {"a": 1, "b": 2}, text_outcome("y")) == 2


def test_what_replies_took_together() -> None:
    assert total_usage([]) == Usage()
    some = [Usage(input_tokens=1, output_tokens=2), None, Usage(input_tokens=2, cached_tokens=1)]
    assert total_usage(some) == Usage(input_tokens=3, output_tokens=2, cached_tokens=1)
