import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.facts import Facts
from sightline.tokens.account import RateLimits
from sightline.tokens.window_budget import (
    UNKNOWN_WINDOW,
    Boundary,
    Room,
    count_to_drop,
    model_limit,
    reply_reserve,
    reserve_for_calibration,
)


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
