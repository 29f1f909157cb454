"""An answer while it comes: what there is of it so far, and what each event adds to which block of it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from sightline.agent.core.quota import Quota
from sightline.chat.core.pair import ChatAnswer, answer_of
from sightline.chat.core.plan import SendTelemetry, Stage
from sightline.chat.core.rewriting import revise_pairs, revision
from sightline.chat.service.answerer import Answerer
from sightline.chat.service.blocks import blocks_of, is_shown
from sightline.chat.service.chat import Chat
from sightline.errors import CancelReason, Fault
from sightline.exchange.cancellation import Cancellation, cancellation
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.interception.hold_changes import Changes, changes_while_held
from sightline.journal.driver import StopSignal
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
)
from sightline.model.exchange import Budgeted, Dropped
from sightline.model.fold import Fold
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.store.entries import FactEntry

EVERY = 1 / 30
"""Seconds between two messages about one block."""

BlockType: TypeAlias = Literal["text", "thinking", "call", "refusal"]


@dataclass(slots=True)
class _Growing:
    kind: BlockType
    name: str = ""
    offset: int = 0
    fragments: list[str] = field(default_factory=list)
    is_announced: bool = False


class Deltas:
    """What was added to the blocks of one pair's answer. `tell` gets it while `is_watched`;
    otherwise characters are only counted.

    The first words are sent at once. Offsets count units of UTF-16, as pages do.
    """

    def __init__(self, pair: str, tell: Callable[[JsonObject], None], is_watched: Callable[[], bool]) -> None:
        self._pair = pair
        self._tell = tell
        self._is_watched = is_watched
        self._blocks: dict[int, _Growing] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, block: int, kind: BlockType, text: str, name: str = "") -> None:
        """So much more of this block."""
        growing = self._blocks.get(block)
        if growing is None:
            growing = self._blocks[block] = _Growing(kind, name)
        growing.fragments.append(text)
        if self._timer is None:
            self._flush()
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._again)

    def restart(self) -> None:
        """Another attempt, which begins with nothing."""
        self.close()
        self._blocks.clear()

    def close(self) -> None:
        """Send what is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flush()

    def _again(self) -> None:
        self._timer = None
        if self._flush():
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._again)

    def _flush(self) -> bool:
        """Whether there was anything."""
        is_watched, had_any = self._is_watched(), False
        for number, growing in self._blocks.items():
            if not growing.fragments:
                continue
            had_any = True
            text = "".join(growing.fragments)
            growing.fragments.clear()
            if is_watched:
                message: JsonObject = {"kind": "delta", "pair": self._pair, "block": number, "type": growing.kind}
                message |= {"offset": growing.offset, "text": text}
                if growing.name and not growing.is_announced:
                    message["name"] = growing.name
                self._tell(message)
                growing.is_announced = True
            growing.offset += _units(text)
        return had_any


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


_BETWEEN = "\n\n"
"""What stands between two pieces of a reasoning."""


