"""A grader's prompt with the values of the case in it. What others wrote is quoted, and is never filled in itself."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sightline.evals.core.graders.criterion import Criterion
from sightline.evals.core.graders.fence import Fence
from sightline.evals.core.graders.judge_text import calls_told, compact, pretty, transcript
from sightline.evals.core.graders.subject import GradingSubject
from sightline.model.json import Json

_VARIABLE = re.compile(r"\{\{\s*([a-zA-Z0-9_]+)\s*\}\}")

ALIASES = {"question": "input", "answer": "output", "candidate_answer": "output", "reference_answer": "expected_output"}
"""Names of older suites."""

NAMES = (
    "input", "output", "expected_output", "criteria", "metadata", "metadata_json", "rubrics", "rubrics_json",
    "file_changes", "tool_calls", "transcript",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Material:
    """The values of a case: those in `quoted` were not written by whoever asks."""

    quoted: Mapping[str, str]
    plain: Mapping[str, str]

    @property
    def fence(self) -> Fence:
        """The marks in which the quoted values stand."""
        return Fence([*self.quoted.values(), *self.plain.values()])


def material(subject: GradingSubject, criteria: str, reference: str, rubric: Sequence[Criterion]) -> Material:
    """What a judge can be told of a case."""
    observation, grading = subject.observation, subject.grading
    told: list[Json] = [criterion.to_json for criterion in rubric]
    return Material(
        quoted={
            "input": (grading.question or observation.question or transcript(grading.messages)).strip(),
            "output": subject.text.strip(),
            "expected_output": reference.strip(),
            "file_changes": grading.file_changes,
            "tool_calls": calls_told(observation.tools),
            "transcript": transcript(observation.messages).strip(),
        },
        plain={
            "criteria": criteria.strip(),
            "metadata": pretty(grading.metadata) if grading.metadata else "",
            "metadata_json": compact(grading.metadata) if grading.metadata else "",
            "rubrics": pretty(told) if told else "",
            "rubrics_json": compact(told) if told else "",
        },
    )


def fill_template(template: str, values: Material) -> str:
    """A prompt with its variables filled in; a name that is not known stays as it is."""
    fence = values.fence

    def value(found: re.Match[str]) -> str:
        name = ALIASES.get(found[1], found[1])
        if name in values.plain:
            return values.plain[name]
        if name not in values.quoted:
            return found[0]
        text = values.quoted[name]
        return fence.around(name, text) if text or name == "output" else ""

    return _VARIABLE.sub(value, template)


def variables_of(text: str) -> list[str]:
    """The names in a text that stand for values."""
    return [found for found in _VARIABLE.findall(text) if found in NAMES or found in ALIASES]


def unknown_variables(text: str) -> list[str]:
    """The names in a text that look like variables and are none."""
    return [found for found in _VARIABLE.findall(text) if found not in NAMES and found not in ALIASES]
