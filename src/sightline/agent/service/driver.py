"""Drives a run: carries out each step of the loop, and records its answer before the loop gets it. About calls, it asks
hooks and lets people decide, and it runs those that may run."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar, assert_never

import msgspec

from sightline.agent.core import steps
from sightline.agent.core.approval import Allowed, Decision, Denied, Policy
from sightline.agent.core.facts import (
    NO_PROCESS,
    Remarked,
    RequestStarted,
    RunEnded,
    RunState,
    RunTaken,
    ToolFinished,
    ToolStarted,
)
from sightline.agent.core.limits import line_of
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Cap, ToolOutcome, cap_outcome, replace_refused_parts, text_outcome
from sightline.agent.service.approvers import Approver, Question
from sightline.agent.service.round_sender import (
    Opening,
    RoundSender,
    RunGate,
    behind_marker,
    is_forgotten,
    recall_reply,
)
from sightline.agent.service.run_log import FactListener, RunLog, conversation_of
from sightline.agent.service.run_view import RunPaused
from sightline.agent.tools.hooks import AskHooks, Event, Hooks, HookSubject, HookVerdict
from sightline.agent.tools.tools import ToolChanges, Tools
from sightline.catalog.choose import ModelChoice
from sightline.catalog.facts import Facts
from sightline.errors import CancelReason, Code, Fault
from sightline.exchange.engine import Engine, EventObserver
from sightline.exchange.phase import Cancellation, cancel_reason, cancellation
from sightline.exchange.recorder import FactObserver
from sightline.journal.journal import StopSignal, drive
from sightline.model.json import Json
from sightline.model.parts import Text
from sightline.model.reply import Reply
from sightline.model.request import Message, Request
from sightline.store.store import Store
from sightline.tokens.cost import cost_of
from sightline.tokens.ledger import Wait
from sightline.transport.waiting import WorkInterrupted

T = TypeVar("T")

_PAGE_INTERVAL = 0.1
"""Seconds between two announcements of a tool's progress."""

_LISTENER_INTERVAL = 1.0
"""The same for a listener that gets a line for each."""


@dataclass
class CallApproval:
    """Decides about calls: by the hooks about each, and by `decide`, which asks a person about several. `contexts` has
    the hooks' texts for the model, by the key of the call. `by_hook` has the arguments that hooks wrote; the person
    sees them, and they are used unless the person changes them."""

    ask_hooks: AskHooks
    decide: Callable[[steps.Approve], Awaitable[Mapping[str, Decision]]]
    policy: Policy
    contexts: dict[str, str] = field(default_factory=dict)
    by_hook: dict[str, dict[str, Json] | str] = field(default_factory=dict)

    async def approve(self, step: steps.Approve) -> dict[str, Decision]:
        """The decisions, by the key of the call. Calls about which no decision was made are left out."""
        decisions: dict[str, Decision] = {}
        shown: list[RunnableCall] = []
        for call in step.calls:
            objection = step.objections.get(call.key)
            decision = (
                self._hook_objection(call.key, objection) if objection else await self._automatic_decision(step, call)
            )
            if decision is not None:
                decisions[call.key] = decision
            else:
                changed = self.by_hook.get(call.key)
                shown.append(call if changed is None else msgspec.structs.replace(call, arguments=changed, repairs=()))
        if shown:
            objections = {call.key: step.objections[call.key] for call in shown if call.key in step.objections}
            decided = await self.decide(steps.Approve(step.round, tuple(shown), objections))
            decisions |= {
                call.key: self._merge_hook_change(call.key, decided[call.key]) for call in shown if call.key in decided
            }
        return decisions

    def take_context(self) -> str:
        """The hooks' texts for the model since the last call of this method, also about calls that are not run."""
        contexts, self.contexts = self.contexts, {}
        return "\n".join(filter(None, contexts.values()))

    def _hook_objection(self, key: str, objection: str) -> Decision | None:
        """Deny a call whose arguments a hook changed to invalid ones; None for invalid arguments of a person, who is
        asked again."""
        if self.by_hook.pop(key, None) is None:
            return None
        return Denied(f"It changed the arguments to some that cannot be used: {objection}", by="hook")

    async def _automatic_decision(self, step: steps.Approve, call: RunnableCall) -> Decision | None:
        """The decision of the hooks and the rules; None if a person has to decide."""
        verdict = await self.ask_hooks("before_tool", step.round, call=call)
        is_allowed = call.key in step.allowed
        if verdict is None:
            return Allowed() if is_allowed else None
        self.contexts[call.key] = verdict.context
        if verdict.decision == "deny":
            return Denied(verdict.reason, by="hook")
        if verdict.arguments is not None:
            self.by_hook[call.key] = verdict.arguments
            # A rule that allows the original arguments does not cover others.
            is_allowed = self.policy.ruling(call.name, verdict.arguments).ruling == "allow"
        if verdict.decision == "allow" or (is_allowed and verdict.decision != "ask"):
            return Allowed(verdict.arguments)
        return None

    def _merge_hook_change(self, key: str, decision: Decision) -> Decision:
        """Use the arguments that a hook wrote, unless the person has replaced them."""
        if not isinstance(decision, Allowed):
            return decision
        if decision.arguments is not None:
            self.by_hook.pop(key, None)
            return decision
        return msgspec.structs.replace(decision, arguments=self.by_hook.get(key))


