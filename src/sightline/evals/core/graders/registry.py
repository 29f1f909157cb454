"""The table of graders: what reads the configuration of each type."""

import re
from collections.abc import Callable, Iterator

from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from sightline.errors import Fault
from sightline.evals.core.graders.command import code_grader, inline_assert
from sightline.evals.core.graders.composite import composite
from sightline.evals.core.graders.field_accuracy import field_accuracy
from sightline.evals.core.graders.fields import Fields, Readers
from sightline.evals.core.graders.finding import (
    UNSPENT,
    Asking,
    GraderFinding,
    GradingCost,
    Run,
    at_once,
    finding_without_score,
    of_one,
    share,
)
from sightline.evals.core.graders.judge import llm_grader, rubrics
from sightline.evals.core.graders.limits import UNTRACED, check_limit, cost, latency, token_usage, tokens_of
from sightline.evals.core.graders.repetition import compile_quietly, is_bounded
from sightline.evals.core.graders.steps import PYTHON, Execute, Executed, StepFailed, unfit
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.graders.trajectory import tool_trajectory
from sightline.evals.core.observation import CaseObservation, ToolUse
from sightline.evals.core.score import Check
from sightline.model.json import Json, JsonObject
from sightline.wire import pointer
from sightline.wire.jsontext import decode, encode

PATTERN_SECONDS = 5.0

_FLAGS = {
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "g": re.NOFLAG,
    "u": re.NOFLAG,
}
_JAVASCRIPT_NAME = re.compile(r"\(\?<(?=[A-Za-z_])")
_PROGRAM = (
    "import json,re,sys;"
    "pattern,flags,text=json.load(sys.stdin);"
    "found=re.search(pattern,text,flags);"
    "json.dump(found and found[0],sys.stdout)"
)
_LONGEST_EVIDENCE = 200


