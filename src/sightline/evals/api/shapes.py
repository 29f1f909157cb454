"""The answers about suites as values. The page's types are written from these."""

from typing import Literal, TypeAlias

import msgspec

from sightline.chat.service.blocks import Block
from sightline.evals.core.comparison import GraderPair
from sightline.evals.core.delivery.delivery import Note
from sightline.evals.core.making.case_writer import LeftOut
from sightline.evals.core.result import Score, Status, Verdict
from sightline.evals.core.statistics.sentences import Finding
from sightline.evals.core.suite import SuitePlace, SuiteProblem
from sightline.evals.core.tally import Excluded
from sightline.evals.service.past_evals import State
from sightline.model.json import Json, JsonObject
from sightline.model.usage import Usage

TrialStatus: TypeAlias = Status | Literal["running", "waiting"]


class TargetFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What one target came to. What is not known is null, which is not 0; `low` and `high` are the ends of the mean's
    interval, within 0 and 1. `cost_at_least` is what is known of the cost, and `cost_unknown` how many answers and
    judgements it leaves out. `said` is the same in sentences."""

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


class EvalBrief(msgspec.Struct, frozen=True, kw_only=True):
    """A run in one line. `of` is how many results it will have, `done` how many it has."""

    run: str
    name: str
    suite: str
    at: float
    state: State
    targets: tuple[str, ...]
    cases: int
    done: int
    of: int
    summary: tuple[TargetFigures, ...]


class TrialShown(msgspec.Struct, frozen=True, kw_only=True):
    """One try of a case on a target; one that has no result yet waits or is running. `reason` is why it has no answer,
    or no better score, in one line."""

    trial: int
    status: TrialStatus
    verdict: Verdict | None = None
    score: float | None = None
    cached: bool = False
    seconds: float | None = None
    cost: float | None = None
    reason: str = ""


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


class EvalShown(msgspec.Struct, frozen=True, kw_only=True):
    """A run. `version` counts its facts, `why` is how it ended. `is_here`: this server drives it, and can stop it.
    `file_sha256` is the hash that the suite's file had."""

    run: str
    name: str
    suite: str
    at: float
    state: State
    targets: tuple[str, ...]
    cases: int
    done: int
    of: int
    summary: tuple[TargetFigures, ...]
    version: int
    why: str
    is_here: bool
    file_sha256: str
    matrix: tuple[CaseRow, ...]
    graders: tuple[GraderFigures, ...]


class MessageShown(msgspec.Struct, frozen=True):
    """A message, in blocks as the chat has them."""

    role: str
    name: str
    blocks: tuple[Block, ...]


class TurnShown(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a conversation that was held live: what was sent in it, what was said, and what graders say."""

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


class CaseShown(msgspec.Struct, frozen=True, kw_only=True):
    """One try of a case. `notes` are what delivery does to it, told anew; `notes_trouble` is why that cannot be told.
    `is_edited`: a person changed a request of it on its way; `messages` are as they were sent then too.
    `source` is the case as its file has it now, null where it cannot be written back, and `source_sha256` that file's
    hash. `run` is the run with tools that it took, where it took one."""

    case: str
    group: str
    tags: tuple[str, ...]
    target: str
    trial: int
    status: TrialStatus
    verdict: Verdict | None
    score: float | None
    reason: str
    criteria: str
    expected: tuple[MessageShown, ...]
    messages: tuple[MessageShown, ...]
    question: str
    answer: tuple[Block, ...]
    scores: tuple[Score, ...]
    turns: tuple[TurnShown, ...]
    exchanges: tuple[str, ...]
    run: str
    body_sha256: str
    place: SuitePlace
    notes: tuple[Note, ...]
    notes_trouble: str
    usage: Usage | None
    cost: float | None
    seconds: float | None
    finish: str
    model: str
    error: str
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
    """The same for how often cases pass; `p` is McNemar's exact test where each was tried once."""

    difference: float
    low: float | None
    high: float | None
    p: float
    wins: int
    losses: int


class ComparedCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case on both sides. `is_same_request` and `is_same_answer` tell whether they agree; null: nobody knows."""

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
    """One of two runs that are compared."""

    run: str
    name: str
    target: str
    at: float


class Distributions(msgspec.Struct, frozen=True):
    """The scores of the cases that are compared, on both sides."""

    a: tuple[float, ...]
    b: tuple[float, ...]


class CompareShown(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs on the cases that both have. The first sentence of `said` is what may be said of them, or that nothing
    may. `difference` is the mean of the pairs' differences, `b` less `a`, `p` that of the permutation test `test`.

    `bounds` are the difference had everything untold gone against `b`, and had it gone for it. `smallest` is the true
    difference that these cases would often show, `needed` how many cases the one seen would take.
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
    """One run of a suite on one target. `change` says what changed since the run before, on the cases of both."""

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
    """A suite below the configured folder. `problems` keep it from running where `cases` is null."""

    file: str
    name: str
    cases: int | None
    problems: tuple[SuiteProblem, ...]


class SuitesShown(msgspec.Struct, frozen=True):
    """All of them."""

    folder: str
    files: tuple[SuiteShown, ...]


class MadeShown(msgspec.Struct, frozen=True, kw_only=True):
    """A case that is proposed. `files` are those that it names, which are written beside the suite when it is saved;
    `placeholders` are the words that its variables stand for, `left` what is not in it. `turns` is how many turns the
    conversation has, `suites` are the files that it could be saved to."""

    name: str
    yaml: str
    case: JsonObject
    files: tuple[str, ...]
    placeholders: dict[str, str]
    left: tuple[LeftOut, ...]
    turns: int
    suites: tuple[str, ...]


class ChangeShown(msgspec.Struct, frozen=True):
    """The lines of a file that a change is about, before it and behind it, with some around them. `line` is the number
    of the first of them."""

    line: int
    before: str
    after: str


class SavedShown(msgspec.Struct, frozen=True):
    """What was written, or would be: the file, its new hash, the cases that are new or changed, and what is other in
    the file where it was there before."""

    file: str
    sha256: str
    cases: tuple[str, ...]
    change: ChangeShown | None = None
