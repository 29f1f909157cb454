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
    """Something in a suite that keeps it from running (`error`) or that the user should know (`warning`).

    `path` is the place in the document (`tests[2].input[0].content`), `suggestion` is what to write instead. An error
    with a `case` keeps only that case from running.
    """

    place: SuitePlace
    path: str
    message: str
    suggestion: str = ""
    severity: Severity = "error"
    case: str = ""

    def fault(self, code: Code, status: int | None = None) -> Fault:
        """The problem as a `Fault`, for callers that need the file."""
        return Fault(code, f"{self.place}: {self.message}", hint=self.suggestion, status=status)


Aggregation: TypeAlias = Literal["mean", "min", "max"]


class TextSegment(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="text"):
    text: str
    place: SuitePlace = SuitePlace()


class FileSegment(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="file"):
    """A file, by the relative path in the suite. `resolved` is where it was found, relative to the folder."""

    path: str
    resolved: str = ""
    place: SuitePlace = SuitePlace()


class ImageSegment(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="image"):
    """An image: a file, or a URL that the provider fetches (http, https, data)."""

    path: str
    resolved: str = ""
    place: SuitePlace = SuitePlace()


class CallSegment(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="tool_call"):
    """A tool call in an assistant message."""

    name: str
    arguments: Json = None
    id: str = ""
    place: SuitePlace = SuitePlace()


Segment: TypeAlias = TextSegment | FileSegment | ImageSegment | CallSegment


class CaseMessage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One message of a case. A `tool` message has the id of the call that it answers, if the suite gives it."""

    role: Role
    segments: tuple[Segment, ...] = ()
    name: str = ""
    call_id: str = ""
    place: SuitePlace = SuitePlace()


class GraderSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One grader as written in the suite. `config` holds the keys of its type, which the grader itself checks.

    `required`: the case passes only if this grader does. True requires `min_score`, or the case's threshold if there is
    none; a number is the score that it must reach, 0 included; None or False: not required.
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
    """One turn of a live conversation."""

    messages: tuple[CaseMessage, ...]
    expected: tuple[CaseMessage, ...] = ()
    expected_value: Json = None
    graders: tuple[GraderSpec, ...] = ()
    place: SuitePlace = SuitePlace()


class Trials(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How often each case is run. Every `strategy` is accepted and makes no difference: all figures are shown."""

    count: Annotated[int, Meta(ge=1, le=10_000)] = 1
    strategy: Literal["pass_at_k", "mean", "confidence_interval"] = "mean"
    cost_limit_usd: Annotated[float | None, key(aliases=("costLimitUsd",))] = None


class Execution(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How cases are run. None leaves a setting to the suite or the command."""

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
    """One case: either a conversation with `turns`, whose `messages` come before them, or a single exchange.

    `tools` are declared to the model, which may call them; they are not run.
    `missing` is a file of tools that was not found, without which the case cannot be sent.
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
        """The messages before the turns, and those of the turns."""
        return (*self.messages, *(each for turn in self.turns for each in turn.messages))

    @property
    def all_graders(self) -> tuple[GraderSpec, ...]:
        """The graders of the case and of each turn."""
        return (*self.graders, *(each for turn in self.turns for each in turn.graders))


class Suite(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A whole suite. What it declares once for all cases (leading messages, graders, files) is already in its cases.

    `about` holds the author's metadata, which nothing here acts on: category, version, author, licence. `sha256` is the
    hash of its file, for a later edit. `targets` are those that the suite defines itself.
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
