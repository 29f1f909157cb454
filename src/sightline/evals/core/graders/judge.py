"""The graders that ask a model: a free judgement, or a rubric with one verdict for each criterion."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from sightline.evals.core.graders.criterion import OPERATORS, Criterion, read_criteria
from sightline.evals.core.graders.expectation import reference_text
from sightline.evals.core.graders.fields import Fields
from sightline.evals.core.graders.finding import Asking, Run, finding_without_score
from sightline.evals.core.graders.judge_question import Question, Read, ask_judge
from sightline.evals.core.graders.judge_text import has_rounds
from sightline.evals.core.graders.prompt import PromptSource, read_prompt
from sightline.evals.core.graders.steps import StepFailed
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.graders.template import Material, fill_template, material
from sightline.evals.core.graders.verdict import read_checklist, read_free, read_points
from sightline.evals.core.graders.verdict_schema import FREE, checklist_schema, points_schema
from sightline.model.json import JsonObject
from sightline.model.parts import Image

_ROLE = (
    "You grade answers. Judge the answer by what it says and does, not by its length or tone. "
    "The reference answer, where there is one, is an example of a very good one: it need not be matched word for word."
)


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Who judges, and how freely."""

    target: str = ""
    model: str = ""
    temperature: float | None = None


def llm_grader(fields: Fields) -> Run:
    """A judgement by a prompt, a rubric, or the criteria of the case.

    A command that writes the prompt is handed the fields that nobody knows as its configuration.
    """
    prompt = read_prompt(fields)
    criteria = read_criteria(fields, "rubrics")
    settings = _settings(fields)
    config = fields.mapping("config")
    if prompt.argv:
        config = {**fields.rest(), **config}
        prompt = replace(prompt, config=prompt.config or config or None)
    fields.close()
    return partial(_judge, prompt, criteria, settings)


def rubrics(fields: Fields) -> Run:
    """A verdict for each criterion."""
    name = "criteria" if fields.has("criteria") or not fields.has("rubrics") else "rubrics"
    criteria = read_criteria(fields, name)
    settings = _settings(fields)
    fields.close()
    if not criteria:
        fields.tell(name, "no criterion is given", "Give sentences that have to hold.")
    return partial(_judge, PromptSource(), criteria, settings)


def _judge(
    prompt: PromptSource, rubric: tuple[Criterion, ...], settings: JudgeSettings, subject: GradingSubject
) -> Asking:
    reference = yield from reference_text(subject.grading)
    if isinstance(reference, StepFailed):
        return finding_without_score(reference.fault.message)
    words = yield from prompt.words(subject)
    if isinstance(words, StepFailed):
        return finding_without_score(words.fault.message)
    criteria = words if words and not prompt.is_template else subject.grading.criteria
    values = material(subject, criteria, reference, rubric)
    schema, read = _form(rubric)
    question = Question(
        system=f"{_ROLE}\n{values.fence.rule}",
        user=fill_template(words, values) if prompt.is_template else _default_prompt(values, rubric, subject),
        schema=schema,
        target=settings.target,
        model=settings.model,
        temperature=settings.temperature,
        images=_images(subject),
    )
    return (yield from ask_judge(question, read))


def _form(rubric: tuple[Criterion, ...]) -> tuple[JsonObject, Read]:
    if any(criterion.ranges for criterion in rubric):
        return points_schema(rubric), partial(read_points, criteria=rubric)
    if rubric:
        return checklist_schema(rubric), partial(read_checklist, criteria=rubric)
    return FREE, read_free


def _default_prompt(values: Material, rubric: Sequence[Criterion], subject: GradingSubject) -> str:
    """The prompt where the suite gives none."""
    fence, plain, quoted = values.fence, values.plain, values.quoted
    blocks = [f"What is wanted:\n{plain['criteria']}"] if plain["criteria"] else []
    blocks += [
        fence.around(shown_as, quoted[name])
        for name, shown_as in (("input", "question"), ("expected_output", "reference_answer"), ("output", "answer"))
        if quoted[name] or name == "output"
    ]
    rounds = has_rounds(subject.observation.messages)
    if rounds and quoted["transcript"] != quoted["output"]:
        blocks.append(f"How it came to the answer:\n{fence.around('transcript', quoted['transcript'])}")
    if quoted["tool_calls"] and not rounds:
        blocks.append(f"The tools that it called:\n{fence.around('tool_calls', quoted['tool_calls'])}")
    if quoted["file_changes"]:
        blocks.append(f"What it changed in files:\n{fence.around('file_changes', quoted['file_changes'])}")
    return "\n\n".join([*blocks, _task(rubric)])


def _task(rubric: Sequence[Criterion]) -> str:
    if not rubric:
        return (
            "How well does the answer do what is wanted? Give a score from 0 (not at all) to 1 (fully), and list what "
            "you looked at, each with whether it holds and the words of the answer that show it."
        )
    lines = [_line(criterion) for criterion in rubric]
    operators = dict.fromkeys(criterion.operator for criterion in rubric if criterion.operator)
    lines += [f"In the sense of {OPERATORS[operator]}" for operator in operators]
    if any(criterion.ranges for criterion in rubric):
        return "\n".join(["Give each of these a whole number of points from 0 to 10, with a short reason:", *lines])
    return "\n".join(["Say of each of these whether it holds, with a short reason:", *lines])


def _line(criterion: Criterion) -> str:
    operator = f" ({criterion.operator})" if criterion.operator else ""
    line = f"- [{criterion.id}]{operator} {criterion.outcome}".rstrip()
    ranges = [f"    {each.low} to {each.high} points: {each.outcome}" for each in criterion.ranges]
    return "\n".join([line, *ranges])


def _images(subject: GradingSubject) -> tuple[Image, ...]:
    said = (message for message in subject.observation.messages if message.role == "assistant")
    return tuple(part for message in said for part in message.parts if isinstance(part, Image))


# --- configuration --------------------------------------------------------------------------------


def _settings(fields: Fields) -> JudgeSettings:
    steps = fields.count("max_steps", least=1, most=50)
    if steps not in (None, 1):
        fields.tell("max_steps", "a judge answers in one step here", "Leave it out.", "warning")
    if fields.has("preprocessors"):
        fields.tell("preprocessors", "there are no preprocessors here", "Let a command write the prompt.")
    fields.raw("preprocessors")
    return JudgeSettings(fields.text("target"), fields.text("model"), fields.number("temperature", most=2.0))
