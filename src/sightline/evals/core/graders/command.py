"""The grader that runs a command or a Python function, and the results that either may return."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from sightline.catalog.reading import REST, key
from sightline.errors import Fault
from sightline.evals.core.graders.expectation import describe_json, reference_text
from sightline.evals.core.graders.finding import (
    COMMAND_SECONDS,
    UNSPENT,
    Asking,
    CallAdded,
    CallPython,
    Execute,
    Executed,
    GraderFinding,
    GradingCost,
    GradingSubject,
    Returned,
    Run,
    ask,
    finding_without_score,
    share,
    total_spent,
)
from sightline.evals.core.graders.grader import GraderReader, GraderType, GraderTypes, asking_type
from sightline.evals.core.graders.payload import payload_for_assertion, payload_of
from sightline.evals.core.reading.document import Text
from sightline.evals.core.result import Check
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import decode, encode

LONGEST_WORDS = 2_000
_NEARLY = 1e-9
_SIGNALS = 128
"""Exit codes of a shell above this are 128 plus the number of the signal that ended its command."""


def from_command(ended: Executed) -> GraderFinding:
    """The finding of a command: an object on its standard output, or plain text with the exit code as the verdict.

    A command that fails with an object, or with text on standard error, has crashed, and so has one that was ended by a
    signal. Output that looks like a verdict but is not valid, such as one with text before it, is never treated as
    plain text: that would pass.
    """
    spent = GradingCost(seconds=ended.seconds)
    words = ended.stdout.decode("utf-8", "replace").strip()
    complaint = ended.stderr.decode("utf-8", "replace").strip()
    if ended.code != 0 and (complaint or words[:1] in ("{", "[")):
        excerpt = complaint[-LONGEST_WORDS:] or words[:LONGEST_WORDS]
        return finding_without_score(f"the command ended with {ended.code}: {excerpt}", spent)
    if ended.code < 0 or ended.code > _SIGNALS:
        signal = -ended.code if ended.code < 0 else ended.code - _SIGNALS
        return finding_without_score(f"the command was ended by signal {signal}", spent)
    try:
        value = decode(ended.stdout)
    except Fault as fault:
        if words[:1] in ("{", "[") or '"score"' in words:
            return finding_without_score(
                f"its output is no JSON alone ({fault.message}): {words[:LONGEST_WORDS]}", spent
            )
        value = None
    if isinstance(value, dict):
        return from_value(value, spent)
    if value is not None and not isinstance(value, str):
        return finding_without_score(f'an object is expected, not {describe_json(value)}: write {{"score": …}}', spent)
    passed = ended.code == 0
    text = words[:LONGEST_WORDS] or f"exit {ended.code}"
    return GraderFinding(score=float(passed), checks=(Check(text, passed),), spent=spent)


def from_value(value: Json, spent: GradingCost = UNSPENT) -> GraderFinding:
    """The finding of a value: true or false, a score, or an object."""
    if isinstance(value, bool):
        return GraderFinding(score=float(value), checks=(Check("returns true", value),), spent=spent)
    if isinstance(value, int | float):
        value = {"score": value}
    if not isinstance(value, dict):
        return finding_without_score(f"a score is expected, not {describe_json(value)}", spent)
    assertions = value.get("assertions")
    checks = () if assertions is None else checks_of(assertions)
    if checks is None:
        return finding_without_score("its assertions are not a list of {text, passed}", spent)
    given = value.get("score")
    score = share(checks) if given is None and checks else score_of(given)
    if score is None:
        return finding_without_score(f"a score from 0 to 1 is expected, not {describe_json(given)}", spent)
    details = value.get("details", value.get("metadata"))
    verdict = value.get("verdict")
    return GraderFinding(
        score=score,
        checks=checks,
        reason=first_text(value, "reasoning", "reason"),
        passed=verdict == "pass" if verdict in ("pass", "fail") else None,
        details=details if isinstance(details, dict) else {},
        spent=spent,
    )


def score_of(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return min(max(float(value), 0.0), 1.0) if -_NEARLY <= value <= 1 + _NEARLY else None


def checks_of(value: Json) -> tuple[Check, ...] | None:
    """The checks of a list of assertions. None if it is not a list, or one of them is not an assertion."""
    if not isinstance(value, list):
        return None
    checks = []
    for each in value:
        match each:
            case {"text": str(text), "passed": bool(passed), "evidence": str(evidence)}:
                checks.append(Check(text, passed, evidence))
            case {"text": str(text), "passed": bool(passed)}:
                checks.append(Check(text, passed))
            case _:
                return None
    return tuple(checks)


def first_text(value: JsonObject, *names: str) -> str:
    """The text under the first of these names that has one."""
    return next((text for name in names if isinstance(text := value.get(name), str)), "")


PROXY_CALLS = 50
_FUNCTION = 'Give python: "grade.py:function".'

Command: TypeAlias = Text | Annotated[tuple[Text, ...], Meta(min_length=1)]
"""A line for the shell, or the arguments of a command that is run without one."""

Seconds: TypeAlias = Annotated[float, Meta(gt=0)]
PythonFunction: TypeAlias = Annotated[
    str, key(pattern=r"\A[^:]+:[^\W\d]\w*\Z", description="a file and a function", hint='Write "grade.py:function".')
]


class ProxyAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How often a command may call a model through its proxy."""

    max_calls: Annotated[int, Meta(ge=0)] = PROXY_CALLS


class InlineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A function of a file: `grade.py:function`."""

    python: PythonFunction
    cwd: Text = ""
    timeout_seconds: Seconds = COMMAND_SECONDS


class CommandConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A function of a file, or a command, which may call a model if `target` allows it."""

    python: PythonFunction = ""
    command: Annotated[Command | None, key(aliases=("script",))] = None
    cwd: Text = ""
    timeout_seconds: Seconds = COMMAND_SECONDS
    target: bool | ProxyAccess = False

    @property
    def argv(self) -> tuple[str, ...]:
        command = self.command or ()
        return ("sh", "-lc", command.strip()) if isinstance(command, str) else command

    @property
    def proxy_calls(self) -> int | None:
        if isinstance(self.target, ProxyAccess):
            return self.target.max_calls
        return PROXY_CALLS if self.target else None

    def check(self, reader: GraderReader, above: str = "") -> None:
        """Report a problem unless there is exactly one thing to run. `above` is the key of the grader that contains it,
        followed by a dot."""
        given = [name for name in ("python", "command") if getattr(self, name)]
        if len(given) != 1 and reader.is_sound:
            at = f"{above}{given[-1]}" if given else above.removesuffix(".")
            reader.tell(at, "one thing to run is expected", f"Give command: [python, grade.py]. {_FUNCTION}")

    def run(self, payload: JsonObject) -> Asking:
        if self.python:
            path, _, function = self.python.partition(":")
            step = CallPython(path=path, function=function, payload=payload, timeout=self.timeout_seconds)
            returned = yield from ask(step, Returned, f"{self.python} failed: ")
            return from_value(returned.value, GradingCost(seconds=returned.seconds))
        command = Execute(
            argv=self.argv,
            stdin=encode(payload),
            cwd=self.cwd,
            timeout=self.timeout_seconds,
            proxy_calls=self.proxy_calls,
        )
        ended = yield from ask(command, Executed, "the command failed: ")
        found = from_command(ended)
        if not ended.judged:
            return found
        return replace(found, spent=replace(total_spent(*ended.judged), seconds=ended.seconds))


class CodeConfig(CommandConfig, frozen=True, kw_only=True):
    """Unknown keys are passed to the command as its configuration; those of `config` win over them."""

    preprocessors: Json = None
    config: dict[str, Json] = {}
    others: Annotated[dict[str, Json], REST] = {}


def _build_code_grader(config: CodeConfig, reader: GraderReader) -> Run:
    """A command with the case as JSON on its standard input, or a function that is called with it."""
    config.check(reader)
    if config.preprocessors is not None:
        reader.tell("preprocessors", "there are no preprocessors here", "Let the command read the files itself.")
    reader.check_passed_on(config.others, CodeConfig)
    settings = {**config.others, **config.config} or None

    def run(subject: GradingSubject) -> Asking:
        return (yield from config.run(payload_of(subject, settings)))

    return run


def _assert_inline(config: InlineConfig, subject: GradingSubject) -> Asking:
    """Call a function with the question and the answer, which returns a score."""
    reference = yield from reference_text(subject.grading)
    code = CommandConfig(python=config.python, cwd=config.cwd, timeout_seconds=config.timeout_seconds)
    found = yield from code.run(payload_for_assertion(subject, reference))
    if found.score is None or found.checks:
        return found
    function = config.python.partition(":")[2]
    check = Check(f"{function} is content", found.score >= 0.5, found.reason)
    return GraderFinding(score=found.score, checks=(check,), details=found.details, spent=found.spent)


class AddedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Unknown keys are passed to the grader as its configuration."""

    timeout_seconds: Seconds = COMMAND_SECONDS
    others: Annotated[dict[str, Json], REST] = {}


def type_of_call(call: Callable[[JsonObject, float], Awaitable[Json]]) -> GraderType[AddedConfig]:
    def run(config: AddedConfig, subject: GradingSubject) -> Asking:
        payload = payload_of(subject, config.others or None)
        step = CallAdded(call=call, payload=payload, timeout=config.timeout_seconds)
        returned = yield from ask(step, Returned)
        return from_value(returned.value, GradingCost(seconds=returned.seconds))

    return asking_type(AddedConfig, run)


COMMAND_TYPES: GraderTypes = {
    "code-grader": GraderType(CodeConfig, _build_code_grader),
    "inline-assert": asking_type(InlineConfig, _assert_inline),
}
