"""An answer of the chat while it comes in: what a new send and a resumed run have in common."""

import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import msgspec

from sightline.agent.core.limits import Quota
from sightline.chat.core.pair import ChatAnswer
from sightline.chat.core.plan import SendTelemetry, Stage
from sightline.chat.core.revisions import revise_pairs, revision
from sightline.chat.service.answerer import Answerer
from sightline.chat.service.chat import Chat
from sightline.chat.service.live_answer import Deltas, LiveAnswer
from sightline.errors import CancelReason, Fault
from sightline.exchange.cancellation import Cancellation, cancellation
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.interception.hold_changes import Changes, changes_while_held
from sightline.journal.driver import StopSignal
from sightline.model.events import Ended, StreamEvent
from sightline.model.exchange import Budgeted, Dropped
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.store.entries import FactEntry

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
