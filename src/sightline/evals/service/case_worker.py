"""Workers, which run cases: the interface, and the worker that runs them in this process. A case is delivered to its
target, and the answer is graded. Targets are opened by their specs, judges on first use."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from sightline.agent.tools.commands import without_variables
from sightline.catalog.choose import ModelChoice
from sightline.dialects.dialect import SystemPolicy
from sightline.errors import Code, Fault
from sightline.evals.core.delivery import Delivery, deliver, last_exchanges, turn_messages
from sightline.evals.core.graders.finding import Grading
from sightline.evals.core.graders.grade import as_one, prepare, together
from sightline.evals.core.graders.grader import Grader
from sightline.evals.core.reading.files import files_of
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore
from sightline.evals.core.run_state import EvalBegan, Key, budget_of, file_form_of, result_of, threshold_of
from sightline.evals.core.suite import Case, CaseMessage
from sightline.evals.core.target import FileForm, TargetSpec
from sightline.evals.service.command_target import CommandTarget
from sightline.evals.service.context import EvalRun, LocalSharing, Sharing, limit_choice
from sightline.evals.service.eval_log import PREFIX
from sightline.evals.service.grading import Graders
from sightline.evals.service.model_target import MockTarget, ModelAccess, ModelTarget, ReplayTarget, ToolsTarget
from sightline.evals.service.processes import Process, PythonGraders
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import CaseQuestion, CaseTarget, check_priced, describe_fault
from sightline.exchange.interception.holds import Changes, apply_changes
from sightline.exchange.recording.library import Library
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.model.parts import ToolCall
from sightline.model.request import Message
from sightline.transport.waiting import Clock


class Worker(Protocol):
    """Runs as many cases at once as it is given; the scheduler decides how many and in which order. Workers in other
    processes share the rate limits."""

    async def run(self, key: Key) -> CaseResult:
        """Run one trial of a case on a target. Failures of the case are in the result."""

    async def close(self) -> None: ...


@dataclass
class CaseWorker:
    """A worker that runs cases in this process."""

    began: EvalBegan
    targets: Mapping[str, CaseTarget]
    graders: Graders
    files: SuiteFiles
    clock: Clock
    _cases: dict[str, Case] = field(init=False)
    _files: dict[str, tuple[str, ...]] = field(init=False)
    _graders: dict[tuple[str, int | None], tuple[Grader, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cases = {case.id: case for case in self.began.suite.cases}
        self._files = {case.id: files_of(case) for case in self.began.suite.cases}

    async def run(self, key: Key) -> CaseResult:
        """Run a case and return its result. A case that cannot be delivered gets an execution error."""
        name, target, _ = key
        case, at, began = self._cases[name], self.clock.now(), self.clock.monotonic()
        carry_out = self._conversation if case.turns else self._exchange
        try:
            result = await carry_out(case, key, self.targets[target])
        except Fault as fault:
            score = CaseScore(verdict="not_graded", reason=f"it was not asked: {fault.message}")
            result = result_of(self.began.suite, case, key, score, _not_sent(fault))
        return msgspec.structs.replace(result, at=at, seconds=self.clock.monotonic() - began)

    async def close(self) -> None:
        for target in self.targets.values():
            await target.close()

    async def _exchange(self, case: Case, key: Key, target: CaseTarget) -> CaseResult:
        trial = key[2]
        delivery = self._deliver(case, target, case.messages)
        given = await target.answer(self._question_for(case, delivery, delivery.messages, trial))
        grading = self._grading(case, delivery.messages, delivery.question)
        score = await self.graders.grade(self._ready(case), given.observation, grading, target.spec, trial)
        return result_of(self.began.suite, case, key, score, given.observation, cached=given.is_cached)

    async def _conversation(self, case: Case, key: Key, target: CaseTarget) -> CaseResult:
        """Run a conversation turn by turn; each turn is sent with the target's own earlier answers. It ends after a
        turn without an answer, and after a failed turn if the case says so."""
        trial = key[2]
        observations: list[CaseObservation] = []
        scores: list[CaseScore] = []
        are_cached = True
        changes: Changes = ()
        for number, turn in enumerate(case.turns):
            conversation = turn_messages(case, number, [each.messages for each in observations])
            try:
                delivery = self._deliver(case, target, conversation)
            except Fault as fault:
                if not observations:
                    raise
                # Answers of earlier turns stay in the result, with their cost.
                observations.append(_not_sent(fault))
                scores.append(CaseScore(verdict="not_graded", reason=f"it was not asked: {fault.message}"))
                break
            messages = last_exchanges(apply_changes(delivery.messages, changes), case.window_size)
            given = await target.answer(self._question_for(case, delivery, messages, trial))
            changes += given.changes  # messages that a user edited in a hold stay as they were sent
            are_cached = are_cached and given.is_cached
            is_last = number + 1 == len(case.turns)
            observation = given.observation if is_last else _answerable(given.observation)
            observations.append(observation)
            grading = msgspec.structs.replace(
                self._grading(case, messages, delivery.question),
                expected=turn.expected,
                expected_value=turn.expected_value,
                is_turn=True,
            )
            graders = self._ready(case, number)
            scores.append(await self.graders.grade(graders, observation, grading, target.spec, trial))
            has_failed = scores[-1].verdict == "fail" and case.on_turn_failure == "stop"
            if observation.error or has_failed:
                break
        whole = as_one(observations)
        score = await self._combine_scores(case, target, trial, scores, whole)
        turns = tuple(observations)
        return result_of(self.began.suite, case, key, score, whole, turns=turns, cached=are_cached)

    async def _combine_scores(
        self, case: Case, target: CaseTarget, trial: int, scores: list[CaseScore], whole: CaseObservation
    ) -> CaseScore:
        score: CaseScore | None = None
        is_wanted = case.graders or not any(turn.graders or turn.expected for turn in case.turns)
        if is_wanted and not whole.error:
            grading = self._grading(case, whole.asked, whole.question)
            score = await self.graders.grade(self._ready(case), whole, grading, target.spec, trial)
        threshold = threshold_of(case, self.began.suite, self.began.options)
        left = len(case.turns) - len(scores)
        return together(scores, score, case.aggregation, threshold, not_held=left)

    def _ready(self, case: Case, turn: int | None = None) -> tuple[Grader, ...]:
        """The parsed graders of a case or one of its turns, cached for all targets and trials."""
        found = self._graders.get((case.id, turn))
        if found is None:
            specs = case.graders if turn is None else case.turns[turn].graders
            found = self._graders[case.id, turn] = prepare(specs)
        return found

    def _deliver(self, case: Case, target: CaseTarget, messages: tuple[CaseMessage | Message, ...]) -> Delivery:
        form = file_form_of(case, self.began.suite, self.began.options, target.spec)
        return deliver_case(case, messages, target.spec.system, self.files, form)

    def _question_for(self, case: Case, delivery: Delivery, messages: tuple[Message, ...], trial: int) -> CaseQuestion:
        return CaseQuestion(
            case=case.id,
            messages=messages,
            question=delivery.question,
            trial=trial,
            files=self._files[case.id],
            tools=case.tools,
        )

    def _grading(self, case: Case, messages: tuple[Message, ...], question: str) -> Grading:
        return Grading(
            criteria=case.criteria,
            expected=case.expected,
            expected_value=case.expected_value,
            messages=messages,
            metadata=case.metadata,
            question=question,
            threshold=threshold_of(case, self.began.suite, self.began.options),
            input_files=self._files[case.id],
        )


class Targets:
    """The targets of one run. `sharing` is shared with other processes; by default this process has its own."""

    def __init__(self, run: EvalRun, sharing: Sharing | None = None) -> None:
        began = run.began
        self._run = run
        self._known = {spec.name: spec for spec in (*began.judges, *began.targets)}
        self._has_budget = budget_of(began.suite, began.options) is not None
        self._sharing = sharing or LocalSharing(run)
        self._access = ModelAccess(run.engine, self._sharing.rates, run.spending, PREFIX + run.id, run.context.make_id)
        self._open: dict[tuple[str, str], CaseTarget] = {}
        self._opening = asyncio.Lock()

    async def open_target(self, spec: TargetSpec) -> CaseTarget:
        """Open a target. Raises a fault if its spec is wrong, before anything is sent."""
        spec.check()
        if spec.toolsets:
            return await self._with_tools(spec)
        return await self._plain(spec)

    async def judging(self, name: str, model: str) -> CaseTarget:
        """The target that judges, by its name or by a model's name. A judge has no tools."""
        async with self._opening:
            found = self._open.get((name, model))
            if found is None:
                spec = self._known.get(name) or TargetSpec(name=name, model=name)
                if model:
                    spec = TargetSpec(name=f"{name}:{model}", model=model, rpm=spec.rpm, tpm=spec.tpm)
                spec.check()
                found = self._open[name, model] = await self._plain(msgspec.structs.replace(spec, toolsets=()))
            return found

    async def close(self) -> None:
        """Close the judges and flush the cache."""
        for target in self._open.values():
            await target.close()
        await self._sharing.close()

    async def _plain(self, spec: TargetSpec) -> CaseTarget:
        match spec.kind:
            case "model":
                return ModelTarget(spec, self._choice(spec), self._access, await self._sharing.answers(spec.name))
            case "mock":
                return MockTarget(spec)
            case "replay":
                return await self._replay(spec)
            case "cli":
                return await self._command(spec)

    def _choice(self, spec: TargetSpec) -> ModelChoice:
        choice = limit_choice(self._run.context.choice(spec.model), spec.rpm, spec.tpm)
        if self._has_budget:
            check_priced(choice)
        return choice

    async def _with_tools(self, spec: TargetSpec) -> CaseTarget:
        context = self._run.context
        if context.runner is None or context.open_tools is None:
            raise Fault(Code.USAGE, f"{spec.name} has toolsets, and nothing here runs tools", hint="Leave them out.")
        tools = await context.open_tools(spec.toolsets)
        approves = spec.approve or self._run.began.options.approve
        return ToolsTarget(spec, self._choice(spec), self._access, context.runner, tools, approves=approves)

    async def _replay(self, spec: TargetSpec) -> CaseTarget:
        store = self._run.context.require_store(f"{spec.name} answers out of it")
        await store.settle()
        library = Library(store)
        await library.fill(parse(spec.replay or "", scope=FilterScope.TRAFFIC), now=self._run.engine.clock.now())
        return ReplayTarget(spec, self._choice(spec), self._access, library)

    async def _command(self, spec: TargetSpec) -> CaseTarget:
        context = self._run.context
        passed = {
            name: context.environment[name]
            for name in (spec.cli.env if spec.cli else ())
            if name in context.environment
        }
        environment = {**without_variables(context.environment, context.secrets), **passed}
        target = CommandTarget(spec, SuiteFiles(context.root), environment, self._run.engine.clock, self._run.spending)
        try:
            await target.check_health(context.client)
        except Fault:
            await target.close()
            raise
        return target


