"""A request of a run: sends it, shortens it, and finds its reply among the recorded exchanges."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from sightline.agent.core.limits import usage_of
from sightline.agent.core.rounds import Round
from sightline.agent.core.steps import Replied
from sightline.catalog.choose import ModelChoice
from sightline.dialects.registry import dialect
from sightline.errors import CANCEL_WORDS, CancelReason, Code, Fault
from sightline.exchange.engine import Engine, EventObserver
from sightline.exchange.outbound import Prepared, write_prepared
from sightline.exchange.recorder import FactObserver
from sightline.exchange.recording.exchange_record import load_exchange, read_request
from sightline.model.events import StreamEvent
from sightline.model.exchange import Answered, Dropped, Edited, ExchangeFinished, Held, Released
from sightline.model.fold import fold
from sightline.model.json import JsonObject
from sightline.model.parts import Text
from sightline.model.reply import Reply, Usage
from sightline.model.request import Message, Request
from sightline.store.entries import FactEntry
from sightline.store.store import Store
from sightline.store.summary import summary_of
from sightline.tokens.ledger import Wait
from sightline.transport.retry import LONGEST_WAIT


@dataclass(frozen=True, slots=True)
class Opening:
    """How a request is sent: whether it is held until a person releases it, whether it waits for the account's rate
    limits, and what is recorded about the caller's plan. With `expect_sha256`, it is refused if its body would
    differ."""

    hold: bool = False
    waits: bool = True
    budgeted: tuple[JsonObject, ...] = ()
    expect_sha256: str = ""


@dataclass(frozen=True, slots=True)
class RunGate:
    """Admits the requests of a run whose caller watches the account's limits. `admitted` returns when a request can be
    sent, with a function to call once it has been sent or has failed. `max_wait` is the longest wait that a provider
    may ask for before another attempt."""

    admitted: Callable[[Prepared], Awaitable[Callable[[], None]]]
    max_wait: float = LONGEST_WAIT


def _nothing() -> None:
    """Without a gate, there is no slot to free."""


@dataclass
class RoundSender:
    """Sends the requests of a run. `held` gets the exchange that waits for a person. `paused` gets the wait for the
    provider's limits, and None when it is over. `on_recorded` gets each fact of the exchanges.

    `is_stream` is how the run was started; a body that a person edits can change it from then on. If there is a `gate`,
    requests wait for it instead of for the account's limits as the engine knows them.
    """

    engine: Engine
    choice: ModelChoice
    session: str
    is_stream: bool
    on_event: EventObserver
    held: Callable[[str], None]
    paused: Callable[[Wait | None], None]
    on_recorded: FactObserver | None = None
    gate: RunGate | None = None
    conversation: str = ""
    _events: list[StreamEvent] = field(default_factory=list)

    def prepare(self, request: Request) -> Prepared:
        says_stream = not dialect(self.choice.dialect).model_in_path
        stream = bool(request.options.stream) if says_stream else self.is_stream
        return write_prepared(request, self.choice, stream=stream)

    async def ask(self, request: Request, exchange: str, opening: "Opening") -> Replied:
        """Send the request and return the reply. A failure is a reply with a fault. The elapsed time is not set."""
        self._events.clear()
        way = _RequestProgress(self, exchange)
        sent: Callable[[], None] = _nothing
        try:
            prepared = self.prepare(request)
            if self.gate is not None:
                sent = await self.gate.admitted(prepared)
            reply = await self.engine.ask(
                prepared,
                on_event=self._on_event,
                tried=lambda _attempt: sent(),
                paused=self.paused,
                session=self.session,
                hold=opening.hold,
                waits=opening.waits and self.gate is None,
                on_recorded=way.note,
                budgeted=opening.budgeted,
                exchange=exchange,
                max_wait=LONGEST_WAIT if self.gate is None else self.gate.max_wait,
                conversation=self.conversation,
                expect_sha256=opening.expect_sha256,
            )
        except Fault as fault:
            return Replied(Reply(fault=way.dropped or fault, dialect=self.choice.dialect), sent=way.sent)
        finally:
            sent()
            self.held("")
            self.paused(None)
        return Replied(reply, sent=way.sent, estimate=self._estimate(prepared, reply))

    def so_far(self, reason: CancelReason) -> Reply | None:
        """The partial reply when the run was stopped for this reason; None if nothing had arrived."""
        if not self._events:
            return None
        hint = "Start another to go on."
        fault = Fault(Code.CANCELLED, f"the run was stopped: {CANCEL_WORDS[reason]}", hint=hint, reason=reason)
        return msgspec.structs.replace(fold(self._events, self.choice.dialect), fault=fault)

    def _on_event(self, event: StreamEvent) -> None:
        self._events.append(event)
        self.on_event(event)

    def _estimate(self, prepared: Prepared, reply: Reply) -> Usage | None:
        """The estimated usage, if the provider does not report all of it; otherwise None."""
        usage = usage_of(reply.usage, None)
        if usage is not None and usage.is_estimated:
            return usage
        if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            return None
        message = Message("assistant", reply.choice.parts)
        return Usage(
            input_tokens=self.engine.estimate(prepared).tokens,
            output_tokens=self.engine.counter.estimator(self.choice).message(message).tokens,
            is_estimated=True,
        )


@dataclass(slots=True)
class _RequestProgress:
    """What happens to a request before it is sent: a person may hold, edit and drop it."""

    asking: RoundSender
    exchange: str
    sent: Request | None = None
    dropped: Fault | None = None
    is_edited: bool = False

    def note(self, entry: FactEntry) -> None:
        self.asking.paused(None)
        if self.asking.on_recorded is not None:
            self.asking.on_recorded(entry)
        match entry.fact:
            case Held(phase="request"):
                self.asking.held(self.exchange)
            case Edited(operation=operation):
                self.is_edited = self.is_edited or operation != "mask"
            case Released(sha256=sha256):
                self._release(sha256)
            case Dropped(reason=reason):
                hint = "Start another run to go on from here."
                self.dropped = Fault(Code.CANCELLED, f"the request was dropped: {reason}", hint=hint, reason="user")
            case _:
                pass

    def _release(self, sha256: str) -> None:
        """Keep the request as a person has edited it, for the following rounds."""
        self.asking.held("")
        hold = self.asking.engine.relay.holds.find(self.exchange)
        if self.is_edited and hold is not None and hold.phase == "request" and hold.draft.sha256 == sha256:
            choice = self.asking.choice
            self.sent = read_request(choice.dialect, hold.draft.data, choice.model)


def behind_marker(request: Request, last: Round | None) -> Request | None:
    """The request without what the provider stores under the marker of the last reply; None if all of it must be
    sent."""
    if last is None or last.reply.marker is None or last.reply.fault is not None or request.options.store is not True:
        return None
    if last.amendments or any(call.is_edited or call.sent_id is not None for call in last.calls):
        return None
    turns = [n for n, message in enumerate(request.messages) if message.role == "assistant"]
    if not turns or turns[-1] + 1 == len(request.messages):
        return None
    # The first system message, if it is a single text, is sent outside the conversation, and the provider does not
    # carry it over.
    first = request.messages[0]
    is_beside = first.role == "system" and len(first.parts) == 1 and isinstance(first.parts[0], Text)
    messages = (*((first,) if is_beside else ()), *request.messages[turns[-1] + 1 :])
    options = msgspec.structs.replace(request.options, previous_response_id=last.reply.marker)
    return msgspec.structs.replace(request, messages=messages, options=options)


def is_forgotten(fault: Fault | None) -> bool:
    """Whether the provider refuses a request because it no longer knows the marker."""
    if fault is None or fault.code not in (Code.INVALID_REQUEST, Code.MODEL_UNKNOWN):
        return False
    text = f"{fault.message} {fault.details}".lower()
    return "previous response" in text or "previous_response" in text


async def recall_reply(store: Store, exchange: str, choice: ModelChoice) -> Replied | None:
    """The reply of an exchange, and the request as sent if a person edited it; None if the record is incomplete."""
    await store.settle()
    facts = await store.facts(exchange)
    kinds = [type(entry.fact) for entry in facts]
    # Some servers report a truncated reply as complete, which is corrected only while the reply is being read.
    tells_its_end = choice.provider.quirks.reports_length or not dialect(choice.dialect).rules.may_hide_length
    if ExchangeFinished not in kinds or Answered in kinds or not tells_its_end:
        return None
    try:
        found = await load_exchange(store, summary_of(exchange, facts, lambda _provider, _model: None))
        sent = read_request(found.spoken, found.sent, choice.model) if is_edited(facts) else None
        return Replied(found.reply(), sent=sent)
    except Fault:
        return None  # a body is missing or unreadable


def is_edited(facts: Sequence[FactEntry]) -> bool:
    """Whether a person changed the request. Masking does not count, as it is applied to each request anew."""
    return any(isinstance(entry.fact, Edited) and entry.fact.operation != "mask" for entry in facts)
