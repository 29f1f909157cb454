"""Sightline as a library: one call runs the tool loop."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import wraps
from typing import ParamSpec, TypeAlias

from sightline.agent.core.approval import ApprovalRule, Policy
from sightline.agent.core.limits import Reached, RunLimits, total_usage
from sightline.agent.core.rounds import Round, Why
from sightline.agent.core.run import RunPlan
from sightline.agent.service.approvers import Approval, Judging, deny_unattended
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.runner import NewRun
from sightline.agent.tools.callables import Callables
from sightline.agent.tools.hooks import Hook, Hooks
from sightline.agent.tools.opening import Opened
from sightline.agent.tools.tools import Tools, together
from sightline.app.configuration import Configuration, configuration
from sightline.app.tools import open_runner, open_tools, parse_tools, tool_surroundings
from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt, complete, conversation_of
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange.answer_reading import EventObserver
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.model.request import Request
from sightline.model.usage import Usage

SESSION = "library"
ORIGIN = "library"

P = ParamSpec("P")

ToolSource: TypeAlias = Callable[..., object] | str | Tools
"""A function, the name of a toolset or of a Python file, or tools that are already open."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run. `why` is how it ended: `answered`, or the reason it has no answer; `reached` is the limit
    that ended it.

    `cost` is in US dollars, None where the prices are not known. `request` holds the whole conversation; with a further
    message it can be the prompt of another run. `run` is the run's id: `sightline runs` shows it.
    """

    text: str
    why: Why
    rounds: tuple[Round, ...]
    usage: Usage
    cost: float | None
    seconds: float
    run: str
    request: Request
    reached: Reached | None = None


async def run_async(
    prompt: str | Request,
    *,
    tools: Sequence[ToolSource] = (),
    model: str = "",
    system: str | None = None,
    instructions: str = "",
    approve: Approval | None = None,
    limits: RunLimits | None = None,
    hooks: Sequence[Hook] = (),
    heard: EventObserver | None = None,
    max_tokens: int | None = None,
    timeout: float = 60.0,  # noqa: ASYNC109 - each call of a function has it, and this one none
    config: str | None = None,
    data: str | None = None,
    apart: bool = False,
) -> RunResult:
    """Ask a model that may use tools.

    `system` replaces the base instructions of the model's family; `instructions` follow either. A Request has its own.
    `approve` decides about calls that no toolset allows: "yes", or a function that takes the call. `heard` gets each
    event of the model's answers. `timeout` applies to one call of a function in `tools`. `config`, `data` and `apart`
    are as on the command line. Raises the Fault of a provider that fails; a run that a limit ends raises nothing.
    """
    loaded = configuration(config)
    choice = loaded.choice(model)
    if isinstance(prompt, Request):
        asked: Request | Prompt = _complete(prompt, choice)
    else:
        asked = Prompt(
            (Message("user", (Text(prompt),)),),
            instructions=system if system is not None else loaded.settings.ask.system or None,
            user_instructions=instructions or loaded.settings.ask.instructions,
            max_tokens=max_tokens,
        )
        asked = replace(asked, conversation=conversation_of(choice.model, asked))
    async with AsyncExitStack() as stack:
        equipment, rules = await _equipment(tools, loaded, timeout, stack)
        _refuse_unapproved(equipment, rules, approve)
        run_hooks = await _hooks(hooks, equipment, loaded, stack)
        runner = await stack.enter_async_context(open_runner(loaded, data, apart=apart))
        name = runner.make_id()
        plan = RunPlan(dialect=choice.dialect, policy=Policy(rules), limits=limits or RunLimits())
        approver = Judging(approve or deny_unattended)
        ended = await runner.run(
            NewRun(asked, choice, plan, SESSION, name, {"kind": ORIGIN}),
            RunParticipants(together(equipment), approver, run_hooks, heard or (lambda _event: None)),
        )
    if ended.why == "failed" and ended.reply is not None and ended.reply.fault is not None:
        raise ended.reply.fault
    return RunResult(
        text=ended.rounds[-1].text if ended.rounds else "",
        why=ended.why,
        rounds=ended.rounds,
        usage=usage_of(ended.rounds),
        cost=ended.spent.known_cost,
        seconds=ended.spent.seconds,
        run=name,
        request=ended.request,
        reached=ended.reached,
    )


def _blocking(call: Callable[P, Coroutine[None, None, RunResult]]) -> Callable[P, RunResult]:
    """The same call for a program without an event loop. Where one runs, as in notebooks, it is refused."""

    @wraps(call)
    def wait(*args: P.args, **options: P.kwargs) -> RunResult:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(call(*args, **options))
        hint = "Write `await sightline.run_async(…)` with the same arguments."
        raise Fault(Code.USAGE, "sightline.run cannot be called where an event loop is running", hint=hint)

    return wait


run = _blocking(run_async)
"""Ask a model that may use tools, and wait for its answer. In a program with an event loop, await `run_async`."""


def usage_of(rounds: Sequence[Round]) -> Usage:
    """The usage of all rounds; counts that no reply reports are None."""
    return total_usage(each.usage for each in rounds)


def _complete(request: Request, choice: ModelChoice) -> Request:
    """The program's own request, completed with the defaults of our requests."""
    conversation = conversation_of(choice.model, Prompt(request.messages))
    support = dialect(choice.dialect).support
    return complete(request, provider=choice.provider, facts=choice.facts, support=support, conversation=conversation)


async def _equipment(
    tools: Sequence[ToolSource],
    loaded: Configuration,
    timeout: float,  # noqa: ASYNC109 - handed on
    stack: AsyncExitStack,
) -> tuple[list[Tools], tuple[ApprovalRule, ...]]:
    """All tools, and the rules for calls that need no approval. Tools that the caller has opened stay open."""
    functions: list[Callable[..., object]] = []
    names: list[str] = []
    sources: list[Tools] = []
    for each in tools:
        if isinstance(each, str):
            names.append(each)
        elif callable(each):
            functions.append(each)
        else:
            sources.append(each)
    if functions:
        sources.append(Callables(functions, timeout=timeout))
    if names:
        opened = await open_tools(loaded, parse_tools(loaded, tools=names))
        stack.push_async_callback(opened.close)
        sources.append(opened)
    return sources, tuple(rule for each in sources if isinstance(each, Opened) for rule in each.rules)


def _refuse_unapproved(tools: Sequence[Tools], rules: tuple[ApprovalRule, ...], approve: Approval | None) -> None:
    answer: object = approve
    if answer not in (None, "yes") and not callable(answer):
        hint = 'Say approve="yes", or give a function that decides.'
        raise Fault(Code.USAGE, f"approve cannot be {answer!r}", hint=hint)
    allowed = {rule.tool for rule in rules}
    definitions = (each for source in tools for each in source.definitions if not each.is_remote)
    unapproved = [each.name for each in definitions if each.name not in allowed]
    if unapproved and approve is None:
        hint = 'Say approve="yes", give a function that decides, or allow them in the table of their toolset.'
        raise Fault(Code.USAGE, f"no one is there to approve calls of {', '.join(unapproved)}", hint=hint)


async def _hooks(
    hooks: Sequence[Hook], tools: Sequence[Tools], loaded: Configuration, stack: AsyncExitStack
) -> Hooks | None:
    configured = [hook for each in tools if isinstance(each, Opened) and each.hooks for hook in each.hooks.all]
    if not hooks and not configured:
        return None
    where = tool_surroundings(loaded)
    opened = Hooks([*configured, *hooks], folder=where.folder, environment=where.passed_on)
    stack.push_async_callback(opened.close)
    return opened
