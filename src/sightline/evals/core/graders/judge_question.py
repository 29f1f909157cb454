"""One question to a judge: the answer is read strictly, asked for once more if it is not understood, and then given up.

What is given up is not graded. Both askings are steps, so that whoever drives them records and shows them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from sightline.evals.core.graders.ask import ask
from sightline.evals.core.graders.fence import Fence
from sightline.evals.core.graders.finding import Asking, GraderFinding, GradingCost, finding_without_score
from sightline.evals.core.graders.judge_text import pretty
from sightline.evals.core.graders.steps import Judge, Judged, StepFailed
from sightline.evals.core.graders.verdict import Misread
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.model.parts import Image, Text
from sightline.model.usage import Usage

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


def total_spent(*answers: Judged) -> GradingCost:
    """What answers of judges took together; what is not known of one is not known of all."""
    return GradingCost(
        usage=_usage([answer.usage for answer in answers]),
        cost=sum_if_known([answer.cost for answer in answers]),
        seconds=sum_if_known([answer.seconds for answer in answers]),
        exchanges=tuple(answer.exchange for answer in answers if answer.exchange),
    )


def sum_if_known(numbers: list[float | None]) -> float | None:
    """The sum, None where one is not known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) else None


def _usage(usages: list[Usage | None]) -> Usage | None:
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) != len(usages):
        return None
    given, got = (
        sum_if_known([usage.input_tokens for usage in known]),
        sum_if_known([usage.output_tokens for usage in known]),
    )
    return Usage(input_tokens=None if given is None else int(given), output_tokens=None if got is None else int(got))
