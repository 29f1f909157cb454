"""Grader types, and graders with their configuration read.

A grader type is a struct that describes its configuration, and a function that builds a grader from one. The
configuration is read once, by the reader that all external files have; the grader is then run for every trial.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import inspect

from sightline.catalog.problem import Path, format_path, likely, nearest
from sightline.catalog.reading import REST, TypedReader, key, names_of, type_of
from sightline.evals.core.graders.finding import (
    Answer,
    Asking,
    GraderFinding,
    GradingSubject,
    Run,
    Step,
    at_once,
    finding_without_score,
    or_reason,
    score_of,
)
from sightline.evals.core.reading.document import Amount, Node, Share, SuiteFindings, Text, last_key
from sightline.evals.core.result import Score
from sightline.evals.core.suite import GraderSpec, Severity, SuiteProblem
from sightline.model.json import Json, JsonObject

C = TypeVar("C", bound=msgspec.Struct)

FORMER_TYPES = {"rubric": "rubrics", "llm-judge": "llm-grader", "code-judge": "code-grader"}
_IN_NAMES = ("value", "skill")
_LONGEST_PATTERN = 30


class GraderReader(TypedReader):
    """Reads the configuration of one grader. Its problems have the grader's place and the path of the key."""

    mapping = "a mapping"
    own_prefix = "x-"

    def __init__(self, spec: GraderSpec, path: str, types: "GraderTypes") -> None:
        self.spec = spec
        self.path = path
        self.types = types
        self.problems: list[SuiteProblem] = []

    @property
    def is_sound(self) -> bool:
        """Whether the grader can run: no problem is an error."""
        return all(problem.severity != "error" for problem in self.problems)

    def tell(self, key: str, message: str, suggestion: str = "", severity: Severity = "error") -> None:
        """Report a problem of a key; an empty key is the whole grader."""
        path = ".".join(filter(None, (self.path, key)))
        self.problems.append(
            SuiteProblem(place=self.spec.place, path=path, message=message, suggestion=suggestion, severity=severity)
        )

    def report(self, path: Path, message: str, hint: str, *, is_key: bool = False) -> None:
        """Report a problem that follows from the types."""
        self.tell(format_path(path), message, hint)

    def subject(self, path: Path, kind: inspect.Type) -> str:
        return last_key(path) or f"the grader {self.spec.type}"

    def check_passed_on(self, others: JsonObject, config: type[msgspec.Struct]) -> None:
        """Warn of unknown keys that are passed on to a command and look like typos."""
        for name in others:
            if hint := likely(name, names_of(config), 0.8):
                self.tell(name, f"{name!r} is passed on as it is", hint, "warning")

    def refuse_keys(self, others: JsonObject, config: type[msgspec.Struct]) -> None:
        """Report unknown keys that nothing reads."""
        for name in others:
            self.unknown_key(name, names_of(config), (), type_of(config))


@dataclass(frozen=True, slots=True)
class GraderType(Generic[C]):
    """`config` is the struct of the keys beside `type`. `build` makes the grader, and reports problems beyond the
    types."""

    config: type[C]
    build: Callable[[C, GraderReader], Run]


GraderTypes: TypeAlias = Mapping[str, GraderType[Any]]
Checks: TypeAlias = Callable[[C, GraderReader], None]


def asking_type(
    config: type[C], run: Callable[[C, GradingSubject], Asking], check: Checks[C] | None = None
) -> GraderType[C]:
    """A type whose graders ask for steps. `check` checks keys against each other, only if each is valid."""

    def build(given: C, reader: GraderReader) -> Run:
        if check is not None and reader.is_sound:
            check(given, reader)
        return partial(run, given)

    return GraderType(config, build)


def plain_type(
    config: type[C], look: Callable[[C, GradingSubject], GraderFinding], check: Checks[C] | None = None
) -> GraderType[C]:
    """A type whose graders need only the answer."""
    return asking_type(config, lambda given, subject: at_once(partial(look, given))(subject), check)


@dataclass(frozen=True, slots=True)
class Grader:
    """A grader with its configuration read, and the problems of the configuration. With an error it grades nothing."""

    spec: GraderSpec
    run: Run
    problems: tuple[SuiteProblem, ...] = ()


