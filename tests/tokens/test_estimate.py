from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.facts import Facts, LongPrices, Prices
from sightline.model.reply import Usage
from sightline.tokens.account import RateLimits
from sightline.tokens.cost import Cost, cost_of, savings_of
from sightline.tokens.estimate import NOTHING, Estimate, between, exactly, is_possible, share_out, sum_estimates
from sightline.tokens.window_budget import (
    UNKNOWN_WINDOW,
    Boundary,
    Room,
    count_to_drop,
    model_limit,
    reply_reserve,
    reserve_for_calibration,
)


def test_an_exact_number_has_no_band() -> None:
    assert exactly(7, "o200k_base") == Estimate(7, 7, 7, "o200k_base")
    assert exactly(7).is_exact
    assert not Estimate(7, 6, 7).is_exact


def test_a_band_is_rounded_outwards_and_holds_its_number() -> None:
    assert between(1.2, 3.4, 5.6) == Estimate(3, 1, 6)
    assert between(9, 3, 1) == Estimate(3, 3, 3)
    assert between(-5, -2, -1) == NOTHING


def test_numbers_and_bands_add_up_and_say_what_they_rest_on() -> None:
    assert exactly(1, "a") + exactly(2, "a") == exactly(3, "a")
    assert exactly(1) + exactly(2, "b") == exactly(3, "b")
    assert exactly(1, "a") + exactly(2) == exactly(3, "a")
    assert Estimate(5, 4, 9, "a") + exactly(1, "b") == Estimate(6, 5, 10, "mixed")


def test_many_add_up_as_they_would_one_by_one() -> None:
    some = [Estimate(5, 4, 9, "a"), exactly(1), exactly(2, "a")]
    assert sum_estimates(some) == some[0] + some[1] + some[2] == Estimate(8, 7, 12, "a")
    assert sum_estimates([*some, exactly(1, "b")]).how == "mixed"
    assert sum_estimates([]) == NOTHING


def test_a_count_far_beyond_what_was_thought_cannot_be_meant() -> None:
    assert is_possible(0, 0)
    assert is_possible(10_000_000, 0)
    assert is_possible(10_000_100, 1)
    assert not is_possible(10_000_101, 1)
    assert not is_possible(-1, 10)


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


@pytest.mark.parametrize(
    ("facts", "limits", "expected"),
    [
        (Facts(), None, UNKNOWN_WINDOW),
        (Facts(context_window=200_000), None, 200_000),
        (Facts(context_window=200_000, tpm=30_000), None, 30_000),
        (Facts(context_window=8_000, tpm=30_000), None, 8_000),
        (Facts(context_window=200_000, tpm=30_000), RateLimits(), 30_000),
        (Facts(context_window=200_000, tpm=30_000), RateLimits(tpm=90_000), 90_000),
        (Facts(tpm=1_000), None, 1_000),
    ],
)
def test_the_limit_is_the_window_or_the_tokens_of_a_minute(
    facts: Facts, limits: RateLimits | None, expected: int
) -> None:
    assert model_limit(facts, limits) == expected


def test_a_small_window_keeps_a_quarter_for_the_reply_and_a_limited_reply_what_it_may_take() -> None:
    assert [reply_reserve(800, limit, None) for limit in (8_000, 400)] == [800, 100]
    assert [reply_reserve(800, 8_000, most) for most in (4_000, 10)] == [4_000, 10]


def test_history_gets_what_nothing_else_takes_and_never_less_than_nothing() -> None:
    room = Room(1_000, system=100, tools=50, user=200, reply=150)
    assert (room.usable, room.history, room.beside(300)) == (700, 500, 400)
    assert [room.can_ever_hold(prompt) for prompt in (850, 851)] == [True, False], "beside what is always there"
    full = Room(100, system=80, user=50)
    assert (full.history, full.beside(500)) == (0, 0)


def test_what_was_only_learned_is_a_small_reserve_and_refuses_nothing() -> None:
    assert reserve_for_calibration(90_000, 8000) == 1000
    assert reserve_for_calibration(12, 8000) == 12
    room = Room(1000, system=1100, learned=1050)
    assert room.can_ever_hold(900)
    assert not room.can_ever_hold(951)
    assert room.usable == -100


def boundary_of(costs: list[int], room: int) -> Boundary[int]:
    boundary: Boundary[int] = Boundary(lambda cost: cost, room)
    boundary.replace(list(costs))
    return boundary


def by_hand(costs: list[int], room: int) -> tuple[int, int]:
    """The start and the sum of what fits, as the rule says it: from the newest on, until the next is too much."""
    start, taken = len(costs), 0
    while start and taken + costs[start - 1] <= room:
        start -= 1
        taken += costs[start]
    return start, taken


