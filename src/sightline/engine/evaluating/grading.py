"""Grading, driven: what graders ask for is brought, run, called, or asked of a judge."""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sightline.engine.evaluating.model_target import ModelTarget
from sightline.engine.evaluating.process import Process
from sightline.engine.evaluating.python_graders import PythonGraders
from sightline.engine.evaluating.suite_files import SuiteFiles
from sightline.engine.evaluating.wanted import Target, Wanted
from sightline.errors import Code, Fault
from sightline.evals.delivery.question import flat_question
from sightline.evals.graders.grade import grade
from sightline.evals.graders.steps import (
    PYTHON,
    Answer,
    Brought,
    CallPython,
    Execute,
    Executed,
    Failed,
    Judge,
    Judged,
    NeedFile,
    Returned,
    Step,
)
from sightline.evals.graders.subject import Grading
from sightline.evals.observation import Observation
from sightline.evals.reading.paths import folder_of, joined
from sightline.evals.score import CaseScore
from sightline.evals.suite import GraderSpec
from sightline.evals.target import TargetSpec
from sightline.transport.clock import Clock

Judges: TypeAlias = Callable[[str, str], Awaitable[Target]]
"""The target that judges, by its name and by another model where one is wanted in its place."""


@dataclass(frozen=True, slots=True)
class Graders:
    """What graders need of the world. `suite` is the file of the suite, from which their paths start; `judge` is who
    judges where neither the grader nor the target says it. Commands get `environment`."""

    suite: str
    files: SuiteFiles
    judges: Judges
    process: Process
    python: PythonGraders
    environment: Mapping[str, str]
    clock: Clock
    judge: str = ""

    async def graded(
        self, specs: Sequence[GraderSpec], observation: Observation, grading: Grading, target: TargetSpec, trial: int
    ) -> CaseScore:
        """What the graders say. What goes wrong with one of them leaves that one without a word, and no other."""
        steps = grade(specs, observation, grading)
        try:
            step = next(steps)
            while True:
                try:
                    answer: Answer = await self._done(step, target, trial)
                except Fault as fault:
                    answer = Failed(fault)
                step = steps.send(answer)
        except StopIteration as end:
            score: CaseScore = end.value
            return score

    async def _done(self, step: Step, target: TargetSpec, trial: int) -> Answer:
        match step:
            case Judge():
                return await self._judged(step, target, trial)
            case Execute():
                return await self._executed(step)
            case CallPython():
                began = self.clock.elapsed()
                found = self._path(step.path)
                value = await self.python.call(found, step.function, step.payload, step.timeout)
                return Returned(value=value, seconds=self.clock.elapsed() - began)
            case NeedFile(path):
                where = self.files.found(path, self.suite)
                return Brought(None if where is None else self.files.read(where))

    async def _judged(self, step: Judge, target: TargetSpec, trial: int) -> Judged:
        name = step.target or target.judge or self.judge or (target.name if target.kind == "model" else "")
        if not name:
            message = f"nobody judges what {target.name} says"
            hint = 'Name a target that does: judge = "…" in its table, or target: in the grader.'
            raise Fault(Code.CONFIG, message, hint=hint)
        judge = await self.judges(name, step.model)
        wanted = Wanted(case=step.name, messages=step.messages, question=flat_question(step.messages, {}), trial=trial)
        if isinstance(judge, ModelTarget):
            given = await judge.judge(wanted, step.schema, step.name, step.temperature)
        else:
            given = await judge.answer(wanted)
        said = given.observation
        if said.error:
            raise Fault(Code.UPSTREAM_ERROR, said.error)
        return Judged(
            text=said.text,
            usage=said.usage,
            cost=said.cost,
            exchange=next(iter(said.exchanges), ""),
            seconds=said.seconds,
        )

    async def _executed(self, step: Execute) -> Executed:
        if step.proxy_calls is not None:
            hint = "Let a grader of the type llm-grader ask the model, and combine both in a composite."
            raise Fault(Code.CONFIG, "a command cannot call a model from here", hint=hint)
        argv = (sys.executable, *step.argv[1:]) if step.argv[0] == PYTHON else step.argv
        ended = await self.process.run(
            argv, folder=self._folder(step.cwd), environment=self.environment, timeout=step.timeout, given=step.stdin
        )
        return Executed(code=ended.code, stdout=ended.output, stderr=ended.complaints, seconds=ended.seconds)

    def _folder(self, cwd: str) -> Path:
        where = joined(folder_of(self.suite), cwd)
        folder = None if where is None else self.files.path(where)
        if folder is None or not folder.is_dir():
            raise Fault(
                Code.CONFIG, f"there is no folder {cwd!r}", hint="It is relative to the suite, and below the root."
            )
        return folder

    def _path(self, path: str) -> Path:
        where = self.files.found(path, self.suite)
        found = None if where is None else self.files.path(where)
        if found is None:
            raise Fault(Code.CONFIG, f"there is no file {path}", hint="Paths are relative to the suite's folder.")
        return found
