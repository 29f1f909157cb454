"""Hooks: their definitions, the files that define them, and the verdicts of those that are asked."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast, get_args

import msgspec

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome
from sightline.agent.tools.commands import Commands
from sightline.agent.tools.tools import call_function
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.wire.jsontext import MISFIT, decode, encode

Event: TypeAlias = Literal["before_request", "after_reply", "before_tool", "after_tool", "stop"]
EVENTS: tuple[Event, ...] = get_args(Event)
TIMEOUT = 30.0

HookSubject: TypeAlias = Request | Reply | RunnableCall | ToolOutcome | bool
"""What hooks get about an event: `request`, `reply`, `call`, `outcome`, and `is_active` if a hook has continued the run
before."""

HookFunction: TypeAlias = Callable[[JsonObject], object | Awaitable[object]]
"""Takes what a command would read on its input, and returns what it would print: an object, a text, or None."""


class Hook(msgspec.Struct, frozen=True, omit_defaults=True):
    """A hook: a command line or a function. `tools` is a name pattern, for the two events about tools."""

    event: Event
    does: str | HookFunction
    tools: str = "*"
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        if self.event not in EVENTS:
            raise Fault(Code.CONFIG, f"there is no event {self.event!r}", hint=f"There are {', '.join(EVENTS)}.")

    @property
    def name(self) -> str:
        what = self.does if isinstance(self.does, str) else getattr(self.does, "__name__", "a function")
        return f"the {self.event} hook `{what}`"


class _HookEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    command: Annotated[str, msgspec.Meta(min_length=1)]
    tools: str = "*"
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = TIMEOUT


def hooks_in(text: bytes, where: str) -> tuple[Hook, ...]:
    """Parse a file of hooks: a list of commands for each event."""
    try:
        lists = msgspec.convert(decode(text), dict[str, list[_HookEntry]])
    except (*MISFIT, Fault) as error:
        words = error.message if isinstance(error, Fault) else str(error)
        hint = 'Write it like {"before_tool": [{"command": "./check.sh", "tools": "run_*"}]}.'
        raise Fault(Code.CONFIG, f"{where}: {words}", hint=hint) from None
    found: list[Hook] = []
    for name, written in lists.items():
        event = next((each for each in EVENTS if each == name), None)
        if event is None:
            raise Fault(Code.CONFIG, f"{where}: there is no event {name!r}", hint=f"There are {', '.join(EVENTS)}.")
        found += [Hook(event, each.command, each.tools, each.timeout_s) for each in written]
    return tuple(found)


Ruling: TypeAlias = Literal["", "allow", "ask", "deny"]

_REFUSED = 2
_STRICTNESS: tuple[Ruling, ...] = ("", "allow", "ask", "deny")
_GATES: tuple[Event, ...] = ("before_request", "after_reply", "before_tool")
"""The events that need the consent of the hooks."""

UNJUDGED = "A check of this run could not be made."
"""The reason given to the model when a hook failed. The hook's own output is for a person only."""

_LONGEST_WORDS = 2000


class HookVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The combined verdict of the hooks of one event: the strictest decision, and the last change of arguments.

    `context` is for the model, `warnings` for a person. A `stop` that is not None, even an empty one, ends the run.
    `has_failed` means that a hook failed.
    """

    decision: Ruling = ""
    reason: str = ""
    arguments: dict[str, Json] | str | None = None
    context: str = ""
    stop: str | None = None
    warnings: tuple[str, ...] = ()
    has_failed: bool = False

    def fault(self, what: str) -> Fault:
        """The fault of a run that the hooks do not let continue with this."""
        hint = "Look at the hooks of this run."
        if self.has_failed:
            return Fault(Code.PERMISSION, f"a hook could not judge {what}: {'; '.join(self.warnings)}", hint=hint)
        return Fault(Code.PERMISSION, f"a hook refused {what}: {self.reason or 'it gave no reason'}", hint=hint)


AskHooks: TypeAlias = Callable[..., Awaitable[HookVerdict | None]]
"""Asks the hooks of a run: gets the event, the number of the round, and what the hooks get about it, by name."""


class _HookAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A hook's answer. `block` is an alias of `deny`."""

    decision: Literal["", "allow", "ask", "deny", "block"] = ""
    reason: str = ""
    arguments: dict[str, Json] | str | None = None
    context: str = ""
    stop: str | None = None


