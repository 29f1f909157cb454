"""A stage for graders: their steps are answered from a list, and what they asked for is kept."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from sightline.errors import Code, Fault
from sightline.evals.core.graders.finding import Answer, Grading, GradingSubject, Judged, Step, StepFailed
from sightline.evals.core.graders.grade import GRADERS, check_graders, grade, prepare
from sightline.evals.core.graders.grader import prepare_grader, run_grader
from sightline.evals.core.result import CaseObservation, CaseScore, Score
from sightline.evals.core.suite import GraderSpec, SuitePlace, SuiteProblem
from sightline.model.json import Json
from sightline.model.parts import Text
from sightline.model.request import Message
from sightline.wire.jsontext import encode

HERE = SuitePlace("suite.yaml", 7, 5)
BROKEN = StepFailed(Fault(Code.NETWORK, "nobody is there"))


@dataclass
class Seen:
    """What was asked for, and what came out."""

    score: Score
    steps: list[Step] = field(default_factory=list)


def driven(generator: Generator[Step, Answer, object], answers: Sequence[Answer]) -> tuple[object, list[Step]]:
    """What a generator returns when its steps get these answers, all of which must be used."""
    left, steps = list(answers), []
    try:
        step = next(generator)
        while True:
            steps.append(step)
            step = generator.send(left.pop(0))
    except StopIteration as end:
        assert not left
        return end.value, steps


def spec(kind: str, **config: Json) -> GraderSpec:
    """A grader; what is common to all stands among the rest."""
    common = {
        name: config.pop(name) for name in ("name", "weight", "required", "min_score", "negate") if name in config
    }
    return GraderSpec(type=kind, config=config, place=HERE, **common)


def seen(
    grader: GraderSpec,
    observation: CaseObservation | str = "",
    grading: Grading | None = None,
    answers: Sequence[Answer] = (),
) -> Seen:
    """What one grader says of an answer."""
    shown = CaseObservation(text=observation) if isinstance(observation, str) else observation
    prepared = prepare_grader(grader, "assertions[0]", GRADERS)
    assert [each for each in prepared.problems if each.severity == "error"] == []
    score, steps = driven(run_grader(prepared, GradingSubject(shown, grading or Grading())), answers)
    assert isinstance(score, Score)
    return Seen(score, steps)


def case(
    specs: Sequence[GraderSpec],
    observation: CaseObservation | str = "",
    grading: Grading | None = None,
    answers: Sequence[Answer] = (),
) -> CaseScore:
    """What all graders say of an answer."""
    shown = CaseObservation(text=observation) if isinstance(observation, str) else observation
    score, _ = driven(grade(prepare(specs), shown, grading or Grading()), answers)
    assert isinstance(score, CaseScore)
    return score


def problems(grader: GraderSpec) -> tuple[SuiteProblem, ...]:
    """What is wrong with one grader."""
    return check_graders([grader])


def told(grader: GraderSpec) -> list[tuple[str, str]]:
    """Where something is wrong with a grader, and what."""
    return [(each.path.removeprefix("assertions[0]").lstrip("."), each.message) for each in problems(grader)]


def says(value: Json, **took: Json) -> Judged:
    """A judge that answers with a value."""
    return Judged(text=value if isinstance(value, str) else encode(value).decode(), **took)


def words(step: Step, at: int = -1) -> str:
    """The words of a message to a judge."""
    part = step.messages[at].parts[0]
    assert isinstance(part, Text)
    return part.text


def message(role: str, *parts: object) -> Message:
    """A message; texts among its parts are words."""
    return Message(role=role, parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))
