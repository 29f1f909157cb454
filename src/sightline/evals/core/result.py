"""One case on one target, once: the row of which runs, reports and statistics are made."""

from typing import Literal, TypeAlias

import msgspec

from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.score import CaseScore

Status: TypeAlias = Literal["ok", "quality_failure", "not_graded", "execution_error", "skipped"]
"""`not_graded`: there is an answer, and a grader that counts could not say anything about it."""


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
        """What makes it one of a kind in its run."""
        return (self.case, self.target, self.trial)
