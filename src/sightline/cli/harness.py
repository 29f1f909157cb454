"""`sightline harness`: the real loop with a scripted model, for demos, documentation and tests."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared, add_tool_sources, has_tools, number, tools_in
from sightline.cli.terminal import read, say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.app.configuration import Configuration
    from sightline.cli.terminal import Keyboard
    from sightline.testing.script import Script

PROVIDER = "script"


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `harness`."""
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
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
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
            code = await _run(arguments, script, loaded, typing, folder, spoken, provider.url)
        except Fault:
            if not provider.is_over:
                raise
            say("note: the script ends here; the last request shows what the model would have received")
            code = 0
        if arguments.requests:
            write(b"".join(body + b"\n" for body in provider.requests))
    return code


async def _run(
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
    from sightline.agent.service.runner import NewRun
    from sightline.agent.service.toolsets import KeptRules
    from sightline.agent.tools.tools import together
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
            participants = driving.participants(together([tools, scripted]), approver, tools.hooks)
            return await driving.through(runner.run(new, participants))
