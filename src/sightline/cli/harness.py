"""`sightline harness`: runs the real loop with a scripted model, for demos, documentation and tests."""

import argparse
import asyncio
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.core.run import RunPlan
from sightline.agent.service.approvers import SavedRules
from sightline.agent.service.runner import NewRun
from sightline.agent.tools.tools import CombinedTools
from sightline.app.configuration import Configuration, configuration
from sightline.app.machine import SystemClock
from sightline.app.tools import open_runner
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.catalog.compose import Prompt
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.cli.keyboard import Keyboard, open_keyboard
from sightline.cli.options import has_tools
from sightline.cli.run_control import Driving
from sightline.cli.terminal import read, say, write
from sightline.cli.tool_run import approver_of, open_tools_with_notes, policy_of, refuse_unattended, tools_in
from sightline.errors import Code, Fault
from sightline.model.parts import Text
from sightline.model.request import Message
from sightline.settings import Settings
from sightline.testing.script import MODEL, Script, ScriptedProvider, ScriptedTools, read_script

PROVIDER = "script"


def run(arguments: argparse.Namespace) -> int:

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
    arguments: argparse.Namespace, script: Script, loaded: Configuration, typing: Keyboard | None, folder: str
) -> int:
    """Play the script through the loop, with the record in this folder."""
    spoken = script.reply_dialect(arguments.dialect)
    async with ScriptedProvider(script, spoken, sleep=SystemClock().sleep, delay=arguments.delay) as provider:
        # The script is the only provider, and no proxy is used.
        speaking = Provider(dialect=spoken, base_url=provider.url)
        catalog = Catalog(providers={PROVIDER: speaking}, models={MODEL: Model(providers=(PROVIDER,), tools=True)})
        alone = replace(loaded, catalog=catalog, settings=Settings(), environment={})
        choice = choose(catalog, f"{PROVIDER}/{MODEL}", has_key=alone.has_key)
        prompt = Prompt((Message("user", (Text(arguments.prompt or script.prompt),)),), instructions=script.system)
        async with open_tools_with_notes(loaded, tools_in(arguments, loaded)) as tools:
            scripted = ScriptedTools(script, frozenset(each.name for each in tools.definitions))
            policy = policy_of(tools, (), arguments)
            refuse_unattended(tools, policy, typing)
            for each in () if arguments.confirm else scripted.definitions:
                policy = policy.prepend(ApprovalRule(each.name, "allow"))  # calling them has no effect
            async with open_runner(alone, folder) as runner:
                run = runner.make_id()
                title = f"run {run}: {spoken}"
                driving = Driving(runner, run, typing, arguments, title=title, is_silent=arguments.requests)
                approver = approver_of(driving, tools, SavedRules(Path(folder)), says_yes=arguments.yes)
                plan = RunPlan(dialect=choice.dialect, policy=policy)
                new = NewRun(prompt, choice, plan, "harness", run, {"kind": "harness"})
                participants = driving.participants(CombinedTools([tools, scripted]), approver, tools.hooks)
                try:
                    code = await driving.through(runner.run(new, participants))
                except Fault:
                    if not provider.is_over:
                        raise
                    say("note: the script ends here; the last request shows what the model would have received")
                    code = 0
        if arguments.requests:
            write(b"".join(body + b"\n" for body in provider.requests))
    return code
