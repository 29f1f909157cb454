"""Asking for one thing: the answer that belongs to the step, or why there is none."""

from collections.abc import Generator
from typing import TypeVar

from sightline.errors import Code, Fault
from sightline.evals.core.graders.steps import (
    Answer,
    Executed,
    FileContent,
    Judged,
    NeedFile,
    Returned,
    Step,
    StepFailed,
    unfit,
)

Fit = TypeVar("Fit", Judged, Executed, Returned, FileContent)


def ask(step: Step, wanted: type[Fit]) -> Generator[Step, Answer, Fit | StepFailed]:
    """What came of a step."""
    answer = yield step
    if isinstance(answer, wanted | StepFailed):
        return answer
    raise unfit(step, answer)


def file_text(path: str) -> Generator[Step, Answer, str | StepFailed]:
    """The text of a file, with plain line ends."""
    answer = yield from ask(NeedFile(path), FileContent)
    if isinstance(answer, StepFailed):
        return answer
    if answer.data is None:
        return StepFailed(
            Fault(Code.CONFIG, f"there is no file {path}", hint="Paths are relative to the suite's folder.")
        )
    try:
        return answer.data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return StepFailed(Fault(Code.CONFIG, f"{path} is no text in UTF-8", hint="Save it as UTF-8."))
