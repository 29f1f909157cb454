"""The JSON bodies of the calls about evals. The page's types are generated from these."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from sightline.chat.service.blocks import Block
from sightline.evals.core.comparison import GraderPair
from sightline.evals.core.delivery import Note
from sightline.evals.core.making.case_writer import Omission
from sightline.evals.core.result import Score, Status, Verdict
from sightline.evals.core.statistics.paired import Finding
from sightline.evals.core.suite import SuitePlace, SuiteProblem
from sightline.evals.core.summary import Excluded
from sightline.evals.service.eval_log import Brief
from sightline.model.json import Json, JsonObject
from sightline.model.reply import Usage

_MOST = 10_000

Names: TypeAlias = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=_MOST)]


class RerunWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rerun these cases on one target or all; without names, everything that did not pass."""

    cases: Names | None = None
    target: str = ""


class RunWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run a suite below the configured folder on these targets, each a target's or a model's name; without any, on
    those that the suite names. `cases` are patterns of names, `trials` how often each case is run."""

    file: str
    targets: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] = ()
    judge: str = ""
    trials: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    cases: Annotated[tuple[str, ...], msgspec.Meta(max_length=_MOST)] = ()


class SuiteWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole suite as text. `sha256` is the hash of the file that the user saw, empty for a new one. `dry` only checks
    the text."""

    file: str
    yaml: str
    sha256: str = ""
    dry: bool = False


class MakeWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Make a case from these exchanges. From turn `from_turn` on, the conversation is held live; without it, the answer
    must contain the text `contains`, if it is given."""

    exchanges: Names
    from_turn: Annotated[int, msgspec.Meta(ge=1)] | None = None
    name: str = ""
    contains: str = ""


class SaveWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Append the cases of this text to a suite below the configured folder. `exchanges` and the fields after it are
    those with which the case was made; the files that the case names are made from them."""

    file: str
    yaml: str
    exchanges: Annotated[tuple[str, ...], msgspec.Meta(max_length=_MOST)] = ()
    from_turn: Annotated[int, msgspec.Meta(ge=1)] | None = None
    name: str = ""


class CaseSaveWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Write this value at this path of a case. `sha256` is the hash of the file that the user saw; by default that of
    the run's start. `dry` only computes the change."""

    case: str
    path: tuple[str | int, ...]
    value: Json
    sha256: str = ""
    dry: bool = False


class AdoptWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Write a user's edit of a trial's request into its case."""

    case: str
    target: str
    trial: Annotated[int, msgspec.Meta(ge=0)] = 0
    sha256: str = ""
    dry: bool = False


class CaseUndoWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Undo the change that gave the file this hash."""

    case: str
    sha256: str


TrialStatus: TypeAlias = Status | Literal["running", "waiting"]


class TargetFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one target. Unknown values are null, not 0. `low` and `high` are the ends of the mean's confidence
    interval, within 0 and 1. `cost_at_least` is the known cost, `cost_unknown` how many answers and judgements it
    leaves out. `said` is the same in sentences."""

    target: str
    results: int
    passed: int
    failed: int
    errors: int
    not_graded: int
    skipped: int
    cached: int
    pass_rate: float | None
    pass_low: float | None
    pass_high: float | None
    mean: float | None
    stderr: float | None
    low: float | None
    high: float | None
    cost: float | None
    cost_at_least: float
    cost_unknown: int
    tokens: int | None
    tokens_at_least: int
    seconds: float | None
    said: tuple[str, ...]


class EvalBrief(Brief, frozen=True, kw_only=True):
    """A run as one row. `of` is the number of results it will have, `done` the number it has."""

    summary: tuple[TargetFigures, ...]


class TrialShown(msgspec.Struct, frozen=True, kw_only=True):
    """One trial of a case on a target; without a result it is waiting or running. `reason` is why it has no answer or
    no better score, on one line, `answer` is the beginning of its answer."""

    trial: int
    status: TrialStatus
    verdict: Verdict | None = None
    score: float | None = None
    cached: bool = False
    seconds: float | None = None
    cost: float | None = None
    reason: str = ""
    answer: str = ""


class Cell(msgspec.Struct, frozen=True):
    """A case on a target."""

    target: str
    trials: tuple[TrialShown, ...]


class CaseRow(msgspec.Struct, frozen=True):
    """A case on all targets."""

    case: str
    group: str
    tags: tuple[str, ...]
    cells: tuple[Cell, ...]


class GraderFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One grader on one target. `n` is how often it graded."""

    target: str
    name: str
    type: str
    mean: float | None
    n: int
    passes: int
    not_graded: int


class EvalShown(Brief, frozen=True, kw_only=True):
    """A whole run. `version` counts its facts, `why` is how it ended. `is_here` means that this server drives it and
    can stop it. `file_sha256` is the hash of the suite's file at the start."""

    summary: tuple[TargetFigures, ...]
    version: int
    why: str
    is_here: bool
    file_sha256: str
    matrix: tuple[CaseRow, ...]
    graders: tuple[GraderFigures, ...]


class MessageShown(msgspec.Struct, frozen=True):
    """A message in blocks like the chat's."""

    role: str
    name: str
    blocks: tuple[Block, ...]


