"""The criteria of a rubric, and the answer of a judge, which is read strictly: it must contain everything asked for."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from sightline.catalog.reading import key
from sightline.errors import Fault
from sightline.evals.core.graders.command import checks_of, first_text
from sightline.evals.core.graders.expectation import describe_json
from sightline.evals.core.graders.finding import GraderFinding, reaches, weighted_mean
from sightline.evals.core.graders.grader import GraderReader
from sightline.evals.core.reading.document import Amount, Share, Text
from sightline.evals.core.result import Check
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import decode

OPERATORS = {
    "correctness": "correctness: it holds only if the answer positively says or does it; leaving it out is not enough.",
    "contradiction": "contradiction: it holds unless the answer says something that cannot be true together with it; "
    "leaving it out is fine.",
}
MOST_POINTS = 10
Points: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_POINTS)]
_POINTS = frozenset(map(str, range(MOST_POINTS + 1)))


class PointRange(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of a range of points: `{score_range: [0, 3], outcome: bad}`."""

    score_range: Annotated[
        tuple[Points, ...],
        Meta(min_length=2, max_length=2, description="two whole numbers from 0 to 10, such as [0, 3]"),
    ]
    outcome: Text

    @property
    def points(self) -> range:
        return range(self.score_range[0], self.score_range[1] + 1)


class CriterionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One criterion as written in a suite. `score_ranges` may also map the lowest points of each range to its meaning:
    `{0: bad, 5: fair, 9: good}`."""

    id: Text = ""
    outcome: Annotated[Text, key(aliases=("criteria",))] = ""
    operator: Literal["correctness", "contradiction"] | None = None
    weight: Amount = 1.0
    min_score: Share | None = None
    required_min_score: Annotated[float, Meta(ge=0, le=MOST_POINTS)] | None = None
    required: bool | None = None
    score_ranges: tuple[PointRange, ...] | dict[str, Text] = ()


CriteriaConfig: TypeAlias = tuple[
    Annotated[Text | CriterionConfig, key(hint="Write a sentence, or {outcome: …}.")], ...
]
"""Criteria; a plain sentence is a criterion that must hold."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion. `floor` is the score from 0 to 1 below which the whole grader fails, None if there is none."""

    id: str
    outcome: str = ""
    operator: str = ""
    weight: float = 1.0
    floor: float | None = None
    ranges: tuple[PointRange, ...] = ()

    @property
    def to_json(self) -> JsonObject:
        ranges: list[Json] = [{"score_range": list(each.score_range), "outcome": each.outcome} for each in self.ranges]
        fields: JsonObject = {"id": self.id, "outcome": self.outcome, "weight": self.weight}
        if self.operator:
            fields["operator"] = self.operator
        return {**fields, **({"score_ranges": ranges} if ranges else {})}


def criteria_of(config: Sequence[str | CriterionConfig], name: str, reader: GraderReader) -> tuple[Criterion, ...]:
    """The criteria under this key. Empty if the reader has found errors."""
    if not reader.is_sound:
        return ()
    found = [_criterion(each, index, f"{name}[{index}]", reader) for index, each in enumerate(config)]
    ids = [each.id for each in found]
    for index, each in enumerate(ids):
        if each in ids[:index]:
            reader.tell(f"{name}[{index}].id", f"there are two criteria {each!r}", "Give each an id of its own.")
    if found and not sum(each.weight for each in found):
        reader.tell(name, "no criterion has any weight", "Give at least one a weight above 0.")
    return tuple(found)


def _criterion(config: str | CriterionConfig, index: int, path: str, reader: GraderReader) -> Criterion:
    number = f"rubric-{index + 1}"
    if isinstance(config, str):
        return Criterion(number, config.strip(), floor=1.0)
    ranges = _ranges(config, f"{path}.score_ranges", reader)
    if not config.outcome and not config.score_ranges:
        reader.tell(path, 'the criterion lacks the key "outcome"', "Say what has to hold.")
    return Criterion(
        id=config.id or number,
        outcome=config.outcome,
        operator=config.operator or "",
        weight=config.weight,
        floor=_floor(config, is_scored=bool(ranges)),
        ranges=ranges,
    )


