"""What the numbers say, in sentences for a person, and above all when they say nothing."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from sightline.evals.core.statistics.intervals import Interval, Mean
from sightline.evals.core.statistics.paired import NOISE, Paired, least_p

Finding: TypeAlias = Literal["better", "worse", "cannot_tell", "nothing"]
"""Of the second side, compared with the first; `nothing`: there is no pair."""


def number(value: float) -> str:
    """A number for a sentence: three decimals, without the zeros at its end."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def pluralize(count: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def describe_interval(interval: Interval) -> str:
    """An interval, with its level."""
    return f"{interval.level * 100:g} % interval {number(interval.low)} to {number(interval.high)}"


def describe_mean(mean: Mean | None) -> str:
    """A mean score with what may be believed of it."""
    if mean is None:
        return "No case has a score."
    many = pluralize(mean.count, "case")
    if mean.clusters < mean.count:
        many += f" in {pluralize(mean.clusters, 'group')}"
    if mean.interval is not None and mean.error is not None:
        # Scores lie between 0 and 1, and so does their mean, however few they are.
        within = msgspec.structs.replace(mean.interval, low=max(0, mean.interval.low), high=min(1, mean.interval.high))
        spread = f"± {number(mean.error)} ({describe_interval(within)})"
        return f"Mean score {number(mean.value)} {spread}, {many}."
    if mean.clusters == 1:
        return f"Mean score {number(mean.value)}, {many}: too few to say how far off it may be."
    if mean.clusters < mean.count:
        return f"Every group scores {number(mean.value)} on average, {many}: that says nothing about other groups."
    return f"Every case scores {number(mean.value)}, {many}: scores that do not differ say nothing about other cases."


def describe_unknown_costs(unknown: int, known: int, noun: str) -> str:
    """How many costs are not known; empty where all are."""
    return f"What {unknown} of {pluralize(unknown + known, noun)} cost is not known." if unknown else ""


def describe_excluded(
    reasons: Iterable[Literal["error", "not_graded", "skipped"]], bounds: tuple[float, float] | None, what: str
) -> str:
    """What is left out of a number, and how far it could move that; empty where nothing is left out."""
    excluded = list(reasons)
    if not excluded:
        return ""
    words = {"error": "ended in an error", "not_graded": "could not be graded", "skipped": "skipped"}
    listed = ", ".join(f"{excluded.count(why)} {text}" for why, text in words.items() if why in excluded)
    text = f"{pluralize(len(excluded), 'result')} left out, and not counted as 0: {listed}."
    if bounds is not None:
        low, high = bounds
        text += f" Had all of them failed, {what} would be {number(low)}; had all passed, {number(high)}."
    return text


def finding_of(paired: Paired | None, level: float) -> Finding:
    """What may be said of the second side. The interval and the exact test have to agree, or it is not said."""
    if paired is None:
        return "nothing"
    interval, difference = paired.difference.interval, paired.difference.value
    if paired.permutation.p > 1 - level or abs(difference) <= NOISE or (interval is not None and interval.holds(0.0)):
        return "cannot_tell"
    return "better" if difference > 0 else "worse"


def describe_difference(paired: Paired | None, first: str, second: str, level: float, ends: tuple[float, float]) -> str:
    """Which of two sides is better, or why that is not known. `ends` are the lowest and highest score of a case."""
    if paired is None:
        return f"{first} and {second} have no graded case in common: nothing can be compared."
    difference = paired.difference
    many = pluralize(difference.count, "case")
    if paired.wins == paired.losses == 0 and paired.differing == 0:
        return f"{first} and {second} score the same on each of {many}{_stuck(ends)}."
    if abs(difference.value) <= NOISE:
        text = f"{second} and {first} score the same on average of {many}"
    else:
        more = "higher" if difference.value > 0 else "lower"
        text = f"{second} scores {number(abs(difference.value))} {more} than {first} on {many}"
    if difference.interval is not None:
        text += f" ({describe_interval(difference.interval)})"
    text += ", p < 0.001" if paired.permutation.p < 0.001 else f", p = {number(paired.permutation.p)}"
    finding = finding_of(paired, level)
    if finding != "cannot_tell":
        return f"{text}: {second} is {finding}."
    return f"{text}: the data cannot tell them apart.{_because(paired, level)}"


def _because(paired: Paired, level: float) -> str:
    difference = paired.difference
    if difference.interval is None or paired.smallest is None or least_p(paired.differing) > 1 - level:
        few = pluralize(paired.differing, "case" if difference.clusters == difference.count else "group")
        return f" Only {few} differ{'s' if paired.differing == 1 else ''}, too few for any test to tell."
    if not difference.interval.holds(0.0):
        return " The interval leaves 0 out, but the exact test does not agree."
    if paired.permutation.p <= 1 - level:
        return " The exact test finds a difference, but the interval holds 0."
    text = " The interval holds 0."
    text += f" A true difference below {number(paired.smallest)} would often be missed with so many cases"
    return text + (f"; about {paired.needed} would be needed for the one seen." if paired.needed else ".")


def _stuck(ends: tuple[float, float]) -> str:
    lowest, highest = ends
    if lowest == highest == 1:
        return ", the highest score there is: these cases are too easy to tell them apart"
    if lowest == highest == 0:
        return ", the lowest score there is: these cases are too hard to tell them apart"
    return ": the data cannot tell them apart"
