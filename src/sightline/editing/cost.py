"""What an edit costs in the provider's prompt cache, beside what the client's own request would have cost."""

from collections.abc import Callable

import msgspec

from sightline.catalog.facts import Facts
from sightline.model.request import Request
from sightline.tokens.cache_cost import alike, money, reuse
from sightline.tokens.cache_prefix import Prefix
from sightline.tokens.estimator import Estimator


class EditCost(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that come from the cache, tokens of the cache that are lost, and how many of those the edit lost.

    `pointer` and `section` are where the prompt stops being that of the request before, `reason` says why. Money is in
    US dollars, None where the prices are not known.
    """

    kept_tokens: int = 0
    broken_tokens: int = 0
    broken_by_edit: int = 0
    pointer: str = ""
    section: str = ""
    reason: str = ""
    money: float | None = None
    money_by_edit: float | None = None


class Costs:
    """Tells the cost of every edit of one request; what does not change between two edits is worked out once."""

    def __init__(self, previous: Request, original: Request, estimator: Estimator, facts: Facts) -> None:
        self._estimator = estimator
        self._prices = facts.prices
        self._before = Prefix(previous, estimator)
        self._sent = Prefix(original, estimator)
        self._agreed = alike(self._before, self._sent)
        self._anyway = reuse(self._before, self._sent, known=self._agreed)

    def of(self, edited: Request, *, section_at: Callable[[str], str] | None = None) -> EditCost:
        """The cost of sending this instead of the original. What that would have broken anyway is not the edit's doing.

        `section_at` names the section of a place, as a draft does.
        """
        now = Prefix(edited, self._estimator, self._sent)
        found = reuse(self._before, now, known=min(self._agreed, alike(self._sent, now)))
        by_edit = max(0, found.broken_tokens - self._anyway.broken_tokens)
        return EditCost(
            kept_tokens=found.kept_tokens,
            broken_tokens=found.broken_tokens,
            broken_by_edit=by_edit,
            pointer=found.pointer,
            section=section_at(found.pointer) if section_at is not None and found.reason else "",
            reason=found.reason,
            money=money(found, found.broken_tokens, now.tokens, self._prices),
            money_by_edit=money(found, by_edit, now.tokens, self._prices),
        )


def cost_of(
    previous: Request | None,
    original: Request,
    edited: Request,
    estimator: Estimator,
    facts: Facts,
    *,
    section_at: Callable[[str], str] | None = None,
) -> EditCost:
    """The cost of one edit, against the previous request of the conversation; without one nothing was cached."""
    if previous is None:
        return EditCost()
    return Costs(previous, original, estimator, facts).of(edited, section_at=section_at)
