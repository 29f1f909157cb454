"""`sightline harness`: the real loop with a scripted model, for demos, documentation and tests."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared, add_tool_sources, has_tools, number, tools_in
from sightline.cli.terminal import read, say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.agent.core.approval import Policy
    from sightline.agent.tools.opening import Opened
    from sightline.app.configuration import Configuration
    from sightline.catalog.compose import Prompt
    from sightline.cli.keyboard import Keyboard
    from sightline.testing.script import Script, ScriptedProvider, ScriptedTools

SESSION = "harness"
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

    from sightline.app.configuration import configuration
    from sightline.cli.keyboard import keyboard
    from sightline.testing.script import read_script

    script = read_script(arguments.file, _file)
    if not has_tools(arguments) and arguments.hooks:
        raise Fault(Code.USAGE, "--hooks needs real tools", hint="Name some with --tools.")
    loaded, typing = configuration(arguments.config), keyboard()
    try:
        with _data(arguments.data) as folder:
            return asyncio.run(_Playing(arguments, script, loaded, typing).play(folder))
    finally:
        if typing is not None:
            typing.close()


def _file(name: str, beside: str) -> bytes:
    return read(str(Path(beside).parent / name) if beside else name)


@contextmanager
def _data(named: str | None) -> Iterator[str]:
    """The folder that was named, else a temporary one."""
    from tempfile import TemporaryDirectory

    if named:
        yield named
        return
    with TemporaryDirectory(prefix="sightline-harness-") as folder:
        yield folder


class _Playing:
    """One script, played through the loop."""

    def __init__(
        self, arguments: argparse.Namespace, script: "Script", loaded: "Configuration", typing: "Keyboard | None"
    ) -> None:
        self._arguments = arguments
        self._script = script
        self._spoken = script.reply_dialect(arguments.dialect)
        self._loaded = loaded
        self._typing = typing

    async def play(self, folder: str) -> int:
        """Play it, with the record in this folder."""
        from sightline.app.machine import SystemClock
        from sightline.testing.script import ScriptedProvider

        delay = self._arguments.delay
        async with ScriptedProvider(self._script, self._spoken, sleep=SystemClock().sleep, delay=delay) as provider:
            try:
                code = await self._with_tools(provider, folder)
            except Fault:
                if not provider.is_over:
                    raise
                say("note: the script ends here; the last request shows what the model would have received")
                code = 0
            if self._arguments.requests:
                write(b"".join(body + b"\n" for body in provider.requests))
        return code

    async def _with_tools(self, provider: "ScriptedProvider", folder: str) -> int:
        from sightline.agent.core.approval import ApprovalRule
        from sightline.cli.tool_run import open_tools_with_notes, policy_of, refuse_unattended
        from sightline.testing.script import ScriptedTools

        arguments = self._arguments
        async with open_tools_with_notes(self._loaded, tools_in(arguments, self._loaded)) as tools:
            scripted = ScriptedTools(self._script, frozenset(each.name for each in tools.definitions))
            policy = policy_of(tools, (), arguments)
            refuse_unattended(tools, policy, self._typing)
            for each in () if arguments.confirm else scripted.definitions:
                policy = policy.prepend(ApprovalRule(each.name, "allow"))  # nothing happens when they are called
            return await self._run(provider, tools, scripted, policy, folder)

    async def _run(
        self, provider: "ScriptedProvider", tools: "Opened", scripted: "ScriptedTools", policy: "Policy", folder: str
    ) -> int:
        from sightline.agent.core.run import RunPlan
        from sightline.agent.service.runner import NewRun
        from sightline.agent.service.toolsets import KeptRules
        from sightline.agent.tools.tools import together
        from sightline.app.tools import open_runner
        from sightline.catalog.choose import choose
        from sightline.cli.run_control import Driving
        from sightline.cli.tool_run import approver_of
        from sightline.testing.script import MODEL

        arguments, loaded = self._arguments, self._configuration_for(provider)
        choice = choose(loaded.catalog, f"{PROVIDER}/{MODEL}", has_key=loaded.has_key)
        async with open_runner(loaded, folder) as runner:
            run = runner.make_id()
            driving = Driving(
                runner,
                run,
                self._typing,
                title=f"run {run}: {self._spoken}",
                is_quiet=arguments.quiet,
                is_json=arguments.json,
                is_silent=arguments.requests,
            )
            kept = KeptRules(Path(folder))
            approver = approver_of(self._typing, driving, tools, kept, says_yes=arguments.yes)
            plan = RunPlan(dialect=choice.dialect, policy=policy)
            new = NewRun(self._prompt(), choice, plan, SESSION, run, {"kind": "harness"})
            company = driving.participants(together([tools, scripted]), approver, tools.hooks)
            return await driving.through(runner.run(new, company))

    def _prompt(self) -> "Prompt":
        from sightline.catalog.compose import Prompt
        from sightline.model.message import Message
        from sightline.model.parts import Text

        text = self._arguments.prompt or self._script.prompt
        return Prompt((Message("user", (Text(text),)),), instructions=self._script.system)

    def _configuration_for(self, provider: "ScriptedProvider") -> "Configuration":
        """A configuration whose only provider is the script, without a proxy."""
        from sightline.catalog.catalog import Catalog
        from sightline.catalog.facts import Model
        from sightline.catalog.provider import Provider
        from sightline.settings import Settings
        from sightline.testing.script import MODEL

        speaking = Provider(dialect=self._spoken, base_url=provider.url)  # type: ignore[arg-type] # one of the four
        catalog = Catalog(providers={PROVIDER: speaking}, models={MODEL: Model(providers=(PROVIDER,), tools=True)})
        return replace(self._loaded, catalog=catalog, settings=Settings(), environment={})
