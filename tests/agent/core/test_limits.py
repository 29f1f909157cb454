"""Limits of runs, what is charged against them, and when an account allows the next request."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.core.limits import (
    BEFORE_ASK,
    BEFORE_USE,
    Reached,
    Repeats,
    RunLimits,
    RunUsage,
    charge,
    find_reached_limit,
    next_limit,
    quota_of,
    total_usage,
    usage_of,
)
from sightline.agent.core.run import RunPlan
from sightline.agent.core.tool import Definition, Toolbox, text_outcome
from sightline.catalog.facts import Facts, Prices
from sightline.errors import Code, Fault
from sightline.model.reply import Usage
from sightline.tokens.ledger import Ledger
from tests.chat.core.stage import NOW


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


def test_raising_a_limit_is_offered_only_when_it_would_help() -> None:
    assert find_reached_limit(RunLimits(tokens=10, behaviour="confirm"), RunUsage(tokens=12), BEFORE_USE) == Reached(
        "tokens", 10, 12, 15
    )
    assert find_reached_limit(RunLimits(tokens=0, behaviour="confirm"), RunUsage(), BEFORE_USE) == Reached(
        "tokens", 0, 0
    )


def test_exhausted_tool_call_limit_does_not_block_model_requests() -> None:
    spent = RunUsage(tool_calls=3)
    assert find_reached_limit(RunLimits(tool_calls=3), spent, BEFORE_ASK) is None
    assert find_reached_limit(RunLimits(tool_calls=3), spent, BEFORE_USE) is not None


def test_limit_on_an_unmeasured_quantity_is_reported_as_unenforceable() -> None:
    spent = RunUsage(unmeasured=("tokens", "cost"))
    assert find_reached_limit(RunLimits(), spent, BEFORE_ASK) is None
    found = find_reached_limit(RunLimits(cost=0.5, behaviour="confirm"), spent, BEFORE_ASK)
    assert found == Reached("cost", 0.5, 0, is_unmeasured=True)
    assert found.words == "the limit of 0.5 US dollars cannot be held: the cost so far is not known"


def test_reached_limit_is_described_in_words() -> None:
    assert Reached("tool_calls", 2, 2).words == "the limit of 2 tool calls is reached"


def test_raising_one_limit_leaves_the_others() -> None:
    assert RunLimits(requests=3, tokens=5).raise_limit("requests") == RunLimits(requests=5, tokens=5)
    assert RunLimits(tokens=None).raise_limit("tokens") == RunLimits()


def test_whole_amounts_of_money_and_time_are_raised_by_half_too() -> None:
    limits = RunLimits(cost=1, seconds=3)
    assert limits.raise_limit("cost") == RunLimits(cost=1.5, seconds=3)
    assert limits.raise_limit("seconds") == RunLimits(cost=1, seconds=4.5)
    read = msgspec.json.decode(msgspec.json.encode(limits), type=RunLimits)
    assert read.raise_limit("cost") == limits.raise_limit("cost"), "a process that resumes the run goes on as this one"


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


PRICES = Prices(input=1.0, output=2.0)


def test_what_the_provider_tells_counts_before_what_was_estimated() -> None:
    told, guess = Usage(input_tokens=1, output_tokens=2), Usage(input_tokens=8, output_tokens=9)
    assert usage_of(told, guess) == told
    assert usage_of(None, guess) == guess
    assert usage_of(told, None) == told
    assert usage_of(None, None) is None
    assert usage_of(Usage(input_tokens=1), guess) == Usage(input_tokens=1, output_tokens=9, is_estimated=True)
    assert usage_of(Usage(output_tokens=2), guess) == Usage(input_tokens=8, output_tokens=2, is_estimated=True)


def test_a_count_that_cannot_be_is_none() -> None:
    assert usage_of(Usage(input_tokens=-5, output_tokens=1), Usage(input_tokens=3)) == Usage(
        input_tokens=3, output_tokens=1, is_estimated=True
    )


def test_a_sum_is_estimated_where_one_of_its_usages_is() -> None:
    counted = Usage(input_tokens=1, output_tokens=2)
    assert not total_usage([counted, None]).is_estimated
    guessed = total_usage([counted, Usage(input_tokens=3, output_tokens=4, is_estimated=True)])
    assert (guessed.input_tokens, guessed.output_tokens, guessed.is_estimated) == (4, 6, True)


def test_a_reply_is_charged_for_its_tokens_and_their_price() -> None:
    spent, cost = charge(RunUsage(tokens=5, cost=1.0), Usage(input_tokens=10, output_tokens=5), PRICES)
    assert (spent.tokens, spent.unmeasured) == (20, ())
    assert cost == pytest.approx(0.00002)
    assert spent.cost == pytest.approx(1.00002)


@pytest.mark.parametrize("usage", [None, Usage(input_tokens=1), Usage(output_tokens=1)])
def test_what_cannot_be_counted_is_marked_once(usage: Usage | None) -> None:
    spent, cost = charge(RunUsage(unmeasured=("cost",)), usage, PRICES)
    assert (set(spent.unmeasured), len(spent.unmeasured), cost) == ({"tokens", "cost"}, 2, None)


def test_a_cost_that_is_known_already_goes_before_the_prices() -> None:
    spent, cost = charge(RunUsage(), Usage(input_tokens=1, output_tokens=1), PRICES, cost=0.5)
    assert (spent.cost, cost) == (0.5, 0.5)


def test_without_prices_only_the_cost_is_unknown() -> None:
    spent, cost = charge(RunUsage(), Usage(input_tokens=1, output_tokens=1), None)
    assert (spent.tokens, spent.unmeasured, cost) == (2, ("cost",), None)


def test_an_estimate_is_charged_and_marked() -> None:
    spent, cost = charge(RunUsage(), Usage(input_tokens=10, output_tokens=5), PRICES, is_estimated=True)
    assert (spent.tokens, spent.unmeasured, spent.is_estimated) == (15, (), True)
    assert (spent.known_cost, cost) == (pytest.approx(0.00002), pytest.approx(0.00002))
    later, _ = charge(spent, Usage(input_tokens=10, output_tokens=5), PRICES)
    assert (later.known_cost, later.is_estimated) == (pytest.approx(0.00004), True)


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


def test_a_plan_that_can_be_kept() -> None:
    RunPlan(dialect="anthropic").check()
    RunPlan(dialect="anthropic", limits=RunLimits(cost=1.0), prices=Prices(input=1.0)).check()


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        (RunPlan(dialect="anthropic", limits=RunLimits(cost=1.0)), Code.USAGE),
        (RunPlan(dialect="anthropic", limits=RunLimits(tokens=-1)), Code.USAGE),
        (RunPlan(dialect="anthropic", toolbox=Toolbox((Definition(name="x", schema={"type": 1}),))), Code.CONFIG),
    ],
)
def test_a_plan_that_cannot_be_kept_is_refused_before_anything_is_sent(plan: RunPlan, code: Code) -> None:
    with pytest.raises(Fault) as caught:
        plan.check()
    assert caught.value.code is code
    assert caught.value.hint


FACTS = Facts(rpm=2, tpm=1_000, rpd=100, tpd=1_000_000)


def used(*tokens: int) -> Ledger:
    ledger = Ledger()
    for count in tokens:
        ledger.add_request("acme", "large", count, NOW)
    return ledger


def test_what_the_account_allows_can_go_now() -> None:
    quota = quota_of(used(100), "acme", "large", 200, NOW, FACTS)
    assert (quota.line, quota.can_go_at) == ("", NOW)


def test_a_used_up_minute_says_when_it_can_go() -> None:
    quota = quota_of(used(1, 1), "acme", "large", 200, NOW, FACTS)
    assert quota.can_go_at == NOW + 61
    assert quota.line == "can go in 61 s: requests per minute (2)"


def test_a_used_up_day_says_so_too() -> None:
    quota = quota_of(used(1), "acme", "large", 200, NOW, Facts(rpd=1))
    assert quota.line == "can go in 24 h: requests per day (1)"


@pytest.mark.parametrize(("seconds", "line"), [(30, "can go in 30 s"), (600, "can go in 10 min")])
def test_retry_after_pause_of_the_provider_is_respected(seconds: int, line: str) -> None:
    ledger = Ledger()
    ledger.observe_headers("acme", "large", {"retry-after": str(seconds)}, NOW)
    assert quota_of(ledger, "acme", "large", 1, NOW).line == f"{line}: the pause that the provider asked for"


def test_what_is_larger_than_a_minute_allows_never_can_go() -> None:
    quota = quota_of(Ledger(), "acme", "large", 2_000, NOW, FACTS)
    assert quota.can_go_at is None
    assert quota.line == "2,000 tokens are more than tokens per minute allow (1,000); make the request smaller"
