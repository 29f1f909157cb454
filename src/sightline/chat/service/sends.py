"""Sends questions, one at a time, from the view that they were asked in to the pair that they end as; and previews the
exact bytes of the next send."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sightline.agent.core.limits import Quota
from sightline.catalog.choose import ModelChoice
from sightline.chat.core.facts import ChatFact, PairAsked, PairReasked, RunJoined
from sightline.chat.core.pair import ChatAnswer, MessagePair, Trouble, trouble_of
from sightline.chat.core.plan import SendPlan, SendTelemetry, plan_of
from sightline.chat.core.sending import Pause, SendEnding, Step, sending
from sightline.chat.core.sizing import TokenBand, question
from sightline.chat.service.answerer import Answerer, measure
from sightline.chat.service.chat import Chat
from sightline.chat.service.running_send import ResumedRun, RunningSend, SendJob, Steps, quota_for
from sightline.chat.service.views import Looking, Models, Views, ViewSend
from sightline.errors import Code, Fault
from sightline.exchange.interception.kept_edits import refuse_other
from sightline.exchange.outbound import Prepared, prepare
from sightline.model.parts import Part
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import READY, Wait
from sightline.wire.cache import BoundedCache

QuotaPolicy: TypeAlias = Literal["ask", "wait", "anyway"]

MOST_REMEMBERED = 64
"""The telemetry of this many sends is kept in memory; the record has all of it."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SendPreview:
    """A preview of the next send. `prepared` is the first attempt, if there can be one; `included` is the number of
    pairs in it, and `left_out_preflight` the number of those that the prompt leaves no room for. `trouble` is why it
    would not be sent, or not in this way."""

    prepared: Prepared | None = None
    included: int = 0
    left_out_preflight: int = 0
    estimate: Estimate | None = None
    trouble: Trouble | None = None


class EstimateShown(TokenBand, frozen=True):
    """The size of the next request, and whether its question fits. `line` describes the size for the user; `prompt` is
    planned for the question alone."""

    limit: int
    fits: bool
    line: str
    prompt: int


