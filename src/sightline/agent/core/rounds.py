"""The rounds of a run: the request, its reply, and each call until it has a result; the policy that decides about
calls; and the answer of a finished run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, assert_never

import msgspec

from sightline.agent.core import approval
from sightline.agent.core.arguments import RefusedArguments, Repair, check_edited
from sightline.agent.core.conversation import Amendment
from sightline.agent.core.limits import Reached, RunUsage, total_usage
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Cap, Definition, ToolOutcome, cap_outcome, result_of, text_outcome
from sightline.dialects.tool_names import as_function_arguments
from sightline.errors import CancelReason, Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Text, ToolCall
from sightline.model.reply import Finish, Reply, Usage
from sightline.model.request import Message, Request
from sightline.wire.jsontext import encode

Fate: TypeAlias = Literal["ran", "refused", "denied", "answered", "cancelled", "limit", "cut"]
Why: TypeAlias = Literal["answered", "length", "content_filter", "refusal", "limit", "cancelled", "failed"]


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A call and its result. `arguments` are as the model wrote them; `ran` are those that the tool was given, if it
    ran.

    `id` is the model's id; `sent_id` is set if another id is sent back, because a provider would refuse the model's.
    `denied_by` is who denied the call.
    """

    key: str
    id: str
    name: str
    arguments: str
    fate: Fate
    outcome: ToolOutcome | None = None
    ran: dict[str, Json] | str | None = None
    sent_id: str | None = None
    is_edited: bool = False
    denied_by: approval.DeniedBy | None = None
    repairs: tuple[Repair, ...] = ()