def test_newest_items_are_included_until_the_budget_is_exceeded() -> None:
    boundary = boundary_of([1, 50, 20, 30], 60)
    assert (boundary.start, boundary.cost_included) == (2, 50)


def test_each_change_moves_the_boundary_from_where_it_was() -> None:
    boundary = boundary_of([1, 50, 20, 30], 60)
    boundary.insert(0, 7)  # in front of all that fits
    assert (boundary.items, boundary.start, boundary.cost_included) == ([7, 1, 50, 20, 30], 3, 50)
    boundary.remove(4)
    assert (boundary.items, boundary.start, boundary.cost_included) == ([7, 1, 50, 20], 3, 20)
    boundary.change(2, 5)  # one that was too much fits now, and so do those before it
    assert (boundary.start, boundary.cost_included) == (0, 33)
    boundary.resize(26)
    boundary.remove(0)
    boundary.change(0, 2)
    assert (boundary.items, boundary.start, boundary.cost_included) == ([2, 5, 20], 1, 25)


def test_one_more_at_the_end_of_a_hundred_thousand_is_found_from_where_it_was() -> None:
    asked: list[int] = []

    def cost(item: int) -> int:
        asked.append(item)
        return 1

    boundary: Boundary[int] = Boundary(cost, 500)
    boundary.replace(list(range(100_000)))
    assert boundary.start == 99_500
    assert len(asked) == 501
    asked.clear()
    boundary.insert(100_000, 100_000)
    assert boundary.start == 99_501
    assert len(asked) <= 4


def test_what_is_left_out_can_be_removed() -> None:
    boundary = boundary_of([9, 1, 1], 2)
    assert boundary.start == 1
    boundary.remove(0)
    assert (boundary.start, boundary.cost_included) == (0, 2)


def test_nothing_is_counted_before_it_is_needed() -> None:
    boundary: Boundary[int] = Boundary(lambda _item: 1 // 0, 10)
    boundary.replace([1, 2, 3])
    boundary.resize(5)


def test_other_costs_are_taken_with_the_list() -> None:
    boundary = boundary_of([1, 1, 1], 2)
    assert boundary.start == 1
    boundary.replace([1, 1, 1], lambda _cost: 2)
    assert boundary.start == 2


operations = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.integers(0, 30), st.integers(0, 20)),
        st.tuples(st.just("remove"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("change"), st.integers(0, 30), st.integers(0, 20)),
        st.tuples(st.just("resize"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("look"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@given(st.lists(st.integers(0, 20), max_size=12), operations)
def test_whatever_changes_the_answer_is_that_of_beginning_anew(costs: list[int], changes) -> None:
    room = 30
    boundary = boundary_of(costs, room)
    for kind, number, cost in changes:
        if kind == "insert":
            boundary.insert(place := number % (len(costs) + 1), cost)
            costs.insert(place, cost)
        elif kind == "remove" and costs:
            boundary.remove(place := number % len(costs))
            del costs[place]
        elif kind == "change" and costs:
            boundary.change(place := number % len(costs), cost)
            costs[place] = cost
        elif kind == "resize":
            room = number
            boundary.resize(room)
        else:
            assert boundary.start == by_hand(costs, room)[0]
    assert (boundary.start, boundary.cost_included) == by_hand(costs, room)
    assert list(boundary.items) == costs


@pytest.mark.parametrize(("room", "dropped"), [(60, 0), (59, 1), (30, 2), (29, 3)])
def test_the_oldest_go_until_the_rest_fits(room: int, dropped: int) -> None:
    assert count_to_drop([10, 20, 30], room) == dropped


@given(st.lists(st.integers(0, 20), max_size=12), st.integers(0, 80))
def test_as_few_of_the_oldest_go_as_must(costs: list[int], room: int) -> None:
    count = count_to_drop(costs, room)
    assert sum(costs[count:]) <= room
    assert count == 0 or sum(costs[count - 1 :]) > room


def test_tokens_from_the_cache_save_what_they_would_have_cost_more() -> None:
    prices = Prices(input=4.0, output=20.0, cached=1.0)
    usage = Usage(input_tokens=1_000, output_tokens=10, cached_tokens=500, cost=9.0)
    assert savings_of(usage, prices) == pytest.approx(500 * 3.0 / 1e6)
    assert savings_of(usage, None) is None
    assert savings_of(Usage(input_tokens=1_000, output_tokens=10), prices) is None


def test_a_total_is_shared_out_in_whole_numbers_that_add_up_to_it() -> None:
    assert share_out(10, {"a": 1, "b": 1, "c": 1}) == {"a": 4, "b": 3, "c": 3}
    assert share_out(7, {"a": 0, "b": 5}) == {"a": 0, "b": 7}