def _floor(config: CriterionConfig, *, is_scored: bool) -> float | None:
    """The minimum score of a criterion. One without points is required by default; one with points is not."""
    if config.min_score is not None:
        return config.min_score
    if config.required_min_score is not None:
        return config.required_min_score / MOST_POINTS
    required = not is_scored if config.required is None else config.required
    return 1.0 if required else None


def _ranges(config: CriterionConfig, path: str, reader: GraderReader) -> tuple[PointRange, ...]:
    if isinstance(config.score_ranges, dict):
        return _from_bounds(config.score_ranges, path, reader)
    for index, each in enumerate(config.score_ranges):
        if not each.points:
            reader.tell(f"{path}[{index}]", "this is no range of points", "Write {score_range: [0, 3], outcome: …}.")
    points = [point for each in config.score_ranges for point in each.points]
    if len(points) != len(set(points)):
        reader.tell(path, "two ranges have points in common", "Let each begin where another has ended.")
    return config.score_ranges


def _from_bounds(words: dict[str, str], path: str, reader: GraderReader) -> tuple[PointRange, ...]:
    """The ranges of the short form, which gives the lowest points of each range."""
    bounds = sorted(int(point) for point in words if point in _POINTS)
    if len(bounds) != len(words) or bounds[:1] != [0]:
        reader.tell(path, "these are no points from 0 to 10 with words", "Write {0: bad, 5: fair, 9: good}.")
        return ()
    ends = [*(bound - 1 for bound in bounds[1:]), MOST_POINTS]
    return tuple(
        PointRange(score_range=(low, high), outcome=words[str(low)]) for low, high in zip(bounds, ends, strict=True)
    )