@asynccontextmanager
async def open_case_worker(
    run: EvalRun, specs: Sequence[TargetSpec], sharing: Sharing | None = None
) -> AsyncIterator[CaseWorker]:
    """Open a worker for these targets in this process. Raises a fault if a target's spec is wrong."""
    began, clock, files = run.began, run.engine.clock, SuiteFiles(run.context.root)
    targets = Targets(run, sharing)
    environment = without_variables(run.context.environment, run.context.secrets)
    process, python = Process(clock), PythonGraders(environment)
    opened: dict[str, CaseTarget] = {}
    graders = Graders(run, files, targets.judging, process, python, environment)
    worker = CaseWorker(began, opened, graders, files, clock)
    try:
        for spec in specs:
            opened[spec.name] = await targets.open_target(spec)
        yield worker
    finally:
        await worker.close()
        await process.close()
        await python.close()
        await targets.close()


def deliver_case(
    case: Case, messages: tuple[CaseMessage | Message, ...], policy: SystemPolicy, files: SuiteFiles, form: FileForm
) -> Delivery:
    """Build the messages of a case or of one of its turns for a target with this system policy."""
    if case.missing:
        hint = "Put it there, and run the suite again."
        raise Fault(Code.USAGE, f"{case.place}: there is no file {case.missing!r}", hint=hint)
    return deliver(
        messages,
        files.contents(files_of(case)),
        policy,
        system_prompt=case.system_prompt,
        guideline_patterns=case.guideline_patterns,
        file_form=form,
    )


def _not_sent(fault: Fault) -> CaseObservation:
    """An observation for a case that was not sent, with the reason and a cost of 0."""
    return CaseObservation(error=describe_fault(fault), error_code=fault.code.value, requests=0, cost=0.0)


def _answerable(observation: CaseObservation) -> CaseObservation:
    """Turn an answer that ends in tool calls into an error: no one runs the tools, so the conversation cannot
    continue."""
    last = observation.messages[-1:]
    calls = [part.name for message in last for part in message.parts if isinstance(part, ToolCall)]
    if observation.error or not calls:
        return observation
    fault = Fault(
        Code.USAGE,
        f"it called {', '.join(calls)}, and declared tools are not run: the next turn cannot follow",
        hint="Use a target with toolsets, or end the case with this turn.",
    )
    return msgspec.structs.replace(observation, error=describe_fault(fault), error_code=fault.code.value)
