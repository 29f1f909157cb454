"""Graders of the answer's text: phrases, regular expressions, JSON and JSON Schema."""

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Annotated

import msgspec
from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from msgspec import Meta
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from sightline.catalog.reading import key
from sightline.errors import Fault
from sightline.evals.core.graders.finding import (
    PYTHON,
    UNSPENT,
    Asking,
    Execute,
    Executed,
    GraderFinding,
    GradingCost,
    GradingSubject,
    ask,
    finding_without_score,
    of_one,
)
from sightline.evals.core.graders.grader import GraderReader, GraderType, GraderTypes, asking_type, plain_type
from sightline.evals.core.reading.document import Text
from sightline.evals.core.result import Check
from sightline.model.json import Json, JsonObject
from sightline.wire import pointer
from sightline.wire.jsontext import decode, encode

MOST_STEPS = 20_000_000
"""Takes less than a second."""

_TOKEN = re.compile(
    r"\\(?P<escape>x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|[\s\S])"
    r"|(?P<set>\[\^?\]?(?:\\[\s\S]|[^\]\\])*\])|(?P<again>\(\?P=)|(?P<open>\((?:\?[^)]?)?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<many>[*+])|(?P<maybe>\?)|(?P<times>\{(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\})|[\s\S]"
)
_FLAGS_INSIDE = re.compile(r"\(\?[aiLmsux-]")
_SPACED = re.compile(r"\(\?[a-zA-Z]*x")


@dataclass(slots=True)
class _Group:
    """The content of a group: whether it can match in different ways, and in how many."""

    start: int = 0
    varies: bool = False
    ways: float = 1.0


def compile_quietly(pattern: str, flags: re.RegexFlag) -> re.Pattern[str]:
    """Compile a pattern, without the warnings about a future change of its meaning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern, flags)


def is_bounded(pattern: str, flags: re.RegexFlag, text: str) -> bool:
    """Whether searching a text for a pattern is certain to end soon."""
    if _SPACED.search(pattern):
        return False  # a verbose pattern may have comments, which look like anything
    if _FLAGS_INSIDE.search(pattern):
        flags |= re.IGNORECASE | re.DOTALL
    ways = _count_paths(pattern, flags, text)
    return ways is not None and ways * (len(text) + 1) * (len(pattern) + 1) <= MOST_STEPS


def _count_paths(pattern: str, flags: re.RegexFlag, text: str) -> float | None:
    """In how many ways the pattern can continue from one position, None if that is unknown."""
    open_groups = [_Group()]
    atom: str | None = ""  # what a repetition repeats, None if it can match in different ways
    for token in _TOKEN.finditer(pattern):
        group, kind, before = open_groups[-1], token.lastgroup, atom
        atom = token[0]
        match kind:
            case "again":
                return None
            case "escape" if token["escape"].isdigit():
                return None
            case "open" if token[0] == "(?(":
                return None
            case "open":
                open_groups.append(_Group(token.start()))
            case "close" if len(open_groups) > 1:
                inner = open_groups.pop()
                open_groups[-1].varies |= inner.varies
                open_groups[-1].ways *= inner.ways
                atom = None if inner.varies else pattern[inner.start : token.end()]
            case "bar":
                group.varies = True
                group.ways += 1
            case "maybe":
                group.varies = True
                group.ways *= 2
            case "many" | "times":
                most = _most(token)
                if before is None and most != 1:
                    return None
                run = 1 if before is None else _longest_run(before, flags, text)
                group.varies |= most is None or bool(token["comma"])
                group.ways *= 1 + (run if most is None else min(run, most))
            case _:
                pass
    return open_groups[0].ways


def _longest_run(atom: str, flags: re.RegexFlag, text: str) -> int:
    try:
        runs = compile_quietly(f"(?:{atom})+", flags)
    except re.error:
        return len(text)  # it is part of something longer, such as the suffix of another repetition
    return max((len(run[0]) for run in runs.finditer(text)), default=0)


def _most(token: re.Match[str]) -> int | None:
    """The maximum of a repetition, None if it is unbounded."""
    digits = token["high"] if token["comma"] else token["low"]
    return int(digits) if digits and len(digits) < 10 else None


class PhraseConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One text, which may consist of spaces only."""

    value: Annotated[str, key(hint="Give the text to look for, in quotes.", pattern=r"(?s:.)")]


class PhrasesConfig(msgspec.Struct, frozen=True, kw_only=True):
    value: Annotated[
        tuple[Annotated[str, Meta(pattern=r"(?s:.)")], ...],
        key(aliases=("values",), hint="Give a list of texts.", min_length=1),
    ]


def _phrase_type(what: str, holds: Callable[[str, str], bool]) -> GraderType[PhraseConfig]:
    def look(config: PhraseConfig, subject: GradingSubject) -> GraderFinding:
        return of_one(f'{what} "{config.value}"', held=holds(subject.text, config.value))

    return plain_type(PhraseConfig, look)


