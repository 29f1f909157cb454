"""What a grader asks for, one step at a time, and what it gets in answer."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.usage import Usage

PYTHON = "{python}"
"""As the first word of a command: the interpreter of the process that runs it."""

COMMAND_SECONDS = 60.0


class Judge(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Let a model judge. Answered by `Judged`.

    `schema` is the form of the answer, to be asked for where the target can be; `name` is what it is called. An empty
    `target` or `model` is the one that judges by default. `attempt` 2 asks once more for what could not be read.
    """

    messages: tuple[Message, ...]
    schema: JsonObject
    name: str = "grading"
    target: str = ""
    model: str = ""
    temperature: float | None = None
    attempt: int = 1


class Execute(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Run a command. Answered by `Executed`. An empty `cwd` is the suite's folder.

    `proxy_calls` is how many times the command may call a model through a proxy, None where it may not.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""
    cwd: str = ""
    timeout: float = COMMAND_SECONDS
    proxy_calls: int | None = None


class CallPython(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Call a function of a Python file with one argument. Answered by `Returned`."""

    path: str
    function: str
    payload: JsonObject
    timeout: float = COMMAND_SECONDS


class NeedFile(msgspec.Struct, frozen=True):
    """Bring the bytes of a file of the suite. Answered by `Brought`."""

    path: str


Step: TypeAlias = Judge | Execute | CallPython | NeedFile


class Judged(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the judge answered, and what that took; what is not known is None. `exchange` is where it is on record."""

    text: str
    usage: Usage | None = None
    cost: float | None = None
    exchange: str = ""
    seconds: float | None = None


class Executed(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How the command ended. One that was stopped because it took too long has `Failed`.

    `judged` is what models answered that it asked through the proxy.
    """

    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float | None = None
    judged: tuple[Judged, ...] = ()


class Returned(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the function returned. One that raised has `Failed`."""

    value: Json
    seconds: float | None = None


class FileContent(msgspec.Struct, frozen=True):
    """The file's bytes; None where there is no such file."""

    data: bytes | None


class StepFailed(msgspec.Struct, frozen=True):
    """It could not be done. It can answer any step."""

    fault: Fault


Answer: TypeAlias = Judged | Executed | Returned | FileContent | StepFailed


def unfit(step: Step, answer: Answer) -> Fault:
    """The fault of a driver that answers something else than it was asked."""
    wanted, got = type(step).__name__, type(answer).__name__
    return Fault(Code.USAGE, f"{wanted} was answered by {got}", hint="See the step's own words for its answer.")


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
