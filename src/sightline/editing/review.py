"""What a person is told beside a document, after every edit: whether it can be sent, what it takes, what it costs."""

import msgspec

from sightline.catalog.facts import Facts
from sightline.editing.budgeting import Budgeting, TokenBudget
from sightline.editing.cost import Costs, EditCost
from sightline.editing.draft import Draft
from sightline.editing.validity import Checks, Validity
from sightline.model.request import Request
from sightline.tokens.estimator import Estimator


class Reviewed(msgspec.Struct, frozen=True):
    """One draft, looked at."""

    validity: Validity
    budget: TokenBudget
    cost: EditCost


class Review:
    """Looks at the drafts of one document, and remembers, so that a keystroke costs little.

    `previous` is the request that was sent before it in its conversation, if there was one. `is_vendor`: it goes to a
    provider that refuses all that the vendor refuses.
    """

    def __init__(
        self, estimator: Estimator, facts: Facts, previous: Request | None = None, *, is_vendor: bool = False
    ) -> None:
        self._estimator = estimator
        self._facts = facts
        self._previous = previous
        self._checks = Checks(facts, is_vendor=is_vendor)
        self._budgeting = Budgeting(estimator, facts)
        self._costs: Costs | None = None

    def of(self, draft: Draft) -> Reviewed:
        """All that is to be told of a draft."""
        budget = self._budgeting.of(draft)
        return Reviewed(self._checks.of(draft, self._budgeting.certain), budget, self._cost(draft))

    def _cost(self, draft: Draft) -> EditCost:
        request, original = draft.request, draft.first.request
        if self._previous is None or request is None or original is None:
            return EditCost()
        if self._costs is None:
            self._costs = Costs(self._previous, original, self._estimator, self._facts)
        return self._costs.of(request, section_at=draft.section_at)
