"""A judge's answer, read strictly: exactly one JSON object with all that was asked for, or it is not understood."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sightline.errors import Fault
from sightline.evals.core.graders.criterion import MOST_POINTS, Criterion
from sightline.evals.core.graders.fields import describe_value
from sightline.evals.core.graders.finding import GraderFinding, reaches
from sightline.evals.core.graders.protocol import checks_of
from sightline.evals.core.score import Check
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import decode

PASSING_POINTS = 7
_FENCED = re.compile(r"```[A-Za-z]*[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Misread:
    """Why an answer is not understood."""

    why: str


def read_free(text: str) -> GraderFinding | Misread:
    """A score from 0 to 1 with what was looked at."""
    value = _object(text)
    if isinstance(value, Misread):
        return value
    score = value.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        return Misread(f'"score" must be a number from 0 to 1, not {describe_value(score)}')
    checks = checks_of(value.get("assertions", []))
    if checks is None:
        return Misread('"assertions" must be a list of {"text", "passed", "evidence"}')
    return GraderFinding(score=float(score), checks=checks, reason=_reason(value))


def read_checklist(text: str, criteria: Sequence[Criterion]) -> GraderFinding | Misread:
    """Which criteria are met: the score is their part by weight, and one that must be met decides the verdict."""
    value, found = _answers(text, criteria)
    if isinstance(found, Misread):
        return found
    scores, checks = [], []
    for criterion, answer in zip(criteria, found, strict=True):
        met = answer.get("satisfied")
        if not isinstance(met, bool):
            return Misread(f'"satisfied" of {criterion.id!r} must be true or false, not {describe_value(met)}')
        scores.append(float(met))
        checks.append(Check(f"[{criterion.id}] {criterion.outcome}", met, _reason(answer)))
    return _weigh_criteria(criteria, scores, checks, _reason(value), {})


def read_points(text: str, criteria: Sequence[Criterion]) -> GraderFinding | Misread:
    """How many points each criterion gets: the score is their part by weight."""
    value, found = _answers(text, criteria)
    if isinstance(found, Misread):
        return found
    scores, checks = [], []
    points: JsonObject = {}
    for criterion, answer in zip(criteria, found, strict=True):
        raw = _points(answer.get("score"))
        within = next((each for each in criterion.ranges if raw is not None and each.low <= raw <= each.high), None)
        if raw is None or (criterion.ranges and within is None):
            return Misread(
                f'"score" of {criterion.id!r} must be one of its points, not {describe_value(answer.get("score"))}'
            )
        score = raw / MOST_POINTS
        scores.append(score)
        points[criterion.id] = raw
        is_met = raw >= PASSING_POINTS and (criterion.floor is None or reaches(score, criterion.floor))
        told = f" ({within.outcome})" if within else ""
        text = f"[{criterion.id}] {criterion.outcome or criterion.id}: {raw}/{MOST_POINTS}{told}"
        checks.append(Check(text, is_met, _reason(answer)))
    return _weigh_criteria(criteria, scores, checks, _reason(value), {"raw_scores": points})


def _weigh_criteria(
    criteria: Sequence[Criterion], scores: list[float], checks: list[Check], reason: str, details: JsonObject
) -> GraderFinding:
    total = sum(criterion.weight for criterion in criteria)
    score = sum(each * criterion.weight for each, criterion in zip(scores, criteria, strict=True)) / total
    sunk = any(
        criterion.floor is not None and not reaches(each, criterion.floor)
        for each, criterion in zip(scores, criteria, strict=True)
    )
    return GraderFinding(
        score=min(max(score, 0.0), 1.0),
        checks=tuple(checks),
        reason=reason,
        passed=False if sunk else None,
        details=details,
    )


def _answers(text: str, criteria: Sequence[Criterion]) -> tuple[JsonObject, list[JsonObject] | Misread]:
    """What is said of each criterion, in their order: of all of them, once, and of nothing else."""
    value = _object(text)
    if isinstance(value, Misread):
        return {}, value
    answers = value.get("checks")
    if not isinstance(answers, list):
        return value, Misread('"checks" must be a list')
    by_id: dict[str, JsonObject] = {}
    known = [criterion.id for criterion in criteria]
    for each in answers:
        name = each.get("id") if isinstance(each, dict) else None
        if not isinstance(each, dict) or not isinstance(name, str):
            return value, Misread('each of "checks" must be an object with an "id"')
        if name in by_id or name not in known:
            return value, Misread(f'"checks" has {name!r} {"twice" if name in known else "which was not asked for"}')
        by_id[name] = each
    missing = [each for each in known if each not in by_id]
    if missing:
        return value, Misread(f'"checks" has nothing on {", ".join(missing)}')
    return value, [by_id[each] for each in known]


def _points(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == int(value) and 0 <= value <= MOST_POINTS else None


def _reason(value: JsonObject) -> str:
    names = ("overall_reasoning", "reasoning", "evidence")
    return next((text for name in names if isinstance(text := value.get(name), str)), "")


def _object(text: str) -> JsonObject | Misread:
    bare = text.strip().removeprefix("\ufeff")
    if fenced := _FENCED.fullmatch(bare):
        bare = fenced[1]
    try:
        value = decode(bare)
        if not isinstance(value, dict):
            return Misread(f"one JSON object is expected, not {describe_value(value)}")
        json.loads(bare, object_pairs_hook=_once)
    except Fault as fault:
        return Misread(fault.message)
    except _Twice as twice:
        return Misread(f"the key {twice} stands in it twice")
    return value


class _Twice(Exception):
    """A key that an object has twice, so that it says two things."""


def _once(pairs: list[tuple[str, Json]]) -> JsonObject:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(repr(next(key for key in keys if keys.count(key) > 1)))
    return value
