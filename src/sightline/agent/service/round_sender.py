"""One round's request, from the loop's wish to the reply that it is sent."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from sightline.agent.core.account import usage_of
from sightline.agent.core.steps import Replied
from sightline.catalog.choose import ModelChoice
from sightline.dialects.registry import dialect
from sightline.errors import CANCEL_WORDS, CancelReason, Code, Fault
from sightline.exchange.answer_reading import Heard
from sightline.exchange.engine import Engine
from sightline.exchange.prepare import Prepared, write_prepared
from sightline.exchange.recorder import FactObserver as Telling
from sightline.exchange.recording.exchange_record import read_request
from sightline.model.events import StreamEvent
from sightline.model.exchange import Dropped, Edited, Held, Released
from sightline.model.fold import fold
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.model.usage import Usage
from sightline.store.entries import FactEntry
from sightline.tokens.ledger import Wait
from sightline.transport.retry import LONGEST_WAIT


@dataclass(frozen=True, slots=True)
class Opening:
    """How one request is sent: held until a person lets it go, waiting for the account's limits, and with what its
    caller wants on record of its plan. With `expect_sha256` it is refused if another body would go out."""

    hold: bool = False
    waits: bool = True
    budgeted: tuple[JsonObject, ...] = ()
    expect_sha256: str = ""


@dataclass(frozen=True, slots=True)
class RunGate:
    """Lets the requests of a run go where whoever began it sees to the account's limits. `admitted` returns when one
    can go, with what to call once it is on its way or never will be; `max_wait` is the longest wait that a provider may
    ask for before another attempt."""

    admitted: Callable[[Prepared], Awaitable[Callable[[], None]]]
    max_wait: float = LONGEST_WAIT


async def _at_once(_prepared: Prepared) -> Callable[[], None]:
    return _nothing


def _nothing() -> None:
    """Nobody kept a place for it."""


@dataclass
class RoundSender:
    """Asks the model of a run. `held` hears whether a person is waited for before the request goes out, `paused` how
    long the provider's limits are waited for, and None once they are not, `noted` of each fact of its exchanges.

    `is_stream` is how the run was begun; what a person makes of that in a body counts from then on. Where there is a
    `gate`, it is waited for in place of what the engine knows of the account's limits.
    """

    engine: Engine
    choice: ModelChoice
    session: str
    is_stream: bool
    heard: Heard
    held: Callable[[str], None]
    paused: Callable[[Wait | None], None]
    noted: Telling | None = None
    gate: RunGate | None = None
    conversation: str = ""
    _events: list[StreamEvent] = field(default_factory=list)

    def prepare(self, request: Request) -> Prepared:
        """The exact bytes."""
        says_stream = not dialect(self.choice.dialect).model_in_path
        stream = bool(request.options.stream) if says_stream else self.is_stream
        return write_prepared(request, self.choice, stream=stream)

    async def ask(self, request: Request, exchange: str, opening: "Opening") -> Replied:
        """The reply, whatever became of the request: a fault is one too. The time is not in it."""
        self._events.clear()
        way, gate = _Way(self, exchange), self.gate or RunGate(_at_once)
        sent: Callable[[], None] = _nothing
        try:
            prepared = self.prepare(request)
            sent = await gate.admitted(prepared)
            reply = await self.engine.ask(
                prepared,
                heard=self._hear,
                tried=lambda _attempt: sent(),
                paused=self.paused,
                session=self.session,
                hold=opening.hold,
                waits=opening.waits and self.gate is None,
                noted=way.note,
                budgeted=opening.budgeted,
                exchange=exchange,
                max_wait=gate.max_wait,
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
        """What had come when it was cut off for this reason; None if that was nothing."""
        if not self._events:
            return None
        hint = "Start another to go on."
        fault = Fault(Code.CANCELLED, f"the run was stopped: {CANCEL_WORDS[reason]}", hint=hint, reason=reason)
        return msgspec.structs.replace(fold(self._events, self.choice.dialect), fault=fault)

    def _hear(self, event: StreamEvent) -> None:
        self._events.append(event)
        self.heard(event)

    def _estimate(self, prepared: Prepared, reply: Reply) -> Usage | None:
        """What is counted where the provider does not tell."""
        told = usage_of(reply.usage, None)
        if told is not None and told.input_tokens is not None and told.output_tokens is not None:
            return None
        said = Message("assistant", reply.choice.parts)
        return Usage(
            input_tokens=self.engine.estimate(prepared).tokens,
            output_tokens=self.engine.counter.estimator(self.choice).message(said).tokens,
        )


@dataclass(slots=True)
class _Way:
    """What happens to a request on its way: a person may hold, edit and drop it."""

    asking: RoundSender
    exchange: str
    sent: Request | None = None
    dropped: Fault | None = None
    is_edited: bool = False

    def note(self, noted: FactEntry) -> None:
        self.asking.paused(None)
        if self.asking.noted is not None:
            self.asking.noted(noted)
        match noted.fact:
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
        """What a person has made of the request goes into the rounds that follow."""
        self.asking.held("")
        hold = self.asking.engine.relay.holds.find(self.exchange)
        if self.is_edited and hold is not None and hold.phase == "request" and hold.draft.sha256 == sha256:
            choice = self.asking.choice
            self.sent = read_request(choice.dialect, hold.draft.data, choice.model)
