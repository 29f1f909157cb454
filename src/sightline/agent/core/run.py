"""The tool loop: a generator that yields steps until the run has ended.

The loop decides and remembers; a driver sends, shows, runs and waits. Given the same answers, the loop yields the same
steps, which is why a run can be resumed.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, assert_never

import msgspec

from sightline.agent.core.approval import Policy
from sightline.agent.core.arguments import RefusedArguments, read_arguments
from sightline.agent.core.conversation import RunConversation
from sightline.agent.core.limits import (
    BEFORE_ASK,
    BEFORE_USE,
    LimitName,
    Reached,
    Repeats,
    RunLimits,
    RunUsage,
    charge,
    find_reached_limit,
    usage_of,
)
from sightline.agent.core.rounds import CallRecord, FinishedRun, Pending, Round, RunPolicy, Why
from sightline.agent.core.steps import (
    Answer,
    Approve,
    AskModel,
    CallsDecided,
    Confirm,
    Confirmed,
    Replied,
    Rest,
    Rested,
    RunnableCall,
    RunStopped,
    Step,
    Use,
    Used,
)
from sightline.agent.core.tool import Cap, Definition, Toolbox, ToolOutcome, text_outcome
from sightline.catalog.facts import Prices
from sightline.errors import CancelReason, Code, Fault
from sightline.model.parts import Part, Text, Thinking, ToolCall
from sightline.model.reply import Reply
from sightline.model.request import Request


class RunPlan(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The settings of a run. `dialect` is the one that the provider speaks, in which every request will be written.

    With `is_hooked`, hooks see every call before it runs, including those that a rule allows, and the last reply before
    the run ends.
    """

    dialect: str
    toolbox: Toolbox = Toolbox()
    policy: Policy = Policy()
    limits: RunLimits = RunLimits()
    cap: Cap = Cap()
    prices: Prices | None = None
    is_hooked: bool = False

    def check(self) -> None:
        """Raise a fault if the plan cannot be carried out."""
        self.toolbox.check()
        self.limits.check()
        if self.limits.cost is not None and self.prices is None:
            raise Fault(
                Code.USAGE,
                "there is a limit of cost, and the prices of this model are not known",
                hint="Limit the tokens instead, or set the prices in [models].",
            )


@dataclass(frozen=True, slots=True)
class ReplyOutcome:
    """What follows from a reply: `use` its calls, `pause` because the model has not ended its turn, or `end` the run,
    for the reason `why`.

    `parts` are added to the conversation. If `is_cut`, the reply is incomplete, and none of its calls is run.
    """

    then: Literal["use", "pause", "end"]
    parts: tuple[Part, ...]
    why: Why = "answered"
    is_cut: bool = False


def read_reply(reply: Reply, source: str) -> ReplyOutcome:
    """Interpret a reply to a request of the dialect `source`. Only the first choice counts."""
    choice = reply.choice
    if reply.fault is not None:
        return ReplyOutcome("end", (), "cancelled" if reply.fault.code is Code.CANCELLED else "failed", is_cut=True)
    parts = tuple(_as_history(part, same=reply.dialect == source) for part in choice.parts)
    match choice.finish:
        case "stop" | "tool_calls" | "pause":
            if choice.tool_calls:
                return ReplyOutcome("use", parts)
            return ReplyOutcome("pause" if choice.finish == "pause" and parts else "end", parts)
        case "length" | "content_filter" | "refusal":
            return ReplyOutcome("end", _without_calls(parts), choice.finish, is_cut=True)
        case "cancelled":
            return ReplyOutcome("end", (), "cancelled", is_cut=True)
        case "error" | None:
            return ReplyOutcome("end", (), "failed", is_cut=True)
        case unreachable:
            assert_never(unreachable)


def _as_history(part: Part, *, same: bool) -> Part:
    """A part of a reply as a part of a request. In its own dialect, the part's position tells writers what it was; in
    another dialect, that position and unknown fields mean nothing."""
    if same:
        return part
    if isinstance(part, Text) and part.citations:
        part = msgspec.structs.replace(
            part, citations=tuple(msgspec.structs.replace(each, at="", extras={}) for each in part.citations)
        )
    return msgspec.structs.replace(part, at="", extras={})


