"""The result of one trial: what the target did, the scores of its graders, and the row that is stored."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Document, Image, Inline, Link, Part, ToolResult
from sightline.model.reply import Usage
from sightline.model.request import Message


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One tool call. `arguments` is the decoded JSON of the model's string, or the string itself if it is not JSON."""

    name: str
    arguments: Json = None
    result: str = ""
    is_error: bool = False
    id: str = ""
    seconds: float | None = None


class CaseObservation(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One answer, or one conversation. `asked` is the conversation as it was sent, `messages` what the target replied
    (with tool rounds), `text` its final text. None means unknown, which is not 0.

    `is_traced` is False for a program that reports only its final text: the tools and models that it called are
    unknown. `exchanges` are the ids of its exchanges on record; `error` is why there is no answer, with its fault code.
    """

    asked: tuple[Message, ...] = ()
    messages: tuple[Message, ...] = ()
    text: str = ""
    tools: tuple[ToolUse, ...] = ()
    finish: str = ""
    usage: Usage | None = None
    cost: float | None = None
    seconds: float | None = None
    requests: int = 1
    is_traced: bool = True
    model: str = ""
    exchanges: tuple[str, ...] = ()
    run: str = ""
    request_sha256: str = ""
    question: str = ""
    error: str = ""
    error_code: str = ""
    extras: JsonObject = {}


Verdict: TypeAlias = Literal["pass", "fail", "skip", "not_graded"]
"""`skip`: the grader does not apply. `not_graded`: it applies, but could not grade; that is neither 0 nor a pass."""


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """One condition that was checked, whether it held, and the evidence."""

    text: str
    passed: bool
    evidence: str = ""


class Score(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A grader's result. `score` is from 0 to 1, or None if there is none; `scores` are those of the graders inside."""

    name: str
    type: str
    verdict: Verdict
    score: float | None = None
    weight: float = 1.0
    required: float | None = None
    checks: tuple[Check, ...] = ()
    reason: str = ""
    scores: tuple["Score", ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    seconds: float | None = None
    exchanges: tuple[str, ...] = ()
    details: JsonObject = {}


class CaseScore(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The combined result of all graders. `score` is the weighted mean of those that graded; `turns` are per turn."""

    verdict: Verdict
    score: float | None = None
    scores: tuple[Score, ...] = ()
    turns: tuple["CaseScore", ...] = ()
    reason: str = ""


Status: TypeAlias = Literal["ok", "quality_failure", "not_graded", "execution_error", "skipped"]
"""`not_graded`: there is an answer, but a grader that counts could not grade it."""


class CaseResult(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`trial` counts from 0. `cached`: the answer is that of an earlier request with the same hash. `turns` are the
    observations of a live conversation, turn by turn."""

    case: str
    target: str
    trial: int = 0
    suite: str = ""
    group: str = ""
    tags: tuple[str, ...] = ()
    status: Status
    score: CaseScore
    observation: CaseObservation
    turns: tuple[CaseObservation, ...] = ()
    cached: bool = False
    at: float = 0.0
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells the results of one run apart."""
        return (self.case, self.target, self.trial)

    @property
    def suite_case(self) -> tuple[str, str]:
        """What tells the cases of several suites apart, which may have the same names."""
        return (self.suite, self.case)


def latest_of(results: Iterable[CaseResult]) -> list[CaseResult]:
    """The last result of each trial, of any number of suites: the others were run again."""
    return list({(*result.suite_case, result.target, result.trial): result for result in results}.values())


def complaints_of(result: CaseResult) -> Iterator[str]:
    """The failed checks of the graders, turn by turn, one line each."""
    for score in result.score.scores:
        yield from _complaints(score)
    for number, turn in enumerate(result.score.turns, 1):
        for score in turn.scores:
            yield from (f"turn {number}: {line}" for line in _complaints(score))


def _complaints(score: Score) -> Iterator[str]:
    if score.verdict in ("pass", "skip"):
        return
    failed = [
        f"not met: {each.text}{f' ({each.evidence})' if each.evidence else ''}"
        for each in score.checks
        if not each.passed
    ]
    yield from (f"{score.name} ({score.type}): {each}" for each in failed or [score.reason or score.verdict])
    for inner in score.scores:
        yield from _complaints(inner)


LONGEST_INLINE = 4096
"""The longest base64 data, in characters, that is stored unchanged."""

SCHEME = "sha256:"


def media_url(coded: str) -> str:
    """What stands for large media: the hash of their base64 text, which is exactly what was sent."""
    return SCHEME + hashlib.sha256(coded.encode("ascii", "replace")).hexdigest()


def replace_media(result: CaseResult) -> CaseResult:
    """The result, with large media replaced by the hash of their bytes."""
    return msgspec.structs.replace(
        result, observation=_observation(result.observation), turns=tuple(_observation(turn) for turn in result.turns)
    )


def _observation(observation: CaseObservation) -> CaseObservation:
    return msgspec.structs.replace(
        observation,
        asked=tuple(map(_message, observation.asked)),
        messages=tuple(map(_message, observation.messages)),
    )


def _message(message: Message) -> Message:
    return msgspec.structs.replace(message, parts=tuple(map(_part, message.parts)))


def _part(part: Part) -> Part:
    match part:
        case Image(source=Inline() as source) | Document(source=Inline() as source) | Audio(source=Inline() as source):
            if len(source.data) <= LONGEST_INLINE:
                return part
            return msgspec.structs.replace(part, source=Link(media_url(source.data), source.media_type))
        case ToolResult(parts=inner):
            return msgspec.structs.replace(part, parts=tuple(map(_part, inner)))
        case _:
            return part
