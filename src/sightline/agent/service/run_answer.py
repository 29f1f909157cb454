"""The tools a run is given by the chat or by evals, and the run's answer for them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import msgspec

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.core.limits import total_usage
from sightline.agent.core.rounds import CallRecord, FinishedRun, Round
from sightline.agent.tools.hooks import Hooks
from sightline.agent.tools.tools import Tools
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.reply import Reply
from sightline.model.usage import Usage
from sightline.wire.jsontext import encode


class RunTools(Tools, Protocol):
    """Open tools with their configured approval rules and hooks."""

    @property
    def rules(self) -> tuple[ApprovalRule, ...]:
        """The calls that need no approval."""

    @property
    def places(self) -> Mapping[str, str]:
        """Where each tool comes from, by its name."""

    @property
    def hooks(self) -> Hooks | None:
        """The hooks of the run."""


ToolOpener: TypeAlias = Callable[[tuple[str, ...]], Awaitable[RunTools]]
"""Opens the toolsets of these names; the opener closes them. Raises a fault if one cannot be opened."""


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
    """Rounds as messages of an answer."""
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
                results.append(
                    ToolResult(
                        part.id,
                        outcome.parts,
                        part.name,
                        is_error=outcome.is_error or None,
                        kind=part.kind,
                        structured=outcome.structured,
                    )
                )
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