class Sends:
    """Starts sends, which continue in the background, and aborts them; and previews the next send by the same steps,
    without sending anything."""

    def __init__(self, chat: Chat, views: Views, models: Models, answering: Answerer) -> None:
        self._chat = chat
        self._views = views
        self._models = models
        self.engine = answering.engine
        self._answerer = answering
        self._running: RunningSend | ResumedRun | None = None
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._remembered: BoundedCache[str, ViewSend] = BoundedCache(MOST_REMEMBERED)

    # --- what is under way ---

    @property
    def sending(self) -> str:
        """The pair that waits for its answer, here or in another process; empty if there is none."""
        return self._chat.history.sending

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in progress here or about to begin."""
        return self._running is None and not self._starting.locked()

    @property
    def paused(self) -> Quota | None:
        """The account limit that the next attempt waits for; None if it does not wait."""
        return None if self._running is None else self._running.paused

    def so_far(self, pair: str) -> ChatAnswer | None:
        return self._running.so_far if self._running is not None and self._running.pair == pair else None

    def telemetry(self, pair: str) -> tuple[SendTelemetry, ...]:
        """The telemetry of the pair's last send; empty if it is no longer in memory."""
        sent = self._remembered.peek(pair)
        return () if sent is None else sent.telemetry

    async def wait_until_idle(self) -> None:
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
        quota: QuotaPolicy = "ask",
    ) -> str:
        """Ask a new question. When this returns, its pair is in the history, and the pair `replaces` is deleted.

        Raises a fault, and changes nothing, if the prompt cannot fit, a limit of the account is used up, or the body
        is not the one that the user looked at (`expect_sha256`).
        """
        async with self._starting:
            looking = await self._ready(view)
            text, attachments = self._views.mask_question(text, attachments)
            plan = plan_of(looking.view, text, attachments, replaces=replaces)
            order = self._order(looking, plan, looking.choice, hold=hold, step=step)
            if expect_sha256:
                refuse_other(expect_sha256, self.engine.final(order.first, session=self._chat.session).sha256)
                # Masks may change until it is sent, so the relay checks again.
                order = replace(order, expect_sha256=expect_sha256)
            steps, first = self._first(order, quota)
            pair = MessagePair(
                id=self._chat.make_id(),
                topic=self._chat.history.get(replaces).topic if replaces else looking.view.topic,
                model=looking.view.model,
                user_text=text,
                attachments=attachments,
                at=self._chat.now(),
            )
            return await self._start(order, steps, first, PairAsked(pair, replaces), pair.id)

    async def reask(
        self,
        pair: str,
        view: str,
        *,
        model: str = "",
        hold: bool = False,
        step: bool = False,
        quota: QuotaPolicy = "ask",
    ) -> str:
        """Ask the same question again in place, of this model or else of the same one. The current answer stays until a
        new one has arrived, and is then kept as an earlier answer."""
        async with self._starting:
            looking = await self._ready(view)
            earlier = self._chat.history.get(pair)
            name = model or earlier.model or looking.view.model
            choice, through = looking.choice, looking.view
            if name != looking.view.model:
                choice = self._models.resolve(name)
                through = self._views.through(looking, choice, name)
            fact = PairReasked(pair, name)
            self._chat.history.check(fact)  # before the plan is made
            plan = plan_of(through, earlier.user_text, earlier.attachments, before=pair)
            order = self._order(looking, plan, choice, hold=hold, step=step)
            steps, first = self._first(order, quota)
            return await self._start(order, steps, first, fact, pair)

    async def resume_run(self, pair: str, run: str) -> bool:
        """Resume the run of a pair, so that it becomes the pair's answer. Returns False if the pair is deleted or
        already has that answer. The run is in progress when this returns. Raises a fault if it cannot be resumed."""
        async with self._starting:
            history = await self._chat.load()
            if not history.is_live(pair):
                return False
            known = history.get(pair)
            if known.answer is not None and known.answer.run == run and not known.answer.is_partial:
                return False
            await self._check_quiet()
            resumed = ResumedRun(pair, run, self._chat, self._answerer)
            await self._append_with_heartbeats(RunJoined(pair, run), pair)
            self._running = resumed
            self._task = asyncio.get_running_loop().create_task(self._over(resumed.run(), resumed.pair))
        await resumed.wait_until_begun()
        return True

    async def cancel(self) -> None:
        """Abort the send in progress; what has arrived is kept. The pair has ended when this returns."""
        if self._running is None:
            hint = "It has ended, or another process sends it."
            raise Fault(Code.USAGE, "nothing is being sent from here", hint=hint, status=409)
        self._running.cancel()
        await self.wait_until_idle()

    def resume(self, *, anyway: bool) -> None:
        """End the wait for an account limit: check again whether it can be sent, or send it `anyway`."""
        if self._running is None:
            raise Fault(Code.USAGE, "no send is waiting", hint="It was sent, or aborted.", status=409)
        self._running.resume(anyway=anyway)

    async def close(self, grace: float) -> None:
        """Give the send in progress this many seconds to end, then abort it."""
        if self._task is None:
            return
        await asyncio.wait({self._task}, timeout=grace)
        if self._running is not None:
            self._running.cancel("shutdown")
        await self.wait_until_idle()

    # --- what would be sent ---

    async def preview(
        self, view: str, text: str, attachments: tuple[Part, ...] = (), *, before: str = "", replaces: str = ""
    ) -> SendPreview:
        """The body of the next send from this view, even before there is a question. `before` and `replaces` are as for
        a send."""
        looking = await self._views.get(view)
        text, attachments = self._views.mask_question(text, attachments)
        try:
            plan = plan_of(looking.view, text, attachments, before=before, replaces=replaces, is_draft=True)
            ready = self.engine.final(prepare(plan.first_prompt, looking.choice), session=self._chat.session)
        except Fault as fault:
            return SendPreview(trouble=trouble_of(fault))
        left_out, trouble = plan.preflight_count, looking.trouble
        if trouble is None and question(text, attachments) is None:
            hint = "Write something, or attach a file."
            trouble = Fault(Code.INVALID_REQUEST, "there is nothing to send", hint=hint)
        trouble = trouble or plan.too_large
        shown = None if trouble is None else trouble_of(trouble)
        return SendPreview(ready, len(plan.items) - left_out, left_out, await measure(self.engine, ready), shown)

    async def estimate(
        self, view: str, text: str, attachments: tuple[Part, ...] = (), *, replaces: str = ""
    ) -> EstimateShown:
        """The size of the request with this question: the same number as in the preview."""
        looking = await self._views.get(view)
        text, attachments = self._views.mask_question(text, attachments)
        limit = looking.view.room.limit
        if question(text, attachments) is None:
            return EstimateShown(0, 0, 0, limit, True, "0", 0)
        plan = plan_of(looking.view, text, attachments, replaces=replaces)
        try:
            ready = self.engine.final(prepare(plan.first_prompt, looking.choice), session=self._chat.session)
            estimate = await measure(self.engine, ready)
        except Fault:  # it cannot be written for this model, which the send will report
            estimate = plan.size
        figures, sent = looking.view.figures, plan.items[plan.preflight_count :]
        is_whole = [item.id for item in sent] == list(figures.pairs)
        asked = max(0, estimate.tokens - figures.total if is_whole else plan.size.tokens)
        return EstimateShown(
            estimate.tokens, estimate.low, estimate.high, limit, plan.too_large is None, _line(estimate), asked
        )

    # --- how it begins ---

    async def _ready(self, view: str) -> Looking:
        looking = await self._views.get(view)
        await self._check_quiet()
        if looking.trouble is not None:
            raise looking.trouble
        return looking

    async def _check_quiet(self) -> None:
        if not self.sending:
            await self.wait_until_idle()  # the last pair has ended, and the rest takes a moment
        if self.sending or self._running is not None:
            hint, details = "Wait for the answer, or stop it.", {"code": "already_sending"}
            raise Fault(Code.USAGE, "an answer is still arriving", hint=hint, status=409, details=details)

    def _order(self, looking: Looking, plan: SendPlan, choice: ModelChoice, *, hold: bool, step: bool) -> SendJob:
        toolsets = looking.view.inherited.toolsets
        return SendJob(looking, plan, choice, prepare(plan.first_prompt, choice), hold, step, toolsets)

    def _first(self, order: SendJob, request: QuotaPolicy) -> tuple[Steps, Step]:
        """Advance the send to its first step. Raises a fault if it does not get that far."""
        choice, ledger, clock = order.choice, self.engine.memory.ledger, self.engine.clock

        def wait_for(tokens: int) -> Wait:
            if request == "anyway":
                return READY
            return ledger.wait(choice.provider_name, choice.model, tokens, clock.now(), choice.facts)

        steps = sending(order.plan, wait_for)
        try:
            step = next(steps)
        except StopIteration as end:
            ending: SendEnding = end.value
            assert ending.fault is not None
            sent = order.looking.last = ViewSend("", order.looking.view)
            sent.ending, sent.telemetry = ending, ending.telemetry
            fault = ending.fault
            raise Fault(fault.code, fault.message, hint=fault.hint, status=422, details=fault.details) from None
        if isinstance(step, Pause) and (request == "ask" or step.wait.is_endless):
            limit = quota_for(step, choice, self.engine)
            details = {"code": "quota_wait", "line": limit.line, "can_go_at": limit.can_go_at}
            hint = "Wait for it, or send it anyway."
            raise Fault(Code.RATE_LIMITED, limit.line, hint=hint, status=429, details=details)
        return steps, step

    async def _start(self, order: SendJob, steps: Steps, first: Step, fact: PairAsked | PairReasked, pair: str) -> str:
        await self._append_with_heartbeats(fact, pair)
        underway = RunningSend(order, steps, pair, self._chat, self._answerer)
        self._remembered.put(pair, underway.sent)
        order.looking.last = underway.sent
        self._running = underway
        self._task = asyncio.get_running_loop().create_task(self._over(underway.run(first), pair))
        return pair

    async def _append_with_heartbeats(self, fact: ChatFact, pair: str) -> None:
        """Append the fact with which a pair begins to wait, and start heartbeats for other processes."""
        # Heartbeats first: a process that sees the pair waiting without one considers its sender dead and ends it.
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
            # The log could not be appended to, or another process has ended the pair; the record has the answer.
            _LOG.error("the end of %s could not be kept: %s", pair, fault.message)
        finally:
            self._running = None
            await self._chat.heartbeats.end()


def _line(estimate: Estimate) -> str:
    if estimate.is_exact:
        return f"{estimate.tokens:,}"
    band = max(estimate.high - estimate.tokens, estimate.tokens - estimate.low)
    return f"~{estimate.tokens:,} ± {band:,}"
