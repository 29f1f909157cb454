"""What a grader says of an observation."""

from typing import Literal, TypeAlias

import msgspec

from sightline.model.json import JsonObject
from sightline.model.usage import Usage

Verdict: TypeAlias = Literal["pass", "fail", "skip", "not_graded"]
"""`skip`: it had nothing to say here. `not_graded`: it should have had, and could not; that is neither 0 nor a pass."""


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at, whether it held, and what was seen."""

    text: str
    passed: bool
    evidence: str = ""


class Score(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A grader's word. `score` is from 0 to 1, None where there is none; `scores` are those of the graders inside."""

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
    """What all graders together say. `score` is the weighted mean of those that graded; `turns` are the turns' own."""

    verdict: Verdict
    score: float | None = None
    scores: tuple[Score, ...] = ()
    turns: tuple["CaseScore", ...] = ()
    reason: str = ""
