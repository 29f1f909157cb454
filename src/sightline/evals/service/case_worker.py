"""One case on one target: delivered, answered, graded."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from sightline.dialects.dialect import SystemPolicy
from sightline.errors import Code, Fault
from sightline.evals.core.delivery.delivery import Delivery, deliver
from sightline.evals.core.delivery.turns import last_exchanges, turn_messages
from sightline.evals.core.facts import EvalBegan, Key
from sightline.evals.core.graders.conversation import as_one, together
from sightline.evals.core.graders.grade import prepare
from sightline.evals.core.graders.grader import Grader
from sightline.evals.core.graders.subject import Grading
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.options import file_form_of, threshold_of
from sightline.evals.core.reading.file_search import files_of
from sightline.evals.core.result import CaseResult, Status
from sightline.evals.core.score import CaseScore
from sightline.evals.core.suite import Case, CaseMessage
from sightline.evals.core.target import FileForm
from sightline.evals.service.grading import Graders
from sightline.evals.service.observation import describe_fault
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import CaseQuestion, CaseTarget
from sightline.exchange.interception.hold_changes import Changes, apply_changes
from sightline.model.message import Message
from sightline.model.parts import ToolCall
from sightline.transport.clock import Clock

_MOST_KEPT = 64 << 20


@dataclass
class FileShelf:
    """Contents of files, kept for the next case as long as there is room."""

    files: SuiteFiles
    _kept: dict[str, bytes] = field(default_factory=dict)
    _size: int = 0

    def contents(self, paths: tuple[str, ...]) -> dict[str, bytes]:
        """What these files hold; one that is not there is left out, and told by whoever needs it."""
        found: dict[str, bytes] = {}
        for path in paths:
            data = self._kept.get(path)
            if data is None:
                data = self.files.read(path)
                if data is None:
                    continue
                self._keep(path, data)
            found[path] = data
        return found

    def _keep(self, path: str, data: bytes) -> None:
        if self._size + len(data) > _MOST_KEPT:
            self._kept.clear()
            self._size = 0
        self._kept[path] = data
        self._size += len(data)


@dataclass(frozen=True, slots=True)
class _Told:
    """What came of a case, before it is a row."""

    score: CaseScore
    observation: CaseObservation
    turns: tuple[CaseObservation, ...] = ()
    is_cached: bool = False


@dataclass
class CaseWorker:
    """Runs cases in this process."""

    began: EvalBegan
    targets: Mapping[str, CaseTarget]
    graders: Graders
    shelf: FileShelf
    clock: Clock
    _cases: dict[str, Case] = field(init=False)
    _files: dict[str, tuple[str, ...]] = field(init=False)
    _graders: dict[tuple[str, int | None], tuple[Grader, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cases = {case.id: case for case in self.began.suite.cases}
        self._files = {case.id: files_of(case) for case in self.began.suite.cases}

    async def run(self, key: Key) -> CaseResult:
        """The result. A case that cannot be delivered has an error in place of an answer."""
        name, target, trial = key
        case, at, began = self._cases[name], self.clock.now(), self.clock.monotonic()
        try:
            if case.turns:
                came = await self._conversation(case, self.targets[target], trial)
            else:
                came = await self._exchange(case, self.targets[target], trial)
        except Fault as fault:
            came = _Told(CaseScore(verdict="not_graded", reason=f"it was not asked: {fault.message}"), _not_sent(fault))
        return CaseResult(
            case=name,
            target=target,
            trial=trial,
            suite=self.began.suite.name,
            group=case.group,
            tags=case.tags,
            status=_status(came),
            score=came.score,
            observation=came.observation,
            turns=came.turns,
            cached=came.is_cached,
            at=at,
            seconds=self.clock.monotonic() - began,
        )

    async def close(self) -> None:
        """End what targets have started."""
        for target in self.targets.values():
            await target.close()

    async def _exchange(self, case: Case, target: CaseTarget, trial: int) -> _Told:
        delivery = self._deliver(case, target, case.messages)
        given = await target.answer(self._question_for(case, delivery, delivery.messages, trial))
        grading = self._grading(case, delivery.messages, delivery.question)
        score = await self.graders.grade(self._ready(case), given.observation, grading, target.spec, trial)
        return _Told(score, given.observation, is_cached=given.is_cached)

    async def _conversation(self, case: Case, target: CaseTarget, trial: int) -> _Told:
        """Turn by turn, each with what the target really said before. After a turn that failed it ends if the case says
        so, and after one without an answer in any case."""
        observations: list[CaseObservation] = []
        scores: list[CaseScore] = []
        are_cached = True
        changes: Changes = ()
        for number, turn in enumerate(case.turns):
            said = turn_messages(case, number, [each.messages for each in observations])
            try:
                delivery = self._deliver(case, target, said)
            except Fault as fault:
                if not observations:
                    raise
                # What was answered before it stays in the result, with what it cost.
                observations.append(_not_sent(fault))
                scores.append(CaseScore(verdict="not_graded", reason=f"it was not asked: {fault.message}"))
                break
            messages = last_exchanges(apply_changes(delivery.messages, changes), case.window_size)
            given = await target.answer(self._question_for(case, delivery, messages, trial))
            changes += given.changes  # what was edited on its way stays as it was sent
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
        score = await self._together(case, target, trial, scores, whole)
        return _Told(score, whole, tuple(observations), are_cached)

    async def _together(
        self, case: Case, target: CaseTarget, trial: int, scores: list[CaseScore], whole: CaseObservation
    ) -> CaseScore:
        said: CaseScore | None = None
        is_wanted = case.graders or not any(turn.graders or turn.expected for turn in case.turns)
        if is_wanted and not whole.error:
            grading = self._grading(case, whole.asked, whole.question)
            said = await self.graders.grade(self._ready(case), whole, grading, target.spec, trial)
        threshold = threshold_of(case, self.began.suite, self.began.options)
        left = len(case.turns) - len(scores)
        return together(scores, said, case.aggregation, threshold, not_held=left)

    def _ready(self, case: Case, turn: int | None = None) -> tuple[Grader, ...]:
        """The graders of a case or of one of its turns, read once for all targets and trials."""
        found = self._graders.get((case.id, turn))
        if found is None:
            specs = case.graders if turn is None else case.turns[turn].graders
            found = self._graders[case.id, turn] = prepare(specs)
        return found

    def _deliver(self, case: Case, target: CaseTarget, messages: tuple[CaseMessage | Message, ...]) -> Delivery:
        form = file_form_of(case, self.began.suite, self.began.options, target.spec)
        return deliver_case(case, messages, target.spec.system, self.shelf, form)

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


def deliver_case(
    case: Case, messages: tuple[CaseMessage | Message, ...], policy: SystemPolicy, shelf: FileShelf, form: FileForm
) -> Delivery:
    """The messages of a case, or of one of its turns, for a target with this policy."""
    if case.missing:
        hint = "Put it there, and run the suite again."
        raise Fault(Code.USAGE, f"{case.place}: there is no file {case.missing!r}", hint=hint)
    return deliver(
        messages,
        shelf.contents(files_of(case)),
        policy,
        system_prompt=case.system_prompt,
        guideline_patterns=case.guideline_patterns,
        file_form=form,
    )


def _not_sent(fault: Fault) -> CaseObservation:
    """That nothing was sent, and why; it has cost nothing."""
    return CaseObservation(error=describe_fault(fault), error_code=fault.code.value, requests=0, cost=0.0)


def _answerable(observation: CaseObservation) -> CaseObservation:
    """An answer after which a conversation can go on: one that ends in calls of tools waits for what nobody brings."""
    last = observation.messages[-1:]
    calls = [part.name for message in last for part in message.parts if isinstance(part, ToolCall)]
    if observation.error or not calls:
        return observation
    fault = Fault(
        Code.USAGE,
        f"it called {', '.join(calls)}, and nobody runs declared tools: the next turn cannot follow",
        hint="Use a target with toolsets, or end the case with this turn.",
    )
    return msgspec.structs.replace(observation, error=describe_fault(fault), error_code=fault.code.value)


def _status(came: _Told) -> Status:
    if came.observation.error:
        return "execution_error"
    if came.score.verdict == "not_graded":
        return "not_graded"
    return "quality_failure" if came.score.verdict == "fail" else "ok"
