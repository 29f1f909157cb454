"""Sightline as a library: calls that run the tool loop, run a suite, count tokens, and read the record."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import ParamSpec, TypeAlias, TypeVar

import msgspec

from sightline.agent.core.approval import ApprovalRule, Policy
from sightline.agent.core.limits import Reached, RunLimits, total_usage
from sightline.agent.core.rounds import Round, Why
from sightline.agent.core.run import RunPlan
from sightline.agent.service.approvers import Approval, FunctionApprover, deny_unattended
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.runner import NewRun
from sightline.agent.tools.hooks import Hook, Hooks
from sightline.agent.tools.opening import OpenToolsets
from sightline.agent.tools.tools import Callables, CombinedTools, Tools
from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import counter, open_record
from sightline.app.evals import open_evaluation, root_of, targets_for, with_targets
from sightline.app.machine import SystemClock
from sightline.app.tools import open_runner, open_tools, parse_tools, tool_surroundings
from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt, complete, conversation_of
from sightline.dialects.registry import dialect as dialect_of
from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseResult
from sightline.evals.core.run_state import RunOptions
from sightline.evals.core.suite import Suite
from sightline.evals.service.suite_files import SuiteFiles, suite_in
from sightline.evals.service.suite_targets import KnownTargets
from sightline.exchange.engine import EventObserver
from sightline.filters.parsing import parse
from sightline.model.parts import Text
from sightline.model.reply import Usage
from sightline.model.request import Message, Request
from sightline.store.summary import Summary
from sightline.tokens.estimate import Estimate
from sightline.wire.jsontext import decode

SESSION = "library"
ORIGIN = "library"

P = ParamSpec("P")
R = TypeVar("R")

ToolSource: TypeAlias = Callable[..., object] | str | Tools
"""A function, the name of a toolset or of a Python file, or tools that are already open."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run. `why` is how it ended: `answered`, or the reason why there is no answer; `reached` is the
    limit that ended it.

    `cost` is in US dollars, None if the prices are not known. `request` is the whole conversation; with a further
    message it can be the prompt of another run. `run` is the run's id, for `sightline runs`.
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
    timeout: float = 60.0,  # noqa: ASYNC109 - it applies to each call of a function, not to this call
    config: str | None = None,
    data: str | None = None,
    apart: bool = False,
) -> RunResult:
    """Ask a model that may use tools.

    `system` replaces the base instructions of the model's family; `instructions` are added to either. A Request has its
    own. `approve` decides about calls that no toolset allows: "yes", or a function that takes the call. `heard` gets
    each event of the model's answers. `timeout` applies to one call of a function in `tools`. `config`, `data` and
    `apart` are as on the command line. Raises the Fault of a provider that fails; a run that a limit ends raises
    nothing.
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
        equipment, rules = await _open_tools(tools, loaded, timeout, stack)
        _refuse_unapproved(equipment, rules, approve)
        run_hooks = await _hooks(hooks, equipment, loaded, stack)
        runner = await stack.enter_async_context(open_runner(loaded, data, apart=apart))
        name = runner.make_id()
        plan = RunPlan(dialect=choice.dialect, policy=Policy(rules), limits=limits or RunLimits())
        approver = FunctionApprover(approve or deny_unattended)
        ended = await runner.run(
            NewRun(asked, choice, plan, SESSION, name, {"kind": ORIGIN}),
            RunParticipants(CombinedTools(equipment), approver, run_hooks, heard or (lambda _event: None)),
        )
    if ended.why == "failed" and ended.reply is not None and ended.reply.fault is not None:
        raise ended.reply.fault
    return RunResult(
        text=ended.rounds[-1].text if ended.rounds else "",
        why=ended.why,
        rounds=ended.rounds,
        usage=total_usage(each.usage for each in ended.rounds),
        cost=ended.spent.known_cost,
        seconds=ended.spent.seconds,
        run=name,
        request=ended.request,
        reached=ended.reached,
    )


def count_tokens(
    request: str | bytes | Request,
    *,
    model: str = "",
    dialect: str = "",
    config: str | None = None,
    data: str | None = None,
) -> Estimate:
    """Estimate the tokens of a request for a model, without sending anything. A string is one user message; bytes are a
    body in this dialect, by default the model's own. The estimate uses what was learned about the model in the data
    folder. Raises a Fault if the model is unknown or the body cannot be read."""
    choice = configuration(config).choice(model)
    if isinstance(request, bytes):
        request = dialect_of(dialect or choice.dialect).read_request(decode(request))
    elif isinstance(request, str):
        request = Request(messages=(Message("user", (Text(request),)),))
    return counter(data).estimate(choice, request)


async def find_exchanges_async(
    filter: str = "",  # noqa: A002 - its name on the command line and in the API
    *,
    limit: int = 100,
    config: str | None = None,
    data: str | None = None,
) -> tuple[Summary, ...]:
    """The latest recorded exchanges that match a filter, newest first. Raises a Fault if the filter is not valid."""
    loaded = configuration(config)  # first: plug-ins add fields to filters
    wanted = parse(filter)
    async with open_record(loaded, data) as store:
        return tuple(await store.find(wanted, now=SystemClock.now(), limit=limit))


@dataclass(frozen=True, slots=True)
class EvalOutcome:
    """The outcome of a suite. `run` is its id, for `sightline eval show`. `why` is how it ended."""

    run: str
    why: str
    results: tuple[CaseResult, ...]

    @property
    def is_passed(self) -> bool:
        """Whether the run was finished and every case passed."""
        return self.why == "finished" and all(each.status == "ok" for each in self.results)


async def evaluate_async(
    suite: str | PathLike[str],
    *,
    targets: Sequence[str] = (),
    judge: str = "",
    options: RunOptions | None = None,
    config: str | None = None,
    data: str | None = None,
    apart: bool = False,
) -> EvalOutcome:
    """Run a suite of cases, as `sightline eval run` does. `targets` are models or names of targets, by default those of
    the suite or the configuration. Raises a Fault with every problem of the file if the suite cannot be run."""
    loaded = configuration(config)
    root, known, cases = _read_suite(Path(suite), loaded)
    judge = judge or loaded.settings.evals.judge
    answering = known.answering(cases, list(targets), judge)
    chosen = msgspec.structs.replace(options or RunOptions(), targets=answering.usual, judge=judge)
    async with open_evaluation(with_targets(loaded, answering), data, root, apart=apart) as evaluation:
        name = evaluation.make_id()
        ended = await evaluation.run(
            cases, answering.targets, chosen, lambda _progress: None, judges=answering.judges, run=name
        )
    return EvalOutcome(name, ended.ended or "", ended.results)


def _read_suite(path: Path, loaded: Configuration) -> tuple[Path, KnownTargets, Suite]:
    """The folder of a suite's files, the targets that it may name, and the suite itself."""
    path = path.resolve()
    if not path.is_file():
        raise Fault(Code.USAGE, f"there is no suite {str(path)!r}", hint="Name its file.")
    root = root_of(path)
    files, file = SuiteFiles(root), path.relative_to(root).as_posix()
    known = targets_for(loaded, files, file)
    reading = suite_in(files, file, known.suite_environment)
    if reading.suite is None:
        wrong = [f"{each.place}: {each.message}" for each in reading.problems if each.severity == "error"]
        raise Fault(Code.USAGE, f"{file} cannot be run: {'; '.join(wrong)}", hint="Correct the file.")
    return root, known, reading.suite


