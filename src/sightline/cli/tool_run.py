"""A question whose model may use tools: opened, approved, run, and shown round by round."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from sightline.agent.core.approval import Policy
from sightline.agent.core.plan import RunPlan
from sightline.agent.core.tool import Toolbox
from sightline.agent.service.approval_store import KeptRule, KeptRules
from sightline.agent.service.participants import Approver, Interrupted
from sightline.agent.service.policy_approver import Judging, deny_unattended
from sightline.agent.tools.opening import Opened
from sightline.app.agent_runs import open_runner
from sightline.app.configuration import Configuration, data_folder
from sightline.app.tool_choice import ToolsWanted, open_tools
from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt
from sightline.cli.answer import tell_losses
from sightline.cli.approval import TerminalPerson
from sightline.cli.keyboard import Keyboard, keyboard
from sightline.cli.run_control import Driving
from sightline.cli.terminal import say
from sightline.cli.tool_options import limits_in, tools_in
from sightline.errors import Code, Fault
from sightline.exchange.prepare import prepare

SESSION = "ask"


def with_offered_tools(arguments: argparse.Namespace, prompt: Prompt, loaded: Configuration) -> Prompt:
    """The prompt with the tools that its model would be told of."""

    async def look() -> Prompt:
        async with open_tools_with_notes(loaded, tools_in(arguments, loaded)) as tools:
            return _with_tools(prompt, tools)

    return asyncio.run(look())


def ask_with_tools(arguments: argparse.Namespace, prompt: Prompt, choice: ModelChoice, loaded: Configuration) -> int:
    """Run it; the exit code says how it went."""
    if arguments.count:
        hint = "Leave it out, or add --dry-run to count the first request."
        raise Fault(Code.USAGE, "--count is not for a run with tools", hint=hint)

    async def ran() -> int:
        wanted, typing = tools_in(arguments, loaded), keyboard()
        try:
            async with open_tools_with_notes(loaded, wanted) as tools:
                tell_losses(prepare(_with_tools(prompt, tools), choice).report)
                kept = KeptRules(data_folder(arguments.data))
                policy = policy_of(tools, () if arguments.confirm else kept.of(tools.places), arguments)
                refuse_unattended(tools, policy, typing)
                is_asked = typing is not None and not arguments.yes
                plan = RunPlan(dialect=choice.dialect, policy=policy, limits=limits_in(arguments, is_asked=is_asked))
                async with open_runner(loaded, arguments.data, apart=arguments.apart, notice=say) as runner:
                    run = runner.make_id()
                    title = f"run {run}: {choice.provider_name}/{choice.model}"
                    driving = Driving(
                        runner, run, typing, title=title, is_quiet=arguments.quiet, is_json=arguments.json
                    )
                    work = runner.run(
                        prompt,
                        choice,
                        plan,
                        tools,
                        approver_of(typing, driving, tools, kept, says_yes=arguments.yes),
                        session=SESSION,
                        hooks=tools.hooks,
                        run=run,
                        heard=driving.view.on_event,
                        noted=driving.view.on_noted,
                        on_fact=driving.on_fact,
                        watcher=driving.view,
                        origin={"kind": "ask", **wanted.origin},
                    )
                    return await driving.through(work)
        finally:
            if typing is not None:
                typing.close()

    return asyncio.run(ran())


def _with_tools(prompt: Prompt, tools: Opened) -> Prompt:
    return replace(prompt, tools=Toolbox(tools.definitions).tools_for(prompt.tools))


@asynccontextmanager
async def open_tools_with_notes(loaded: Configuration, wanted: ToolsWanted) -> AsyncIterator[Opened]:
    """The tools while they are needed; what is missing of them is said."""
    tools = await open_tools(loaded, wanted)
    try:
        for note in tools.notes:
            say(f"note: {note}")
        yield tools
    finally:
        await tools.close()


def policy_of(tools: Opened, kept: Sequence[KeptRule], arguments: argparse.Namespace) -> Policy:
    """What may run unasked. Leave that was given in an earlier run is told whenever it counts."""
    if arguments.yes:
        return Policy(otherwise="allow")
    if arguments.confirm:
        return Policy()
    for each in kept:
        say(f"note: you have allowed this for all runs: {each.words}")
    return Policy((*tools.rules, *(each.rule for each in kept)))


def refuse_unattended(tools: Opened, policy: Policy, typing: Keyboard | None) -> None:
    """Where nobody can be asked, every tool must be allowed before anything begins."""
    allowed = {rule.tool for rule in policy.rules if rule.ruling == "allow"}
    asked = [each.name for each in tools.definitions if each.name not in allowed and not each.is_remote]
    if asked and policy.otherwise != "allow" and typing is None:
        hint = "Add --yes, or name them under `allow` in the toolset's table of sightline.toml."
        raise Fault(Code.USAGE, f"nobody is there to approve calls of {', '.join(asked)}", hint=hint)


def approver_of(
    typing: Keyboard | None,
    driving: Driving,
    tools: Opened,
    kept: KeptRules,
    *,
    says_yes: bool,
    interrupted: Interrupted | None = None,
) -> Approver:
    """Who decides: the person at the terminal, or what the options say."""
    if typing is None:
        return Judging("yes" if says_yes else deny_unattended, interrupted=interrupted or "skip")
    return TerminalPerson(
        typing, leave=driving.leave, kept=kept, places=tools.places, says_yes=says_yes, interrupted=interrupted
    )