def _phrases_type(
    what: str, enough: Callable[[list[bool]], bool], folded: Callable[[str], str] = str
) -> GraderType[PhrasesConfig]:
    def look(config: PhrasesConfig, subject: GradingSubject) -> GraderFinding:
        text, values = folded(subject.text), config.value
        found = [folded(value) in text for value in values]
        seen = ", ".join(f'"{value}"' for value, is_there in zip(values, found, strict=True) if is_there)
        missing = ", ".join(f'"{value}"' for value, is_there in zip(values, found, strict=True) if not is_there)
        evidence = "; ".join(words for words in (seen and f"there: {seen}", missing and f"missing: {missing}") if words)
        held = enough(found)
        return GraderFinding(score=float(held), checks=(Check(what, held, evidence),))

    return plain_type(PhrasesConfig, look)


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


class PatternConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern of Python's `re`; named groups may be written as in JavaScript. `flags` are letters."""

    value: Annotated[Text, key(aliases=("pattern",), hint="Give the pattern to look for.")]
    flags: Text = ""

    @property
    def pattern(self) -> tuple[str, re.RegexFlag]:
        flags = reduce(or_, (_FLAGS.get(letter, re.NOFLAG) for letter in self.flags), re.NOFLAG)
        return _JAVASCRIPT_NAME.sub("(?P<", self.value), flags


def _check_pattern(config: PatternConfig, reader: GraderReader) -> None:
    for letter in config.flags:
        if letter not in _FLAGS:
            reader.tell("flags", f"there is no flag {letter!r}", f"Known: {', '.join(_FLAGS)}.")
    try:
        compile_quietly(*config.pattern)
    except (re.error, OverflowError, RecursionError) as error:
        reader.tell("value", f"this is no pattern: {error}", "Patterns are those of Python's re module.")


def _search(config: PatternConfig, subject: GradingSubject) -> Asking:
    """Search in this process if the work is bounded. Any other pattern is searched in a process of its own, which can
    be stopped: a search that does not end leaves the grader without a score, and does not block the run."""
    what = f"matches /{config.value}/{config.flags}"
    pattern, flags = config.pattern
    if is_bounded(pattern, flags, subject.text):
        found = compile_quietly(pattern, flags).search(subject.text)
        return _finding_of_match(what, found[0] if found else None)
    step = Execute(
        argv=(PYTHON, "-c", _PROGRAM), stdin=encode([pattern, int(flags), subject.text]), timeout=PATTERN_SECONDS
    )
    return _read(what, (yield from ask(step, Executed, "the pattern could not be looked for: ")))


def _read(what: str, ended: Executed) -> GraderFinding:
    try:
        found = decode(ended.stdout) if ended.code == 0 else False
    except Fault:
        found = False
    if found is not None and not isinstance(found, str):
        return finding_without_score(f"the pattern could not be looked for: the command ended with {ended.code}")
    return _finding_of_match(what, found, GradingCost(seconds=ended.seconds))


def _finding_of_match(what: str, found: str | None, spent: GradingCost = UNSPENT) -> GraderFinding:
    return replace(of_one(what, held=found is not None, evidence=(found or "")[:_LONGEST_EVIDENCE]), spent=spent)


MOST_ERRORS = 10
_LONGEST_ERROR = 240


class JsonConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON Schema, if any. Nothing is fetched for it."""

    schema: Annotated[dict[str, Json], key(aliases=("value",))] = {}


def _check_schema(config: JsonConfig, reader: GraderReader) -> None:
    if config.schema and (problem := _schema_problem(config.schema)):
        hint = "Schemas are those of JSON Schema; the draft is 2020-12 unless it says another."
        reader.tell("schema", problem, hint)


def _look_for_json(config: JsonConfig, subject: GradingSubject) -> GraderFinding:
    try:
        value = decode(subject.text)
    except Fault as fault:
        return of_one("is JSON", held=False, evidence=fault.message)
    if not config.schema:
        return of_one("is JSON", held=True)
    if any(not is_bounded(each, re.NOFLAG, subject.text) for each in _patterns(config.schema)):
        return finding_without_score("a pattern of the schema could take without end on this answer")
    return _validate(config.schema, value)


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


TEXT_TYPES: GraderTypes = {
    "contains": _phrase_type("contains", lambda text, value: value in text),
    "icontains": _phrase_type("contains (in any case)", lambda text, value: value.lower() in text.lower()),
    # These three ignore spaces around the answer and around the text.
    "starts-with": _phrase_type("starts with", lambda text, value: text.strip().startswith(value.strip())),
    "ends-with": _phrase_type("ends with", lambda text, value: text.strip().endswith(value.strip())),
    "equals": _phrase_type("equals", lambda text, value: text.strip() == value.strip()),
    "contains-any": _phrases_type("contains one of them", any),
    "contains-all": _phrases_type("contains all of them", all),
    "icontains-any": _phrases_type("contains one of them (in any case)", any, str.lower),
    "icontains-all": _phrases_type("contains all of them (in any case)", all, str.lower),
    "regex": asking_type(PatternConfig, _search, _check_pattern),
    "is-json": plain_type(JsonConfig, _look_for_json, _check_schema),
}