def _blocking(call: Callable[P, Coroutine[None, None, R]]) -> Callable[P, R]:
    """A blocking version of the call, for programs without an event loop. It raises a Fault if one is running, as in
    notebooks."""
    name = call.__name__

    @wraps(call)
    def wait(*args: P.args, **options: P.kwargs) -> R:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(call(*args, **options))
        hint = f"Write `await sightline.{name}(…)` with the same arguments."
        message = f"sightline.{name.removesuffix('_async')} cannot be called where an event loop is running"
        raise Fault(Code.USAGE, message, hint=hint)

    return wait


run = _blocking(run_async)
"""Ask a model that may use tools, and wait for its answer. In a program with an event loop, await `run_async`."""
find_exchanges = _blocking(find_exchanges_async)
"""The latest recorded exchanges that match a filter. In a program with an event loop, await `find_exchanges_async`."""
evaluate = _blocking(evaluate_async)
"""Run a suite of cases, and wait for its end. In a program with an event loop, await `evaluate_async`."""


def _complete(request: Request, choice: ModelChoice) -> Request:
    """The caller's request, completed with Sightline's defaults."""
    conversation = conversation_of(choice.model, Prompt(request.messages))
    return complete(request, choice, dialect_of(choice.dialect).support, conversation)


async def _open_tools(
    tools: Sequence[ToolSource],
    loaded: Configuration,
    timeout: float,  # noqa: ASYNC109 - passed on
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
    return sources, tuple(rule for each in sources if isinstance(each, OpenToolsets) for rule in each.rules)


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
    configured = [hook for each in tools if isinstance(each, OpenToolsets) and each.hooks for hook in each.hooks.all]
    if not hooks and not configured:
        return None
    where = tool_surroundings(loaded)
    opened = Hooks([*configured, *hooks], folder=where.folder, environment=where.passed_on)
    stack.push_async_callback(opened.close)
    return opened
