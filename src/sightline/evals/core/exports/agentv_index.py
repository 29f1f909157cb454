"""Results as the rows of AgentV's `index.jsonl`, for its compare, trend, report and summary commands.

AgentV has a number for every score and no word for an answer that could not be graded: such a row, like one without an
answer, has the score 0 and the status `execution_error`, as AgentV's own rows have. Its runs leave that status out of
their means; `agentv results summary` counts the 0. What was not measured is left out, and so are `projection_identity`
and all paths, for there is no folder of artifacts beside the file.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from sightline.evals.core.graders.finding import is_missing
from sightline.evals.core.result import CaseResult, CaseScore, Score, Verdict
from sightline.evals.core.tally import score_or_reason
from sightline.model.json import Json, JsonObject
from sightline.model.usage import Usage
from sightline.wire import jsontext

_MILLISECONDS = 1000


def to_index(results: Iterable[CaseResult], *, experiment: str = "", category: str = "") -> bytes:
    """One row for each result."""
    return b"".join(jsontext.encode(row_of(each, experiment, category)) + b"\n" for each in results)


def row_of(result: CaseResult, experiment: str = "", category: str = "") -> JsonObject:
    """One row."""
    seen = result.observation
    score = score_or_reason(result)
    row: JsonObject = {
        "timestamp": _time(result.at),
        "test_id": result.case,
        "suite": result.suite,
        "category": category,
        "experiment": experiment,
        "conversation_id": result.group,
        "score": score if isinstance(score, float) else 0,
        "target": result.target,
        "token_usage": _tokens(seen.usage),
        "cost_usd": seen.cost,
        "duration_ms": None if seen.seconds is None else round(seen.seconds * _MILLISECONDS),
        "scores": _scores(result.score),
        "sample_index": result.trial or None,
        **_outcome(result),
    }
    return {key: value for key, value in row.items() if value not in (None, "", [])}


def _outcome(result: CaseResult) -> JsonObject:
    counted = score_or_reason(result)
    if isinstance(counted, float):
        return {"execution_status": "ok" if result.score.verdict == "pass" else "quality_failure"}
    stage, code = _FAILURES[counted]
    reason = result.observation.error or result.score.reason
    return {
        "execution_status": "execution_error",
        "error": reason or _SAID[counted],
        "failure_stage": stage,
        "failure_reason_code": code,
    }


_FAILURES = {
    "error": ("agent", "provider_error"),
    "not_graded": ("evaluator", "evaluator_error"),
    "skipped": ("setup", "dependency_failed"),
}
_SAID = {"error": "the target gave no answer", "not_graded": "the answer could not be graded", "skipped": "not run"}


def _scores(score: CaseScore) -> list[Json]:
    """The graders' rows. Of a conversation that was held live there is one for each turn, and one for the whole."""
    own: list[Json] = [_score(each) for each in score.scores]
    if not score.turns:
        return own
    rows = [_turn(f"turn-{number}", turn) for number, turn in enumerate(score.turns, 1)]
    whole = CaseScore(verdict=_whole(score.scores), score=_mean(score.scores), scores=score.scores)
    return [*rows, _turn("conversation", whole)] if own else rows


def _whole(scores: Sequence[Score]) -> Verdict:
    if any(is_missing(each, each.weight) for each in scores):
        return "not_graded"
    return "pass" if all(each.verdict in ("pass", "not_graded") for each in scores) else "fail"


def _turn(name: str, turn: CaseScore) -> Json:
    return {
        "name": name,
        "type": "rubrics",
        "score": turn.score or 0,
        "verdict": turn.verdict if turn.verdict in ("pass", "fail") else "skip",
        "assertions": _all(turn.scores),
        "scores": [_score(each) for each in turn.scores],
    }


def _all(scores: Sequence[Score]) -> list[Json]:
    return [_assertion(check.text, check.evidence, passed=check.passed) for each in scores for check in each.checks]


def _mean(scores: Sequence[Score]) -> float:
    given = [(each.weight, each.score) for each in scores if each.score is not None]
    total = sum(weight for weight, _ in given)
    return sum(weight * value for weight, value in given) / total if total else 0


def _score(score: Score) -> JsonObject:
    """A grader's own row; one that did not grade is a `skip` with 0, as AgentV writes it."""
    row: JsonObject = {
        "name": score.name,
        "type": score.type,
        "score": score.score or 0,
        "weight": score.weight,
        "verdict": score.verdict if score.verdict in ("pass", "fail") else "skip",
        "assertions": [_assertion(check.text, check.evidence, passed=check.passed) for check in score.checks],
        "token_usage": _tokens(score.usage),
        "duration_ms": None if score.seconds is None else round(score.seconds * _MILLISECONDS),
        "scores": [_score(each) for each in score.scores] or None,
    }
    return {key: value for key, value in row.items() if value is not None}


def _assertion(text: str, evidence: str, *, passed: bool) -> JsonObject:
    row: JsonObject = {"text": text, "passed": passed}
    if evidence:
        row["evidence"] = evidence
    return row


def _tokens(usage: Usage | None) -> JsonObject | None:
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    tokens: JsonObject = {"input": usage.input_tokens, "output": usage.output_tokens}
    if usage.cached_tokens is not None:
        tokens["cached"] = usage.cached_tokens
    if usage.reasoning_tokens is not None:
        tokens["reasoning"] = usage.reasoning_tokens
    return tokens


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
