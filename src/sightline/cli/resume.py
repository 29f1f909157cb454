"""`sightline resume`: continue a run from its last step; no tool runs twice."""

import argparse
from typing import TYPE_CHECKING

from sightline.cli.options import add_apart, add_shared
from sightline.cli.terminal import say
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.agent.service.shapes import RunShown
    from sightline.app.configuration import Configuration
    from sightline.cli.keyboard import Keyboard


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `resume`."""
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
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Resume the run."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.cli.keyboard import keyboard

    loaded, typing = configuration(arguments.config), keyboard()
    try:
        return asyncio.run(_resume(arguments, loaded, typing))
    finally:
        if typing is not None:
            typing.close()


async def _resume(arguments: argparse.Namespace, loaded: "Configuration", typing: "Keyboard | None") -> int:
    from sightline.agent.core.approval import Policy
    from sightline.agent.service.toolsets import KeptRules
    from sightline.app.configuration import data_folder
    from sightline.app.tools import open_runner, tools_of_run
    from sightline.cli.run_control import Driving
    from sightline.cli.runs import find_run
    from sightline.cli.tool_run import approver_of, open_tools_with_notes, refuse_unattended

    opened = open_runner(loaded, arguments.data, store=arguments.store, apart=arguments.apart, notice=say)
    async with opened as runner:
        name = await find_run(runner, arguments.id)
        began, known = await runner.began(name), await runner.show(name)
        if known.state == "interrupted" and typing is None and arguments.mid_flight is None:
            _refuse_mid_flight(known)
        async with open_tools_with_notes(loaded, tools_of_run(began.origin)) as tools:
            refuse_unattended(tools, Policy(otherwise="allow") if arguments.yes else began.plan.policy, typing)
            title = f"run {name}: {began.provider}/{began.request.model}, {len(known.rounds)} rounds so far"
            driving = Driving(runner, name, typing, title=title, is_quiet=arguments.quiet, is_json=arguments.json)
            driving.view.resume(known)
            kept = KeptRules(data_folder(arguments.data))
            work = runner.resume(
                name,
                tools,
                approver_of(typing, driving, tools, kept, says_yes=arguments.yes, interrupted=arguments.mid_flight),
                hooks=tools.hooks,
                on_event=driving.view.on_event,
                on_recorded=driving.view.on_recorded,
                on_fact=driving.on_fact,
                watcher=driving.view,
            )
            return await driving.through(work)


def _refuse_mid_flight(known: "RunShown") -> None:
    from sightline.agent.service.shapes import MidFlightPending

    if isinstance(known.pending, MidFlightPending):
        names = ", ".join(call.name for call in known.pending.calls)
        hint = (
            "Add --mid-flight again, or --mid-flight skip, which tells the model that it is not known how far it got."
        )
        raise Fault(Code.USAGE, f"no one is there to decide whether {names} runs again", hint=hint)
