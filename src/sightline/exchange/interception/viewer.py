"""What a user is shown of a request: its sections with the tokens of each, whether it can be sent, and what edits cost.

For a held request that is the document under edit; for any other the body that was sent, which cannot be changed.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final, TypeAlias

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice
from sightline.catalog.facts import Facts
from sightline.catalog.provider import Provider
from sightline.editing.draft import Draft
from sightline.editing.review import EditCost, Review, TokenBudget
from sightline.editing.section import Section, Tokens
from sightline.editing.validity import Validity
from sightline.errors import Fault
from sightline.exchange.client_request import TextHeaders
from sightline.exchange.interception.hold import HeldDraft, HeldRequest, Hold
from sightline.exchange.interception.holds import Holds
from sightline.exchange.memory import Memory
from sightline.exchange.outbound import facts_for
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.exchange.recording.records import Records
from sightline.exchange.routing import choice_of
from sightline.model.request import Request
from sightline.tokens.calibration import digest_chain
from sightline.tokens.estimator import CountedRequest, Estimator
from sightline.wire.cache import BoundedCache

Origin: TypeAlias = tuple[str, int | None]
"""The original text of a section, and its number in the conversation."""

MOST_VIEWS: Final = 16
MOST_LOOKS: Final = 4
"""How many are cached: each is a document of some megabytes at worst."""


@dataclass(frozen=True, slots=True)
class DocumentState:
    """A document as it is shown. `budget` and `cost` are set for a request; the tool calls of a reply have none.

    `follows`: a request of the same conversation was sent before, so the provider may have cached its beginning.
    """

    draft: HeldDraft
    sections: tuple[Section, ...]
    validity: Validity
    budget: TokenBudget | None = None
    cost: EditCost | None = None
    follows: bool = False

    def since(self, before: "DocumentState") -> tuple[Section, ...]:
        """The sections that are new or have changed since `before`."""
        known = {section.id: section for section in before.sections}
        return tuple(section for section in self.sections if known.get(section.id) != section)


class DocumentView:
    """One document that is viewed repeatedly; each draft of it is reviewed once."""

    def __init__(self, review: Review, calibrate: Callable[[Request | None], None], *, follows: bool) -> None:
        self._review = review
        self._follows = follows
        self._calibrate = calibrate
        self._look: DocumentState | None = None
        self._origins: dict[str, Origin] = {}

    def of(self, draft: Draft) -> DocumentState:
        """The state of a draft of the document."""
        if self._look is None or self._look.draft is not draft:
            self._calibrate(draft.request)
            reviewed = self._review.of(draft)
            self._origins = self._origins or _originals(draft.first)
            sections = tuple(
                _with_details(section, reviewed.budget.sections.get(section.id), self._origins.get(section.id))
                for section in draft.sections
            )
            self._look = DocumentState(
                draft, sections, reviewed.validity, reviewed.budget, reviewed.cost, self._follows
            )
        return self._look


def _originals(first: Draft) -> dict[str, Origin]:
    """The original sections of a document, by id."""
    items = set() if first.request is None else {message.at for message in first.request.messages}
    numbers = count()
    return {
        section.id: (section.text, next(numbers) if section.pointer in items else None) for section in first.sections
    }


def _with_details(section: Section, tokens: Tokens | None, origin: Origin | None) -> Section:
    text, index = (None, None) if origin is None else origin
    original = None if text == section.text else text
    return msgspec.structs.replace(section, tokens=tokens, original_content=original, source_message_index=index)


@dataclass
class Viewer:
    """Shows held and recorded requests. The previous request is looked up only when one is viewed."""

    holds: Holds
    records: Records
    catalog: Catalog
    memory: Memory
    _views: BoundedCache[Hold, DocumentView] = field(default_factory=lambda: BoundedCache(MOST_VIEWS))
    _recorded_states: BoundedCache[tuple[str, ...], DocumentState] = field(
        default_factory=lambda: BoundedCache(MOST_LOOKS)
    )

    async def view_hold(self, hold: Hold) -> DocumentState:
        """The state of a held document."""
        if isinstance(hold, HeldRequest) and self._views.get(hold) is None:
            before = await self._before(hold.exchange, hold.choice)
            if self._views.get(hold) is None:  # otherwise another task was faster
                self._clear()
                self._views.put(hold, self._make_view(hold.choice, before, hold.request.headers))
        return self.now(hold)

    def now(self, hold: Hold) -> DocumentState:
        """The same for a hold that was viewed before."""
        if not isinstance(hold, HeldRequest):
            return DocumentState(hold.draft, hold.draft.sections, hold.draft.validity)
        view = self._views.get(hold) or self._make_view(hold.choice, None, hold.request.headers)
        return view.of(hold.draft)

    async def view_recorded(self, exchange: RecordedExchange, spoken: str) -> DocumentState:
        """What was sent, or would have been, in this dialect; it cannot be edited."""
        summary = exchange.summary
        key = summary.id, summary.previous, spoken, exchange.model, hashlib.sha256(exchange.sent).hexdigest()
        if (known := self._recorded_states.get(key)) is None:
            choice = self._choice(summary.provider, exchange.model, spoken)
            before = await self._before(exchange.id, choice)
            self._clear()
            made = self._make_view(choice, before).of(Draft.of(exchange.sent, spoken, exchange.model))
            known = replace(made, sections=tuple(map(_read_only, made.sections)))
            self._recorded_states.put(key, known)
        return known

    def measures(self, exchange: RecordedExchange) -> tuple[Facts, Estimator]:
        """The facts about the model that a recorded request was sent to, and its token estimator."""
        choice = self._choice(exchange.summary.provider, exchange.model, exchange.spoken)
        return choice.facts, self.holds.counter.estimator(choice)

    async def _before(self, exchange: str, choice: ModelChoice) -> Request | None:
        """The previous request, if its cached prefix can be used by this provider and model; None otherwise."""
        try:
            before = await self.records.previous(exchange)
            if before is None or (before.summary.provider, before.model) != (choice.provider_name, choice.model):
                return None
            return before.request()
        except Fault:
            return None  # it can be viewed without the previous request

    def _clear(self) -> None:
        """Drop the views of ended holds: their history may be large."""
        for hold in list(self._views):
            if not hold.is_open:
                self._views.pop(hold)

    def _make_view(self, choice: ModelChoice, before: Request | None, headers: TextHeaders = ()) -> DocumentView:
        estimator = self.holds.counter.estimator(choice)
        name, model = choice.provider_name, choice.model
        counted: list[CountedRequest | None] = []

        def calibrate(request: Request | None) -> None:
            if not counted and request is not None:  # once: every draft belongs to the same conversation
                known = self.memory.longest_counted(digest_chain(name, model, request))
                begun = None if known is None else CountedRequest(request.messages[: known[0]], request.tools, known[1])
                counted.append(begun)
            estimator.continue_from(counted[0] if counted else None)
            self.holds.counter.calibrate(choice, request or Request(), estimator)

        review = Review(estimator, facts_for(choice, headers), before, is_vendor=choice.has_vendor_rules)
        return DocumentView(review, calibrate, follows=before is not None)

    def _choice(self, provider: str, model: str, spoken: str) -> ModelChoice:
        """The destination of a recorded request, as far as the catalogue still knows it."""
        known = self.catalog.providers.get(provider, Provider())
        used = Provider(dialect=spoken, quirks=known.quirks, home=known.home)
        return choice_of(self.catalog, provider, used, model, spoken)


def _read_only(section: Section) -> Section:
    parts = tuple(msgspec.structs.replace(part, editable=False) for part in section.parts)
    return msgspec.structs.replace(section, editable=False, parts=parts)