INTERRUPTED = "This call was interrupted, and it is not known how far it got. It was not run again."


@dataclass
class ToolRunner:
    """Runs calls. `facts` describes the model that gets the results. `outcomes` and `contexts` are those of the current
    round so far."""

    tools: Tools
    log: RunLog
    stop_signal: StopSignal
    cap: Cap
    facts: Facts
    ask_hooks: AskHooks
    progress: Callable[[str, str], None]
    outcomes: dict[str, ToolOutcome] = field(default_factory=dict)
    contexts: dict[str, str] = field(default_factory=dict)

    def begin(self, outcomes: dict[str, ToolOutcome], contexts: dict[str, str]) -> None:
        """Start a round with the results that an earlier process has already recorded."""
        self.outcomes, self.contexts = dict(outcomes), dict(contexts)

    async def use(self, step: steps.Use) -> None:
        """Run the calls that have no outcome yet. None is started once the run is to stop."""
        for batch in steps.batches(step.calls):
            todo = [call for call in batch if call.key not in self.outcomes]
            if self.stop_signal.is_set:
                return
            failed: Fault | None = None
            try:
                async with asyncio.TaskGroup() as group:
                    for call in todo:
                        group.create_task(self._run(step.round, call))
            except* Fault as faults:
                failed = _first_fault(faults)
            if failed is not None:  # raising it above wraps it in a group again in early versions of Python 3.11
                raise failed

    async def skip(self, calls: tuple[RunnableCall, ...]) -> None:
        """Do not run these interrupted calls, and tell the model so."""
        for call in calls:
            await self._finish(call.key, text_outcome(INTERRUPTED, is_error=True), "")

    @property
    def context(self) -> str:
        """The text for the model in addition to the results."""
        return "\n".join(words for words in self.contexts.values() if words)

    async def _run(self, number: int, call: RunnableCall) -> None:
        await self.log.note(ToolStarted(call.key))
        began = self.log.now()
        outcome = self.log.mask(await self.tools.use(call, lambda words: self.progress(call.key, words)))
        self.log.observe_tool(call, began, outcome)
        outcome = self.outcomes[call.key] = cap_outcome(replace_refused_parts(outcome, self.facts), self.cap)
        verdict = await self.ask_hooks("after_tool", number, call=call, outcome=outcome)
        context: list[str] = []
        if verdict is not None:
            context = [verdict.context, verdict.reason if verdict.decision == "deny" else ""]
        await self._finish(call.key, outcome, "\n".join(filter(None, context)))

    async def _finish(self, key: str, outcome: ToolOutcome, context: str) -> None:
        self.outcomes[key] = outcome
        self.contexts[key] = context
        await self.log.note(ToolFinished(key, outcome, context))


def _first_fault(faults: BaseExceptionGroup[Fault]) -> Fault:
    found = faults.exceptions[0]
    return _first_fault(found) if isinstance(found, BaseExceptionGroup) else found