def regex(fields: Fields) -> Run:
    """The answer has something in it that fits this pattern."""
    value = fields.text("value", "pattern", needed=True, why="Give the pattern to look for.")
    letters = fields.text("flags")
    fields.close()
    flags = re.NOFLAG
    for letter in letters:
        if letter in _FLAGS:
            flags |= _FLAGS[letter]
        else:
            fields.tell("flags", f"there is no flag {letter!r}", f"Known: {', '.join(_FLAGS)}.")
    pattern = _JAVASCRIPT_NAME.sub("(?P<", value)
    try:
        compile_quietly(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        fields.tell("value", f"this is no pattern: {error}", "Patterns are those of Python's re module.")
    what = f"matches /{value}/{letters}"

    def run(subject: GradingSubject) -> Asking:
        if is_bounded(pattern, flags, subject.text):
            found = compile_quietly(pattern, flags).search(subject.text)
            return _finding_of_match(what, found[0] if found else None)
        step = Execute(
            argv=(PYTHON, "-c", _PROGRAM), stdin=encode([pattern, int(flags), subject.text]), timeout=PATTERN_SECONDS
        )
        match (yield step):
            case Executed() as ended:
                return _read(what, ended)
            case StepFailed(fault):
                return finding_without_score(f"the pattern could not be looked for: {fault.message}")
            case other:
                raise unfit(step, other)

    return run


def _read(what: str, ended: Executed) -> GraderFinding:
    try:
        found = decode(ended.stdout) if ended.code == 0 else False
    except Fault:
        found = False
    if found is not None and not isinstance(found, str):
        return finding_without_score(f"the pattern could not be looked for: the command ended with {ended.code}")
    return _finding_of_match(what, found, GradingCost(seconds=ended.seconds))


def _finding_of_match(what: str, found: str | None, spent: GradingCost = UNSPENT) -> GraderFinding:
    seen = of_one(what, held=found is not None, evidence=(found or "")[:_LONGEST_EVIDENCE])
    return GraderFinding(score=seen.score, checks=seen.checks, spent=spent)


MOST_ERRORS = 10
_LONGEST_ERROR = 240


def is_json(fields: Fields) -> Run:
    """The answer is one JSON text, and fits the schema where there is one."""
    schema = fields.mapping("schema", "value")
    fields.close()
    if schema and (problem := _schema_problem(schema)):
        fields.tell("schema", problem, "Schemas are those of JSON Schema; the draft is 2020-12 unless it says another.")

    def look(subject: GradingSubject) -> GraderFinding:
        try:
            value = decode(subject.text)
        except Fault as fault:
            return of_one("is JSON", held=False, evidence=fault.message)
        if not schema:
            return of_one("is JSON", held=True)
        if any(not is_bounded(each, re.NOFLAG, subject.text) for each in _patterns(schema)):
            return finding_without_score("a pattern of the schema could take without end on this answer")
        return _validate(schema, value)

    return at_once(look)


def _validate(schema: JsonObject, value: Json) -> GraderFinding:
    validator = validator_for(schema, default=Draft202012Validator)(schema, registry=EMPTY_REGISTRY)
    try:
        errors = [
            f"{pointer.join('', *error.absolute_path) or 'the whole'}: {error.message[:_LONGEST_ERROR]}"
            for error in validator.iter_errors(value)
        ]
    except (Unresolvable, RecursionError):
        return finding_without_score("the schema refers to something that cannot be followed")
    checks = (Check("is JSON", True), *(Check("fits the schema", False, error) for error in errors[:MOST_ERRORS]))
    if not errors:
        checks = (*checks, Check("fits the schema", True))
    return GraderFinding(score=float(not errors), checks=checks)


def _schema_problem(schema: JsonObject) -> str:
    if not isinstance(schema.get("$schema", ""), str):
        return "$schema is no text"
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        return f"this is no schema: {pointer.join('', *error.absolute_path)}: {error.message[:_LONGEST_ERROR]}"
    except RecursionError:
        return "this schema is nested too deep"
    return ""


def _patterns(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _patterns(each)
    elif isinstance(value, dict):
        if isinstance(pattern := value.get("pattern"), str):
            yield pattern
        if isinstance(by_pattern := value.get("patternProperties"), dict):
            yield from by_pattern
        for each in value.values():
            yield from _patterns(each)


def contains(fields: Fields) -> Run:
    """The answer has this text in it."""
    return _one(fields, "contains", lambda text, value: value in text)


def icontains(fields: Fields) -> Run:
    """The same, whatever the case of the letters."""
    return _one(fields, "contains (in any case)", lambda text, value: value.lower() in text.lower())


def starts_with(fields: Fields) -> Run:
    """The answer begins with this text, spaces around both apart."""
    return _one(fields, "starts with", lambda text, value: text.strip().startswith(value.strip()))


def ends_with(fields: Fields) -> Run:
    """The answer ends with this text, spaces around both apart."""
    return _one(fields, "ends with", lambda text, value: text.strip().endswith(value.strip()))


def equals(fields: Fields) -> Run:
    """The answer is this text, spaces around both apart."""
    return _one(fields, "equals", lambda text, value: text.strip() == value.strip())


def contains_any(fields: Fields) -> Run:
    """The answer has one of these texts in it."""
    return _several(fields, any, "contains one of them", lambda text: text)


def contains_all(fields: Fields) -> Run:
    """The answer has each of these texts in it."""
    return _several(fields, all, "contains all of them", lambda text: text)


def icontains_any(fields: Fields) -> Run:
    """The answer has one of these texts in it, whatever the case of the letters."""
    return _several(fields, any, "contains one of them (in any case)", str.lower)


def icontains_all(fields: Fields) -> Run:
    """The answer has each of these texts in it, whatever the case of the letters."""
    return _several(fields, all, "contains all of them (in any case)", str.lower)


def _one(fields: Fields, what: str, holds: Callable[[str, str], bool]) -> Run:
    value = fields.text("value", needed=True, why="Give the text to look for, in quotes.", blank=True)
    fields.close()
    return at_once(lambda subject: of_one(f'{what} "{value}"', held=holds(subject.text, value)))


def _several(fields: Fields, enough: Callable[[list[bool]], bool], what: str, folded: Callable[[str], str]) -> Run:
    values = fields.texts("value", "values", needed=True)
    fields.close()

    def look(subject: GradingSubject) -> GraderFinding:
        text = folded(subject.text)
        found = [folded(value) in text for value in values]
        seen = ", ".join(f'"{value}"' for value, is_there in zip(values, found, strict=True) if is_there)
        missing = ", ".join(f'"{value}"' for value, is_there in zip(values, found, strict=True) if not is_there)
        evidence = "; ".join(words for words in (seen and f"there: {seen}", missing and f"missing: {missing}") if words)
        held = enough(found)
        return GraderFinding(score=float(held), checks=(Check(what, held, evidence),))

    return at_once(look)


EXPLORING = frozenset({"read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"})
"""Tools that look at something and change nothing."""

_LIMITS = ("max_tool_calls", "max_llm_calls", "max_tokens", "max_cost_usd", "max_duration_ms")


def execution_metrics(fields: Fields) -> Run:
    """Tool calls, requests, tokens, money, time and the part of calls that explore, each within what is wanted."""
    limits = {name: fields.number(name) for name in _LIMITS}
    ratio = fields.number("target_exploration_ratio", most=1.0)
    tolerance = fields.number("exploration_tolerance")
    fields.close()
    if not fields.has(*_LIMITS, "target_exploration_ratio"):
        fields.tell("", "no limit is given", f"Give one of: {', '.join(_LIMITS)}, target_exploration_ratio.")

    def look(subject: GradingSubject) -> GraderFinding:
        actual = measure_run(subject.observation)
        wanted = {name: most for name, most in limits.items() if most is not None}
        unknown = [name.removeprefix("max_") for name in wanted if actual[name] is None]
        if ratio is not None and not subject.observation.is_traced:
            unknown.append("exploration_ratio")
        if unknown:
            return finding_without_score(f"not known: {', '.join(unknown)}")
        checks = [check_limit(name.removeprefix("max_"), actual[name] or 0, most) for name, most in wanted.items()]
        if ratio is not None:
            checks.append(_explores(subject.observation, ratio, 0.2 if tolerance is None else tolerance))
        details: JsonObject = {name.removeprefix("max_"): actual[name] for name in wanted}
        return GraderFinding(score=share(checks), checks=tuple(checks), details=details)

    return at_once(look)


def measure_run(observation: CaseObservation) -> dict[str, float | None]:
    """What a run took, by the name of the limit."""
    seconds = observation.seconds
    return {
        "max_tool_calls": len(observation.tools) if observation.is_traced else None,
        "max_llm_calls": observation.requests if observation.is_traced else None,
        "max_tokens": tokens_of(observation)[2],
        "max_cost_usd": observation.cost,
        "max_duration_ms": None if seconds is None else seconds * 1000,
    }


def _explores(observation: CaseObservation, wanted: float, tolerance: float) -> Check:
    text = f"exploration ratio: {wanted:g} ± {tolerance:g}"
    if not observation.tools:
        return Check(text, False, "no tool was called")
    ratio = sum(use.name in EXPLORING for use in observation.tools) / len(observation.tools)
    return Check(text, abs(ratio - wanted) <= tolerance, f"{ratio:.2f}")


def skill_trigger(fields: Fields) -> Run:
    """The skill was used, or was not where it should not be."""
    name = fields.text("skill", needed=True, why="Give the name of the skill.")
    wanted = fields.flag("should_trigger", otherwise=True)
    fields.close()

    def look(subject: GradingSubject) -> GraderFinding:
        if not subject.observation.is_traced:
            return finding_without_score(UNTRACED)
        uses = subject.observation.tools
        seen = next((words for use in uses if (words := _evidence(use, name))), "")
        text = f'skill "{name}" is {"" if wanted else "not "}used'
        return of_one(text, held=bool(seen) is wanted, evidence=seen or f"not in {len(uses)} tool calls")

    return at_once(look)


def _evidence(use: ToolUse, name: str) -> str:
    arguments = use.arguments if isinstance(use.arguments, dict) else {}
    folder = f"skills/{name}/"
    if use.name.lower() == "skill" and name in str(arguments.get("skill", "")):
        return f"{use.name} was called with {arguments['skill']}"
    path = str(arguments.get("file_path", arguments.get("path", "")))
    if use.name.lower() == "read" and folder in path:
        return f"{use.name} was called with {path}"
    return f"{use.name} answered with {folder}" if folder in use.result else ""


GRADERS: Readers = {
    "contains": contains,
    "contains-any": contains_any,
    "contains-all": contains_all,
    "icontains": icontains,
    "icontains-any": icontains_any,
    "icontains-all": icontains_all,
    "starts-with": starts_with,
    "ends-with": ends_with,
    "equals": equals,
    "regex": regex,
    "is-json": is_json,
    "latency": latency,
    "cost": cost,
    "token-usage": token_usage,
    "execution-metrics": execution_metrics,
    "field-accuracy": field_accuracy,
    "tool-trajectory": tool_trajectory,
    "skill-trigger": skill_trigger,
    "inline-assert": inline_assert,
    "code-grader": code_grader,
    "llm-grader": llm_grader,
    "rubrics": rubrics,
    "composite": composite,
}
