"""Hooks: commands and functions that are asked at five moments of a run, and what they said, as one verdict.

A command reads one JSON object from its standard input. Exit code 0 is consent, with a JSON object or words on standard
output; 2 is a refusal, whose reason is on standard error; any other is a failure. What goes wrong with a hook is
reported in the verdict and never raised. A hook that fails has judged nothing, so what waits for its consent does not
happen: the call is denied, the request or reply refused.
"""

import asyncio
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, cast

import msgspec

from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.steps import RunnableCall
from sightline.agent.tools.callables import call_function
from sightline.agent.tools.commands import Commands
from sightline.agent.tools.hook import Event, Hook
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.wire.jsontext import MISFIT, decode, encode

Ruling: TypeAlias = Literal["", "allow", "ask", "deny"]

_REFUSED = 2
_STRICTNESS: tuple[Ruling, ...] = ("", "allow", "ask", "deny")
_GATES: tuple[Event, ...] = ("before_request", "after_reply", "before_tool")
"""The moments at which something happens only with the consent of the hooks."""

UNJUDGED = "A check of this run could not be made."
"""Why a hook that failed denies. Its own complaints are for a person: they may say more than the model is to know."""

_LONGEST_WORDS = 2000


class HookVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the hooks of one moment said together; the strictest ruling holds, and of several changes the last.

    `context` is told to the model, `warnings` to a person. With `stop`, also an empty one, the run ends. `has_failed`:
    one of them could not judge.
    """

    decision: Ruling = ""
    reason: str = ""
    arguments: dict[str, Json] | str | None = None
    context: str = ""
    stop: str | None = None
    warnings: tuple[str, ...] = ()
    has_failed: bool = False


class _Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a hook can answer. `block` is another word for `deny`."""

    decision: Literal["", "allow", "ask", "deny", "block"] = ""
    reason: str = ""
    arguments: dict[str, Json] | str | None = None
    context: str = ""
    stop: str | None = None


class Hooks:
    """The hooks of a run. Commands run in `folder` with this environment."""

    def __init__(self, hooks: Sequence[Hook], *, folder: Path, environment: Mapping[str, str]) -> None:
        self._hooks = tuple(hooks)
        self._folder = folder
        self._commands = Commands(environment)

    @property
    def all(self) -> tuple[Hook, ...]:
        """Every hook, in the order in which they are asked."""
        return self._hooks

    async def before_request(self, run: str, number: int, request: Request) -> HookVerdict:
        """A request is about to be sent."""
        return await self._ask("before_request", run, number, {"request": _plain(request)})

    async def after_reply(self, run: str, number: int, reply: Reply) -> HookVerdict:
        """A reply has come."""
        return await self._ask("after_reply", run, number, {"reply": _plain(reply)})

    async def before_tool(self, run: str, number: int, call: RunnableCall) -> HookVerdict:
        """A call is about to be decided on. Arguments that a hook changes have yet to be held to the schema."""
        return await self._ask("before_tool", run, number, {"call": _plain(call)}, call.name)

    async def after_tool(self, run: str, number: int, call: RunnableCall, outcome: ToolOutcome) -> HookVerdict:
        """A tool has answered."""
        about: JsonObject = {"call": _plain(call), "outcome": _plain(outcome)}
        return await self._ask("after_tool", run, number, about, call.name)

    async def stop(self, run: str, number: int, reply: Reply, *, is_active: bool) -> HookVerdict:
        """The model has said its last word. `is_active`: a hook has made it go on before."""
        return await self._ask("stop", run, number, {"reply": _plain(reply), "is_active": is_active})

    async def close(self) -> None:
        """End the commands that run."""
        await self._commands.close()

    async def _ask(
        self, event: Event, run: str, number: int, about: JsonObject, tool: str | None = None
    ) -> HookVerdict:
        """Ask one after the other: each sees the arguments as those before it have left them."""
        verdicts: list[HookVerdict] = []
        for hook in self._hooks:
            if hook.event != event or (tool is not None and not fnmatchcase(tool, hook.tools)):
                continue
            said = await self._verdict(hook, {"event": event, "run": run, "round": number, **about})
            verdicts.append(said)
            if said.stop is not None:
                break
            call = about.get("call")
            if said.arguments is not None and isinstance(call, dict):
                about = {**about, "call": {**call, "arguments": said.arguments}}
        return _combine(verdicts)

    async def _verdict(self, hook: Hook, given: JsonObject) -> HookVerdict:
        if isinstance(hook.does, str):
            return await self._from_command(hook, hook.does, given)
        limit = asyncio.timeout(hook.timeout)
        try:
            async with limit:
                # A copy of its own: nothing that it does to it is meant.
                said = await call_function(partial(hook.does, cast(JsonObject, decode(encode(given)))))
        except Exception as error:  # noqa: BLE001 - whatever a hook raises, a person is told
            late = limit.expired()
            return _failure_verdict(hook, "it took too long" if late else f"{type(error).__name__}: {error}")
        return _parse_answer(hook, said)

    async def _from_command(self, hook: Hook, command: str, given: JsonObject) -> HookVerdict:
        try:
            finished = await self._commands.run(
                ("/bin/sh", "-c", command), folder=self._folder, timeout=hook.timeout, given=encode(given) + b"\n"
            )
        except (OSError, ValueError) as error:
            return _failure_verdict(hook, str(error.strerror if isinstance(error, OSError) else error))
        if finished.code == 0:
            return _from_output(hook, finished.output)
        words = (finished.complaints.strip() or finished.output.strip())[:_LONGEST_WORDS]
        if finished.code == _REFUSED:
            return _verdict_from(hook, _Said("deny", words))
        return _failure_verdict(hook, ": ".join(filter(None, (finished.in_words, words))))


def _from_output(hook: Hook, output: str) -> HookVerdict:
    output = output.strip()
    if not output.startswith("{"):
        return _parse_answer(hook, output)
    try:
        return _parse_answer(hook, decode(output))
    except Fault as fault:
        return _failure_verdict(hook, f"what it printed is no JSON: {fault.message}")


def _parse_answer(hook: Hook, said: object) -> HookVerdict:
    """What a hook answered: an object, words for the model, or nothing."""
    if said is None or isinstance(said, str):
        return HookVerdict(context=said or "")
    try:
        return _verdict_from(hook, msgspec.convert(said, _Said))
    except MISFIT as error:
        return _failure_verdict(hook, f"its answer is not understood: {error}")


def _verdict_from(hook: Hook, said: _Said) -> HookVerdict:
    decision: Ruling = "deny" if said.decision == "block" else said.decision
    warnings: list[str] = []
    if decision == "deny" and not said.reason and hook.event == "after_tool":
        warnings.append(f"{hook.name} refuses and gives no reason, which has no effect here")
        decision = ""
    arguments = said.arguments
    if arguments is not None and hook.event != "before_tool":
        warnings.append(f"{hook.name} gives arguments, which has no effect here")
        arguments = None
    return HookVerdict(decision, said.reason, arguments, said.context, said.stop, tuple(warnings))


def _failure_verdict(hook: Hook, why: str) -> HookVerdict:
    """The verdict of a hook that could not judge: nothing passes that needs its consent."""
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


def _plain(value: RunnableCall | ToolOutcome | Reply | Request) -> Json:
    return cast(Json, msgspec.to_builtins(value))
