"""A suite as it was read: cases with their messages, how they are run and graded, and the problems of its files."""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from sightline.catalog.reading import key
from sightline.errors import Code, Fault
from sightline.evals.core.target import FileForm, SuiteTarget
from sightline.model.json import Json, JsonObject
from sightline.model.request import Role, Tool

Severity: TypeAlias = Literal["error", "warning"]


class SuitePlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file, relative to the folder that the run was started for, and a line and column that count from 1."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class SuiteProblem(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Something in a suite that keeps it from running (`error`) or that a person should know (`warning`).

    `path` is the way to it in the document (`tests[2].input[0].content`), `suggestion` what to write instead. An error
    with a `case` keeps only that case from running.
    """

    place: SuitePlace
    path: str
    message: str
    suggestion: str = ""
    severity: Severity = "error"
    case: str = ""

    def fault(self, code: Code, status: int | None = None) -> Fault:
        """The problem as the fault of whatever needs the file."""
        return Fault(code, f"{self.place}: {self.message}", hint=self.suggestion, status=status)


Aggregation: TypeAlias = Literal["mean", "min", "max"]


class TextSegment(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="text"):
    text: str
    place: SuitePlace = SuitePlace()


class FileSegment(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="file"):
    """A file, by the relative path that the suite names. `resolved` is where it was found, relative to the folder."""

    path: str
    resolved: str = ""
    place: SuitePlace = SuitePlace()


class ImageSegment(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="image"):
    """A picture: a file, or a URL that the provider fetches (http, https, data)."""

    path: str
    resolved: str = ""
    place: SuitePlace = SuitePlace()


class CallSegment(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="tool_call"):
    """A call of a tool, of an assistant message."""

    name: str
    arguments: Json = None
    id: str = ""
    place: SuitePlace = SuitePlace()


Segment: TypeAlias = TextSegment | FileSegment | ImageSegment | CallSegment


class CaseMessage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One message of a case. A `tool` message names the call that it answers, where the suite does."""

    role: Role
    segments: tuple[Segment, ...] = ()
    name: str = ""
    call_id: str = ""
    place: SuitePlace = SuitePlace()


class GraderSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One grader as the suite wrote it. `config` is all that belongs to its type, checked by the grader itself.

    `required`: the case passes only if this grader does: True asks for `min_score`, or for the case's threshold where
    there is none; a number is the score that it must reach, 0 included; None, or False, is not required.
    """

    type: str
    name: str = ""
    weight: float = 1.0
    required: bool | float | None = None
    min_score: float | None = None
    negate: bool = False
    config: dict[str, Json] = {}
    place: SuitePlace = SuitePlace()


class CaseTurn(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One turn of a conversation that is held live."""

    messages: tuple[CaseMessage, ...]
    expected: tuple[CaseMessage, ...] = ()
    expected_value: Json = None
    graders: tuple[GraderSpec, ...] = ()
    place: SuitePlace = SuitePlace()


class Trials(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How often each case is run. Every `strategy` is accepted and has the same result: all figures are shown."""

    count: Annotated[int, Meta(ge=1, le=10_000)] = 1
    strategy: Literal["pass_at_k", "mean", "confidence_interval"] = "mean"
    cost_limit_usd: Annotated[float | None, key(aliases=("costLimitUsd",))] = None


class Execution(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How cases are run; None is as the suite, or the command, says."""

    targets: tuple[str, ...] = ()
    workers: int | None = None
    trials: Trials | None = None
    budget_usd: float | None = None
    threshold: float | None = None
    cache: bool | None = None
    fail_on_error: bool | None = None
    file_form: FileForm | None = None
    skip_defaults: bool = False


class Case(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One case. Either it has `turns`, and its messages are what stands before them, or it is one exchange.

    `tools` are declared to the model, which may call them; they are not run.
    `missing` is a file with them that is nowhere, without which the case cannot be sent.
    `criteria` and `expected` are for graders. `group` clusters cases that belong together (the seed's conversation).
    """

    id: str
    messages: tuple[CaseMessage, ...] = ()
    turns: tuple[CaseTurn, ...] = ()
    expected: tuple[CaseMessage, ...] = ()
    expected_value: Json = None
    criteria: str = ""
    graders: tuple[GraderSpec, ...] = ()
    tools: tuple[Tool, ...] = ()
    missing: str = ""
    group: str = ""
    tags: tuple[str, ...] = ()
    system_prompt: str = ""
    guideline_patterns: tuple[str, ...] = ()
    metadata: JsonObject = {}
    execution: Execution = Execution()
    depends_on: tuple[str, ...] = ()
    on_dependency_failure: Literal["skip", "fail", "run"] = "skip"
    aggregation: Aggregation = "mean"
    on_turn_failure: Literal["continue", "stop"] = "continue"
    window_size: int | None = None
    place: SuitePlace = SuitePlace()

    @property
    def all_messages(self) -> tuple[CaseMessage, ...]:
        """What is said before the turns, and in them."""
        return (*self.messages, *(each for turn in self.turns for each in turn.messages))

    @property
    def all_graders(self) -> tuple[GraderSpec, ...]:
        """The graders of the whole and of each turn."""
        return (*self.graders, *(each for turn in self.turns for each in turn.graders))


class Suite(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A whole suite, with everything that it says once already in its cases (messages before, graders, files).

    `about` is what its author says of it that nothing here acts on: category, version, author, licence. `sha256` is the
    hash of its file, for a later edit. `targets` are those that it describes itself.
    """

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    execution: Execution = Execution()
    file: str = ""
    about: JsonObject = {}
    sha256: str = ""
    targets: tuple[SuiteTarget, ...] = ()
