"""Grading, driven: what graders ask for is brought, run, called, or asked of a judge."""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.delivery.question import flat_question
from sightline.evals.core.graders.grade import grade
from sightline.evals.core.graders.grader import Grader
from sightline.evals.core.graders.steps import (
    PYTHON,
    Answer,
    CallPython,
    Execute,
    Executed,
    FileContent,
    Judge,
    Judged,
    NeedFile,
    Returned,
    Step,
    StepFailed,
)
from sightline.evals.core.graders.subject import Grading
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.reading.paths import folder_of, join_path
from sightline.evals.core.score import CaseScore
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.model_proxy import ModelProxy, ProxyQuestion
from sightline.evals.service.model_target import ModelTarget
from sightline.evals.service.process import Process
from sightline.evals.service.python_graders import PythonGraders
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import CaseQuestion, CaseTarget, TargetAnswer
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.transport.clock import Clock

Judges: TypeAlias = Callable[[str, str], Awaitable[CaseTarget]]
"""The target that judges, by its name and by another model where one is wanted in its place."""

_APART = 1_000_000
"""More than there are trials: the same question, asked again by one command, is another question to the cache."""


@dataclass(frozen=True, slots=True)
class Graders:
    """What graders need of the world. `suite` is the file of the suite, from which their paths start; `judge` is who
    judges where neither the grader nor the target says it. Commands get `environment`; those that may ask models name
    one of `known`, and show a token of `make_token`."""

    suite: str
    files: SuiteFiles
    judges: Judges
    process: Process
    python: PythonGraders
    environment: Mapping[str, str]
    clock: Clock
    judge: str = ""
    known: tuple[str, ...] = ()
    make_token: Callable[[], str] | None = None

    async def grade(
        self, graders: Sequence[Grader], observation: CaseObservation, grading: Grading, target: TargetSpec, trial: int
    ) -> CaseScore:
        """What the graders say. What goes wrong with one of them leaves that one without a word, and no other."""
        steps = grade(graders, observation, grading)
        try:
            step = next(steps)
            while True:
                try:
                    answer: Answer = await self._perform(step, target, trial)
                except Fault as fault:
                    answer = StepFailed(fault)
                step = steps.send(answer)
        except StopIteration as end:
            score: CaseScore = end.value
            return score

    async def _perform(self, step: Step, target: TargetSpec, trial: int) -> Answer:
        match step:
            case Judge():
                return await self._judge(step, target, trial)
            case Execute():
                return await self._execute(step, target, trial)
            case CallPython():
                began = self.clock.monotonic()
                found = self._path(step.path)
                value = await self.python.call(found, step.function, step.payload, step.timeout)
                return Returned(value=value, seconds=self.clock.monotonic() - began)
            case NeedFile(path):
                where = self.files.find(path, self.suite)
                return FileContent(None if where is None else self.files.read(where))

    async def _judge(self, step: Judge, target: TargetSpec, trial: int) -> Judged:
        judge = await self.judges(self._judge_of(target, step.target), step.model)
        wanted = CaseQuestion(
            case=step.name, messages=step.messages, question=flat_question(step.messages, {}), trial=trial
        )
        if isinstance(judge, ModelTarget):
            return _judgement_of(await judge.judge(wanted, step.schema, step.name, step.temperature))
        return _judgement_of(await judge.answer(wanted))

    def _judge_of(self, target: TargetSpec, named: str = "") -> str:
        name = named or target.judge or self.judge or (target.name if target.kind == "model" else "")
        if not name:
            message = f"nobody judges what {target.name} says"
            hint = 'Name a target that does: judge = "…" in its table, or target: in the grader.'
            raise Fault(Code.CONFIG, message, hint=hint)
        return name

    async def _execute(self, step: Execute, target: TargetSpec, trial: int) -> Executed:
        if step.proxy_calls is None:
            return await self._run_command(step, self.environment)
        if self.make_token is None:
            raise Fault(Code.CONFIG, "a command cannot call a model from here", hint="Use a grader of type llm-grader.")
        judge = self._judge_of(target)

        async def ask(asked: ProxyQuestion) -> Judged:
            system = (Message(role="system", parts=(Text(text=asked.system),)),) if asked.system else ()
            messages = (*system, Message(role="user", parts=(Text(text=asked.question),)))
            wanted = CaseQuestion("proxy", messages, flat_question(messages, {}), trial + _APART * asked.before)
            return _judgement_of(await (await self.judges(asked.target or judge, "")).answer(wanted))

        names = tuple(dict.fromkeys((judge, *self.known)))
        async with ModelProxy(ask, names, step.proxy_calls, self.make_token()) as proxy:
            ended = await self._run_command(step, {**self.environment, **proxy.environment})
        return msgspec.structs.replace(ended, judged=tuple(proxy.judged))

    async def _run_command(self, step: Execute, environment: Mapping[str, str]) -> Executed:
        argv = (sys.executable, *step.argv[1:]) if step.argv[0] == PYTHON else step.argv
        ended = await self.process.run(
            argv, folder=self._folder(step.cwd), environment=environment, timeout=step.timeout, given=step.stdin
        )
        return Executed(code=ended.code, stdout=ended.output, stderr=ended.complaints, seconds=ended.seconds)

    def _folder(self, cwd: str) -> Path:
        where = join_path(folder_of(self.suite), cwd)
        folder = None if where is None else self.files.path(where)
        if folder is None or not folder.is_dir():
            raise Fault(
                Code.CONFIG, f"there is no folder {cwd!r}", hint="It is relative to the suite, and below the root."
            )
        return folder

    def _path(self, path: str) -> Path:
        where = self.files.find(path, self.suite)
        found = None if where is None else self.files.path(where)
        if found is None:
            raise Fault(Code.CONFIG, f"there is no file {path}", hint="Paths are relative to the suite's folder.")
        return found


def _judgement_of(given: TargetAnswer) -> Judged:
    """What a target said, to whoever asked it for a grade. That it said nothing is a fault."""
    said = given.observation
    if said.error:
        raise Fault(Code.UPSTREAM_ERROR, said.error)
    return Judged(
        text=said.text,
        usage=said.usage,
        cost=0.0 if given.is_cached else said.cost,  # it was paid for when it was given
        exchange=next(iter(said.exchanges), ""),
        seconds=said.seconds,
    )