def _without_calls(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts of a truncated reply that can be kept. Trailing reasoning, which led to nothing, is dropped, because
    its provider refuses it."""
    kept = [part for part in parts if not isinstance(part, ToolCall)]
    while kept and isinstance(kept[-1], Thinking):
        kept.pop()
    return tuple(kept)


Loop: TypeAlias = Generator[Step, Answer, FinishedRun]
A = TypeVar("A", Replied, CallsDecided, Used, Confirmed, Rested)


class ToolLoop:
    """A run, which can be inspected while it is driven. `rounds` are the finished rounds, `pending` the calls of the
    current one. `spent` is the usage so far, `limits` are the limits, including those that were raised."""

    def __init__(self, request: Request, plan: RunPlan) -> None:
        plan.check()
        self.pending: list[Pending] = []
        self._plan = plan
        self.limits = plan.limits
        self.spent = RunUsage()
        self._history = RunConversation(
            msgspec.structs.replace(request, tools=plan.toolbox.tools_for(request.tools)), plan.dialect
        )
        self._deciding = RunPolicy(plan.policy, plan.cap)
        self._repeats = Repeats()
        self.rounds: tuple[Round, ...] = ()
        self._reached: Reached | None = None
        self._complete: Mapping[str, ToolOutcome] = {}
        self._reason: CancelReason = "user"

    def steps(self) -> Loop:
        first = self._history.take_amendments()
        why: Why | None = None
        while why is None:
            try:
                why = yield from self._next()
            except Fault as fault:
                why = self._stop_for(fault)
        last = self._history.take_amendments()
        return FinishedRun(
            why=why,
            request=self._history.request,
            rounds=self.rounds,
            spent=self.spent,
            reached=self._reached if why == "limit" else None,
            reason=self._reason if why == "cancelled" else None,
            amendments=(*first, *(each for done in self.rounds for each in done.amendments), *last),
        )

    def _next(self) -> Generator[Step, Answer, Why | None]:
        """Run one round. Returns why the run ends after it; None if the run continues."""
        if (yield from self._check_limits(BEFORE_ASK)) is not None:
            return "limit"
        number = len(self.rounds) + 1
        self.spent = msgspec.structs.replace(self.spent, requests=self.spent.requests + 1)
        answer = yield from self._ask(AskModel(number, self._history.request), Replied)
        if answer.sent is not None:
            self._history.replace(answer.sent)
        usage = usage_of(answer.reply.usage, answer.estimate)
        self.spent, cost = charge(
            self.spent, usage, self._plan.prices, cost=answer.cost, is_estimated=answer.estimate is not None
        )
        round_ = Round(number=number, reply=answer.reply, usage=usage, cost=cost)
        reading = read_reply(answer.reply, self._history.request.dialect)
        if reading.then == "use":
            return (yield from self._use(round_, reading))
        self._keep(round_, reading)
        if reading.then == "pause":
            return None
        if reading.why == "cancelled":
            return self._stop(None if answer.reply.fault is None else answer.reply.fault.reason)
        if reading.why == "answered" and self._plan.is_hooked:
            return (yield from self._rest(number))
        return reading.why

    def _rest(self, number: int) -> Generator[Step, Answer, Why | None]:
        """Ask whether the run may end; None if the model is to continue."""
        answer = yield from self._ask(Rest(number), Rested)
        if answer.words.strip():
            self._history.add_words(answer.words)
            return None
        if not answer.failure:
            return "answered"
        fault = Fault(Code.PERMISSION, answer.failure, hint="Look at the hooks of this run.")
        *before, last = self.rounds
        failed = msgspec.structs.replace(last, reply=msgspec.structs.replace(last.reply, fault=fault))
        self.rounds = (*before, failed)
        return "failed"

    def _ask(self, step: Step, kind: type[A]) -> Generator[Step, Answer, A]:
        """Yield a step and return its answer, which must be of this kind. Updates the elapsed time."""
        answer = yield step
        self.spent = msgspec.structs.replace(self.spent, seconds=max(self.spent.seconds, answer.elapsed))
        if isinstance(answer, RunStopped):
            self._complete = answer.outcomes
            raise Fault(Code.CANCELLED, "the run was stopped", reason=answer.reason)
        if not isinstance(answer, kind):
            message = f"{type(step).__name__} was answered by {type(answer).__name__}"
            raise Fault(Code.USAGE, message, hint="See the step's own words for its answer.")
        return answer

    # --- limits ---------------------------------------------------------------------------------------

    def _check_limits(self, names: tuple[LimitName, ...], calls: int = 0) -> Generator[Step, Answer, Reached | None]:
        """The limit that ends the run here, or that this many calls would exceed; None if there is none, or if a person
        has raised it."""
        while (found := find_reached_limit(self.limits, self.spent, names, calls)) is not None:
            if not (yield from self._confirm_limit(found)):
                return found
        return None

    def _confirm_limit(self, found: Reached) -> Generator[Step, Answer, bool]:
        goes_on = False
        if found.raised is not None:
            goes_on = (yield from self._ask(Confirm(len(self.rounds), found), Confirmed)).goes_on
        if goes_on:
            self.limits = self.limits.raise_limit(found.name)
        else:
            self._reached = found
        return goes_on

    def _stop_for(self, fault: Fault) -> Why:
        if fault.code is not Code.CANCELLED:
            raise fault
        return self._stop(fault.reason)

    def _stop(self, reason: CancelReason | None) -> Why:
        """Why the run was stopped. The driver also stops a run whose time is up."""
        self._reason = reason or self._reason
        late = self._final_time_limit()
        if late is None:
            return "cancelled"
        self._reached = late
        return "limit"

    def _final_time_limit(self) -> Reached | None:
        """The time limit, if it is reached and cannot be raised."""
        found = find_reached_limit(self.limits, self.spent, ("seconds",))
        return None if found is None or found.raised is not None else found

    # --- replies that are not acted on ----------------------------------------------------------------

    def _keep(self, round_: Round, reading: ReplyOutcome) -> None:
        """Add what is usable of such a reply to the conversation, and record its calls as cut."""
        cut = tuple(
            CallRecord(key=f"{round_.number}.{n}", id=call.id, name=call.name, arguments=call.arguments, fate="cut")
            for n, call in enumerate(round_.reply.choice.tool_calls, 1)
        )
        for call in cut:
            self._history.amend("call_left_out", f"call of {call.name!r}", "the reply that held it is not whole")
        if reading.is_cut and not reading.parts and round_.reply.choice.parts:
            self._history.amend("reply_left_out", "the reply", "nothing of it can be sent back")
        self._history.add_turn(reading.parts, is_open=reading.then == "pause")
        self._close(round_, cut)

    def _close(self, round_: Round, calls: tuple[CallRecord, ...], *, mistakes: int = 0, context: str = "") -> None:
        self.spent = msgspec.structs.replace(self.spent, mistakes=mistakes)
        amendments = self._history.take_amendments()
        closed = msgspec.structs.replace(round_, calls=calls, mistakes=mistakes, context=context, amendments=amendments)
        self.rounds = (*self.rounds, closed)

    # --- replies with calls ---------------------------------------------------------------------------

    def _use(self, round_: Round, reading: ReplyOutcome) -> Generator[Step, Answer, Why | None]:
        """Run a round with calls. Each of them gets a result, whatever happens."""
        pending = self.pending = self._open_calls(round_.number, reading.parts)
        context = ""
        why: Why | None = None
        try:
            found, context = yield from self._run_calls(round_.number, pending)
            why = None if found is None else "limit"
        except Fault as fault:
            why = self._stop_for(fault)
            self._finish(pending, {})
        self._settle(round_, reading.parts, pending, context)
        return why

    def _open_calls(self, number: int, parts: tuple[Part, ...]) -> list[Pending]:
        calls = [part for part in parts if isinstance(part, ToolCall)]
        ids = self._history.outgoing_ids(calls)
        pending = [Pending(f"{number}.{n}", call, ids[n - 1]) for n, call in enumerate(calls, 1)]
        for each in pending:
            read = read_arguments(each.call, self._plan.toolbox)
            if isinstance(read, RefusedArguments):
                most = self.limits.mistakes
                attempt = "" if most is None else f"\n(Attempt {self.spent.mistakes + 1} of {most}.)"
                each.settle("refused", text_outcome(read.text + attempt, is_error=True), self._plan.cap)
            else:
                each.ready = RunnableCall(
                    key=each.key,
                    id=each.call.id,
                    name=each.call.name,
                    arguments=read.arguments,
                    repairs=read.repairs,
                    is_parallel=self._definition(each.call.name).is_parallel,
                )
        return pending

    def _definition(self, name: str) -> Definition:
        return next(each for each in self._plan.toolbox.definitions if each.name == name)

    def _run_calls(self, number: int, pending: list[Pending]) -> Generator[Step, Answer, tuple[Reached | None, str]]:
        """Run the calls that may run. Returns the limit that was reached, and the text for the model in addition to the
        results."""
        found: Reached | None = None
        context = ""
        if _open(pending):
            found = yield from self._check_limits(BEFORE_USE)
        if found is None:
            context = yield from self._decide(number, pending)
        if found is None and _open(pending):  # people may take long to decide
            found = yield from self._check_limits(BEFORE_USE)
        if found is None and _open(pending):
            found = yield from self._check_limits(("tool_calls",), len(_open(pending)))
            used = yield from self._run(number, pending, found)
            context = "\n".join(filter(None, (context, used)))
        if found is not None:
            for each, _ in _open(pending):
                each.exceed(found, self._plan.cap)
        return found, context

    def _decide(self, number: int, pending: list[Pending]) -> Generator[Step, Answer, str]:
        """Settle the calls that may not run, and ask about those that no rule decides. Returns the text for the model
        in addition to the results."""
        waiting: list[tuple[Pending, RunnableCall]] = []
        allowed: list[str] = []
        for each, call in _open(pending):
            ruling = self._deciding.ruling(each, call)
            if ruling == "ask" or (ruling == "allow" and self._plan.is_hooked):
                waiting.append((each, call))
            if ruling == "allow":
                allowed.append(each.key)
        objections: dict[str, str] = {}
        contexts: list[str] = []
        while waiting:
            known = tuple(each.key for each, _ in waiting if each.key in allowed)
            step = Approve(number, tuple(call for _, call in waiting), objections, known)
            answer = yield from self._ask(step, CallsDecided)
            contexts.append(answer.context)
            results = {
                each.key: self._deciding.decide(each, answer.decisions.get(each.key), self._definition(call.name))
                for each, call in waiting
            }
            objections = {key: objection for key, objection in results.items() if objection}
            waiting = [(each, call) for each, call in waiting if each.key in objections]
        return "\n".join(filter(None, contexts))

    def _run(self, number: int, pending: list[Pending], short: Reached | None) -> Generator[Step, Answer, str]:
        """Run as many of the calls as the limit allows. Returns the text for the model in addition to the results."""
        room = None if short is None else int(short.limit) - self.spent.tool_calls
        chosen = _open(pending)[:room]
        self.spent = msgspec.structs.replace(self.spent, tool_calls=self.spent.tool_calls + len(chosen))
        step = Use(number, tuple(call for _, call in chosen))
        try:
            answer = yield from self._ask(step, Used)
        except Fault:
            self._finish([each for each, _ in chosen], self._complete)
            raise
        self._finish([each for each, _ in chosen], answer.outcomes)
        return answer.context

    def _finish(self, pending: list[Pending], outcomes: Mapping[str, ToolOutcome]) -> None:
        late = self._final_time_limit()
        for each, _ in _open(pending):
            if each.key in outcomes:
                each.settle("ran", outcomes[each.key], self._plan.cap)
            elif late is not None:
                each.exceed(late, self._plan.cap, " to its end")
            else:
                each.cancel(self._plan.cap)

    def _settle(self, round_: Round, parts: tuple[Part, ...], pending: list[Pending], context: str) -> None:
        """Add a round to the conversation, once every call has its result."""
        echoes = iter(each.echo for each in pending)
        echoed = tuple(next(echoes) if isinstance(part, ToolCall) else part for part in parts)
        outcomes = [(each, outcome) for each in pending if (outcome := each.outcome) is not None]
        results = tuple(self._history.result_for(each.call, each.sent_id, outcome) for each, outcome in outcomes)
        self._history.add_calls(echoed, results, context)
        counts = [self._repeats.add(each.call.name, each.meaning, outcome) for each, outcome in outcomes]
        self.spent = msgspec.structs.replace(self.spent, repeats=max(counts))
        is_mistaken = any(each.fate == "refused" for each in pending)
        mistakes = self.spent.mistakes + 1 if is_mistaken else 0
        self.pending = []
        self._close(round_, tuple(each.record for each in pending), mistakes=mistakes, context=context)


def _open(pending: list[Pending]) -> list[tuple[Pending, RunnableCall]]:
    """The calls that are not settled, all of which are runnable."""
    return [(each, each.ready) for each in pending if each.fate is None and each.ready is not None]
