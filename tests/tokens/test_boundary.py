from hypothesis import given
from hypothesis import strategies as st

from sightline.tokens.boundary import Boundary, count_to_drop


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


def test_the_newest_go_along_until_the_next_is_too_much() -> None:
    boundary = boundary_of([1, 50, 20, 30], 60)
    assert (boundary.start, boundary.taken) == (2, 50)


def test_nothing_older_slips_in_past_one_that_is_too_much() -> None:
    assert boundary_of([1, 1, 500, 10], 60).start == 3


def test_where_nothing_fits_the_boundary_is_the_end() -> None:
    boundary = boundary_of([10, 20], 5)
    assert (boundary.start, boundary.taken) == (2, 0)


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


def test_nothing_is_counted_before_somebody_asks() -> None:
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
    assert (boundary.start, boundary.taken) == by_hand(costs, room)
    assert list(boundary.items) == costs


@given(st.lists(st.integers(0, 20), max_size=12), st.integers(0, 80))
def test_as_few_of_the_oldest_go_as_must(costs: list[int], room: int) -> None:
    count = count_to_drop(costs, room)
    assert sum(costs[count:]) <= room
    assert count == 0 or sum(costs[count - 1 :]) > room