def _object_schema(**fields: Json) -> JsonObject:
    """The schema of an object with these fields and no others."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


_TEXT: JsonObject = {"type": "string"}
_TRUTH: JsonObject = {"type": "boolean"}

FREE: JsonObject = _object_schema(
    reasoning=_TEXT,
    assertions={"type": "array", "items": _object_schema(text=_TEXT, passed=_TRUTH, evidence=_TEXT)},
    score={"type": "number", "description": "from 0 to 1"},
)
"""A score with the checks. The reasoning comes first, so that the score follows from it."""


def checklist_schema(criteria: Sequence[Criterion]) -> JsonObject:
    """The schema of an answer that says whether each criterion holds."""
    return _checks(_object_schema(id=_id(criteria), reasoning=_TEXT, satisfied=_TRUTH))


def points_schema(criteria: Sequence[Criterion]) -> JsonObject:
    """The schema of an answer that gives each criterion points."""
    points: JsonObject = {"type": "integer", "description": f"from 0 to {MOST_POINTS}"}
    return _checks(_object_schema(id=_id(criteria), reasoning=_TEXT, score=points))


def _checks(item: JsonObject) -> JsonObject:
    return _object_schema(checks={"type": "array", "items": item}, overall_reasoning=_TEXT)


def _id(criteria: Sequence[Criterion]) -> JsonObject:
    return {"type": "string", "enum": [criterion.id for criterion in criteria]}


PASSING_POINTS = 7
_FENCED = re.compile(r"```[A-Za-z]*[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)


class MisreadError(Exception):
    """Raised if the answer of a judge is not understood; its message says why."""


def read_free(text: str) -> GraderFinding:
    """Read a score from 0 to 1 with its checks. Raises `MisreadError`."""
    value = _object(text)
    score = value.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise MisreadError(f'"score" must be a number from 0 to 1, not {describe_json(score)}')
    checks = checks_of(value.get("assertions", []))
    if checks is None:
        raise MisreadError('"assertions" must be a list of {"text", "passed", "evidence"}')
    return GraderFinding(score=float(score), checks=checks, reason=_reason(value))


def read_checklist(text: str, criteria: Sequence[Criterion]) -> GraderFinding:
    """Read which criteria are met. The score is their share by weight, and a required criterion decides the verdict.
    Raises `MisreadError`."""
    value, found = _answers(text, criteria)
    scores, checks = [], []
    for criterion, answer in zip(criteria, found, strict=True):
        met = answer.get("satisfied")
        if not isinstance(met, bool):
            raise MisreadError(f'"satisfied" of {criterion.id!r} must be true or false, not {describe_json(met)}')
        scores.append(float(met))
        checks.append(Check(f"[{criterion.id}] {criterion.outcome}", met, _reason(answer)))
    return _weigh_criteria(criteria, scores, checks, _reason(value), {})


def read_points(text: str, criteria: Sequence[Criterion]) -> GraderFinding:
    """Read the points of each criterion. The score is their share by weight. Raises `MisreadError`."""
    value, found = _answers(text, criteria)
    scores, checks = [], []
    points: JsonObject = {}
    for criterion, answer in zip(criteria, found, strict=True):
        raw = _points(answer.get("score"))
        within = next((each for each in criterion.ranges if raw in each.points), None)
        if raw is None or (criterion.ranges and within is None):
            raise MisreadError(
                f'"score" of {criterion.id!r} must be one of its points, not {describe_json(answer.get("score"))}'
            )
        score = raw / MOST_POINTS
        scores.append(score)
        points[criterion.id] = raw
        is_met = raw >= PASSING_POINTS and (criterion.floor is None or reaches(score, criterion.floor))
        outcome = f" ({within.outcome})" if within else ""
        text = f"[{criterion.id}] {criterion.outcome or criterion.id}: {raw}/{MOST_POINTS}{outcome}"
        checks.append(Check(text, is_met, _reason(answer)))
    return _weigh_criteria(criteria, scores, checks, _reason(value), {"raw_scores": points})


def _weigh_criteria(
    criteria: Sequence[Criterion], scores: list[float], checks: list[Check], reason: str, details: JsonObject
) -> GraderFinding:
    sunk = any(
        criterion.floor is not None and not reaches(each, criterion.floor)
        for each, criterion in zip(scores, criteria, strict=True)
    )
    return GraderFinding(
        score=weighted_mean(zip(scores, (criterion.weight for criterion in criteria), strict=True)),
        checks=tuple(checks),
        reason=reason,
        passed=False if sunk else None,
        details=details,
    )


def _answers(text: str, criteria: Sequence[Criterion]) -> tuple[JsonObject, list[JsonObject]]:
    """The whole answer, and the entry of each criterion in their order. Raises `MisreadError` unless there is exactly
    one entry for each criterion, and no other."""
    value = _object(text)
    answers = value.get("checks")
    if not isinstance(answers, list):
        raise MisreadError('"checks" must be a list')
    by_id: dict[str, JsonObject] = {}
    known = [criterion.id for criterion in criteria]
    for each in answers:
        name = each.get("id") if isinstance(each, dict) else None
        if not isinstance(each, dict) or not isinstance(name, str):
            raise MisreadError('each of "checks" must be an object with an "id"')
        if name in by_id or name not in known:
            raise MisreadError(f'"checks" has {name!r} {"twice" if name in known else "which was not asked for"}')
        by_id[name] = each
    missing = [each for each in known if each not in by_id]
    if missing:
        raise MisreadError(f'"checks" has nothing on {", ".join(missing)}')
    return value, [by_id[each] for each in known]


def _points(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == int(value) and 0 <= value <= MOST_POINTS else None


def _reason(value: JsonObject) -> str:
    return first_text(value, "overall_reasoning", "reasoning", "evidence")


def _object(text: str) -> JsonObject:
    bare = text.strip().removeprefix("\ufeff")
    if fenced := _FENCED.fullmatch(bare):
        bare = fenced[1]
    try:
        value = decode(bare)
        if not isinstance(value, dict):
            raise MisreadError(f"one JSON object is expected, not {describe_json(value)}")
        json.loads(bare, object_pairs_hook=_reject_duplicate_keys)
    except Fault as fault:
        raise MisreadError(fault.message) from None
    return value


def _reject_duplicate_keys(pairs: list[tuple[str, Json]]) -> JsonObject:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise MisreadError(f"the key {twice!r} is in it twice")  # such an object contradicts itself
    return value
