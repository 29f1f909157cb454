"""Reviews a draft after every edit: whether it can be sent, its tokens, and what the edit costs in the cache."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from sightline.catalog.facts import Facts
from sightline.editing.draft import Draft
from sightline.editing.section import Category, Section, Tokens
from sightline.editing.validity import Validity, check_draft
from sightline.model.parts import media_of
from sightline.model.request import Message, Request
from sightline.tokens.cache_cost import Prefix, alike, money, reuse
from sightline.tokens.estimate import NOTHING, Estimate, share_out, sum_estimates
from sightline.tokens.estimator import Estimator

_NO_MESSAGE = Message("user")

CATEGORIES: tuple[Category, ...] = ("system", "tools", "history", "results", "user", "attachments", "options")


class CategoryTokens(msgspec.Struct, frozen=True):
    """A segment of the budget bar."""

    name: Category
    tokens: int
    low: int
    high: int


class TokenBudget(msgspec.Struct, frozen=True):
    """The tokens of a draft. `estimate` is for the whole prompt, `window` is the model's context window, `reserve` is
    what is kept free for the reply; the last two are None if unknown."""

    estimate: Estimate
    window: int | None
    reserve: int | None
    categories: tuple[CategoryTokens, ...]
    sections: dict[str, Tokens]


_UNSPOKEN_SECTIONS: tuple[Category, ...] = ("tools", "options")

_Pieces: TypeAlias = dict[tuple[str, Category], int]
"""Tokens by section and category. What belongs to no section on screen has the section ""."""


def count_draft(draft: Draft, estimator: Estimator, facts: Facts) -> tuple[TokenBudget, Estimate]:
    """The budget of a draft, and the estimate of the whole prompt for the checks, whose low end is not raised by
    calibration."""
    request, sections = draft.request, draft.sections
    if request is None:
        whole = estimator.text(draft.data.decode("utf-8", "replace"))
        unread = dict.fromkeys(CATEGORIES, NOTHING) | {sections[0].category: whole}
        return _budget(unread, {sections[0].id: whole}, {}, whole, whole, facts.context_window, facts.max_output), whole
    sums, tokens, pieces = _count_sections(sections, request, estimator)
    sums["tools"] = estimator.tools(request.tools)
    others = estimator.estimate_around_messages(request)
    # What belongs to no section (the frame of the reply, a schema, history that the provider keeps) counts as options.
    rest = _less(others, sums["tools"])
    raw = sum_estimates((rest, *sums.values()))
    sums["options"] += rest
    bundles: dict[Category, str] = {}
    for section in sections[-2:]:
        if section.kind in _UNSPOKEN_SECTIONS and not section.deleted:
            tokens[section.id] = sums[section.category]
            bundles[section.category] = section.id
    pieces |= {(bundles.get(name, ""), name): sums[name].tokens for name in _UNSPOKEN_SECTIONS}
    whole, is_counted = estimator.whole(request, raw)
    reserve = facts.max_output if request.options.max_tokens is None else request.options.max_tokens
    budget = _budget(sums, tokens, pieces, raw, whole, facts.context_window, reserve)
    # Calibration from other requests may suggest that this one is too large, but must not prevent it from being sent.
    low = whole.low if is_counted else min(whole.low, raw.low)
    return budget, Estimate(whole.tokens, low, whole.high, whole.how)


def _count_sections(
    sections: tuple[Section, ...], request: Request, estimator: Estimator
) -> tuple[dict[Category, Estimate], dict[str, Estimate], _Pieces]:
    """The tokens of each category, of each section on screen, and of each section by category. Tools and options are
    counted from the request instead."""
    counted = zip(request.messages, estimator.messages(request.messages), strict=True)
    counts = {
        message.at: (count, sum(map(estimator.part, media_of(message.parts)), NOTHING)) for message, count in counted
    }
    unread = estimator.message(_NO_MESSAGE), NOTHING
    sums, tokens, pieces = dict.fromkeys(CATEGORIES, NOTHING), dict[str, Estimate](), _Pieces()
    for section in sections:
        if section.deleted:
            continue
        count = NOTHING
        if section.kind not in _UNSPOKEN_SECTIONS:
            count, attached = counts.get(section.pointer, unread)
            spoken = _less(count, attached)
            sums[section.category] = _plus(sums[section.category], spoken)
            sums["attachments"] = _plus(sums["attachments"], attached)
            pieces[section.id, "attachments"] = attached.tokens
            # A message of only attachments is itself one.
            pieces[section.id, section.category] = pieces.get((section.id, section.category), 0) + spoken.tokens
        tokens[section.id] = count
    return sums, tokens, pieces


def _budget(
    sums: dict[Category, Estimate],
    tokens: dict[str, Estimate],
    pieces: _Pieces,
    raw: Estimate,
    whole: Estimate,
    window: int | None,
    reserve: int | None,
) -> TokenBudget:
    if whole != raw and raw.tokens:
        # The pieces are rounded, not their sums, so that sections and categories add up to the same total.
        by_section, by_category = dict.fromkeys(tokens, 0), dict.fromkeys(sums, 0)
        for (section, category), share in share_out(whole.tokens, pieces).items():
            by_section[section] = by_section.get(section, 0) + share
            by_category[category] += share
        tokens = {name: _scale(each, by_section[name], whole, raw) for name, each in tokens.items()}
        sums = {name: _scale(each, by_category[name], whole, raw) for name, each in sums.items()}
    return TokenBudget(
        whole,
        window,
        reserve,
        tuple(CategoryTokens(category, each.tokens, each.low, each.high) for category, each in sums.items()),
        {name: Tokens(each.tokens, each.low, each.high) for name, each in tokens.items()},
    )


def _scale(piece: Estimate, tokens: int, whole: Estimate, raw: Estimate) -> Estimate:
    """The tokens of a piece that has this share of the calibrated whole, with its bounds."""
    low = piece.low * whole.low // max(1, raw.low)
    high = piece.high * whole.high // raw.high
    return Estimate(tokens, min(low, tokens), max(high, tokens))


def _less(whole: Estimate, share: Estimate) -> Estimate:
    if share is NOTHING:
        return whole
    tokens = max(0, whole.tokens - share.tokens)
    return Estimate(tokens, min(tokens, max(0, whole.low - share.low)), max(tokens, whole.high - share.high), whole.how)


def _plus(total: Estimate, more: Estimate) -> Estimate:
    return Estimate(total.tokens + more.tokens, total.low + more.low, total.high + more.high, more.how or total.how)


class EditCost(msgspec.Struct, frozen=True, kw_only=True):
    """What an edit costs in the cache: tokens that come from the cache, cached tokens that are lost, and how many of
    those the edit lost.

    `pointer` and `section` are where the prompt begins to differ from the previous request, `reason` is why. Money is
    in US dollars, None if the prices are unknown.
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
    """Calculates the cost of each edit of one request. What does not change between edits is calculated once."""

    def __init__(self, previous: Request, original: Request, estimator: Estimator, facts: Facts) -> None:
        self._estimator = estimator
        self._prices = facts.prices
        self._before = Prefix(previous, estimator)
        self._sent = Prefix(original, estimator)
        self._common_prefix = alike(self._before, self._sent)
        self._baseline_reuse = reuse(self._before, self._sent, known=self._common_prefix)

    def of(self, edited: Request, *, section_at: Callable[[str], str] | None = None) -> EditCost:
        """The cost of sending this request instead of the original. What the original would have broken anyway is not
        attributed to the edit. `section_at` returns the section of a place, as a draft does."""
        now = Prefix(edited, self._estimator)
        found = reuse(self._before, now, known=min(self._common_prefix, alike(self._sent, now)))
        by_edit = max(0, found.broken_tokens - self._baseline_reuse.broken_tokens)
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