class TurnShown(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a live conversation: what was sent, the answer, and the graders' scores."""

    messages: tuple[MessageShown, ...]
    answer: tuple[Block, ...]
    verdict: Verdict | None
    score: float | None
    scores: tuple[Score, ...]
    reason: str
    exchanges: tuple[str, ...]
    seconds: float | None
    cost: float | None
    error: str


class CaseShown(TurnShown, frozen=True, kw_only=True):
    """One trial of a case, with the fields of a turn; for a live conversation these have the messages of the last turn.
    `notes` are delivery notes, computed again; `notes_trouble` is why that failed. `is_edited` means that a user edited
    a request of it; `messages` are as sent in that case too. `source` is the case as its file has it now, null if it
    cannot be written back, and `source_sha256` that file's hash. `run` is the agent run of a target with tools."""

    case: str
    group: str
    tags: tuple[str, ...]
    target: str
    trial: int
    status: TrialStatus
    criteria: str
    expected: tuple[MessageShown, ...]
    question: str
    turns: tuple[TurnShown, ...]
    run: str
    body_sha256: str
    place: SuitePlace
    notes: tuple[Note, ...]
    notes_trouble: str
    usage: Usage | None
    finish: str
    model: str
    error_code: str
    cached: bool
    at: float
    source: Json
    source_sha256: str
    is_edited: bool = False


class Ends(msgspec.Struct, frozen=True):
    """An interval."""

    low: float
    high: float


class PassShown(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of pass rates; `p` is McNemar's exact test if each case has one trial."""

    difference: float
    low: float | None
    high: float | None
    p: float
    wins: int
    losses: int


class ComparedCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case on both sides. `is_same_request` and `is_same_answer` say whether they agree; null if unknown."""

    case: str
    group: str
    a: float
    b: float
    difference: float
    outcome: Literal["win", "loss", "tie"]
    flip: Literal["", "now_passes", "now_fails"]
    is_same_request: bool | None
    is_same_answer: bool
    exchange_a: str
    exchange_b: str
    graders: tuple[GraderPair, ...]


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison."""

    run: str
    name: str
    target: str
    at: float


class Distributions(msgspec.Struct, frozen=True):
    """The scores of the compared cases on both sides."""

    a: tuple[float, ...]
    b: tuple[float, ...]


class CompareShown(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs compared on their common cases. The first sentence of `said` is the conclusion, or that there is none.
    `difference` is the mean of the paired differences, `b` minus `a`; `p` is that of the permutation test `test`.

    `bounds` are the difference if every missing result had gone against `b`, and in its favour. `smallest` is the true
    difference that these cases would usually show, `needed` how many cases the observed one would take.
    """

    a: ComparedSide
    b: ComparedSide
    level: float
    finding: Finding
    said: tuple[str, ...]
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    stderr: float | None
    low: float | None
    high: float | None
    p: float | None
    test: str
    sign_p: float | None
    bootstrap: Ends | None
    wins: int
    losses: int
    ties: int
    pairs: int
    groups: int
    gain: float | None
    smallest: float | None
    needed: int | None
    bounds: Ends | None
    passing: PassShown | None
    cases: tuple[ComparedCase, ...]
    distributions: Distributions
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    unpaired: tuple[str, ...]
    excluded: tuple[Excluded, ...]


class TrendPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a suite on one target. `change` is the change since the previous run, on their common cases."""

    run: str
    at: float
    target: str
    mean: float | None
    low: float | None
    high: float | None
    pass_rate: float | None
    results: int
    finding: Finding | None
    change: str


class SuiteShown(msgspec.Struct, frozen=True):
    """A suite below the configured folder. If `cases` is null, `problems` keep it from running."""

    file: str
    name: str
    cases: int | None
    problems: tuple[SuiteProblem, ...]


class SuitesShown(msgspec.Struct, frozen=True):
    folder: str
    files: tuple[SuiteShown, ...]


class SuiteOpened(msgspec.Struct, frozen=True):
    """A suite as text, with the hash of its file. `targets` are the names that are defined for it, `usual` those that
    answer if none is picked."""

    file: str
    yaml: str
    sha256: str
    cases: int | None
    problems: tuple[SuiteProblem, ...]
    targets: tuple[str, ...]
    usual: tuple[str, ...]


class SuiteChecked(msgspec.Struct, frozen=True):
    """The result of parsing a text as a suite. `sha256` is the new hash of its file, empty if nothing was written."""

    file: str
    sha256: str
    cases: int | None
    problems: tuple[SuiteProblem, ...]


class MadeShown(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed case. `files` are those that it names, which are written beside the suite on saving; `placeholders`
    are the values of its variables, `left` what was left out. `turns` is the number of turns of the conversation,
    `suites` are the files to which it could be saved."""

    name: str
    yaml: str
    case: JsonObject
    files: tuple[str, ...]
    placeholders: dict[str, str]
    left: tuple[Omission, ...]
    turns: int
    suites: tuple[str, ...]


class ChangeShown(msgspec.Struct, frozen=True):
    """The changed lines of a file before and after the change, with context. `line` is the number of the first."""

    line: int
    before: str
    after: str


class SavedShown(msgspec.Struct, frozen=True):
    """What was or would be written: the file, its new hash, the new or changed cases, and the changed lines of an
    existing file."""

    file: str
    sha256: str
    cases: tuple[str, ...]
    change: ChangeShown | None = None
