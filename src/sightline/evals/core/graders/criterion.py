"""The criteria of a rubric: what has to hold, how much it weighs, and how it is scored."""

from collections.abc import Sequence
from dataclasses import dataclass

from sightline.evals.core.graders.fields import Fields, describe_value
from sightline.model.json import Json, JsonObject

OPERATORS = {
    "correctness": "correctness: it holds only if the answer positively says or does it; leaving it out is not enough.",
    "contradiction": "contradiction: it holds unless the answer says something that cannot be true together with it; "
    "leaving it out is fine.",
}
MOST_POINTS = 10


@dataclass(frozen=True, slots=True)
class Range:
    """What the answer is like if it gets from `low` to `high` points."""

    low: int
    high: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion. `floor` is the score from 0 to 1 below which the whole grader fails, None where there is none."""

    id: str
    outcome: str = ""
    operator: str = ""
    weight: float = 1.0
    floor: float | None = None
    ranges: tuple[Range, ...] = ()

    @property
    def to_json(self) -> JsonObject:
        """It, for a prompt that wants it as JSON."""
        ranges: list[Json] = [{"score_range": [each.low, each.high], "outcome": each.outcome} for each in self.ranges]
        fields: JsonObject = {"id": self.id, "outcome": self.outcome, "weight": self.weight}
        if self.operator:
            fields["operator"] = self.operator
        return {**fields, **({"score_ranges": ranges} if ranges else {})}


def read_criteria(fields: Fields, name: str) -> tuple[Criterion, ...]:
    """The criteria under this name. A text is one that must hold."""
    values = fields.items(name)
    found = [_criterion(fields, value, f"{name}[{index}]", index) for index, value in enumerate(values)]
    ids = [each.id for each in found]
    for index, each in enumerate(ids):
        if each in ids[:index]:
            fields.tell(f"{name}[{index}].id", f"there are two criteria {each!r}", "Give each an id of its own.")
    if found and not sum(each.weight for each in found):
        fields.tell(name, "no criterion has any weight", "Give at least one a weight above 0.")
    return tuple(found)


def _criterion(fields: Fields, value: Json, path: str, index: int) -> Criterion:
    number = f"rubric-{index + 1}"
    if isinstance(value, str) and value.strip():
        return Criterion(number, value.strip(), floor=1.0)
    if not isinstance(value, dict):
        fields.tell(path, f"a criterion is expected, not {describe_value(value)}", "Write a sentence, or {outcome: …}.")
        return Criterion(number)
    inner = fields.inner(value, path)
    ranges = _ranges(inner)
    outcome = inner.text("outcome", "criteria", needed=not ranges, why="Say what has to hold.")
    weight = inner.number("weight")
    criterion = Criterion(
        id=inner.text("id") or number,
        outcome=outcome,
        operator=inner.word("operator", words=OPERATORS, otherwise="none").replace("none", ""),
        weight=1.0 if weight is None else weight,
        floor=_floor(inner, is_scored=bool(ranges)),
        ranges=ranges,
    )
    inner.close()
    return criterion


def _floor(fields: Fields, *, is_scored: bool) -> float | None:
    """A criterion that is met or not has to be met, unless it says otherwise; one with points has to say so."""
    least = fields.number("min_score", most=1.0)
    points = fields.number("required_min_score", most=MOST_POINTS)
    required = fields.flag("required", otherwise=not is_scored)
    if least is not None:
        return least
    if points is not None:
        return points / MOST_POINTS
    return 1.0 if required else None


def _ranges(fields: Fields) -> tuple[Range, ...]:
    value = fields.raw("score_ranges")
    if isinstance(value, dict):
        return _from_bounds(fields, value)
    found = []
    for index, each in enumerate(fields.items("score_ranges")):
        match each:
            case {"score_range": [int(low), int(high)], "outcome": str(outcome)} if (
                0 <= low <= high <= MOST_POINTS and outcome.strip()
            ):
                found.append(Range(low, high, outcome))
            case _:
                fields.tell(
                    f"score_ranges[{index}]", "this is no range of points", "Write {score_range: [0, 3], outcome: …}."
                )
    _check_apart(fields, found)
    return tuple(found)


def _from_bounds(fields: Fields, value: JsonObject) -> tuple[Range, ...]:
    """The short form: what the answer is like from so many points on."""
    bounds = sorted(int(key) for key in value if key.isdecimal() and int(key) <= MOST_POINTS)
    texts = [text for text in value.values() if isinstance(text, str) and text.strip()]
    if len(bounds) != len(value) or len(texts) != len(value) or bounds[:1] != [0]:
        fields.tell("score_ranges", "these are no points from 0 to 10 with words", "Write {0: bad, 5: fair, 9: good}.")
        return ()
    ends = [*(bound - 1 for bound in bounds[1:]), MOST_POINTS]
    return tuple(Range(low, high, str(value[str(low)])) for low, high in zip(bounds, ends, strict=True))


def _check_apart(fields: Fields, ranges: Sequence[Range]) -> None:
    points = [point for each in ranges for point in range(each.low, each.high + 1)]
    if len(points) != len(set(points)):
        fields.tell("score_ranges", "two ranges have points in common", "Let each begin where another has ended.")
