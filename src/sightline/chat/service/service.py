"""The parts of the living chat, put together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.chat.core.facts import CompactionUndone
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import MessagePair, answer_of
from sightline.chat.core.rewriting import INSTRUCTION, Comparison, compaction_fact, compare, drafting
from sightline.chat.service.answerer import Answerer
from sightline.chat.service.chat import MAIN, Chat
from sightline.chat.service.running_send import ending_of_interrupted_pair
from sightline.chat.service.sends import Previews, Sends
from sightline.chat.service.views import Models, Views
from sightline.errors import Code, Fault
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.outbound import prepare
from sightline.exchange.phase import cancellation
from sightline.settings import ChatSettings
from sightline.store.store import Logbook


class SummaryDraft(Comparison, frozen=True, kw_only=True):
    """A summary that a model has written, what it would save, and the exchange in which it was written."""

    text: str
    exchange: str


@dataclass(frozen=True, slots=True)
class Compacting:
    """Nothing changes before a person accepts a text; even then the pairs are kept."""

    chat: Chat
    views: Views
    engine: Engine

    async def draft(self, view: str, ids: Sequence[str], instruction: str = "") -> SummaryDraft:
        """Let the view's model write a summary. Cancelling this aborts the request."""
        looking = await self.views.get(view)
        pairs, sizer = _pairs_in_order(self.chat.history, ids), looking.view.sizer
        prompt = drafting(pairs, sizer, instruction.strip() or INSTRUCTION)
        exchanges: list[str] = []
        with cancellation("user"):
            reply = await self.engine.ask(
                prepare(prompt, looking.choice),
                on_event=_ignore_event,
                tried=_ignore_event,
                paused=_ignore_event,
                session=self.chat.session,
                on_recorded=lambda entry: exchanges.append(entry.exchange),
                conversation=self.chat.conversation_in(looking.view.topic),
            )
        if reply.fault is not None:
            raise reply.fault
        text = answer_of(reply).text.strip()
        if not text:
            hint = "Try again, or write the summary yourself."
            raise Fault(Code.UPSTREAM_PROTOCOL, "the model has written no summary", hint=hint, status=502)
        saved = compare(pairs, text, sizer)
        return SummaryDraft(saved.before, saved.after, text=text, exchange=exchanges[-1])

    async def compare(self, view: str, ids: Sequence[str], text: str) -> Comparison:
        looking = await self.views.get(view)
        return compare(_pairs_in_order(self.chat.history, ids), text, looking.view.sizer)

    async def accept(self, ids: Sequence[str], text: str) -> str:
        """Replace these pairs by the text. Returns the id of the new pair."""
        history = await self.chat.load()
        fact = compaction_fact(history, tuple(dict.fromkeys(ids)), text, new_id=self.chat.make_id())
        await self.chat.happen(fact)
        return fact.summary.id

    async def undo(self, pair: str) -> None:
        await self.chat.load()
        await self.chat.happen(CompactionUndone(pair))


def _pairs_in_order(history: ChatHistory, ids: Sequence[str]) -> list[MessagePair]:
    pairs = [history.get(each) for each in dict.fromkeys(ids)]
    return sorted(pairs, key=lambda pair: history.key(pair.id))


def _ignore_event(_event: object) -> None:
    """The whole reply is what is wanted."""


@dataclass(frozen=True, slots=True)
class ChatService:
    """What a page can do with the chat."""

    chat: Chat
    views: Views
    sends: Sends
    previews: Previews
    compacting: Compacting

    @property
    def is_idle(self) -> bool:
        """Whether no pair waits for its answer, as far as is known here, and none is about to."""
        return self.sends.is_idle and not self.sends.sending

    async def close(self, grace: float) -> None:
        """Let what is under way end within so many seconds; what does not is aborted, and kept as far as it came."""
        await self.sends.close(grace)
        await self.chat.close()


def chat_service(
    engine: Engine,
    hub: Hub,
    logbook: Logbook,
    *,
    name: str = MAIN,
    catalog: Catalog,
    has_key: Callable[[Provider], bool],
    settings: ChatSettings,
    make_id: Callable[[], str],
    default_model: str = "",
    answering: Answerer,
    process: str = "",
    is_alive: Callable[[str], bool] = lambda _process: True,
) -> ChatService:
    """The chat `name` of a logbook; it is read when it is first asked for. `process` is a name that no other process
    has, with its machine before a colon, and `is_alive` says of such a name of this machine whether that process still
    runs."""
    chat = Chat(
        logbook,
        hub,
        name=name,
        settings=settings,
        now=engine.clock.now,
        make_id=make_id,
        secrets=engine.relay.secrets,
        process=process,
        is_alive=is_alive,
        recovering=partial(ending_of_interrupted_pair, answering, engine.clock.now),
    )
    models = Models(catalog, has_key, engine.memory, default_model)
    views = Views(chat, models, answering)
    return ChatService(
        chat,
        views,
        Sends(chat, views, models, answering),
        Previews(views, engine),
        Compacting(chat, views, engine),
    )
