"""`sightline runs`, `sightline resume` and `sightline harness`: runs with tools that are on record, how to resume one,
and the real loop with a scripted model, for demos, documentation and tests.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_apart, add_shared, add_tool_sources, count, has_tools, number, tools_in
from sightline.cli.terminal import harmless, many, read, say, table, write, write_lines
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.agent.service.run_view import RunBrief, RunShown
    from sightline.agent.service.runner import Runner
    from sightline.app.configuration import Configuration
    from sightline.cli.terminal import Keyboard
    from sightline.testing.script import Script


_USUAL = 50


def add_runs(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "runs",
        help="list runs with tools, or show one",
        description="List the recorded runs with tools, newest first, or show one of them round by round.",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object per line")
    command.add_argument(
        "--limit", type=count, default=_USUAL, metavar="N", help=f"the largest number to list (default: {_USUAL})"
    )
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("id", nargs="?", default="", metavar="RUN", help="one run: its id, or how it begins")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List or show."""
    import asyncio

    import msgspec

    from sightline.app.configuration import configuration
    from sightline.app.tools import open_runner
    from sightline.wire.jsontext import encode

    loaded = configuration(arguments.config)

    async def look() -> "list[RunBrief] | RunShown":
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
        write_lines(_table(found))
    else:
        say("no runs on record")
    return 0


async def find_run(runner: "Runner", text: str) -> str:
    """The run whose id begins with this text. Raises a Fault if none does, or several do."""
    from sightline.agent.service.run_log import PREFIX

    found = [log.name.removeprefix(PREFIX) for log in await runner.logbook.logs(PREFIX + text)] if text else []
    if text in found:
        return text
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} runs begin with {text!r}" if found else f"there is no run {text!r}"
    raise Fault(Code.USAGE, what, hint="`sightline runs` lists them.")


def _table(runs: "Sequence[RunBrief]") -> list[str]:
    from datetime import datetime

    from sightline.cli.traffic import money

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


def _run_lines(run: "RunShown") -> Iterator[str]:
    from sightline.cli.run_control import call_line, clip, fold
    from sightline.cli.traffic import money

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


def add_resume(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "resume",
        help="resume an interrupted run",
        description="Resume a run of `sightline ask` or the chat that was left by Ctrl-C or whose process ended, "
        "from its last step. No tool that has a result runs again; one that was running is asked about.",
    )
    command.add_argument("--yes", action="store_true", help="run every call without asking")
    command.add_argument(
        "--mid-flight", choices=("again", "skip"), help="run interrupted calls again or skip them, without asking"
    )
    command.add_argument("--json", action="store_true", help="print the whole run as one JSON object")
    command.add_argument("--quiet", action="store_true", help="do not print rounds, usage, cost and time")
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_apart(command)
    add_shared(command)
    command.add_argument("id", metavar="RUN", help="the run's id, or how it begins")
    command.set_defaults(run=run_resume)


def run_resume(arguments: argparse.Namespace) -> int:
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.cli.terminal import open_keyboard

    loaded = configuration(arguments.config)
    with open_keyboard() as typing:
        return asyncio.run(_resume(arguments, loaded, typing))


async def _resume(arguments: argparse.Namespace, loaded: "Configuration", typing: "Keyboard | None") -> int:
    from sightline.agent.core.approval import Policy
    from sightline.agent.service.approvers import KeptRules
    from sightline.agent.service.run_view import MidFlightPending
    from sightline.app.configuration import data_folder
    from sightline.app.tools import open_runner, tools_of_run
    from sightline.cli.run_control import Driving
    from sightline.cli.tool_run import approver_of, open_tools_with_notes, refuse_unattended

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
            driving = Driving(runner, name, typing, title=title, is_quiet=arguments.quiet, is_json=arguments.json)
            driving.view.resume(known)
            kept = KeptRules(data_folder(arguments.data))
            approver = approver_of(
                typing, driving, tools, kept, says_yes=arguments.yes, interrupted=arguments.mid_flight
            )
            return await driving.through(runner.resume(name, driving.participants(tools, approver, tools.hooks)))


PROVIDER = "script"


def add_harness(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "harness",
        help="play a scripted model through the real tool loop",
        description="Play the replies of a script through the real loop: over a connection, by the reader of a "
        "provider's dialect, with approval and results. A script is JSON, or one captured stream of server-sent "
        "events for each reply. Its tools answer from the script, unless --tools and the like name real ones.",
    )
    command.add_argument("--prompt", metavar="TEXT", help="the question (default: the script's)")
    command.add_argument(
        "--dialect", default="", metavar="D", help="the dialect of the replies (default: the script's)"
    )
    command.add_argument("--delay", type=number, default=0.0, metavar="S", help="seconds between the chunks of a reply")
    command.add_argument("--requests", action="store_true", help="print each request as a line of JSON")
    command.add_argument("--json", action="store_true", help="print the whole run as one JSON object")
    command.add_argument("--quiet", action="store_true", help="do not print rounds, usage and time")
    add_tool_sources(command)
    add_shared(command)
    command.add_argument("file", nargs="+", metavar="FILE", help="a script, or captured streams in their order")
    command.set_defaults(run=run_harness)