@dataclass(frozen=True, slots=True)
class RunParticipants:
    """What takes part in a run: its tools, the approver, the hooks, the gate of its requests, and the listeners. These
    get the stream events of the answer, the facts of its exchanges, the facts of the run, the waits for the provider's
    limits, and the progress of tools by the key of the call."""

    tools: Tools
    approver: Approver
    hooks: Hooks | None = None
    on_event: EventObserver = lambda _event: None
    on_recorded: FactObserver | None = None
    on_fact: FactListener | None = None
    on_pause: Callable[[Wait], None] = lambda _wait: None
    on_progress: Callable[[str, str], None] = lambda _key, _words: None
    gate: RunGate | None = None


@dataclass
class RunDriver:
    """Drives a run. `store` is None if nothing is recorded. `waits_for` is the open question to a person, `held` the
    exchange whose request a person holds, `paused` what the next request waits for, and `progress` what running tools
    report. With `is_stepping`, each request is held. `before` is how many seconds earlier processes took; `opening` is
    how the next request is sent. `changed` is called whenever the run should be shown again."""

    standing: RunState
    log: RunLog
    choice: ModelChoice
    engine: Engine
    make_exchange: Callable[[], str]
    store: Store | None
    company: RunParticipants
    is_stepping: bool = False
    opening: Opening = field(default_factory=Opening)
    before: float = 0.0
    changed: Callable[[], None] = lambda: None
    stop_signal: StopSignal = field(default_factory=StopSignal)
    waits_for: Question | None = None
    held: str = ""
    paused: RunPaused | None = None
    progress: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        engine, plan, company = self.engine, self.standing.began.plan, self.company
        self._cancellation: Cancellation | None = None
        self._started = engine.clock.monotonic()
        self._progress_announced = self._progress_watched = -math.inf
        self._tool_changes = ToolChanges(plan.toolbox, company.tools.definitions)
        self._sender = RoundSender(
            engine,
            self.choice,
            self.standing.began.session,
            bool(self.standing.began.request.options.stream),
            company.on_event,
            self._hold,
            self._pause,
            company.on_recorded,
            company.gate,
            conversation_of(self.standing.began, self.log.run),
        )
        self._approval = CallApproval(
            self._ask_hooks,
            lambda step: self._ask_person(step, lambda: company.approver.approve(self.log.run, step)),
            plan.policy,
        )
        self._tool_runner = ToolRunner(
            company.tools, self.log, self.stop_signal, plan.cap, self.choice.facts, self._ask_hooks, self._on_progress
        )

    async def through(self) -> FinishedRun:
        """Drive the run to its end. A run that is left raises a fault, does not end, and can be resumed."""
        with cancellation("user") as self._cancellation:
            timer = asyncio.get_running_loop().create_task(self._stop_at_time_limit())
            try:
                ended = await drive(
                    self.standing.steps(),
                    self._answer,
                    lambda: self._stop_answer() if self.stop_signal.is_set else None,
                    record=self._record,
                )
                await self.log.note(RunEnded(ended.why, ended.reason))
                return ended
            finally:
                timer.cancel()
                await asyncio.wait({timer})

    def cancel_because(self, reason: CancelReason) -> None:
        """Set the reason for the cancellation that follows."""
        if self._cancellation is not None:
            self._cancellation.reason = reason

    async def _stop_at_time_limit(self) -> None:
        """Stop the work in progress when the time is up. If a person may raise the limit, they are asked between steps
        instead."""
        limits = self.standing.began.plan.limits
        if limits.seconds is None or limits.behaviour == "confirm":
            return
        while (left := limits.seconds - self._seconds_elapsed()) > 0:
            await self.engine.clock.sleep(left)
        self.cancel_because("timeout")
        self.stop_signal.stop(now=True)

    async def _answer(self, step: steps.Step) -> steps.Answer:
        if words := self._tool_changes.changes(self.company.tools.definitions):
            await self.log.note(Remarked(words))
        try:
            match step:
                case steps.AskModel():
                    return await self._answer_ask(step)
                case steps.Approve():
                    decisions = await self.stop_signal.unless_soon(self._approval.approve(step))
                    return steps.CallsDecided(decisions, self._seconds_elapsed(), self._approval.take_context())
                case steps.Use():
                    return await self._run_tools(step)
                case steps.Confirm():
                    goes_on = await self._ask_person(step, lambda: self.company.approver.confirm(self.log.run, step))
                    return steps.Confirmed(goes_on=goes_on, elapsed=self._seconds_elapsed())
                case steps.Rest():
                    return await self.stop_signal.unless_soon(self._answer_rest(step))
                case unreachable:
                    assert_never(unreachable)
        except WorkInterrupted:
            return self._stop_answer()

    async def _record(self, answer: steps.Answer) -> None:
        """Append the answer before the loop gets it: a process that resumes the run sends it again."""
        if self.stop_signal.is_leaving and isinstance(answer, steps.RunStopped):
            await self.log.note(RunTaken(NO_PROCESS))  # this process may stay alive, and any other may resume the run
            hint = f"Resume it: sightline resume {self.log.run}"
            raise Fault(Code.CANCELLED, f"the run {self.log.run} was left", hint=hint)
        await self.log.note(answer)

    def _seconds_elapsed(self) -> float:
        return self.before + self.engine.clock.monotonic() - self._started

    def _stop_answer(self, outcomes: Mapping[str, ToolOutcome] | None = None) -> steps.RunStopped:
        reason = "user" if self._cancellation is None else self._cancellation.reason
        return steps.RunStopped(self._seconds_elapsed(), dict(outcomes or {}), reason)

    # --- requests ---

    async def _answer_ask(self, step: steps.AskModel) -> steps.Answer:
        try:
            replied = await self.stop_signal.unless_now(self._reply(step))
        except WorkInterrupted:
            replied = None
        if replied is None and not self.stop_signal.is_leaving:  # a process that resumes the run asks again
            partial = self._sender.so_far(cancel_reason())
            replied = None if partial is None else steps.Replied(partial)
        if replied is None:
            return self._stop_answer()
        return msgspec.structs.replace(replied, elapsed=self._seconds_elapsed(), cost=self._cost(replied.reply))

    def _cost(self, reply: Reply) -> float | None:
        """The cost of a reply from another model than was requested, whose prices the plan does not have; otherwise
        None."""
        prices = self.choice.prices_for(reply.model or "")
        if prices is self.choice.facts.prices or reply.usage is None:
            return None
        cost = cost_of(reply.usage, prices)
        return None if cost is None else cost.dollars

    async def _reply(self, step: steps.AskModel) -> steps.Replied | None:
        """The reply; None if no request is sent because the run is to stop."""
        exchange, self.standing.exchange = self.standing.exchange, ""
        replied = None
        if exchange and self.store is not None:  # an earlier process may have got the reply, and not recorded it
            replied = await recall_reply(self.store, exchange, self.choice)
        replied = replied or await self._send_request(step)
        if replied is None or replied.reply.fault is not None:
            return replied
        verdict = await self._ask_hooks("after_reply", step.round, reply=replied.reply)
        if verdict is None or verdict.decision != "deny":
            return replied
        reply = msgspec.structs.replace(replied.reply, fault=verdict.fault("a reply"))
        return msgspec.structs.replace(replied, reply=reply)

    async def _send_request(self, step: steps.AskModel) -> steps.Replied | None:
        request = step.request
        verdict = await self._ask_hooks("before_request", step.round, request=request)
        if self.stop_signal.is_set:
            return None
        if verdict is not None and verdict.decision == "deny":
            return steps.Replied(Reply(fault=verdict.fault("a request"), dialect=self.choice.dialect))
        if verdict is not None and verdict.context.strip():
            message = Message("user", (Text(verdict.context),))
            request = msgspec.structs.replace(request, messages=(*request.messages, message))
        opening, self.opening = self.opening, Opening()
        opening = replace(opening, hold=opening.hold or self.is_stepping)
        # A person who inspects a request before it is sent sees all of it.
        rounds = self.standing.run.rounds
        shorter = None if opening.hold or not rounds else behind_marker(request, rounds[-1])
        replied = await self._ask(step, shorter or request, opening)
        if shorter is not None and is_forgotten(replied.reply.fault):
            replied = await self._ask(step, request, opening)
        if replied.sent is None and request is not step.request:
            return msgspec.structs.replace(replied, sent=request)
        return replied

    async def _ask(self, step: steps.AskModel, request: Request, opening: Opening) -> steps.Replied:
        exchange = self.make_exchange()
        await self.log.note(RequestStarted(step.round, exchange))
        return await self._sender.ask(request, exchange, opening)

    def _hold(self, exchange: str) -> None:
        if exchange != self.held:
            self.held = exchange
            self.changed()

    def _pause(self, wait: Wait | None) -> None:
        if wait is not None:
            self.paused = RunPaused(line_of(wait, 0), self.engine.clock.now() + wait.seconds)
            self.company.on_pause(wait)
            self.changed()
        elif self.paused is not None:
            self.paused = None
            self.changed()

    # --- calls ---

    async def _run_tools(self, step: steps.Use) -> steps.Answer:
        standing, using = self.standing, self._tool_runner
        using.begin(standing.finished, standing.contexts)
        try:
            if calls := standing.mid_flight:
                again = await self._ask_person(calls, lambda: self.company.approver.mid_flight(self.log.run, calls))
                await using.skip(tuple(call for call in calls if again.get(call.key) != "again"))
            await self.stop_signal.unless_now(using.use(step))
        except WorkInterrupted:
            return self._stop_answer(using.outcomes)
        finally:
            self.progress.clear()
        if any(call.key not in using.outcomes for call in step.calls):
            return self._stop_answer(using.outcomes)
        return steps.Used(using.outcomes, self._seconds_elapsed(), using.context)

    def _on_progress(self, key: str, words: str) -> None:
        """Announce progress at intervals: a tool may report more than a page can show."""
        self.progress[key] = words
        now = self.engine.clock.monotonic()
        if now - self._progress_announced >= _PAGE_INTERVAL:
            self._progress_announced = now
            self.changed()
        if now - self._progress_watched >= _LISTENER_INTERVAL:
            self._progress_watched = now
            self.company.on_progress(key, words)

    # --- hooks, people and the end ---

    async def _ask_hooks(self, event: Event, number: int, **subjects: HookSubject) -> HookVerdict | None:
        """The verdict of the hooks on an event of this round; None if there are no hooks. Their problems are logged; a
        hook that wants to end the run ends it like a person does."""
        if self.company.hooks is None:
            return None
        verdict = await self.company.hooks.ask(event, self.log.run, number, **subjects)
        remarks = list(verdict.warnings)
        if verdict.stop is not None:
            remarks.append(f"a hook ended the run: {verdict.stop}" if verdict.stop else "a hook ended the run")
        if remarks:
            await self.log.note(*(Remarked(words) for words in remarks))
        if verdict.stop is not None:
            self.stop_signal.stop(now=False)
        return verdict

    async def _ask_person(self, question: Question, answering: Callable[[], Awaitable[T]]) -> T:
        """The answer of a person. Raises `WorkInterrupted` if the run is stopped meanwhile."""

        async def ask() -> T:
            # The question is open before it is announced: a watcher may answer at once.
            self.waits_for = question
            self.changed()
            try:
                return await answering()
            finally:
                self.waits_for = None

        return await self.stop_signal.unless_soon(ask())

    async def _answer_rest(self, step: steps.Rest) -> steps.Rested:
        """Whether the run may end. If a hook fails, the run fails: the hook's verdict is unknown, and letting the model
        continue would ask the same hook again and again."""
        is_active = any(isinstance(fact, steps.Rested) and fact.words for fact in self.log.facts)
        reply = self.standing.run.rounds[-1].reply
        verdict = await self._ask_hooks("stop", step.round, reply=reply, is_active=is_active)
        words = failure = ""
        if verdict is not None and verdict.stop is None:
            if verdict.decision == "deny":
                words = f"You were about to end, and a hook does not let you: {verdict.reason or 'it gave no reason'}"
            elif verdict.has_failed:
                failure = verdict.fault("the end of the run").message
        return steps.Rested(words, self._seconds_elapsed(), failure)
