"""The budget of a draft: how many tokens each section and each category takes, and how much room there is."""

from typing import NamedTuple

import msgspec

from sightline.catalog.facts import Facts
from sightline.editing.draft import Draft
from sightline.editing.section import Category, Section, Tokens
from sightline.model.message import Message
from sightline.model.parts import Audio, Document, Image, Part, ToolResult
from sightline.model.request import Request
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
