"""The steps that a grader asks for and their answers, its finding, and the score of a finding after negation, minimum
scores and weight."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseObservation, CaseScore, Check, Score, Verdict
from sightline.evals.core.suite import CaseMessage, GraderSpec
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Image, Text
from sightline.model.reply import Usage
from sightline.model.request import Message

PYTHON = "{python}"
"""As the first argument of a command: the Python interpreter of the process that runs it."""

COMMAND_SECONDS = 60.0


class Judge(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Ask a model to judge. Answered by `Judged`.

    `schema` is the form of the answer, requested from targets that support it. An empty `target` or `model` is the
    default judge.
    """

    system: str
    user: str
    schema: JsonObject
    target: str = ""
    model: str = ""
    temperature: float | None = None
    images: tuple[Image, ...] = ()

    @property
    def messages(self) -> tuple[Message, Message]:
        return (
            Message(role="system", parts=(Text(text=self.system),)),
            Message(role="user", parts=(Text(text=self.user), *self.images)),
        )


class Execute(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Run a command. Answered by `Executed`. An empty `cwd` is the suite's folder.

    `proxy_calls` is how many times the command may call a model through a proxy, None if it may not.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""
    cwd: str = ""
    timeout: float = COMMAND_SECONDS
    proxy_calls: int | None = None


class CallPython(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Call a function of a Python file with one argument. Answered by `Returned`."""

    path: str
    function: str
    payload: JsonObject
    timeout: float = COMMAND_SECONDS


class CallAdded(msgspec.Struct, frozen=True, kw_only=True):
    """Call a grader from outside this package with the case and its timeout in seconds. Answered by `Returned`."""

    call: Callable[[JsonObject, float], Awaitable[Json]]
    payload: JsonObject
    timeout: float = COMMAND_SECONDS


class NeedFile(msgspec.Struct, frozen=True):
    """Read a file of the suite. Answered by `FileContent`."""

    path: str


Step: TypeAlias = Judge | Execute | CallPython | CallAdded | NeedFile


class Judged(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The judge's answer, and what it took; None means unknown. `exchange` is its id on record."""

    text: str
    usage: Usage | None = None
    cost: float | None = None
    exchange: str = ""
    seconds: float | None = None


class Executed(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How the command ended. A command that timed out is answered by `StepFailed` instead.

    `judged` are the answers of models that it called through the proxy.
    """

    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float | None = None
    judged: tuple[Judged, ...] = ()


class Returned(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the function returned. One that raised is answered by `StepFailed` instead."""

    value: Json
    seconds: float | None = None


class FileContent(msgspec.Struct, frozen=True):
    """The bytes of the file; None if it does not exist."""

    data: bytes | None


class StepFailed(msgspec.Struct, frozen=True):
    """The step could not be done. This can answer any step."""

    fault: Fault


Answer: TypeAlias = Judged | Executed | Returned | FileContent | StepFailed


Fit = TypeVar("Fit", Judged, Executed, Returned, FileContent)


class UngradableError(Exception):
    """Raised if a grader cannot go on; its message is the reason why there is no score."""


def ask(step: Step, wanted: type[Fit], failing: str = "") -> Generator[Step, Answer, Fit]:
    """Ask for a step and return its answer. Raises `UngradableError` if the step failed, with the message of the fault
    after `failing`."""
    answer = yield step
    if isinstance(answer, StepFailed):
        raise UngradableError(f"{failing}{answer.fault.message}")
    if isinstance(answer, wanted):
        return answer
    message = f"{type(step).__name__} was answered by {type(answer).__name__}"
    raise Fault(Code.USAGE, message, hint="See the step's own words for its answer.")


def file_text(path: str) -> Generator[Step, Answer, str]:
    """Read the text of a file, with LF line ends. Raises `UngradableError` if it does not exist or is not UTF-8."""
    answer = yield from ask(NeedFile(path), FileContent)
    if answer.data is None:
        raise UngradableError(f"there is no file {path}")
    try:
        return answer.data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UngradableError(f"{path} is not UTF-8 text") from None


DEFAULT_THRESHOLD = 0.8


class Grading(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is known of a case besides the answer: what is expected, and what was asked.

    `messages` is the input as it was delivered and `question` its flat form. `is_turn`: this is one turn of a
    conversation, whose criteria are those of the whole.
    """

    criteria: str = ""
    expected: tuple[CaseMessage, ...] = ()
    expected_value: Json = None
    messages: tuple[Message, ...] = ()
    metadata: JsonObject = {}
    question: str = ""
    threshold: float = DEFAULT_THRESHOLD
    input_files: tuple[str, ...] = ()
    is_turn: bool = False


@dataclass(frozen=True, slots=True)
class GradingSubject:
    observation: CaseObservation
    grading: Grading

    @property
    def text(self) -> str:
        return self.observation.text


_NOT = "not: "
_ROUNDING = 1e-9
_OPPOSITE: dict[Verdict, Verdict] = {"pass": "fail", "fail": "pass", "skip": "skip", "not_graded": "not_graded"}


@dataclass(frozen=True, slots=True)
class GradingCost:
    """What grading took: tokens, cost and exchanges of judges, and the time. None means unknown."""

    usage: Usage | None = None
    cost: float | None = None
    seconds: float | None = None
    exchanges: tuple[str, ...] = ()


UNSPENT = GradingCost()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderFinding:
    """A score from 0 to 1, or None with the `reason` why there is none.

    `passed` is the grader's own verdict, None if the score decides.
    """

    score: float | None = None
    checks: tuple[Check, ...] = ()
    reason: str = ""
    passed: bool | None = None
    scores: tuple[Score, ...] = ()
    details: JsonObject = field(default_factory=dict)
    spent: GradingCost = UNSPENT


Asking: TypeAlias = Generator[Step, Answer, GraderFinding]
Run: TypeAlias = Callable[[GradingSubject], Asking]
"""A grader whose configuration has been read."""


def total_spent(*answers: Judged) -> GradingCost:
    """The total of several judges' answers; a value that is unknown for one answer is unknown for the total."""
    return GradingCost(
        usage=sum_usage([answer.usage for answer in answers]),
        cost=sum_if_known([answer.cost for answer in answers]),
        seconds=sum_if_known([answer.seconds for answer in answers]),
        exchanges=tuple(answer.exchange for answer in answers if answer.exchange),
    )


def sum_if_known(numbers: list[float | None]) -> float | None:
    """The sum, None if one of the numbers is unknown."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) else None


def sum_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """The sums of input and output tokens, each None if one value is unknown; None if both are."""
    known = [usage or Usage() for usage in usages]
    given, got = (sum_if_known([getattr(usage, name) for usage in known]) for name in ("input_tokens", "output_tokens"))
    if given is None and got is None:
        return None
    return Usage(input_tokens=None if given is None else int(given), output_tokens=None if got is None else int(got))


def at_once(look: Callable[[GradingSubject], GraderFinding]) -> Run:
    """A grader that asks for nothing."""

    def run(subject: GradingSubject) -> Asking:
        yield from ()
        return look(subject)

    return run


def or_reason(asking: Asking) -> Asking:
    """The finding of a grader. If it cannot go on, a finding without a score and with the reason."""
    try:
        return (yield from asking)
    except UngradableError as error:
        return GraderFinding(reason=str(error))


def finding_without_score(reason: str, spent: GradingCost = UNSPENT) -> GraderFinding:
    return GraderFinding(reason=reason, spent=spent)


def of_one(text: str, *, held: bool, evidence: str = "") -> GraderFinding:
    """A finding of 0 or 1, by one check."""
    return GraderFinding(score=float(held), checks=(Check(text, held, evidence),))


def share(checks: Sequence[Check]) -> float:
    """The share of the checks that passed; there must be at least one."""
    return sum(check.passed for check in checks) / len(checks)


def reaches(score: float, floor: float) -> bool:
    """Whether a score is at least a minimum, ignoring rounding errors of sums of fractions."""
    return score >= floor - _ROUNDING


def floor_of(spec: GraderSpec, threshold: float) -> float | None:
    """The minimum score that the case requires of this grader, None if it is not required."""
    if spec.required is None or spec.required is False:
        return None
    if spec.min_score is not None:
        return spec.min_score
    return threshold if spec.required is True else spec.required


def score_of(spec: GraderSpec, finding: GraderFinding, threshold: float) -> Score:
    """The score of a finding. Negation inverts the finding first, and the minimum score applies to the result."""
    floor = floor_of(spec, threshold)
    own = spec.min_score if spec.min_score is not None else floor
    score = Score(
        name=spec.name or spec.type,
        type=spec.type,
        verdict=_verdict(finding, threshold if own is None or spec.negate else own),
        score=finding.score,
        weight=spec.weight,
        required=floor,
        checks=finding.checks,
        reason=finding.reason,
        scores=finding.scores,
        usage=finding.spent.usage,
        cost=finding.spent.cost,
        seconds=finding.spent.seconds,
        exchanges=finding.spent.exchanges,
        details=finding.details,
    )
    if not spec.negate:
        return score
    score = negate(score)
    if own is not None and score.score is not None and not reaches(score.score, own):
        return msgspec.structs.replace(score, verdict="fail")
    return score


def is_sunk(score: Score) -> bool:
    """Whether a score is required and not reached."""
    return score.required is not None and score.score is not None and not reaches(score.score, score.required)


def is_missing(score: Score, weight: float) -> bool:
    """Whether there can be no verdict without this score: it has weight or is required, and could not be given."""
    return score.verdict == "not_graded" and (weight > 0 or score.required is not None)


def reasons(scores: Sequence[Score]) -> str:
    return "; ".join(f"{score.name}: {score.reason}" for score in scores)


def negate(score: Score) -> Score:
    """The opposite score: a pass becomes a fail, and not graded stays not graded. Negating twice restores it."""
    return msgspec.structs.replace(
        score,
        verdict=_OPPOSITE[score.verdict],
        score=None if score.score is None else 1.0 - score.score,
        checks=tuple(Check(_opposite(check.text), not check.passed, check.evidence) for check in score.checks),
    )


def _opposite(text: str) -> str:
    return text.removeprefix(_NOT) if text.startswith(_NOT) else f"{_NOT}{text}"


def _verdict(finding: GraderFinding, floor: float) -> Verdict:
    if finding.score is None:
        return "not_graded"
    passed = reaches(finding.score, floor) if finding.passed is None else finding.passed
    return "pass" if passed else "fail"


def weighted_mean(weighed: Iterable[tuple[float, float]]) -> float | None:
    """The weighted mean of (score, weight) pairs, within 0 and 1; None if the weights are all 0."""
    pairs = list(weighed)
    total = sum(weight for _, weight in pairs)
    return min(max(sum(score * weight for score, weight in pairs) / total, 0.0), 1.0) if total else None


def combine_scores(scores: Sequence[Score], threshold: float) -> CaseScore:
    """The weighted mean of the scores, compared with the threshold.

    If a grader could not run, the case is not graded, whatever the others found, unless that grader has no weight and
    is not required: then it is left out, and the reason says so. A required score that is not reached fails the case
    with 0.
    """
    all_scores = tuple(scores)
    graded = [score for score in scores if score.verdict in ("pass", "fail")]
    sunk = [score.name for score in graded if is_sunk(score)]
    unreached = f"required and not reached: {', '.join(sunk)}" if sunk else ""
    missing = [score for score in scores if is_missing(score, score.weight)]
    if missing:
        why = "; ".join(filter(None, (reasons(missing), unreached)))
        return CaseScore(verdict="not_graded", scores=all_scores, reason=why)
    if sunk:
        return CaseScore(verdict="fail", score=0.0, scores=all_scores, reason=unreached)
    silent = [score for score in scores if score.verdict == "not_graded"]
    left_out = f"left out: {reasons(silent)}" if silent else ""
    mean = weighted_mean((score.score or 0.0, score.weight) for score in graded)
    if mean is None:
        why = "no grader has any weight" if all_scores else "there is nothing to grade it by"
        return CaseScore(verdict="skip", scores=all_scores, reason="; ".join(filter(None, (why, left_out))))
    return CaseScore(
        verdict="pass" if reaches(mean, threshold) else "fail", score=mean, scores=all_scores, reason=left_out
    )
