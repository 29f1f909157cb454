"""The configured tools, what a person has allowed for all runs, the tools that the chat or evals give to a run, and
the run's answer for them.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.core.limits import total_usage
from sightline.agent.core.rounds import CallRecord, FinishedRun, Round
from sightline.agent.tools.hooks import Hooks
from sightline.agent.tools.opening import Opened
from sightline.agent.tools.tools import Tools
from sightline.errors import Code, Fault
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.reply import Reply, Usage
from sightline.model.request import Message
from sightline.wire.jsontext import MISFIT, decode, encode

Opening: TypeAlias = Callable[[Sequence[str]], Awaitable[Opened]]
"""Opens the toolsets of these names."""


class Toolsets:
    """`names` are those of the configuration: a caller cannot name a file or a command."""

    def __init__(self, names: Sequence[str], opening: Opening) -> None:
        self.names = tuple(names)
        self._opening = opening
        self._open: dict[tuple[str, ...], Opened] = {}
        self._lock = asyncio.Lock()

    async def open_toolsets(self, wanted: Sequence[str]) -> Opened:
        """The tools of these toolsets together; one that cannot be opened is tried again the next time."""
        unknown = sorted(set(wanted) - set(self.names))
        if unknown:
            known = f"Configured are: {', '.join(self.names)}." if self.names else "Configure them as [tools.NAME]."
            raise Fault(Code.CONFIG, f"there are no tools named {', '.join(unknown)}", hint=known)
        key = tuple(sorted(set(wanted)))
        async with self._lock:
            if key not in self._open:
                self._open[key] = await self._opening(key)
            return self._open[key]

    async def close(self) -> None:
        """End everything that was started for them."""
        async with self._lock:
            while self._open:
                _, tools = self._open.popitem()
                await tools.close()


FILE_NAME = "approvals.json"


class KeptRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool by its name, the place it comes from, and the patterns that arguments must fit, by JSON pointer."""

    tool: str
    place: str
    arguments: dict[str, str] = {}

    @property
    def rule(self) -> ApprovalRule:
        """The same for a run."""
        return ApprovalRule(self.tool, "allow", self.arguments)

    @property
    def words(self) -> str:
        """For a person."""
        fits = ", ".join(f"{pointer} like {pattern}" for pointer, pattern in self.arguments.items())
        return f"{self.tool} ({fits or 'any arguments'})"


class KeptRules:
    """The file of one data folder. It is read anew each time: a person may have edited it, or another process."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE_NAME

    def all(self) -> tuple[KeptRule, ...]:
        """Every rule; a file that cannot be read is a fault, since a person relies on it."""
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._wrong(error.strerror or str(error)) from None
        try:
            return msgspec.convert(decode(data), tuple[KeptRule, ...])
        except (*MISFIT, Fault) as error:
            raise self._wrong(error.message if isinstance(error, Fault) else str(error)) from None

    def of(self, places: Mapping[str, str]) -> tuple[KeptRule, ...]:
        """The rules about these tools, which come from these places."""
        return tuple(kept for kept in self.all() if places.get(kept.tool) == kept.place)

    def keep(self, rule: KeptRule) -> None:
        """Remember one more."""
        rules = self.all()
        if rule not in rules:
            self._write((*rules, rule))

    def forget(self, rule: KeptRule) -> bool:
        """Ask about such calls again; whether there was such a rule."""
        rules = self.all()
        left = tuple(each for each in rules if each != rule)
        if left != rules:
            self._write(left)
        return left != rules

    def _write(self, rules: tuple[KeptRule, ...]) -> None:
        text = msgspec.json.format(msgspec.json.encode(rules), indent=2) + b"\n"
        fresh = self.file.with_name(f"{FILE_NAME}.{os.getpid()}")
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(text)
            fresh.replace(self.file)
        except OSError as error:
            raise self._wrong(error.strerror or str(error)) from None

    def _wrong(self, why: str) -> Fault:
        return Fault(
            Code.CONFIG, f"{self.file}: {why}", hint="Correct it, or delete it; Sightline then asks about every call."
        )


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
