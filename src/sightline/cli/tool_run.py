"""Asks a model that may use tools, resumes interrupted runs (`sightline resume`) and lists recorded runs (`sightline
runs`)."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from typing import NoReturn

import msgspec

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Decision, Denied, Policy
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import Approve, Confirm, RunnableCall
from sightline.agent.core.tool import Toolbox
from sightline.agent.service.approvers import (
    Approver,
    FunctionApprover,
    Interrupted,
    SavedRule,
    SavedRules,
    deny_unattended,
)
from sightline.agent.service.run_log import PREFIX
from sightline.agent.service.run_view import MidFlightPending, RunBrief, RunShown
from sightline.agent.service.runner import NewRun, Runner
from sightline.agent.tools.opening import OpenToolsets
from sightline.app.configuration import Configuration, configuration, data_folder
from sightline.app.tools import ToolsWanted, open_runner, open_tools, parse_tools, tools_of_run
from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt
from sightline.cli.answer import tell_losses
from sightline.cli.keyboard import Keyboard, open_keyboard
from sightline.cli.run_control import Driving, call_line, clip, fold
from sightline.cli.terminal import harmless, many, money, say, table, write, write_lines
from sightline.errors import Code, Fault
from sightline.exchange.outbound import prepare
from sightline.model.json import JsonObject
from sightline.model.parts import Text
from sightline.wire.jsontext import decode, encode
from sightline.wire.pointer import join

_KEYS = "y yes · a all of this tool in this run · A always · e edit · n no · h answer by hand · q stop · ? help"
_HELP = """  y  run this call
  a  run this call and, in this run, every other of this tool
  A  the same for every run from now on, for arguments that fit patterns; kept in approvals.json of the data folder
  e  edit the arguments, then run: they are checked again, and the model sees what ran
  n  do not run it, and tell the model why
  h  do not run it, and write what the model gets in its place
  v  show all of the arguments
  q  stop here; `sightline resume` asks again"""


@dataclass(slots=True, eq=False)
class TerminalPerson:
    """Asks the user. `leave` is called when the user wants to stop; `places` has the origin of tools. With `says_yes`,
    calls are approved without asking; the user is asked only about what could not be known in advance."""

    typing: Keyboard
    _: KW_ONLY
    leave: Callable[[], None]
    kept: SavedRules
    places: Mapping[str, str]
    says_yes: bool = False
    interrupted: Interrupted | None = None
    _drafts: dict[str, str] = field(default_factory=dict, init=False)

    # --- questions ---

    async def approve(self, run: str, step: Approve) -> Mapping[str, Decision]:
        """Ask about each call in turn. A permission given for one call applies to the following ones."""
        decisions: dict[str, Decision] = {}
        rules: list[ApprovalRule] = []
        for call in step.calls:
            if self.says_yes or any(rule.covers(call.name, call.arguments) for rule in rules):
                decisions[call.key] = Allowed()
                continue
            decision = decisions[call.key] = await self._decide(call, step.objections.get(call.key, ""))
            if isinstance(decision, Allowed) and decision.rule is not None:
                rules.append(decision.rule)
        return decisions

    async def confirm(self, run: str, step: Confirm) -> bool:
        say(f"{step.reached.words}.")
        return await self._is_yes(f"Raise it to {step.reached.raised:g} and go on?")

    async def mid_flight(self, run: str, calls: Sequence[RunnableCall]) -> Mapping[str, Interrupted]:
        decisions: dict[str, Interrupted] = {}
        for call in calls:
            if self.interrupted is not None:
                decisions[call.key] = self.interrupted
                continue
            say(f"{call.name} was running when the run stopped; it is not known how far it got:")
            say(_indent(_arguments_text(call.arguments)))
            decisions[call.key] = (
                "again" if await self._is_yes("Run it again? (if not, the model is informed)") else "skip"
            )
        return decisions

    # --- one call ---

    async def _decide(self, call: RunnableCall, objection: str) -> Decision:
        if objection:
            say(f"These arguments cannot be used: {objection}")
        say(f"Run {call.name}?")
        say(_indent(clip(_arguments_text(call.arguments), 2000)))
        decision: Decision | None = None
        while decision is None:
            pressed = await self.typing.key(f"[{_KEYS}] ")
            if pressed is None:
                await self._stop()
            decision = await self._decision_for_key(call, pressed)
        return decision

    async def _decision_for_key(self, call: RunnableCall, key: str) -> Decision | None:
        """The decision for a key; None to ask again."""
        match key:
            case "y":
                return Allowed()
            case "a":
                return Allowed(rule=ApprovalRule(call.name, "allow"))
            case "A":
                return await self._always(call)
            case "e":
                return await self._edit(call)
            case "n":
                return Denied(await self._line("Why not? (sent to the model, may be empty) "))
            case "h":
                return AnsweredByHand((Text(await self._line("What the model gets: ")),))
            case "v":
                say(_indent(_arguments_text(call.arguments)))
            case "q":
                await self._stop()
            case _:
                say(_HELP)
        return None

    async def _edit(self, call: RunnableCall) -> Decision | None:
        is_text = isinstance(call.arguments, str)
        before = _arguments_text(call.arguments)
        draft = self._drafts.get(call.key, before)  # text that could not be used is corrected, not written again
        after = await self.typing.edit(draft, ".txt" if is_text else ".json")
        if after is None:
            after = await self._line("The arguments, in one line (empty: as they were): ") or before
        if after.strip() == before.strip():
            say("Nothing is changed.")
            return None
        self._drafts[call.key] = after
        if is_text:
            return Allowed(after)
        try:
            value = decode(after.encode())
        except Fault as fault:
            say(f"This is {fault.message}")
            return None
        if not isinstance(value, dict):
            say("The arguments must be a JSON object.")
            return None
        return Allowed(value)

    async def _always(self, call: RunnableCall) -> Decision | None:
        """A permission for every run, as narrow as the user wants. It is shown for confirmation before it is stored."""
        place = self.places.get(call.name)
        if place is None:
            say("The origin of this tool is unknown, so no rule about it can be stored.")
            return None
        wildcards = "* stops at a slash, ** does not"
        say(f"For each argument: Enter is exactly this value, - is any, or write a pattern ({wildcards}).")
        patterns: dict[str, str] = {}
        given = {"": call.arguments} if isinstance(call.arguments, str) else {
            join("", name): each if isinstance(each, str) else encode(each).decode()
            for name, each in call.arguments.items()
        }  # fmt: skip
        for pointer, value in given.items():
            pattern = await self._pattern(pointer, value)
            if pattern is not None:
                patterns[pointer] = pattern
        kept = SavedRule(call.name, place, patterns)
        others = "" if isinstance(call.arguments, str) else "; any other arguments that a call may have"
        if not await self._is_yes(f"Always run {kept.words}{others}, of {place}?"):
            return None
        try:
            self.kept.keep(kept)
        except Fault as fault:
            say(f"It cannot be stored: {fault.message}")
            return None
        return Allowed(rule=kept.rule)

    async def _pattern(self, pointer: str, value: str) -> str | None:
        while True:
            typed = await self._line(f"  {pointer or 'text'} [{clip(value)}]: ")
            if typed == "-":
                return None
            if typed or "*" not in value:
                return typed or value
            say("  This value cannot be matched exactly, because a * in it would be a wildcard: write a pattern, or -.")

    # --- typing ---

    async def _is_yes(self, question: str) -> bool:
        return (await self._line(f"{question} [y/N] ")).lower() in ("y", "yes")

    async def _line(self, prompt: str) -> str:
        typed = await self.typing.line(prompt)
        if typed is None:
            await self._stop()
        return typed

    async def _stop(self) -> NoReturn:
        """Leave the run. Never returns: the caller is cancelled."""
        self.leave()
        await asyncio.get_running_loop().create_future()
        raise AssertionError  # the future is never resolved


def _arguments_text(arguments: JsonObject | str) -> str:
    if isinstance(arguments, str):
        return arguments
    return msgspec.json.format(encode(arguments), indent=2).decode()


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def with_offered_tools(arguments: argparse.Namespace, prompt: Prompt, loaded: Configuration) -> Prompt:
    """The prompt with the tools that the model would be offered."""

    async def look() -> Prompt:
        async with open_tools_with_notes(loaded, tools_in(arguments, loaded)) as tools:
            return _with_tools(prompt, tools)

    return asyncio.run(look())


def ask_with_tools(arguments: argparse.Namespace, prompt: Prompt, choice: ModelChoice, loaded: Configuration) -> int:
    """Run the loop; returns the exit code."""
    if arguments.count:
        hint = "Leave it out, or add --dry-run to count the first request."
        raise Fault(Code.USAGE, "--count cannot be used with tools", hint=hint)

    async def ran() -> int:
        wanted = tools_in(arguments, loaded)
        with open_keyboard() as typing:
            async with open_tools_with_notes(loaded, wanted) as tools:
                tell_losses(prepare(_with_tools(prompt, tools), choice).report)
                kept = SavedRules(data_folder(arguments.data))
                policy = policy_of(tools, () if arguments.confirm else kept.of(tools.places), arguments)
                refuse_unattended(tools, policy, typing)
                is_asked = typing is not None and not arguments.yes
                plan = RunPlan(dialect=choice.dialect, policy=policy, limits=limits_in(arguments, is_asked=is_asked))
                async with open_runner(loaded, arguments.data, apart=arguments.apart, notice=say) as runner:
                    run = runner.make_id()
                    title = f"run {run}: {choice.provider_name}/{choice.model}"
                    driving = Driving(runner, run, typing, arguments, title=title)
                    approver = approver_of(driving, tools, kept, says_yes=arguments.yes)
                    new = NewRun(prompt, choice, plan, "ask", run, {"kind": "ask", **wanted.origin})
                    return await driving.through(runner.run(new, driving.participants(tools, approver, tools.hooks)))

    return asyncio.run(ran())


def _with_tools(prompt: Prompt, tools: OpenToolsets) -> Prompt:
    return replace(prompt, tools=Toolbox(tools.definitions).tools_for(prompt.tools))


@asynccontextmanager
async def open_tools_with_notes(loaded: Configuration, wanted: ToolsWanted) -> AsyncIterator[OpenToolsets]:
    """The open tools. Reports tools that are missing."""
    tools = await open_tools(loaded, wanted)
    try:
        for note in tools.notes:
            say(f"note: {note}")
        yield tools
    finally:
        await tools.close()


def policy_of(tools: OpenToolsets, kept: Sequence[SavedRule], arguments: argparse.Namespace) -> Policy:
    """Which calls may run without asking. Reports permissions of earlier runs that apply."""
    if arguments.yes:
        return Policy(otherwise="allow")
    if arguments.confirm:
        return Policy()
    for each in kept:
        say(f"note: you have allowed this for all runs: {each.words}")
    return Policy((*tools.rules, *(each.rule for each in kept)))


def refuse_unattended(tools: OpenToolsets, policy: Policy, typing: Keyboard | None) -> None:
    """Raise a Fault if no one can be asked and a tool is not allowed in advance."""
    allowed = {rule.tool for rule in policy.rules if rule.ruling == "allow"}
    unapproved = [each.name for each in tools.definitions if each.name not in allowed and not each.is_remote]
    if unapproved and policy.otherwise != "allow" and typing is None:
        hint = "Add --yes, or name them under `allow` in the toolset's table of sightline.toml."
        raise Fault(Code.USAGE, f"no one is there to approve calls of {', '.join(unapproved)}", hint=hint)


def approver_of(
    driving: Driving, tools: OpenToolsets, kept: SavedRules, *, says_yes: bool, interrupted: Interrupted | None = None
) -> Approver:
    """What decides about calls: the user at the terminal, or the options."""
    typing, leave = driving.keyboard, driving.leave
    if typing is None:
        return FunctionApprover("yes" if says_yes else deny_unattended, interrupted=interrupted or "skip")
    return TerminalPerson(
        typing, leave=leave, kept=kept, places=tools.places, says_yes=says_yes, interrupted=interrupted
    )


def tools_in(arguments: argparse.Namespace, loaded: Configuration) -> ToolsWanted:
    return parse_tools(
        loaded,
        tools=arguments.tools,
        mcp=arguments.mcp,
        folder=arguments.folder,
        builtin=[name.strip() for name in arguments.builtin.split(",") if name.strip()],
        hooks=arguments.hooks,
    )


def limits_in(arguments: argparse.Namespace, *, is_asked: bool) -> RunLimits:
    """The limits of the run; `is_asked` if the user is asked when one is reached."""
    return RunLimits(
        requests=arguments.max_requests or RunLimits().requests,
        tool_calls=arguments.max_tool_calls,
        tokens=arguments.max_tokens_total,
        cost=arguments.max_cost,
        seconds=arguments.max_seconds,
        behaviour="confirm" if is_asked else "stop",
    )


def run_resume(arguments: argparse.Namespace) -> int:
    loaded = configuration(arguments.config)
    with open_keyboard() as typing:
        return asyncio.run(_resume(arguments, loaded, typing))


async def _resume(arguments: argparse.Namespace, loaded: Configuration, typing: Keyboard | None) -> int:
    opened = open_runner(loaded, arguments.data, store=arguments.store, apart=arguments.apart, notice=say)
    async with opened as runner:
        name = await find_run(runner, arguments.id)
        began, known = await runner.began(name), await runner.show(name)
        is_unattended = typing is None and arguments.mid_flight is None
        if known.state == "interrupted" and is_unattended and isinstance(known.pending, MidFlightPending):
            names = ", ".join(call.name for call in known.pending.calls)
            skipping = "--mid-flight skip, which tells the model that it is not known how far it got"
            hint = f"Add --mid-flight again, or {skipping}."
            raise Fault(Code.USAGE, f"no one is there to decide whether {names} runs again", hint=hint)
        async with open_tools_with_notes(loaded, tools_of_run(began.origin)) as tools:
            refuse_unattended(tools, Policy(otherwise="allow") if arguments.yes else began.plan.policy, typing)
            title = f"run {name}: {began.provider}/{began.request.model}, {many(len(known.rounds), 'round')} so far"
            driving = Driving(runner, name, typing, arguments, title=title)
            driving.view.resume(known)
            kept = SavedRules(data_folder(arguments.data))
            approver = approver_of(driving, tools, kept, says_yes=arguments.yes, interrupted=arguments.mid_flight)
            return await driving.through(runner.resume(name, driving.participants(tools, approver, tools.hooks)))


def run_runs(arguments: argparse.Namespace) -> int:
    loaded = configuration(arguments.config)

    async def look() -> list[RunBrief] | RunShown:
        async with open_runner(loaded, arguments.data, store=arguments.store, apart=True) as runner:
            if arguments.id:
                return await runner.show(await find_run(runner, arguments.id))
            return await runner.list_runs(arguments.limit)

    found = asyncio.run(look())
    if arguments.json:
        each = found if isinstance(found, list) else [found]
        write(b"".join(encode(msgspec.to_builtins(one)) + b"\n" for one in each))
    elif not isinstance(found, list):
        write_lines(map(harmless, _run_lines(found)))
    elif found:
        write_lines(_run_table(found))
    else:
        say("no runs on record")
    return 0


async def find_run(runner: Runner, text: str) -> str:
    """The run whose id begins with this text. Raises a Fault if none does, or several do."""
    found = [log.name.removeprefix(PREFIX) for log in await runner.logbook.logs(PREFIX + text)] if text else []
    if text in found:
        return text
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} runs begin with {text!r}" if found else f"there is no run {text!r}"
    raise Fault(Code.USAGE, what, hint="`sightline runs` lists them.")


def _run_table(runs: Sequence[RunBrief]) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("TIME", "RUN", "STATE", "ROUNDS", "CALLS", "TOKENS", "COST", "MODEL", "TITLE"),
        *(
            (
                f"{datetime.fromtimestamp(each.at).astimezone():%m-%d %H:%M:%S}",
                each.id,
                each.why or each.state,
                str(each.rounds),
                str(each.spent.tool_calls),
                f"{'~' if each.spent.is_estimated else ''}{each.spent.tokens:,}",
                money(each.spent.cost, is_estimated=each.spent.is_estimated) or "unknown",
                each.model,
                each.title,
            )
            for each in runs
        ),
    ]
    return table(rows)


def _run_lines(run: RunShown) -> Iterator[str]:
    yield f"run       {run.id}"
    yield f"asked     {run.title}"
    yield f"model     {run.provider}/{run.model}"
    yield f"state     {' '.join(filter(None, (run.state, run.why)))}"
    cost = money(run.spent.cost, is_estimated=run.spent.is_estimated) or "cost unknown"
    about = "about " if run.spent.is_estimated else ""
    yield f"spent     {about}{run.spent.tokens:,} tokens, {cost}, {run.spent.seconds:.2f} s"
    for each in run.rounds:
        yield f"\nround {each.number}" + (f" (exchange {each.exchange})" if each.exchange else "")
        if each.text:
            yield clip(each.text, 2000)
        for call in each.calls:
            yield call_line(call.name, call.arguments if call.ran is None else call.ran)
            if call.result is None:
                yield f"← {call.name} (no result)"
                continue
            failed = "error" if call.result.is_error else ""
            how = failed if call.fate == "ran" else call.fate
            yield f"← {call.name}{f' ({how})' if how else ''}: {fold(call.result.text)}"
        if each.fault is not None:
            yield f"error[{each.fault.code}]: {each.fault.message}"
    for note in run.notes:
        yield f"note: {note}"