def run_harness(arguments: argparse.Namespace) -> int:
    """Play the script."""
    import asyncio
    from contextlib import nullcontext
    from tempfile import TemporaryDirectory

    from sightline.app.configuration import configuration
    from sightline.cli.terminal import open_keyboard
    from sightline.testing.script import read_script

    def read_file(name: str, beside: str) -> bytes:
        return read(str(Path(beside).parent / name) if beside else name)

    script = read_script(arguments.file, read_file)
    if not has_tools(arguments) and arguments.hooks:
        raise Fault(Code.USAGE, "--hooks needs real tools", hint="Name some with --tools.")
    loaded = configuration(arguments.config)
    data = nullcontext(arguments.data) if arguments.data else TemporaryDirectory(prefix="sightline-harness-")
    with open_keyboard() as typing, data as folder:
        return asyncio.run(_play(arguments, script, loaded, typing, folder))


async def _play(
    arguments: argparse.Namespace, script: "Script", loaded: "Configuration", typing: "Keyboard | None", folder: str
) -> int:
    """Play the script through the loop, with the record in this folder."""
    from sightline.app.machine import SystemClock
    from sightline.testing.script import ScriptedProvider

    spoken = script.reply_dialect(arguments.dialect)
    async with ScriptedProvider(script, spoken, sleep=SystemClock().sleep, delay=arguments.delay) as provider:
        try:
            code = await _run_script(arguments, script, loaded, typing, folder, spoken, provider.url)
        except Fault:
            if not provider.is_over:
                raise
            say("note: the script ends here; the last request shows what the model would have received")
            code = 0
        if arguments.requests:
            write(b"".join(body + b"\n" for body in provider.requests))
    return code


async def _run_script(
    arguments: argparse.Namespace,
    script: "Script",
    loaded: "Configuration",
    typing: "Keyboard | None",
    folder: str,
    spoken: str,
    url: str,
) -> int:
    from sightline.agent.core.approval import ApprovalRule
    from sightline.agent.core.run import RunPlan
    from sightline.agent.service.approvers import KeptRules
    from sightline.agent.service.runner import NewRun
    from sightline.agent.tools.tools import CombinedTools
    from sightline.app.tools import open_runner
    from sightline.catalog.catalog import Catalog
    from sightline.catalog.choose import choose
    from sightline.catalog.compose import Prompt
    from sightline.catalog.facts import Model
    from sightline.catalog.provider import Provider
    from sightline.cli.run_control import Driving
    from sightline.cli.tool_run import approver_of, open_tools_with_notes, policy_of, refuse_unattended
    from sightline.model.parts import Text
    from sightline.model.request import Message
    from sightline.settings import Settings
    from sightline.testing.script import MODEL, ScriptedTools

    # The only provider is the script, and no proxy is asked.
    speaking = Provider(dialect=spoken, base_url=url)
    catalog = Catalog(providers={PROVIDER: speaking}, models={MODEL: Model(providers=(PROVIDER,), tools=True)})
    alone = replace(loaded, catalog=catalog, settings=Settings(), environment={})
    choice = choose(catalog, f"{PROVIDER}/{MODEL}", has_key=alone.has_key)
    prompt = Prompt((Message("user", (Text(arguments.prompt or script.prompt),)),), instructions=script.system)
    async with open_tools_with_notes(loaded, tools_in(arguments, loaded)) as tools:
        scripted = ScriptedTools(script, frozenset(each.name for each in tools.definitions))
        policy = policy_of(tools, (), arguments)
        refuse_unattended(tools, policy, typing)
        for each in () if arguments.confirm else scripted.definitions:
            policy = policy.prepend(ApprovalRule(each.name, "allow"))  # nothing happens when they are called
        async with open_runner(alone, folder) as runner:
            run = runner.make_id()
            driving = Driving(
                runner,
                run,
                typing,
                title=f"run {run}: {spoken}",
                is_quiet=arguments.quiet,
                is_json=arguments.json,
                is_silent=arguments.requests,
            )
            approver = approver_of(typing, driving, tools, KeptRules(Path(folder)), says_yes=arguments.yes)
            plan = RunPlan(dialect=choice.dialect, policy=policy)
            new = NewRun(prompt, choice, plan, "harness", run, {"kind": "harness"})
            participants = driving.participants(CombinedTools([tools, scripted]), approver, tools.hooks)
            return await driving.through(runner.run(new, participants))
