import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.core.limits import (
    BEFORE_ASK,
    BEFORE_USE,
    Reached,
    RunLimits,
    RunUsage,
    find_reached_limit,
    next_limit,
)
from sightline.errors import Fault


@pytest.mark.parametrize(("limit", "more"), [(1, 2), (2, 3), (3, 5), (4, 6), (5, 8), (0, 0), (0.5, 0.75)])
def test_a_limit_is_raised_by_half_rounded_half_up(limit: float, more: float) -> None:
    assert next_limit(limit) == more
    assert type(next_limit(limit)) is type(limit)


@given(st.integers(0, 10**6))
def test_rounding_is_that_of_the_seed(limit: int) -> None:
    assert next_limit(limit) == math.floor(limit * 1.5 + 0.5)


def test_a_limit_is_reached_when_all_of_it_is_spent() -> None:
    limits = RunLimits(requests=2)
    assert find_reached_limit(limits, RunUsage(requests=1), BEFORE_ASK) is None
    assert find_reached_limit(limits, RunUsage(requests=2), BEFORE_ASK) == Reached("requests", 2, 2)
    assert find_reached_limit(RunLimits(requests=None), RunUsage(requests=10**6), BEFORE_ASK) is None


def test_somebody_can_be_asked_where_raising_would_help() -> None:
    assert find_reached_limit(RunLimits(tokens=10, behaviour="confirm"), RunUsage(tokens=12), BEFORE_USE) == Reached(
        "tokens", 10, 12, 15
    )
    assert find_reached_limit(RunLimits(tokens=0, behaviour="confirm"), RunUsage(), BEFORE_USE) == Reached(
        "tokens", 0, 0
    )


def test_a_used_up_limit_of_calls_keeps_nobody_from_asking() -> None:
    spent = RunUsage(tool_calls=3)
    assert find_reached_limit(RunLimits(tool_calls=3), spent, BEFORE_ASK) is None
    assert find_reached_limit(RunLimits(tool_calls=3), spent, BEFORE_USE) is not None


def test_what_nobody_counts_cannot_be_limited() -> None:
    spent = RunUsage(unmeasured=("tokens", "cost"))
    assert find_reached_limit(RunLimits(), spent, BEFORE_ASK) is None
    found = find_reached_limit(RunLimits(cost=0.5, behaviour="confirm"), spent, BEFORE_ASK)
    assert found == Reached("cost", 0.5, 0, is_unmeasured=True)
    assert found.words == "the limit of 0.5 US dollars cannot be held: the cost so far is not known"


def test_a_limit_is_told_in_words() -> None:
    assert Reached("tool_calls", 2, 2).words == "the limit of 2 tool calls is reached"


def test_raising_one_limit_leaves_the_others() -> None:
    assert RunLimits(requests=3, tokens=5).raise_limit("requests") == RunLimits(requests=5, tokens=5)
    assert RunLimits(tokens=None).raise_limit("tokens") == RunLimits()


@pytest.mark.parametrize("wrong", [-1, math.nan])
def test_limits_that_mean_nothing_are_refused(wrong: float) -> None:
    RunLimits(requests=0).check()
    with pytest.raises(Fault, match="the limit of seconds is"):
        RunLimits(seconds=wrong).check()


def test_a_cost_that_is_not_known_is_not_nothing() -> None:
    assert RunUsage().known_cost == 0.0
    assert RunUsage(cost=0.5).known_cost == 0.5
    assert RunUsage(cost=0.5, unmeasured=("cost",)).known_cost is None
    assert Reached("tokens", 5, 0, is_unmeasured=True).words.endswith("the provider does not tell")