class Hooks:
    """The hooks of a run. `all` has them in the order in which they are asked."""

    def __init__(self, hooks: Sequence[Hook], *, folder: Path, environment: Mapping[str, str]) -> None:
        self.all = tuple(hooks)
        self._folder = folder
        self._commands = Commands(environment)

    async def close(self) -> None:
        await self._commands.close()

    async def ask(self, event: Event, run: str, number: int, **subjects: HookSubject) -> HookVerdict:
        """Ask the hooks of an event in order. `subjects` is what they get about the event, by name. Each hook sees the
        arguments of a call as changed by those before it; the changes are not validated here."""
        call = subjects.get("call")
        tool = call.name if isinstance(call, RunnableCall) else None
        about: JsonObject = {name: msgspec.to_builtins(value) for name, value in subjects.items()}
        verdicts: list[HookVerdict] = []
        for hook in self.all:
            if hook.event != event or (tool is not None and not fnmatchcase(tool, hook.tools)):
                continue
            verdict = await self._verdict(hook, {"event": event, "run": run, "round": number, **about})
            verdicts.append(verdict)
            if verdict.stop is not None:
                break
            told = about.get("call")
            if verdict.arguments is not None and isinstance(told, dict):
                about = {**about, "call": {**told, "arguments": verdict.arguments}}
        return _combine(verdicts)

    async def _verdict(self, hook: Hook, given: JsonObject) -> HookVerdict:
        if isinstance(hook.does, str):
            return await self._from_command(hook, hook.does, given)
        limit = asyncio.timeout(hook.timeout)
        try:
            async with limit:
                # Pass a copy: changes that the function makes to its argument must have no effect.
                answer = await call_function(partial(hook.does, cast(JsonObject, decode(encode(given)))))
        except Exception as error:  # noqa: BLE001 - any exception of a hook becomes a warning
            late = limit.expired()
            return _failure_verdict(hook, "it took too long" if late else f"{type(error).__name__}: {error}")
        return _parse_answer(hook, answer)

    async def _from_command(self, hook: Hook, command: str, given: JsonObject) -> HookVerdict:
        try:
            finished = await self._commands.run(
                ("/bin/sh", "-c", command), folder=self._folder, timeout=hook.timeout, given=encode(given) + b"\n"
            )
        except (OSError, ValueError) as error:
            return _failure_verdict(hook, str(error.strerror if isinstance(error, OSError) else error))
        if finished.code == 0:
            output = finished.output.strip()
            try:
                return _parse_answer(hook, decode(output) if output.startswith("{") else output)
            except Fault as fault:
                return _failure_verdict(hook, f"what it printed is no JSON: {fault.message}")
        words = (finished.complaints.strip() or finished.output.strip())[:_LONGEST_WORDS]
        if finished.code == _REFUSED:
            return _verdict_from(hook, _HookAnswer("deny", words))
        return _failure_verdict(hook, ": ".join(filter(None, (finished.in_words, words))))


def _parse_answer(hook: Hook, answer: object) -> HookVerdict:
    """Parse a hook's answer: an object, a text for the model, or None."""
    if answer is None or isinstance(answer, str):
        return HookVerdict(context=answer or "")
    try:
        return _verdict_from(hook, msgspec.convert(answer, _HookAnswer))
    except MISFIT as error:
        return _failure_verdict(hook, f"its answer is not understood: {error}")


def _verdict_from(hook: Hook, answer: _HookAnswer) -> HookVerdict:
    decision: Ruling = "deny" if answer.decision == "block" else answer.decision
    warnings: list[str] = []
    if decision == "deny" and not answer.reason and hook.event == "after_tool":
        warnings.append(f"{hook.name} refuses and gives no reason, which has no effect here")
        decision = ""
    arguments = answer.arguments
    if arguments is not None and hook.event != "before_tool":
        warnings.append(f"{hook.name} gives arguments, which has no effect here")
        arguments = None
    return HookVerdict(decision, answer.reason, arguments, answer.context, answer.stop, tuple(warnings))


def _failure_verdict(hook: Hook, why: str) -> HookVerdict:
    """The verdict of a hook that failed: deny if the event needs consent."""
    is_gate = hook.event in _GATES
    warnings = (f"{hook.name}: {why}",)
    return HookVerdict("deny" if is_gate else "", UNJUDGED if is_gate else "", warnings=warnings, has_failed=True)


def _combine(verdicts: Sequence[HookVerdict]) -> HookVerdict:
    strictest = max((each.decision for each in verdicts), key=_STRICTNESS.index, default=_STRICTNESS[0])
    reasons = dict.fromkeys(each.reason for each in verdicts if each.decision == strictest and each.reason)
    changed = [each.arguments for each in verdicts if each.arguments is not None]
    return HookVerdict(
        strictest,
        "\n".join(reasons),
        changed[-1] if changed else None,
        "\n".join(each.context for each in verdicts if each.context),
        next((each.stop for each in verdicts if each.stop is not None), None),
        tuple(words for each in verdicts for words in each.warnings),
        any(each.has_failed for each in verdicts),
    )