class LiveAnswer:
    """Takes the events of one attempt; those of a run with tools come one reply after the other."""

    def __init__(self, dialect: str, deltas: Deltas) -> None:
        self._dialect = dialect
        self._deltas = deltas
        self._rounds: list[Message] = []
        self._before = 0
        self._begin()

    def _begin(self) -> None:
        self._fold = Fold(self._dialect)
        self._parts: list[int] = []
        self._pieces: dict[int, tuple[bool, int]] = {}
        self._has_ended = False

    def add_event(self, event: StreamEvent) -> None:
        """One more event."""
        if self._has_ended:  # another reply begins; the results of tools come with `went`
            self._rounds = list(self.answer.messages)
            self._before += len(self._parts)
            self._begin()
        self._fold.add(event)
        if getattr(event, "choice", 0):
            return  # only the first of several answers is the chat's
        match event:
            case TextReceived(part=part, text=text):
                self._deltas.add(self._block(part), "text", text)
            case ThinkingReceived(part=part):
                self._deltas.add(self._block(part), "thinking", self._thought(event))
            case RefusalReceived(part=part, text=text):
                self._deltas.add(self._block(part), "refusal", text)
            case ToolCallBegun(part=part, name=name):
                self._deltas.add(self._block(part), "call", "", name)
            case ArgumentsReceived(part=part, fragment=fragment):
                self._deltas.add(self._block(part), "call", fragment)
            case PartReceived(part=part, value=value) if is_shown(value):
                self._block(part)
            case SignatureReceived(part=part) | CitationReceived(part=part):
                self._block(part)  # an encrypted reasoning has nothing else
            case Ended():
                self._has_ended = True
            case _:
                pass

    def went(self, messages: tuple[Message, ...]) -> None:
        """Replace the rounds so far, with the results of tools; another reply follows."""
        self._rounds = list(messages)
        self._before = len(blocks_of(ChatAnswer(messages=messages)))
        self._begin()

    @property
    def answer(self) -> ChatAnswer:
        """What has come so far."""
        return answer_of(self._fold.reply, rounds=tuple(self._rounds))

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come that could be shown."""
        return not self._rounds and not self._parts

    def _block(self, part: int) -> int:
        """The number of the block that a part is; one that begins late stands where its number says."""
        if part not in self._parts:
            self._parts.append(part)
            self._parts.sort()
        return self._before + self._parts.index(part)

    def _thought(self, event: ThinkingReceived) -> str:
        piece = event.summary, event.piece
        before = self._pieces.get(event.part, piece)
        self._pieces[event.part] = piece
        return event.text if before == piece else _BETWEEN + event.text


def partial_of(answer: ChatAnswer, finish: str, exchange: str, at: float) -> ChatAnswer | None:
    """The part of an aborted answer that had come; None if nothing had."""
    if not answer.messages:
        return None
    return msgspec.structs.replace(answer, finish=finish, exchange=exchange, at=at)


T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_BEGINNINGS: frozenset[Stage] = frozenset({"attempt", "overflow_retry"})
_BEFORE: frozenset[Stage] = frozenset({"preflight", "waiting", *_BEGINNINGS})
"""Stages before an attempt; all others belong to the attempt before."""


class SendTracing:
    """`exchange` is the latest one. `mask` removes secrets from the telemetry."""

    def __init__(self, hub: Hub, now: Callable[[], float], mask: Callable[[str], str]) -> None:
        self.exchange = ""
        self.was_dropped = False
        self._hub = hub
        self._now = now
        self._mask = mask
        self._next = 0

    def on_recorded(self, entry: FactEntry) -> None:
        """A fact of an exchange is on record."""
        self.exchange = entry.exchange
        self._next = entry.n + 1
        self.was_dropped = isinstance(entry.fact, Dropped)

    def plan_telemetry(self, telemetry: Iterable[SendTelemetry]) -> tuple[JsonObject, ...]:
        """What belongs to the exchange that is about to begin. What came of the one before is added to that."""
        telemetry = tuple(telemetry)
        self.add(each for each in telemetry if each.stage not in _BEFORE)
        return tuple(self._plain(each) for each in telemetry if each.stage in _BEFORE)

    def add(self, telemetry: Iterable[SendTelemetry]) -> None:
        """Add what came of the latest exchange; where there was none, nothing is on record of it."""
        for each in telemetry:
            if self.exchange:
                budgeted = FactEntry(self.exchange, self._next, self._now(), Budgeted(self._plain(each)))
                self._next += 1
                try:
                    self._hub.record([budgeted])
                except Fault as fault:  # the answer is worth more than its telemetry
                    _LOG.error("telemetry of %s could not be recorded: %s", self.exchange, fault.message)
                    self._hub.owe([budgeted])

    def _plain(self, telemetry: SendTelemetry) -> JsonObject:
        """As JSON. The messages stand with the attempt that they are of, and not again with what came of it."""
        if telemetry.stage not in _BEGINNINGS:
            telemetry = msgspec.structs.replace(telemetry, messages=())
        plain: JsonObject = msgspec.json.decode(self._mask(msgspec.json.encode(telemetry).decode()))
        return plain


class AnswerProgress:
    """The answer of `pair` as far as it has come. `paused` is what the account's limits make it wait for."""

    def __init__(
        self, pair: str, *, chat: Chat, engine: Engine, hub: Hub, answerer: Answerer, dialect: str = "", run: str = ""
    ) -> None:
        self.pair = pair
        self.paused: Quota | None = None
        self._chat = chat
        self._engine = engine
        self._answerer = answerer
        self._run = run
        self._tracing = SendTracing(hub, engine.clock.now, chat.mask)
        self._deltas = Deltas(pair, chat.announce, lambda: chat.is_watched)
        self._live = LiveAnswer(dialect, self._deltas)
        self._changes: Changes = ()
        self._stop = StopSignal()
        self._reason: CancelReason = "user"
        self._cancellation: Cancellation | None = None

    @property
    def so_far(self) -> ChatAnswer:
        """What has come of the answer."""
        return msgspec.structs.replace(self._live.answer, run=self._run)

    def cancel(self, reason: CancelReason = "user") -> None:
        """Abort it, also before it has begun."""
        self._reason = reason
        if self._cancellation is not None:
            self._cancellation.reason = reason
        self._stop.stop(now=True)

    async def _abortable(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work; `WorkInterrupted` if it is aborted. What records the work finds the reason in its
        context."""
        with cancellation(self._reason) as self._cancellation:
            return await self._stop.unless_now(work)

    def _on_recorded(self, entry: FactEntry) -> None:
        self._tracing.on_recorded(entry)
        self._changes += changes_while_held(self._engine.relay.holds, entry)

    def _on_event(self, event: StreamEvent) -> None:
        self._live.add_event(event)
        if self._run and isinstance(event, Ended):
            self._deltas.close()
            self._chat.touch(self.pair)  # a person may have to decide about the calls of the reply

    def _on_rounds(self, messages: tuple[Message, ...]) -> None:
        self._live.went(messages)
        self._chat.touch(self.pair)


async def revise(
    chat: Chat, pair: str, sent: tuple[str, ...], answer: ChatAnswer | None, changes: Changes
) -> ChatAnswer | None:
    """Take these changes over into the pair and into those that were `sent` with it. The result is the answer, whose
    rounds with tools may be among what was changed."""
    history = chat.history
    if not changes or not history.is_live(pair):
        return answer
    current = msgspec.structs.replace(history.get(pair), answer=answer)
    earlier = (history.get(name) for name in sent if name != pair and history.is_live(name))
    before = {each.id: each for each in (*earlier, current)}
    after = dict(before)
    for each in changes:
        after |= revise_pairs(list(after.values()), pair, each)
    for name, now in after.items():
        if name == pair:
            answer = now.answer
            now = msgspec.structs.replace(now, answer=before[name].answer)
        if now != before[name]:
            await chat.happen(revision(before[name], now))
    return answer
