"""The review of a draft after every edit: whether it can be sent, its tokens, and what the edit costs in the cache."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from sightline.catalog.facts import Facts
from sightline.editing.draft import Draft
from sightline.editing.section import Category, Section, Tokens
from sightline.editing.validity import Checks, Validity
from sightline.model.message import Message
from sightline.model.parts import Audio, Document, Image, Part, ToolResult
from sightline.model.request import Request
from sightline.tokens.cache_cost import Prefix, alike, money, reuse
from sightline.tokens.estimate import NOTHING, Estimate, sum_estimates
from sightline.tokens.estimator import Estimator

_NOBODY = Message("user")

CATEGORIES: tuple[Category, ...] = ("system", "tools", "history", "user", "attachments", "options")


class CategoryTokens(msgspec.Struct, frozen=True):
    """One stretch of the budget bar."""

    name: Category
    tokens: int
    low: int
    high: int


class Total(msgspec.Struct, frozen=True):
    """The whole prompt; `how` says what the number rests on."""

    tokens: int
    low: int
    high: int
    how: str = ""


class TokenBudget(msgspec.Struct, frozen=True):
    """`window` is what the model takes, `reserve` what is kept free for the reply; None where it is not known."""

    estimate: Total
    window: int | None
    reserve: int | None
    categories: tuple[CategoryTokens, ...]
    sections: dict[str, Tokens]

    @property
    def whole(self) -> Estimate:
        """The whole prompt."""
        return Estimate(self.estimate.tokens, self.estimate.low, self.estimate.high, self.estimate.how)


def budget_of(draft: Draft, estimator: Estimator, facts: Facts) -> TokenBudget:
    """Count one draft."""
    return Budgeting(estimator, facts).of(draft)


def with_tokens(sections: tuple[Section, ...], budget: TokenBudget) -> tuple[Section, ...]:
    """The sections with their tokens."""
    return tuple(msgspec.structs.replace(section, tokens=budget.sections.get(section.id)) for section in sections)


class _Count(NamedTuple):
    """What a section costs: all of it, and how much of that are attachments."""

    category: Category
    whole: Estimate
    attached: Estimate


_BUNDLES = ("tools", "options")
_NO_COUNT = _Count("options", NOTHING, NOTHING)


class Budgeting:
    """Counts the drafts of one document. What is the same in the next draft is not counted again."""

    def __init__(self, estimator: Estimator, facts: Facts) -> None:
        self._estimator = estimator
        self._facts = facts
        self.certain = NOTHING
        """The whole prompt of the latest draft, as checks take it: what was only learned does not raise its low end."""
        self._sections: tuple[Section, ...] | None = None
        self._messages: list[Message] = []
        self._counts: list[_Count] = []
        self._sums: dict[Category, Estimate] = {}
        self._tokens: dict[str, Tokens] = {}

    def of(self, draft: Draft) -> TokenBudget:
        """The budget of a draft."""
        request, sections = draft.request, draft.sections
        if request is None:
            return self._unread(draft)
        self._recount(sections, request)
        self._sums["tools"] = self._estimator.tools(request.tools)
        others = self._estimator.estimate_by_rules(msgspec.structs.replace(request, messages=()))
        rest = _less(others, self._sums["tools"])
        raw = sum_estimates((rest, *self._sums.values()))
        whole, is_counted = self._estimator.whole(request, raw)
        # A lesson about other requests may say that this one is too large; it must not be what keeps it from going.
        self.certain = whole if is_counted else _at_least(whole, raw.low)
        return self._budget(sections, rest, raw, whole, _reserve(request, self._facts))

    def _unread(self, draft: Draft) -> TokenBudget:
        whole = self._estimator.text(draft.data.decode("utf-8", "replace"))
        self.certain = whole
        self._sections, self._counts = None, []
        self._sums = dict.fromkeys(CATEGORIES, NOTHING) | {draft.sections[0].category: whole}
        self._tokens = {draft.sections[0].id: _tokens(whole)}
        return self._budget(draft.sections, NOTHING, whole, whole, self._facts.max_output)

    def _recount(self, sections: tuple[Section, ...], request: Request) -> None:
        places = {message.at: message for message in request.messages}
        messages = [places.get(section.pointer, _NOBODY) for section in sections]
        if self._sections is not None and len(sections) == len(self._sections):
            # A section shows the whole document, and a message is read on screen: either can change without the other.
            before = zip(self._sections, sections, self._messages, messages, strict=True)
            changed = [
                index
                for index, (old, new, read, now) in enumerate(before)
                if old is not new or (read is not now and read != now)
            ]
            for index in changed:
                self._tokens.pop(self._sections[index].id, None)
        else:
            changed = list(range(len(sections)))
            self._counts = [_NO_COUNT] * len(sections)
            self._sums, self._tokens = dict.fromkeys(CATEGORIES, NOTHING), {}
        for index in changed:
            section = sections[index]
            self._move(self._counts[index], -1)
            count = self._counts[index] = self._count(section, messages[index])
            self._move(count, 1)
            if not section.deleted:
                self._tokens[section.id] = _tokens(count.whole)
        self._sections, self._messages = sections, messages

    def _move(self, count: _Count, sign: int) -> None:
        sums, attached = self._sums, count.attached
        rest = _less(count.whole, attached)
        sums[count.category] = _plus(sums[count.category], rest, sign)
        sums["attachments"] = _plus(sums["attachments"], attached, sign)

    def _count(self, section: Section, message: Message) -> _Count:
        if section.deleted or section.kind in _BUNDLES:
            return _NO_COUNT
        attached = _attachments(message.parts, self._estimator)
        return _Count(section.category, self._estimator.message(message), attached)

    def _budget(
        self, sections: tuple[Section, ...], rest: Estimate, raw: Estimate, whole: Estimate, reserve: int | None
    ) -> TokenBudget:
        # What belongs to no section (the frame of the reply, a schema, history that the provider keeps) are options.
        sums = {**self._sums, "options": self._sums["options"] + rest}
        tokens = dict(self._tokens)
        for section in sections[-2:]:
            if section.kind in _BUNDLES and not section.deleted:
                tokens[section.id] = _tokens(sums[section.category])
        if whole != raw and raw.tokens:
            scale = _Scale(whole, raw)
            tokens = {name: scale.of(each) for name, each in tokens.items()}
            sums = {category: _estimate(scale.of(_tokens(each))) for category, each in sums.items()}
            others = sum_estimates(each for category, each in sums.items() if category != "options")
            sums["options"] = _less(whole, others)
        return TokenBudget(
            Total(whole.tokens, whole.low, whole.high, whole.how),
            self._facts.context_window,
            reserve,
            tuple(CategoryTokens(category, each.tokens, each.low, each.high) for category, each in sums.items()),
            tokens,
        )


def _attachments(parts: tuple[Part, ...], estimator: Estimator) -> Estimate:
    found = NOTHING
    for part in parts:
        if isinstance(part, Image | Document | Audio):
            found += estimator.part(part)
        elif isinstance(part, ToolResult):
            found += _attachments(part.parts, estimator)
    return found


class _Scale:
    """What past counts of the provider say about the whole is shared out over its pieces."""

    def __init__(self, whole: Estimate, raw: Estimate) -> None:
        self._raw, self._whole = raw, whole

    def of(self, piece: Tokens) -> Tokens:
        tokens = piece.tokens * self._whole.tokens // self._raw.tokens
        low = piece.low * self._whole.low // max(1, self._raw.low)
        high = piece.high * self._whole.high // self._raw.high
        return Tokens(tokens, min(low, tokens), max(high, tokens))


def _less(whole: Estimate, share: Estimate) -> Estimate:
    tokens = max(0, whole.tokens - share.tokens)
    return Estimate(tokens, min(tokens, max(0, whole.low - share.low)), max(tokens, whole.high - share.high), whole.how)


def _plus(total: Estimate, more: Estimate, sign: int) -> Estimate:
    tokens, low, high = more.tokens * sign, more.low * sign, more.high * sign
    return Estimate(total.tokens + tokens, total.low + low, total.high + high, more.how or total.how)


def _at_least(whole: Estimate, low: int) -> Estimate:
    return Estimate(whole.tokens, min(whole.low, low), whole.high, whole.how)


def _tokens(estimate: Estimate) -> Tokens:
    return Tokens(estimate.tokens, estimate.low, estimate.high)


def _estimate(tokens: Tokens) -> Estimate:
    return Estimate(tokens.tokens, tokens.low, tokens.high)


def _reserve(request: Request, facts: Facts) -> int | None:
    return facts.max_output if request.options.max_tokens is None else request.options.max_tokens


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
        """Review one draft."""
        budget = self._budgeting.of(draft)
        return Reviewed(self._checks.of(draft, self._budgeting.certain), budget, self._cost(draft))

    def _cost(self, draft: Draft) -> EditCost:
        request, original = draft.request, draft.first.request
        if self._previous is None or request is None or original is None:
            return EditCost()
        if self._costs is None:
            self._costs = Costs(self._previous, original, self._estimator, self._facts)
        return self._costs.of(request, section_at=draft.section_at)
