import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.core.limits import BEFORE_ASK, BEFORE_USE, Limits, Reached, Spent, raised, reached
from sightline.errors import Fault


@pytest.mark.parametrize(("limit", "more"), [(1, 2), (2, 3), (3, 5), (4, 6), (5, 8), (0, 0), (0.5, 0.75)])
def test_a_limit_is_raised_by_half_rounded_half_up(limit: float, more: float) -> None:
    assert raised(limit) == more
    assert type(raised(limit)) is type(limit)


@given(st.integers(0, 10**6))
def test_rounding_is_that_of_the_seed(limit: int) -> None:
    assert raised(limit) == math.floor(limit * 1.5 + 0.5)


def test_a_limit_is_reached_when_all_of_it_is_spent() -> None:
    limits = Limits(requests=2)
    assert reached(limits, Spent(requests=1), BEFORE_ASK) is None
    assert reached(limits, Spent(requests=2), BEFORE_ASK) == Reached("requests", 2, 2)
    assert reached(Limits(requests=None), Spent(requests=10**6), BEFORE_ASK) is None


def test_somebody_can_be_asked_where_raising_would_help() -> None:
    assert reached(Limits(tokens=10, behaviour="confirm"), Spent(tokens=12), BEFORE_USE) == Reached(
        "tokens", 10, 12, 15
    )
    assert reached(Limits(tokens=0, behaviour="confirm"), Spent(), BEFORE_USE) == Reached("tokens", 0, 0)


def test_a_used_up_limit_of_calls_keeps_nobody_from_asking() -> None:
    spent = Spent(tool_calls=3)
    assert reached(Limits(tool_calls=3), spent, BEFORE_ASK) is None
    assert reached(Limits(tool_calls=3), spent, BEFORE_USE) is not None


def test_what_nobody_counts_cannot_be_limited() -> None:
    spent = Spent(unmeasured=("tokens", "cost"))
    assert reached(Limits(), spent, BEFORE_ASK) is None
    found = reached(Limits(cost=0.5, behaviour="confirm"), spent, BEFORE_ASK)
    assert found == Reached("cost", 0.5, 0, is_unmeasured=True)
    assert found.words == "the limit of 0.5 US dollars cannot be held: the cost so far is not known"


def test_a_limit_is_told_in_words() -> None:
    assert Reached("tool_calls", 2, 2).words == "the limit of 2 tool calls is reached"


def test_raising_one_limit_leaves_the_others() -> None:
    assert Limits(requests=3, tokens=5).raised("requests") == Limits(requests=5, tokens=5)
    assert Limits(tokens=None).raised("tokens") == Limits()


@pytest.mark.parametrize("wrong", [-1, math.nan])
def test_limits_that_mean_nothing_are_refused(wrong: float) -> None:
    Limits(requests=0).check()
    with pytest.raises(Fault, match="the limit of seconds is"):
        Limits(seconds=wrong).check()


def test_a_cost_that_is_not_known_is_not_nothing() -> None:
    assert Spent().known_cost == 0.0
    assert Spent(cost=0.5).known_cost == 0.5
    assert Spent(cost=0.5, unmeasured=("cost",)).known_cost is None
    assert Reached("tokens", 5, 0, is_unmeasured=True).words.endswith("the provider does not tell")
