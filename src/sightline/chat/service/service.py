"""The parts of the living chat, put together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.chat.core.facts import CompactionUndone
from sightline.chat.core.history import ChatHistory
from sightline.chat.core.pair import MessagePair, Trouble, answer_of, prompt_too_large, trouble_of
from sightline.chat.core.plan import plan_of
from sightline.chat.core.rewriting import INSTRUCTION, Compaction, compaction_fact, compare, drafting
from sightline.chat.core.sizing import ChatSettings, question
from sightline.chat.service.answerer import SESSION, Answerer, DirectAnswerer, conversation_in, measure
from sightline.chat.service.chat import Chat
from sightline.chat.service.running_send import ending_of_interrupted_pair
from sightline.chat.service.sends import Sends, first_request
from sightline.chat.service.views import Models, Views
from sightline.errors import Code, Fault
from sightline.exchange.cancellation import cancellation
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.prepare import Prepared, prepare
from sightline.model.parts import Part
from sightline.store.store import Logbook
from sightline.tokens.estimate import Estimate, exactly


@dataclass(frozen=True, slots=True)
class SendPreview:
    """`prepared` is the first attempt, where there can be one; `included` are the pairs in it, and `left_out_preflight`
    those that the prompt takes the room of. `trouble` is why it would not be sent, or not in this way."""

    prepared: Prepared | None = None
    included: int = 0
    left_out_preflight: int = 0
    estimate: Estimate | None = None
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Sized:
    """How large the next request is: for the send button, with its band, and whether it can be sent at all. `prompt` is
    what is planned for the question alone."""

    estimate: Estimate
    limit: int
    fits: bool
    line: str
    prompt: int = 0


@dataclass(frozen=True, slots=True)
class Previews:
    """Looks ahead by the same steps that a send takes, and sends nothing."""

    views: Views
    engine: Engine

    async def preview(
        self, view: str, text: str, attachments: tuple[Part, ...] = (), *, before: str = "", replaces: str = ""
    ) -> SendPreview:
        """The body of the next send from this view; `before` and `replaces` as a send has them."""
        looking = await self.views.get(view)
        text, attachments = self.views.mask_question(text, attachments)
        try:
            plan = plan_of(looking.view, text, attachments, before=before, replaces=replaces)
            ready = self.engine.final(first_request(plan, looking.choice), session=SESSION)
        except Fault as fault:
            return SendPreview(trouble=trouble_of(fault))
        left_out = plan.preflight_count if plan.settings.preflight_trimming else 0
        included = len(plan.items) - left_out
        trouble, room = looking.trouble, plan.room
        if trouble is None and plan.is_too_large:
            trouble = prompt_too_large(plan.prompt.tokens, room.limit, room.system + room.tools)
        return SendPreview(
            ready,
            included,
            left_out,
            await measure(self.engine, ready),
            None if trouble is None else trouble_of(trouble),
        )

    async def estimate(self, view: str, text: str, attachments: tuple[Part, ...] = (), *, replaces: str = "") -> Sized:
        """How large the request with this question is: the preview's own number."""
        looking = await self.views.get(view)
        text, attachments = self.views.mask_question(text, attachments)
        limit = looking.view.room.limit
        if question(text, attachments) is None:
            nothing = exactly(0, "nothing to send")
            return Sized(nothing, limit, True, _line(nothing))
        plan = plan_of(looking.view, text, attachments, replaces=replaces)
        try:
            ready = self.engine.final(first_request(plan, looking.choice), session=SESSION)
            estimate = await measure(self.engine, ready)
        except Fault:  # it cannot be written for this model, which the send will say
            estimate = plan.prompt
        return Sized(estimate, limit, not plan.is_too_large, _line(estimate), plan.aut)


def _line(estimate: Estimate) -> str:
    if estimate.is_exact:
        return f"{estimate.tokens:,}"
    band = max(estimate.high - estimate.tokens, estimate.tokens - estimate.low)
    return f"~{estimate.tokens:,} ± {band:,}"


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
        with cancellation("user"):
            reply = await self.engine.ask(
                prepare(prompt, looking.choice),
                on_event=_ignore_event,
                tried=_ignore_event,
                paused=_ignore_event,
                session=SESSION,
                on_recorded=lambda entry: exchanges.append(entry.exchange),
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

    async def close(self, grace: float) -> None:
        """Let what is under way end within so many seconds; what does not is aborted, and kept as far as it came."""
        await self.sends.close(grace)
        await self.chat.close()


def chat_service(
    engine: Engine,
    hub: Hub,
    logbook: Logbook,
    *,
    catalog: Catalog,
    has_key: Callable[[Provider], bool],
    settings: ChatSettings,
    make_id: Callable[[], str],
    default_model: str = "",
    answering: Answerer | None = None,
    process: str = "",
    is_alive: Callable[[str], bool] = lambda _process: True,
) -> ChatService:
    """The chat of a logbook; it is read when it is first asked for. `process` is a name that no other process has, with
    its machine before a colon, and `is_alive` says of such a name of this machine whether that process still runs."""
    asking = answering or DirectAnswerer(engine)
    chat = Chat(
        logbook,
        hub,
        settings=settings,
        now=engine.clock.now,
        make_id=make_id,
        secrets=engine.relay.secrets,
        process=process,
        is_alive=is_alive,
        recovering=partial(ending_of_interrupted_pair, asking, engine.clock.now),
    )
    models = Models(catalog, has_key, engine.memory, default_model)
    views = Views(chat, models, asking)
    return ChatService(
        chat,
        views,
        Sends(chat, views, models, engine=engine, hub=hub, answering=asking),
        Previews(views, engine),
        Compacting(chat, views, engine),
    )
