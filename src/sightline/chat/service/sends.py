"""Sending: one question at a time, from the view that it was asked in to the pair that it ends as."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import replace
from typing import Literal, TypeAlias

from sightline.agent.core.limits import Quota, quota_of, waiting_by
from sightline.catalog.choose import ModelChoice
from sightline.chat.core.facts import ChatFact, PairAsked, PairReasked, RunJoined
from sightline.chat.core.pair import ChatAnswer, MessagePair
from sightline.chat.core.plan import SendPlan, SendTelemetry, plan_of
from sightline.chat.core.sending import Pause, SendEnding, Step, sending
from sightline.chat.service.answerer import SESSION, Answerer
from sightline.chat.service.chat import Chat
from sightline.chat.service.resumed_run import ResumedRun
from sightline.chat.service.running_send import RunningSend, SendOrder, Steps
from sightline.chat.service.views import Looking, Models, Views, ViewSend
from sightline.errors import Code, Fault
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.interception.final_body import refuse_other
from sightline.exchange.prepare import Prepared, prepare
from sightline.model.parts import Part
from sightline.tokens.ledger import READY
from sightline.wire.cache import BoundedCache

QuotaWish: TypeAlias = Literal["ask", "wait", "anyway"]

MOST_REMEMBERED = 64
"""The telemetry of so many sends is kept in memory; the record has all."""

_LOG = logging.getLogger(__name__)


class Sends:
    """Starts sends, which go on in the background, and aborts them."""

    def __init__(
        self, chat: Chat, views: Views, models: Models, *, engine: Engine, hub: Hub, answering: Answerer
    ) -> None:
        self._chat = chat
        self._views = views
        self._models = models
        self._engine = engine
        self._hub = hub
        self._answerer = answering
        self._running: RunningSend | ResumedRun | None = None
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._remembered: BoundedCache[str, ViewSend] = BoundedCache(MOST_REMEMBERED)

    # --- what is under way ---

    @property
    def sending(self) -> str:
        """The pair that waits for its answer, here or in another process; empty where none does."""
        return self._chat.history.sending

    @property
    def paused(self) -> Quota | None:
        """What is waited for before the next attempt can go, if anything is."""
        return None if self._running is None else self._running.paused

    def so_far(self, pair: str) -> ChatAnswer | None:
        """What has come of the answer, while it comes."""
        return self._running.so_far if self._running is not None and self._running.pair == pair else None

    def telemetry(self, pair: str) -> tuple[SendTelemetry, ...]:
        """The telemetry of its last send, if that is still in memory."""
        sent = self._remembered.peek(pair)
        return () if sent is None else sent.telemetry

    async def wait_until_idle(self) -> None:
        """Wait until nothing is under way."""
        if self._task is not None:
            await asyncio.wait({self._task})

    # --- what a person does ---

    async def send(
        self,
        view: str,
        text: str,
        attachments: tuple[Part, ...] = (),
        *,
        replaces: str = "",
        hold: bool = False,
        step: bool = False,
        expect_sha256: str = "",
        quota: QuotaWish = "ask",
    ) -> str:
        """Ask a new question; its pair is in the history when this returns. What `replaces` names is gone then.

        A prompt that cannot fit, a limit of the account that is used up, or another body than the one that was looked
        at (`expect_sha256`), is a fault, and nothing has happened.
        """
        async with self._starting:
            looking = await self._ready(view)
            text, attachments = self._views.mask_question(text, attachments)
            plan = plan_of(looking.view, text, attachments, replaces=replaces)
            order = self._order(looking, plan, looking.choice, hold=hold, step=step)
            if expect_sha256:
                refuse_other(expect_sha256, self._engine.final(order.first, session=SESSION).sha256)
                # Masks may change until it goes out, so the relay looks once more.
                order = replace(order, expect_sha256=expect_sha256)
            steps, first = self._first(order, quota)
            history = self._chat.history
            topic = history.get(replaces).topic if replaces else looking.view.topic
            pair = MessagePair(
                id=self._chat.make_id(),
                topic=topic,
                model=looking.view.model,
                user_text=text,
                attachments=attachments,
                at=self._chat.now(),
            )
            return await self._start(order, steps, first, PairAsked(pair, replaces), pair.id)

    async def reask(
        self, pair: str, view: str, *, model: str = "", hold: bool = False, step: bool = False, quota: QuotaWish = "ask"
    ) -> str:
        """Ask the same question again where it stands, of this model or else of the same one. The answer that is there
        stays until another has come, and behind that."""
        async with self._starting:
            looking = await self._ready(view)
            earlier = self._chat.history.get(pair)
            name = model or earlier.model or looking.view.model
            choice, through = looking.choice, looking.view
            if name != looking.view.model:
                choice = self._models.resolve(name)
                through = self._views.through(looking, choice, name)
            fact = PairReasked(pair, name)
            self._chat.history.check(fact)  # before anything else is thought about
            plan = plan_of(through, earlier.user_text, earlier.attachments, before=pair)
            order = self._order(looking, plan, choice, hold=hold, step=step)
            steps, first = self._first(order, quota)
            return await self._start(order, steps, first, fact, pair)

    async def resume_run(self, pair: str, run: str) -> bool:
        """Let the run of a pair go on and become its answer; not where the pair is gone, or has that answer.

        The run goes on when this returns; that it cannot is a fault.
        """
        async with self._starting:
            history = await self._chat.load()
            if not history.is_live(pair):
                return False
            known = history.get(pair)
            if known.answer is not None and known.answer.run == run and not known.answer.is_partial:
                return False
            await self._check_quiet()
            resumed = ResumedRun(
                pair, run, chat=self._chat, engine=self._engine, hub=self._hub, answerer=self._answerer
            )
            await self._join(RunJoined(pair, run), pair)
            self._running = resumed
            self._task = asyncio.get_running_loop().create_task(self._over(resumed.run(), resumed.pair))
        await resumed.wait_until_begun()
        return True

    async def cancel(self) -> None:
        """Break off what is under way; what has come of it is kept. The pair has ended when this returns."""
        if self._running is None:
            hint = "It has ended, or another process sends it."
            raise Fault(Code.USAGE, "nothing is being sent from here", hint=hint, status=409)
        self._running.cancel()
        await self.wait_until_idle()

    def resume(self, *, anyway: bool) -> None:
        """Let what waits for the account's limits go on: look again whether it can, or send it `anyway`."""
        if self._running is None:
            raise Fault(Code.USAGE, "no send is waiting", hint="It was sent, or aborted.", status=409)
        self._running.resume(anyway=anyway)

    async def close(self, grace: float) -> None:
        """Let what is under way end within so many seconds, then break it off."""
        if self._task is None:
            return
        await asyncio.wait({self._task}, timeout=grace)
        if self._running is not None:
            self._running.cancel("shutdown")
        await self.wait_until_idle()

    # --- how it begins ---

    async def _ready(self, view: str) -> Looking:
        looking = await self._views.get(view)
        await self._check_quiet()
        if looking.trouble is not None:
            raise looking.trouble
        return looking

    async def _check_quiet(self) -> None:
        if not self.sending:
            await self.wait_until_idle()  # the pair of the last one has ended, and the rest takes a moment
        if self.sending or self._running is not None:
            hint = "Wait for the answer, or stop it."
            raise _conflict_fault("already_sending", "an answer is still on its way", hint)

    def _order(self, looking: Looking, plan: SendPlan, choice: ModelChoice, *, hold: bool, step: bool) -> SendOrder:
        toolsets = looking.view.inherited.toolsets
        return SendOrder(looking, plan, choice, first_request(plan, choice), hold, step, toolsets)

    def _first(self, order: SendOrder, request: QuotaWish) -> tuple[Steps, Step]:
        """The send, brought to its first step; a fault where it does not get there."""
        choice, ledger, clock = order.choice, self._engine.memory.ledger, self._engine.clock
        waiting = waiting_by(ledger, choice.provider_name, choice.model, clock.now, choice.facts)
        steps = sending(order.plan, waiting if request != "anyway" else lambda _tokens: READY)
        try:
            step = next(steps)
        except StopIteration as end:
            ending: SendEnding = end.value
            assert ending.fault is not None
            sent = order.looking.last = ViewSend("", order.looking.view)
            sent.ending, sent.telemetry = ending, ending.telemetry
            raise _with_status(ending.fault) from None
        if isinstance(step, Pause) and (request == "ask" or step.wait.is_endless):
            last = step.telemetry[-1]
            tokens = last.attempt_total_tokens + last.system_tokens + last.tool_tokens
            raise _must_wait(quota_of(ledger, choice.provider_name, choice.model, tokens, clock.now(), choice.facts))
        return steps, step

    async def _start(
        self, order: SendOrder, steps: Steps, first: Step, fact: PairAsked | PairReasked, pair: str
    ) -> str:
        await self._join(fact, pair)
        underway = RunningSend(
            order, steps, pair, chat=self._chat, engine=self._engine, hub=self._hub, answerer=self._answerer
        )
        self._remembered.put(pair, underway.sent)
        order.looking.last = underway.sent
        self._running = underway
        self._task = asyncio.get_running_loop().create_task(self._over(underway.run(first), pair))
        return pair

    async def _join(self, fact: ChatFact, pair: str) -> None:
        """Append the fact with which a pair begins to wait, with heartbeats for other processes."""
        await self._chat.heartbeats.begin(pair)
        try:
            await self._chat.happen(fact)
        except BaseException:
            await self._chat.heartbeats.end()
            raise

    async def _over(self, running: Coroutine[None, None, None], pair: str) -> None:
        try:
            await running
        except Fault as fault:
            # The log could not be added to, or another process has ended the pair; the record has the answer.
            _LOG.error("the end of %s could not be kept: %s", pair, fault.message)
        finally:
            self._running = None
            await self._chat.heartbeats.end()


def first_request(plan: SendPlan, choice: ModelChoice) -> Prepared:
    """The very request of a plan's first attempt."""
    left_out = plan.preflight_count if plan.settings.preflight_trimming else 0
    return prepare(plan.prompt_without(left_out), choice)


def _must_wait(quota: Quota) -> Fault:
    return Fault(
        Code.RATE_LIMITED,
        quota.line,
        hint="Wait for it, or send it anyway.",
        status=429,
        details={"code": "quota_wait", "line": quota.line, "can_go_at": quota.can_go_at},
    )


def _with_status(fault: Fault) -> Fault:
    return Fault(fault.code, fault.message, hint=fault.hint, status=422, details=fault.details)


def _conflict_fault(code: str, message: str, hint: str) -> Fault:
    return Fault(Code.USAGE, message, hint=hint, status=409, details={"code": code})
