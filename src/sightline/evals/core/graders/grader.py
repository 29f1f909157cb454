"""From a specification to a grader that can be run, and from that to a score."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import msgspec

from sightline.catalog.problem import nearest
from sightline.evals.core.graders.fields import Fields, Readers
from sightline.evals.core.graders.finding import Run, at_once, finding_without_score, score_of
from sightline.evals.core.graders.specs import RENAMED, kind_of, name_of
from sightline.evals.core.graders.steps import Answer, Step
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.place import SuiteProblem
from sightline.evals.core.score import Score
from sightline.evals.core.suite import GraderSpec


@dataclass(frozen=True, slots=True)
class Grader:
    """A grader with its configuration read, and what is wrong with that. With an error it grades nothing."""

    spec: GraderSpec
    run: Run
    problems: tuple[SuiteProblem, ...] = ()


def prepare_grader(spec: GraderSpec, path: str, readers: Readers) -> Grader:
    """The grader of a specification that stands at a path."""
    kind = kind_of(spec.type)
    name = name_of(kind, spec.config) if spec.name in ("", spec.type) else spec.name
    spec = msgspec.structs.replace(spec, type=kind, name=name)
    fields = Fields(spec.config, spec.place, path, readers)
    if kind not in readers:
        hint = f'Did you mean "{RENAMED[kind]}"?' if kind in RENAMED else nearest(kind, readers)
        fields.tell("type", f"there is no grader {spec.type!r}", hint)
        return Grader(spec, _refusing(fields.problems), tuple(fields.problems))
    run = readers[kind](fields)
    return Grader(spec, run if fields.is_sound else _refusing(fields.problems), tuple(fields.problems))


def run_grader(grader: Grader, subject: GradingSubject) -> Generator[Step, Answer, Score]:
    """The score that a grader gives."""
    finding = yield from grader.run(subject)
    return score_of(grader.spec, finding, subject.grading.threshold)


def _refusing(problems: Sequence[SuiteProblem]) -> Run:
    """A grader that cannot be run says so."""
    first = next(problem for problem in problems if problem.severity == "error")
    finding = finding_without_score(f"it cannot be run: {first.path}: {first.message}")
    return at_once(lambda _subject: finding)
