"""What a run of a suite has spent: on answers and on judges, and on nothing that was taken from an earlier answer."""

from collections.abc import Iterable

from sightline.catalog.choose import ModelChoice
from sightline.errors import Code, Fault


class Spending:
    """Dollars, as far as prices are known; `unknown` counts what was paid for at a price that is not.

    A budget can only hold what is known. Who set one is told how much that leaves out.
    """

    def __init__(self, costs: Iterable[float | None] = ()) -> None:
        self.spent = 0.0
        self.unknown = 0
        for cost in costs:
            self.spend(cost)

    def spend(self, cost: float | None) -> None:
        """So much more; None is not known."""
        if cost is None:
            self.unknown += 1
        else:
            self.spent += cost


def check_priced(choice: ModelChoice) -> None:
    """Refuse a model of which nobody could say what it has cost, where there is a budget."""
    prices = choice.facts.prices
    if prices is None or None in (prices.input, prices.output):
        message = f"there is a budget, and the prices of {choice.model} are not known"
        raise Fault(Code.USAGE, message, hint=f'Tell them in [models."{choice.model}"], or leave the budget out.')