class ReviewResult(msgspec.Struct, frozen=True):
    """The review of one draft."""

    validity: Validity
    budget: TokenBudget
    cost: EditCost


class Review:
    """Reviews the drafts of one document, and caches what it can, so that a keystroke costs little.

    `previous` is the previous request of the conversation, or None. `is_vendor` means that it is sent to a provider
    that refuses everything the vendor refuses.
    """

    def __init__(
        self, estimator: Estimator, facts: Facts, previous: Request | None = None, *, is_vendor: bool = False
    ) -> None:
        self._estimator = estimator
        self._facts = facts
        self._previous = previous
        self._is_vendor = is_vendor
        self._costs: Costs | None = None

    def of(self, draft: Draft) -> ReviewResult:
        budget, certain = count_draft(draft, self._estimator, self._facts)
        validity = check_draft(draft, facts=self._facts, estimate=certain, is_vendor=self._is_vendor)
        return ReviewResult(validity, budget, self._cost(draft))

    def _cost(self, draft: Draft) -> EditCost:
        request, original = draft.request, draft.first.request
        if self._previous is None or request is None or original is None:
            return EditCost()
        if self._costs is None:
            self._costs = Costs(self._previous, original, self._estimator, self._facts)
        return self._costs.of(request, section_at=draft.section_at)
