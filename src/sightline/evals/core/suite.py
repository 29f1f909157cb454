"""A suite as it was read: cases with their messages, how they are run, and how they are graded."""

from typing import Literal, TypeAlias

import msgspec

from sightline.evals.core.place import SuitePlace
from sightline.evals.core.target import FileForm, SuiteTarget
from sightline.model.json import Json, JsonObject
from sightline.model.message import Role
from sightline.model.tools import Tool

Aggregation: TypeAlias = Literal["mean", "min", "max"]


class TextSegment(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="text"):
    """Words."""

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
    """How often each case is run, and what is made of it."""

    count: int = 1
    strategy: Literal["pass_at_k", "mean", "confidence_interval"] = "mean"
    cost_limit_usd: float | None = None


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

    `tools` are declared to the model, which may call them; nobody runs them here.
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


class Suite(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A whole suite, with everything that it says once already in its cases (messages before, graders, files).

    `about` is what its author says of it that nothing here acts on: category, version, author, licence. `sha256` is the
    hash of its file, for whoever writes into it later. `targets` are those that it describes itself.
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
