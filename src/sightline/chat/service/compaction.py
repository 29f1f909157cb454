"""Older pairs summed up by a model, looked at, accepted and taken back by a person."""

from collections.abc import Sequence
from dataclasses import dataclass

from sightline.chat.core.compaction import INSTRUCTION, Compaction, compaction_fact, compare, drafting
from sightline.chat.core.facts import CompactionUndone
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import MessagePair, answer_of
from sightline.chat.service.answerer import SESSION, conversation_in
from sightline.chat.service.chat import Chat
from sightline.chat.service.views import Views
from sightline.errors import Code, Fault
from sightline.exchange.cancellation import cancellation
from sightline.exchange.engine import Engine
from sightline.exchange.prepare import prepare
from sightline.store.entries import FactEntry


@dataclass(frozen=True, slots=True)
class SummaryDraft:
    """A summary that a model has written, what it would save, and the exchange in which it was written."""

    text: str
    comparison: Compaction
    exchange: str


@dataclass(frozen=True, slots=True)
class Compacting:
    """Nothing is changed before a person accepts a text, and then the pairs are still there."""

    chat: Chat
    views: Views
    engine: Engine

    async def draft(self, view: str, ids: Sequence[str], instruction: str = "") -> SummaryDraft:
        """Let the model at hand write a summary. To be cancelled breaks it off."""
        looking = await self.views.get(view)
        pairs, sizer = _pairs_in_order(self.chat.history, ids), looking.view.sizer
        prompt = drafting(pairs, sizer, instruction.strip() or INSTRUCTION)
        exchanges: list[str] = []

        def add_exchange(noted: FactEntry) -> None:
            exchanges.append(noted.exchange)

        with cancellation("user"):
            reply = await self.engine.ask(
                prepare(prompt, looking.choice),
                heard=_unheard,
                tried=_unheard,
                paused=_unheard,
                session=SESSION,
                noted=add_exchange,
                conversation=conversation_in(looking.view.topic),
            )
        if reply.fault is not None:
            raise reply.fault
        text = answer_of(reply).text.strip()
        if not text:
            hint = "Try again, or write the summary yourself."
            raise Fault(Code.UPSTREAM_PROTOCOL, "the model has written no summary", hint=hint, status=502)
        return SummaryDraft(text, compare(pairs, text, sizer), exchanges[-1])

    async def compare(self, view: str, ids: Sequence[str], text: str) -> Compaction:
        """Before and after, for this text."""
        looking = await self.views.get(view)
        return compare(_pairs_in_order(self.chat.history, ids), text, looking.view.sizer)

    async def accept(self, ids: Sequence[str], text: str) -> str:
        """Put the text in the place of these pairs; the answer is the new pair's id."""
        history = await self.chat.load()
        fact = compaction_fact(history, tuple(dict.fromkeys(ids)), text, new_id=self.chat.make_id())
        await self.chat.happen(fact)
        return fact.summary.id

    async def undo(self, pair: str) -> None:
        """Put the pairs back that this summary stands for."""
        await self.chat.load()
        await self.chat.happen(CompactionUndone(pair))


def _pairs_in_order(history: ChatHistory, ids: Sequence[str]) -> list[MessagePair]:
    pairs = [history.get(each) for each in dict.fromkeys(ids)]
    return sorted(pairs, key=lambda pair: history.key(pair.id))


def _unheard(_told: object) -> None:
    """The whole reply is what is wanted."""
