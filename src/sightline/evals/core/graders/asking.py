"""Asking for one thing: the answer that belongs to the step, or why there is none."""

from collections.abc import Generator
from typing import TypeVar

from sightline.errors import Code, Fault
from sightline.evals.core.graders.steps import (
    Answer,
    Brought,
    Executed,
    Failed,
    Judged,
    NeedFile,
    Returned,
    Step,
    unfit,
)

Fit = TypeVar("Fit", Judged, Executed, Returned, Brought)


def asked(step: Step, wanted: type[Fit]) -> Generator[Step, Answer, Fit | Failed]:
    """What came of a step."""
    answer = yield step
    if isinstance(answer, wanted | Failed):
        return answer
    raise unfit(step, answer)


def file_text(path: str) -> Generator[Step, Answer, str | Failed]:
    """The text of a file, with plain line ends."""
    answer = yield from asked(NeedFile(path), Brought)
    if isinstance(answer, Failed):
        return answer
    if answer.data is None:
        return Failed(Fault(Code.CONFIG, f"there is no file {path}", hint="Paths are relative to the suite's folder."))
    try:
        return answer.data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return Failed(Fault(Code.CONFIG, f"{path} is no text in UTF-8", hint="Save it as UTF-8."))
