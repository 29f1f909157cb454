"""The grader that lets a command or a Python function grade."""

from collections.abc import Generator
from dataclasses import dataclass, replace

from sightline.evals.core.graders.ask import ask
from sightline.evals.core.graders.expectation import reference_text
from sightline.evals.core.graders.fields import Fields, describe_value
from sightline.evals.core.graders.finding import Asking, GraderFinding, GradingCost, Run, finding_without_score
from sightline.evals.core.graders.judge_question import total_spent
from sightline.evals.core.graders.payload import payload_for_assertion, payload_of
from sightline.evals.core.graders.protocol import from_command, from_value
from sightline.evals.core.graders.steps import (
    COMMAND_SECONDS,
    Answer,
    CallPython,
    Execute,
    Executed,
    Returned,
    Step,
    StepFailed,
)
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.score import Check
from sightline.model.json import JsonObject
from sightline.wire.jsontext import encode

PROXY_CALLS = 50
_FUNCTION = 'Give python: "grade.py:function".'
_COMMAND = f"Give command: [python, grade.py]. {_FUNCTION}"


@dataclass(frozen=True, slots=True)
class GraderCode:
    """What is run: a command, or a function of a file."""

    argv: tuple[str, ...] = ()
    path: str = ""
    function: str = ""
    cwd: str = ""
    timeout: float = COMMAND_SECONDS
    proxy_calls: int | None = None

    def run(self, payload: JsonObject) -> Generator[Step, Answer, GraderFinding]:
        """What it says of this."""
        if self.path:
            step = CallPython(path=self.path, function=self.function, payload=payload, timeout=self.timeout)
            returned = yield from ask(step, Returned)
            if isinstance(returned, StepFailed):
                return finding_without_score(f"{self.path}:{self.function} failed: {returned.fault.message}")
            return from_value(returned.value, GradingCost(seconds=returned.seconds))
        ended = yield from ask(
            Execute(
                argv=self.argv,
                stdin=encode(payload),
                cwd=self.cwd,
                timeout=self.timeout,
                proxy_calls=self.proxy_calls,
            ),
            Executed,
        )
        if isinstance(ended, StepFailed):
            return finding_without_score(f"the command failed: {ended.fault.message}")
        found = from_command(ended)
        if not ended.judged:
            return found
        return replace(found, spent=replace(total_spent(*ended.judged), seconds=ended.seconds))


def code_grader(fields: Fields) -> Run:
    """A command with the case as JSON on standard input, or a function that is called with it.

    Fields that nobody knows are handed to it as its configuration.
    """
    code = read_code(fields, "command", "script")
    fields.raw("preprocessors")
    if fields.has("preprocessors"):
        fields.tell("preprocessors", "there are no preprocessors here", "Let the command read the files itself.")
    config = fields.mapping("config")
    config = {**fields.rest(), **config}

    def run(subject: GradingSubject) -> Asking:
        return (yield from code.run(payload_of(subject, config or None)))

    return run


def inline_assert(fields: Fields) -> Run:
    """A function that is told the question and the answer, and returns a score."""
    code = read_code(fields)
    fields.close()

    def run(subject: GradingSubject) -> Asking:
        reference = yield from reference_text(subject.grading)
        if isinstance(reference, StepFailed):
            return finding_without_score(reference.fault.message)
        found = yield from code.run(payload_for_assertion(subject, reference))
        if found.score is None or found.checks:
            return found
        check = Check(f"{code.function} is content", found.score >= 0.5, found.reason)
        return GraderFinding(score=found.score, checks=(check,), details=found.details, spent=found.spent)

    return run


def read_code(fields: Fields, *commands: str) -> GraderCode:
    """What is to be run, by one of these names or `python`."""
    path, colon, function = fields.text("python").partition(":")
    if fields.has("python") and not (path and colon and function.isidentifier()):
        fields.tell("python", "a file and a function are expected", 'Write "grade.py:function".')
    argv = _argv(fields, commands) if commands else ()
    given = [name for name in ("python", *commands) if fields.has(name)]
    if len(given) != 1:
        fields.tell(given[-1] if given else "", "one thing to run is expected", _COMMAND if commands else _FUNCTION)
    return GraderCode(
        argv=argv,
        path=path,
        function=function,
        cwd=fields.text("cwd"),
        timeout=fields.number("timeout_seconds", above=True) or COMMAND_SECONDS,
        proxy_calls=_proxy_calls(fields) if commands else None,
    )


def _argv(fields: Fields, names: tuple[str, ...]) -> tuple[str, ...]:
    value = fields.raw(*names)
    if isinstance(value, str) and value.strip():
        return ("sh", "-lc", value.strip())
    return fields.texts(*names)


def _proxy_calls(fields: Fields) -> int | None:
    value = fields.raw("target")
    if isinstance(value, dict):
        inner = fields.inner(value, "target")
        calls = inner.count("max_calls")
        inner.close()
        return PROXY_CALLS if calls is None else calls
    if value is not None and not isinstance(value, bool):
        fields.tell(
            "target", f"true or an object is expected, not {describe_value(value)}", "Write target: {max_calls: 10}."
        )
    return PROXY_CALLS if value is True else None
