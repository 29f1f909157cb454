"""The calls about pairs: show one with all its details, download its files, edit and mark pairs."""

import msgspec

from sightline.chat.api.bodies import EditWanted, IdsWanted, MarkWanted, SwapWanted
from sightline.chat.api.files import media
from sightline.chat.api.pair_showing import PairShowing
from sightline.chat.api.refusals import not_there
from sightline.chat.api.shapes import PairOpened, Versioned
from sightline.chat.core.facts import (
    AnswerSwapped,
    ChatFact,
    PairEdited,
    PairsDeleted,
    PairsFlagged,
    PairsHandled,
    PairsMoved,
    PairsRestored,
    PairsStarred,
)
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.plan import SendTelemetry
from sightline.chat.core.view import View
from sightline.chat.service.blocks import media_of
from sightline.chat.service.service import ChatService
from sightline.errors import Code, Fault
from sightline.exchange.recording.records import Records
from sightline.model.exchange import Budgeted
from sightline.model.parts import Part
from sightline.web.asgi import WebResponse
from sightline.web.bodies import Query

_MARKS = ("star", "flag", "topic", "hand")


class PairCalls:
    """Each change is one fact."""

    def __init__(self, service: ChatService, showing: PairShowing, records: Records) -> None:
        self._service = service
        self._showing = showing
        self._records = records

    async def get(self, pair: str, query: Query) -> PairOpened:
        """One pair; with `view`, as it is in that view."""
        found = await self._find(pair)
        telemetry = self._service.sends.telemetry(pair) or await self._telemetry_of(found.exchange)
        return self._showing.details(found, await self._view(query), telemetry)

    async def media(self, pair: str, number: str, query: Query) -> WebResponse:
        """The bytes of a file of the question; with `of=answer`, of an image in the answer; with `earlier=N`, in that
        earlier answer."""
        found, of = await self._find(pair), query.text("of") or "question"
        if of not in ("question", "answer"):
            hint = "of is question or answer."
            raise Fault(Code.INVALID_REQUEST, f"there are no files of {of[:40]!r}", hint=hint, status=400)
        parts = found.attachments if of == "question" else self._of_answer(found, query)
        if not number.isascii() or not number.isdecimal() or len(number) > 9 or int(number) >= len(parts):
            raise not_there(f"file of this {of}", number)
        return media(parts[int(number)])

    async def edit(self, pair: str, wanted: EditWanted, query: Query) -> PairOpened:
        """Change the text of the question or of the answer."""
        await self._find(pair)
        if wanted.user_text is None and wanted.assistant_text is None:
            hint = "Give user_text, assistant_text, or both."
            raise Fault(Code.INVALID_REQUEST, "there is nothing to change", hint=hint, status=422)
        await self._service.chat.happen(PairEdited(pair, wanted.user_text, wanted.assistant_text))
        return await self.get(pair, query)

    async def swap(self, pair: str, wanted: SwapWanted, query: Query) -> PairOpened:
        """Swap the answer with an earlier one."""
        await self._find(pair)
        await self._service.chat.happen(AnswerSwapped(pair, wanted.index))
        return await self.get(pair, query)

    async def mark(self, wanted: MarkWanted) -> Versioned:
        """Mark pairs."""
        return await self._happen(wanted.ids, _mark(wanted))

    async def delete(self, wanted: IdsWanted) -> Versioned:
        """Delete pairs."""
        return await self._happen(wanted.ids, PairsDeleted(wanted.ids))

    async def restore(self, wanted: IdsWanted) -> Versioned:
        """Restore pairs."""
        return await self._happen(wanted.ids, PairsRestored(wanted.ids))

    async def _happen(self, ids: tuple[str, ...], fact: ChatFact) -> Versioned:
        history = await self._service.chat.load()
        for pair in ids:
            if pair not in history:
                raise not_there("pair", pair)
        if isinstance(fact, PairsMoved) and fact.topic not in history.topics:
            raise not_there("topic", fact.topic)
        await self._service.chat.happen(fact)
        return Versioned(self._service.chat.version)

    async def _find(self, pair: str) -> MessagePair:
        history = await self._service.chat.load()
        if pair not in history:
            raise not_there("pair", pair)
        return history.get(pair)

    async def _telemetry_of(self, exchange: str) -> tuple[SendTelemetry, ...]:
        """The recorded telemetry of an earlier send, if it is still stored."""
        if not exchange:
            return ()
        try:
            facts = [noted.fact for noted in await self._records.facts(exchange)]
        except Fault:
            return ()  # retention has taken it, or it is on another machine's record
        return tuple(msgspec.convert(each.telemetry, SendTelemetry) for each in facts if isinstance(each, Budgeted))

    async def _view(self, query: Query) -> View | None:
        return (await self._service.views.get(query.text("view"))).view if "view" in query else None

    def _of_answer(self, pair: MessagePair, query: Query) -> tuple[Part, ...]:
        answer = self._showing.answer_of(pair)
        if "earlier" in query:
            answers, index = self._showing.earlier(pair), query.number("earlier", 0)
            if index >= len(answers):
                raise not_there("earlier answer", str(index))
            answer = answers[index]
        return () if answer is None else media_of(answer)


def _mark(wanted: MarkWanted) -> ChatFact:
    given = [name for name in _MARKS if getattr(wanted, name) is not None]
    if len(given) != 1:
        hint = f"Give one of {', '.join(_MARKS)}."
        raise Fault(Code.INVALID_REQUEST, "it is one mark at a time", hint=hint, status=422)
    if wanted.star is not None:
        return PairsStarred(wanted.ids, wanted.star)
    if wanted.flag is not None:
        return PairsFlagged(wanted.ids, wanted.flag)
    if wanted.topic is not None:
        return PairsMoved(wanted.ids, wanted.topic)
    return PairsHandled(wanted.ids, wanted.hand or "")
