"""The graders that ask a model: a free judgement, or a rubric with one verdict for each criterion."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from sightline.catalog.reading import REST, key
from sightline.evals.core.graders.expectation import has_rounds, pretty, reference_text
from sightline.evals.core.graders.finding import (
    Asking,
    GraderFinding,
    GradingSubject,
    Run,
    finding_without_score,
    total_spent,
)
from sightline.evals.core.graders.grader import GraderReader, GraderType, GraderTypes
from sightline.evals.core.graders.prompt import (
    NAMES,
    Fence,
    Material,
    PromptCommand,
    PromptSource,
    fill_template,
    material,
    read_words,
)
from sightline.evals.core.graders.rubric import (
    FREE,
    OPERATORS,
    CriteriaConfig,
    Criterion,
    Misread,
    checklist_schema,
    criteria_of,
    points_schema,
    read_checklist,
    read_free,
    read_points,
)
from sightline.evals.core.graders.steps import Judge, Judged, StepFailed, ask
from sightline.evals.core.reading.document import Text as NonEmpty
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import Image, Text

Read: TypeAlias = Callable[[str], GraderFinding | Misread]

_FORM = "Answer with exactly one JSON object of this JSON Schema, and with nothing before or after it:"


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge is asked, and the form of the answer."""

    system: str
    user: str
    schema: JsonObject
    target: str = ""
    model: str = ""
    temperature: float | None = None
    images: tuple[Image, ...] = ()

    def step(self, repair: str = "") -> Judge:
        """The step that asks it, or asks it once more."""
        system = f"{self.system}\n\n{_FORM}\n{pretty(self.schema)}"
        user = f"{self.user}\n\n{repair}" if repair else self.user
        return Judge(
            messages=(
                Message(role="system", parts=(Text(text=system),)),
                Message(role="user", parts=(Text(text=user), *self.images)),
            ),
            schema=self.schema,
            target=self.target,
            model=self.model,
            temperature=self.temperature,
            attempt=2 if repair else 1,
        )


def ask_judge(question: Question, read: Read) -> Asking:
    """What the judge finds."""
    first = yield from ask(question.step(), Judged)
    if isinstance(first, StepFailed):
        return finding_without_score(f"the judge failed: {first.fault.message}")
    found = read(first.text)
    if isinstance(found, GraderFinding):
        return replace(found, spent=total_spent(first))
    second = yield from ask(question.step(_repair(question, first.text, found)), Judged)
    if isinstance(second, StepFailed):
        why = f"the judge was not understood ({found.why}), and then failed: {second.fault.message}"
        return finding_without_score(why, total_spent(first))
    again = read(second.text)
    if isinstance(again, Misread):
        return finding_without_score(f"the judge was not understood, twice: {again.why}", total_spent(first, second))
    return replace(again, spent=total_spent(first, second))


def _repair(question: Question, answer: str, misread: Misread) -> str:
    fence = Fence([question.user, answer])
    return (
        "You have answered this before, and the answer could not be read.\n"
        f"What is wrong with it: {misread.why}\n"
        f"{fence.around('earlier_answer', answer)}\n"
        "Say the same again in the right form. Do not judge anew, and add nothing around the JSON object."
    )


_ROLE = (
    "You grade answers. Judge the answer by what it says and does, not by its length or tone. "
    "The reference answer, where there is one, is an example of a very good one: it need not be matched word for word."
)


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Which model judges, and how freely. A judge answers in one step, and files are not converted for it."""

    target: NonEmpty = ""
    model: NonEmpty = ""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_steps: Annotated[int, Meta(ge=1, le=50)] = 1
    preprocessors: Json = None

    def check(self, reader: GraderReader) -> None:
        """Report what is accepted for AgentV's suites and does nothing here."""
        if self.max_steps != 1:
            reader.tell("max_steps", "a judge answers in one step here", "Leave it out.", "warning")
        if self.preprocessors is not None:
            reader.tell("preprocessors", "there are no preprocessors here", "Let a command write the prompt.")


class LlmConfig(JudgeConfig, frozen=True, kw_only=True):
    """Other keys are the configuration of the command that writes the prompt; without one they are unknown."""

    prompt: str | PromptCommand = ""
    rubrics: CriteriaConfig = ()
    config: dict[str, Json] = {}
    others: Annotated[dict[str, Json], REST] = {}


class RubricsConfig(JudgeConfig, frozen=True, kw_only=True):
    """A verdict for each criterion."""

    criteria: Annotated[
        CriteriaConfig, key(aliases=("rubrics",), hint="Give sentences that have to hold.", min_length=1)
    ]


def _build_llm_grader(config: LlmConfig, reader: GraderReader) -> Run:
    """A judgement by a prompt, a rubric, or the criteria of the case."""
    if isinstance(config.prompt, PromptCommand):
        reader.check_passed_on(config.others, LlmConfig)
        settings = config.prompt.config or {**config.others, **config.config} or None
        prompt = PromptSource(argv=config.prompt.command, config=settings)
    else:
        reader.refuse_keys(config.others, LlmConfig)
        prompt = read_words(config.prompt, NAMES, reader)
    config.check(reader)
    return partial(_judge, prompt, criteria_of(config.rubrics, "rubrics", reader), config)


def _build_rubrics(config: RubricsConfig, reader: GraderReader) -> Run:
    config.check(reader)
    return partial(_judge, PromptSource(), criteria_of(config.criteria, "criteria", reader), config)


def _judge(
    prompt: PromptSource, rubric: tuple[Criterion, ...], settings: JudgeConfig, subject: GradingSubject
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
    answers = (message for message in subject.observation.messages if message.role == "assistant")
    return tuple(part for message in answers for part in message.parts if isinstance(part, Image))


JUDGE_TYPES: GraderTypes = {
    "llm-grader": GraderType(LlmConfig, _build_llm_grader),
    "rubrics": GraderType(RubricsConfig, _build_rubrics),
}