def prepare_grader(spec: GraderSpec, path: str, types: GraderTypes) -> Grader:
    """The grader of a specification, which is at this path of its file."""
    kind = kind_of(spec.type)
    name = name_of(kind, spec.config) if spec.name in ("", spec.type) else spec.name
    spec = msgspec.structs.replace(spec, type=kind, name=name)
    reader = GraderReader(spec, path, types)
    if kind not in types:
        hint = f'Did you mean "{FORMER_TYPES[kind]}"?' if kind in FORMER_TYPES else nearest(kind, types)
        reader.tell("type", f"there is no grader {spec.type!r}", hint)
        return Grader(spec, _refuse(reader.problems), tuple(reader.problems))
    config = reader.read(spec.config, types[kind].config)
    run = None if config is None else types[kind].build(config, reader)
    if run is None or not reader.is_sound:
        run = _refuse(reader.problems)
    return Grader(spec, run, tuple(reader.problems))


def run_grader(grader: Grader, subject: GradingSubject) -> Generator[Step, Answer, Score]:
    finding = yield from or_reason(grader.run(subject))
    return score_of(grader.spec, finding, subject.grading.threshold)


def kind_of(word: str) -> str:
    """The grader type of a name; older suites write underscores."""
    return word.replace("_", "-")


def name_of(kind: str, config: JsonObject) -> str:
    """The name of a grader that has none in the suite: its type and what it looks for."""
    value = next((config[name] for name in _IN_NAMES if name in config), None)
    if isinstance(value, list):
        return f"{kind}-{len(value)}"
    if not isinstance(value, str):
        return kind
    return f"{kind}-{value[:_LONGEST_PATTERN] if kind == 'regex' else value}"


def _refuse(problems: Sequence[SuiteProblem]) -> Run:
    """A grader that cannot run. Its finding is the reason."""
    first = next(problem for problem in problems if problem.severity == "error")
    finding = finding_without_score(f"it cannot be run: {first.path}: {first.message}")
    return at_once(lambda _subject: finding)


def read_graders(
    owner: Node, keys: tuple[str, ...], findings: SuiteFindings, *, is_turn: bool = False
) -> tuple[GraderSpec, ...]:
    """The graders under these keys. Plain strings become the criteria of one rubric, at the place of the first.

    As in AgentV, its weight is the number of criteria, and 1 in a turn.
    """
    specs: list[GraderSpec] = []
    for name in keys:
        node = owner.get(name)
        if node is not None:
            specs += read_list(node, name, findings, is_turn=is_turn)
    return tuple(specs)


def read_list(node: Node, name: str, findings: SuiteFindings, *, is_turn: bool = False) -> list[GraderSpec]:
    """The graders of one list, which is called `name` in messages."""
    specs: list[GraderSpec | None] = []
    criteria: list[Json] = []
    rubric: tuple[int, Node] | None = None
    for item in findings.items(node, name, "Begin each grader with a dash."):
        if item.text is not None:
            if not item.text.strip():
                findings.wrong(item, "the criterion is empty", "Say what has to hold, or remove it.")
                continue
            if rubric is None:
                rubric = (len(specs), item)
                specs.append(None)
            criteria.append({"id": f"rubric-{len(criteria) + 1}", "outcome": item.text})
        else:
            specs.append(_read_grader(item, findings))
    if rubric is not None:
        index, first = rubric
        weight = 1.0 if is_turn else float(len(criteria))
        specs[index] = GraderSpec(
            type="rubrics", name="rubrics", weight=weight, config={"criteria": criteria}, place=first.place
        )
    return [spec for spec in specs if spec is not None]


class GraderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that all grader types share. `config` holds the keys of one type, which reads them itself.

    AgentV drops a `min_score` of 0. Here 0 is a number like any other: it is always reached, but the grader has to run.
    """

    TITLE: ClassVar[str] = "a grader"
    EXAMPLE: ClassVar[str] = "Write {type: contains, value: …}, or a sentence that has to hold."

    type: Annotated[Text, key(hint="Write type: contains, for example.")]
    name: str = ""
    weight: Amount = 1.0
    required: bool | Share | None = None
    min_score: Share | None = None
    negate: bool = False
    config: Annotated[dict[str, Json], REST] = {}


def _read_grader(node: Node, findings: SuiteFindings) -> GraderSpec | None:
    config = findings.read(node, GraderConfig)
    if config is None:
        return None
    required = None if config.required is False else config.required
    spec = GraderSpec(**msgspec.structs.asdict(config), place=node.place)
    return msgspec.structs.replace(spec, name=config.name or config.type, required=required)
