"""Drives a run: carries out each step of the loop, and records its answer before the loop gets it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar, assert_never

import msgspec

from sightline.agent.core import steps
from sightline.agent.core.approval import Decision
from sightline.agent.core.facts import NO_PROCESS, Remarked, RequestStarted, RunEnded, RunState, RunTaken
from sightline.agent.core.limits import line_of
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.core.tool import Definition, Toolbox, ToolOutcome
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
from sightline.agent.service.tool_calls import CallApproval, HookPoints, ToolRunner, refusal_fault
from sightline.agent.tools.hooks import Hooks
from sightline.agent.tools.tools import Tools
from sightline.catalog.choose import ModelChoice
from sightline.errors import CancelReason, Code, Fault
from sightline.exchange.engine import Engine, EventObserver
from sightline.exchange.phase import Cancellation, cancel_reason, cancellation
from sightline.exchange.recorder import FactObserver
from sightline.journal.journal import StopSignal, drive
from sightline.model.parts import Text
from sightline.model.reply import Reply
from sightline.model.request import Message, Request
from sightline.store.store import Store
from sightline.tokens.cost import cost_of
from sightline.tokens.ledger import Wait
from sightline.transport.waiting import WorkInterrupted


class ToolChanges:
    """Reports how the available tools change. `toolbox` has the tools of the run; `there` are those that were available
    when this process began to drive it."""

    def __init__(self, toolbox: Toolbox, there: Sequence[Definition]) -> None:
        enabled = [each for each in toolbox.definitions if each.is_enabled]
        self._enabled = {each.name for each in enabled}
        self._known = {each.name: each for each in (*there, *enabled)}
        self._looked: Sequence[Definition] = ()

    def changes(self, now: Sequence[Definition]) -> str:
        """Describe what has changed since the last call of this method; empty if nothing has."""
        if now == self._looked:
            return ""
        self._looked = now
        found = {each.name: each for each in now}
        gone = [name for name in self._known if name in self._enabled and name not in found]
        other = [
            name
            for name, each in found.items()
            if (old := self._known.get(name)) and (old.description, old.schema) != (each.description, each.schema)
        ]
        fresh = [name for name in found if name not in self._known]
        self._known = {name: each for name, each in self._known.items() if name not in gone} | found
        words = [
            *_words("gone", gone),
            *_words("changed", other),
            *_words("there again", (name for name in fresh if name in self._enabled)),
            *_words("new, for the next run", (name for name in fresh if name not in self._enabled)),
        ]
        return f"the tools are not as they were: {'; '.join(words)}" if words else ""


def _words(what: str, names: Iterable[str]) -> list[str]:
    listed = ", ".join(names)
    return [f"{listed} {what}"] if listed else []


T = TypeVar("T")

_PAGE_INTERVAL = 0.1
"""Seconds between two announcements of a tool's progress."""

_LISTENER_INTERVAL = 1.0
"""The same for a listener that gets a line for each."""


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
        is_stream = bool(self.standing.began.request.options.stream)
        self._started = engine.clock.monotonic()
        self._progress_announced = self._started - _PAGE_INTERVAL
        self._progress_watched = self._started - _LISTENER_INTERVAL
        self._tool_changes = ToolChanges(plan.toolbox, company.tools.definitions)
        self._hook_points = HookPoints(company.hooks, self.log, self.stop_signal)
        self._sender = RoundSender(
            engine,
            self.choice,
            self.standing.began.session,
            is_stream,
            company.on_event,
            self._hold,
            self._pause,
            company.on_recorded,
            company.gate,
            conversation_of(self.standing.began, self.log.run),
        )
        ask_hooks = self._hook_points.ask
        self._approval = CallApproval(
            lambda number, call: ask_hooks("before_tool", number, call=call), self._ask_approver, plan.policy
        )
        self._tool_runner = ToolRunner(
            company.tools,
            self.log,
            self.stop_signal,
            plan.cap,
            self.choice.facts,
            lambda number, call, outcome: ask_hooks("after_tool", number, call=call, outcome=outcome),
            self._report_progress,
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
                    return steps.CallsDecided(decisions, self._seconds_elapsed())
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
        replied = await self._recall_reply() or await self._send_request(step)
        if replied is None or replied.reply.fault is not None:
            return replied
        verdict = await self._hook_points.ask("after_reply", step.round, reply=replied.reply)
        if verdict is None or verdict.decision != "deny":
            return replied
        reply = msgspec.structs.replace(replied.reply, fault=refusal_fault("a reply", verdict))
        return msgspec.structs.replace(replied, reply=reply)

    async def _recall_reply(self) -> steps.Replied | None:
        """The reply that an earlier process received but could not record any more."""
        exchange, self.standing.exchange = self.standing.exchange, ""
        if not exchange or self.store is None:
            return None
        return await recall_reply(self.store, exchange, self.choice)

    async def _send_request(self, step: steps.AskModel) -> steps.Replied | None:
        request = step.request
        verdict = await self._hook_points.ask("before_request", step.round, request=request)
        if self.stop_signal.is_set:
            return None
        if verdict is not None and verdict.decision == "deny":
            return steps.Replied(Reply(fault=refusal_fault("a request", verdict), dialect=self.choice.dialect))
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

    async def _ask_approver(self, step: steps.Approve) -> Mapping[str, Decision]:
        with self._waiting(step):
            return await self.company.approver.approve(self.log.run, step)

    async def _run_tools(self, step: steps.Use) -> steps.Answer:
        standing, using = self.standing, self._tool_runner
        using.begin(standing.finished, {**self._approval.contexts, **standing.contexts})
        self._approval.contexts = {}
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

    def _report_progress(self, key: str, words: str) -> None:
        """Announce progress at intervals: a tool may report more than a page can show."""
        self.progress[key] = words
        now = self.engine.clock.monotonic()
        if now - self._progress_announced >= _PAGE_INTERVAL:
            self._progress_announced = now
            self.changed()
        if now - self._progress_watched >= _LISTENER_INTERVAL:
            self._progress_watched = now
            self.company.on_progress(key, words)

    # --- people and the end ---

    async def _ask_person(self, question: Question, answering: Callable[[], Awaitable[T]]) -> T:
        """The answer of a person. Raises `WorkInterrupted` if the run is stopped meanwhile."""

        async def ask() -> T:
            # The question is open before it is announced: a watcher may answer at once.
            with self._waiting(question):
                return await answering()

        return await self.stop_signal.unless_soon(ask())

    @contextmanager
    def _waiting(self, question: Question) -> Iterator[None]:
        self.waits_for = question
        self.changed()
        try:
            yield
        finally:
            self.waits_for = None

    async def _answer_rest(self, step: steps.Rest) -> steps.Rested:
        """Whether the run may end. If a hook fails, the run fails: the hook's verdict is unknown, and letting the model
        continue would ask the same hook again and again."""
        is_active = any(isinstance(fact, steps.Rested) and fact.words for fact in self.log.facts)
        reply = self.standing.run.rounds[-1].reply
        verdict = await self._hook_points.ask("stop", step.round, reply=reply, is_active=is_active)
        words = failure = ""
        if verdict is not None and verdict.stop is None:
            if verdict.decision == "deny":
                words = f"You were about to end, and a hook does not let you: {verdict.reason or 'it gave no reason'}"
            elif verdict.has_failed:
                failure = refusal_fault("the end of the run", verdict).message
        return steps.Rested(words, self._seconds_elapsed(), failure)
