"""What a run of a suite has spent: on answers and on judges, and on nothing that was taken from an earlier answer."""

from collections.abc import Iterable

from sightline.catalog.choose import Choice
from sightline.errors import Code, Fault
from sightline.evals.result import Result
from sightline.evals.score import CaseScore, Score


class Purse:
    """Dollars, as far as prices are known."""

    def __init__(self, spent: float = 0.0) -> None:
        self.spent = spent

    def spend(self, cost: float | None) -> None:
        """So much more."""
        self.spent += cost or 0.0


def check_priced(choice: Choice) -> None:
    """Refuse a model of which nobody could say what it has cost, where there is a budget."""
    prices = choice.facts.prices
    if prices is None or None in (prices.input, prices.output):
        message = f"there is a budget, and the prices of {choice.model} are not known"
        raise Fault(Code.USAGE, message, hint=f'Tell them in [models."{choice.model}"], or leave the budget out.')


def spent_on(result: Result) -> float:
    """What a result cost that was written down."""
    answer = 0.0 if result.cached else result.observation.cost or 0.0
    return answer + _graded(result.score)


def _graded(score: CaseScore) -> float:
    return _scores(score.scores) + sum(_graded(turn) for turn in score.turns)


def _scores(scores: Iterable[Score]) -> float:
    """The cost of judges. Where a grader has others inside, theirs are part of its own if it tells one."""
    return sum(each.cost if each.cost is not None else _scores(each.scores) for each in scores)