class Round(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A request, its reply and its calls. `mistakes` is how many rounds in a row had a call that could not be run."""

    number: int
    reply: Reply
    calls: tuple[CallRecord, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    mistakes: int = 0
    context: str = ""
    amendments: tuple[Amendment, ...] = ()

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.reply.choice.parts if isinstance(part, Text))

    @property
    def finish(self) -> Finish | None:
        return self.reply.choice.finish


class FinishedRun(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How a run ended. `request` has the whole conversation and can be continued. `reason` is why the run was
    cancelled."""

    why: Why
    request: Request
    rounds: tuple[Round, ...] = ()
    spent: RunUsage = RunUsage()
    reached: Reached | None = None
    amendments: tuple[Amendment, ...] = ()
    reason: CancelReason | None = None

    @property
    def reply(self) -> Reply | None:
        """The last reply, with its fault if that is why the run ended."""
        return self.rounds[-1].reply if self.rounds else None


CANCELLED: Final = "The user cancelled the tool call."
DENIED: Final[dict[approval.DeniedBy, str]] = {
    "user": "The user does not allow this call.",
    "hook": "A hook of this run does not allow this call.",
    "rule": "A rule of this run does not allow this call.",
    "nobody": "This call was not run, because no one is there to approve it.",
}
"""The result that the model gets for a denied call: a user may be persuaded, a rule may not."""


@dataclass(slots=True)
class Pending:
    """A call as the model wrote it, its runnable form, and, once it is settled, its outcome."""

    key: str
    call: ToolCall
    sent_id: str
    ready: RunnableCall | None = None
    fate: Fate | None = None
    outcome: ToolOutcome | None = None
    is_edited: bool = False
    denied_by: approval.DeniedBy | None = None

    def settle(self, fate: Fate, outcome: ToolOutcome, cap: Cap) -> None:
        self.fate, self.outcome = fate, cap_outcome(outcome, cap)

    def cancel(self, cap: Cap) -> None:
        """Settle the call as cancelled: a person stopped it before it ran, or while it ran."""
        self.settle("cancelled", text_outcome(CANCELLED, is_error=True), cap)

    def exceed(self, reached: Reached, cap: Cap, to_its_end: str = "") -> None:
        """Settle the call as not run, or not run to its end, because of a limit."""
        text = f"This call was not run{to_its_end}: {reached.words}."
        self.settle("limit", text_outcome(text, is_error=True), cap)

    def deny(self, reason: str, cap: Cap, by: approval.DeniedBy = "user") -> None:
        self.denied_by = by
        self.settle("denied", text_outcome(f"{DENIED[by]} {reason}".strip(), is_error=True), cap)

    def edit(self, arguments: JsonObject | str) -> None:
        """Replace the arguments. The tool runs with these, and the model sees them as its own."""
        assert self.ready is not None  # only a runnable call is shown
        self.ready = msgspec.structs.replace(self.ready, arguments=arguments, repairs=())
        self.is_edited = True

    @property
    def echo(self) -> ToolCall:
        """The call as it is sent back to the model."""
        call = msgspec.structs.replace(self.call, id=self.sent_id)
        if not self.is_edited or self.ready is None:
            return call
        arguments = self.ready.arguments
        written = arguments if isinstance(arguments, str) else encode(arguments).decode()
        if isinstance(arguments, str) and call.kind == "function":  # offered in place of a free-text tool
            written = as_function_arguments(msgspec.structs.replace(call, arguments=written, kind="custom"))
        return msgspec.structs.replace(call, arguments=written)

    @property
    def meaning(self) -> Json:
        """The arguments by which repeated calls are recognised."""
        return self.call.arguments if self.ready is None else self.ready.arguments

    @property
    def record(self) -> CallRecord:
        assert self.fate is not None  # a round is closed only when all of its calls are settled
        return self.record_as(self.fate, self.outcome)

    def record_as(self, fate: Fate, outcome: ToolOutcome | None) -> CallRecord:
        """The record of the call with this fate and outcome."""
        ready = self.ready
        return CallRecord(
            key=self.key,
            id=self.call.id,
            name=self.call.name,
            arguments=self.call.arguments,
            fate=fate,
            outcome=outcome,
            ran=ready.arguments if ready is not None and self.fate in (None, "ran") else None,
            sent_id=self.sent_id if self.sent_id != self.call.id else None,
            is_edited=self.is_edited,
            denied_by=self.denied_by,
            repairs=() if ready is None else ready.repairs,
        )


class RunPolicy:
    """The policy of a run, which grows by the rules that people add when they decide about calls."""

    def __init__(self, policy: approval.Policy, cap: Cap) -> None:
        self._policy = policy
        self._cap = cap

    def ruling(self, pending: Pending, call: RunnableCall) -> approval.Ruling:
        """Whether the call may run or a person must be asked. A call that a rule denies is settled here."""
        rule = self._policy.ruling(call.name, call.arguments)
        if rule.ruling == "deny":
            pending.deny(rule.reason, self._cap, "rule")
        return rule.ruling

    def decide(self, pending: Pending, decision: approval.Decision | None, definition: Definition) -> str:
        """Apply a decision; None cancels the call. Returns why the decision cannot be applied, or an empty string."""
        match decision:
            case None:
                pending.cancel(self._cap)
            case approval.Denied(reason, rule, by):
                pending.deny(reason, self._cap, by)
                self._add_rule(rule)
            case approval.AnsweredByHand(parts, is_error):
                pending.settle("answered", ToolOutcome(parts, is_error=is_error), self._cap)
            case approval.Allowed(arguments, rule):
                objection = "" if arguments is None else self._edit(pending, arguments, definition)
                if objection:
                    return objection
                self._add_rule(rule)
            case unreachable:
                assert_never(unreachable)
        return ""

    def _edit(self, pending: Pending, arguments: JsonObject | str, definition: Definition) -> str:
        read = check_edited(arguments, definition)
        if isinstance(read, RefusedArguments):
            return read.text
        rule = self._policy.ruling(definition.name, read.arguments)
        if rule.ruling == "deny":
            return f"A rule denies this call. {rule.reason}".strip()
        pending.edit(read.arguments)
        return ""

    def _add_rule(self, rule: approval.ApprovalRule | None) -> None:
        if rule is not None:
            self._policy = self._policy.prepend(rule)


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """The last reply of a run, the rounds with tools before it, and the usage of all its replies."""

    reply: Reply
    rounds: tuple[Message, ...]
    usage: Usage | None


def answer_of(ended: FinishedRun) -> RunAnswer:
    """The answer of a run: its last reply and the rounds before it. Tool calls of the last reply are a round too.

    Raises a fault if the run ended before its first reply.
    """
    if not ended.rounds:
        raise Fault(Code.CANCELLED, "the run ended before anything was asked", hint="Ask again.")
    *before, last = ended.rounds
    rounds, reply = messages_of(before), _with_run_fault(last.reply, ended)
    if last.calls:
        rounds += _messages_of_round(last)
        reply = msgspec.structs.replace(reply, choices=(msgspec.structs.replace(reply.choice, parts=()),))
    return RunAnswer(reply, tuple(rounds), total_usage(each.usage for each in ended.rounds))


def messages_of(rounds: Sequence[Round]) -> list[Message]:
    return [message for each in rounds for message in _messages_of_round(each)]


def _messages_of_round(round_: Round) -> list[Message]:
    """A round as messages: the model's reply, the results of its calls under the ids that were sent, and the context
    that hooks added."""
    records = iter(round_.calls)
    parts: list[Part] = []
    results: list[Part] = []
    for part in round_.reply.choice.parts:
        part = msgspec.structs.replace(part, at="", extras={})
        if isinstance(part, ToolCall) and (record := next(records, None)) is not None:
            part = msgspec.structs.replace(part, id=record.sent_id or record.id, arguments=_arguments(record))
            if (outcome := record.outcome) is not None:
                results.append(result_of(outcome, part.id, part.name, part.kind))
        parts.append(part)
    context = (Text(round_.context),) if round_.context.strip() else ()
    messages = (Message("assistant", tuple(parts)), Message("tool", tuple(results)), Message("user", context))
    return [message for message in messages if message.parts]


def _arguments(record: CallRecord) -> str:
    """The arguments as the model wrote them; for a call that a user or a hook edited, those that ran."""
    if not record.is_edited or record.ran is None:
        return record.arguments
    return record.ran if isinstance(record.ran, str) else encode(record.ran).decode()


def _with_run_fault(reply: Reply, ended: FinishedRun) -> Reply:
    """The reply, with a fault if the run was cancelled or hit a limit."""
    if reply.fault is not None or ended.why not in ("cancelled", "limit"):
        return reply
    if ended.why == "cancelled":
        return msgspec.structs.replace(
            reply, fault=Fault(Code.CANCELLED, "the run was stopped", hint="Ask again.", reason=ended.reason)
        )
    reached = "one of its limits is reached" if ended.reached is None else ended.reached.words
    hint = "Look at the run, and ask again; what it has done stands above."
    return msgspec.structs.replace(reply, fault=Fault(Code.USAGE, f"the run has no answer: {reached}", hint=hint))
