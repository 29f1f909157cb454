"""Exports of results: JSON lines that Sightline reads back completely, rows for AgentV's tools, and XML for CI.

Each export is a pure function from results to bytes. None invents a number that was not measured.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import fsum
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.graders.finding import is_missing, weighted_mean
from sightline.evals.core.result import CaseResult, CaseScore, Check, Score, Verdict, latest_of
from sightline.evals.core.summary import Amount, amount_of, score_or_reason, was_sent
from sightline.model.json import Json, JsonObject
from sightline.model.reply import Usage
from sightline.wire import jsontext

# --- JSON lines: a few stable fields for other programs, and the whole result, which `read_jsonl` reads ---
#
# The stable fields are always present, and null if unknown: `v`, `suite`, `case`, `target`, `trial`, `group`, `tags`,
# `status`, `verdict`, `score`, `input_tokens`, `output_tokens`, `cost_usd`, `seconds`, `cached`, `error`, `at`. Fields
# may be added; `v` is incremented when one changes its meaning.

VERSION = 1


class ResultLines(msgspec.Struct, frozen=True):
    """`is_cut`: the last line was truncated, as after a crash, and is left out."""

    results: tuple[CaseResult, ...]
    is_cut: bool = False


def to_line(result: CaseResult) -> bytes:
    """One result as one line, with its newline."""
    seen = result.observation
    fields: JsonObject = {
        "v": VERSION,
        "suite": result.suite,
        "case": result.case,
        "target": result.target,
        "trial": result.trial,
        "group": result.group,
        "tags": list(result.tags),
        "status": result.status,
        "verdict": result.score.verdict,
        "score": result.score.score,
        "input_tokens": seen.usage.input_tokens if seen.usage else None,
        "output_tokens": seen.usage.output_tokens if seen.usage else None,
        "cost_usd": seen.cost,
        "seconds": seen.seconds,
        "cached": result.cached,
        "error": seen.error,
        "at": result.at,
        "result": msgspec.to_builtins(result),
    }
    return jsontext.encode(fields) + b"\n"


def to_jsonl(results: Iterable[CaseResult]) -> bytes:
    return b"".join(map(to_line, results))


def read_jsonl(data: bytes) -> ResultLines:
    """Read the results of such lines. Raises a `Fault` if a line is unreadable; only the last may be truncated."""
    *lines, rest = data.split(b"\n")
    results = [_read_line(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    if not rest.strip():
        return ResultLines(tuple(results))
    try:
        return ResultLines((*results, _read_line(rest, len(lines) + 1)))
    except Fault:
        return ResultLines(tuple(results), is_cut=True)


def _read_line(line: bytes, number: int) -> CaseResult:
    try:
        fields = jsontext.decode(line)
    except Fault as fault:
        raise _unreadable(number, fault.message) from None
    if not isinstance(fields, dict) or "result" not in fields:
        raise _unreadable(number, "it holds no result")
    if fields.get("v") != VERSION:
        raise _unreadable(number, f"it is of version {fields.get('v')}, and this program reads {VERSION}")
    try:
        return msgspec.convert(fields["result"], CaseResult)
    except jsontext.MISFIT as misfit:
        raise _unreadable(number, str(misfit)) from None


def _unreadable(number: int, why: str) -> Fault:
    return Fault(
        Code.USAGE,
        f"line {number} of the results cannot be read: {why}",
        hint="Export the run again, or remove the line.",
    )


# --- rows of AgentV's `index.jsonl`, for its compare, trend, report and summary commands ---
#
# AgentV requires a number for every score and has no status for an answer that could not be graded: such a row, like
# one without an answer, has the score 0 and the status `execution_error`, as AgentV's own rows have. Its runs leave
# that status out of their means; `agentv results summary` counts the 0. Values that were not measured are omitted, and
# so are `projection_identity` and all paths, because there is no folder of artifacts beside the file.

_MILLISECONDS = 1000


def to_index(results: Iterable[CaseResult]) -> bytes:
    return b"".join(jsontext.encode(row_of(each)) + b"\n" for each in results)


def row_of(result: CaseResult) -> JsonObject:
    seen = result.observation
    score = score_or_reason(result)
    row: JsonObject = {
        "timestamp": datetime.fromtimestamp(result.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "test_id": result.case,
        "suite": result.suite,
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
        "error": reason or _MESSAGES[counted],
        "failure_stage": stage,
        "failure_reason_code": code,
    }


_FAILURES = {
    "error": ("agent", "provider_error"),
    "not_graded": ("evaluator", "evaluator_error"),
    "skipped": ("setup", "dependency_failed"),
}
_MESSAGES = {"error": "the target gave no answer", "not_graded": "the answer could not be graded", "skipped": "not run"}


def _scores(score: CaseScore) -> list[Json]:
    """The rows of the graders. For a live conversation, one row for each turn and one for the whole."""
    own: list[Json] = [_score(each) for each in score.scores]
    if not score.turns:
        return own
    rows = [_turn(f"turn-{number}", turn) for number, turn in enumerate(score.turns, 1)]
    mean = weighted_mean((each.score, each.weight) for each in score.scores if each.score is not None)
    whole = CaseScore(verdict=_whole(score.scores), score=mean, scores=score.scores)
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
        "assertions": [_assertion(check) for each in turn.scores for check in each.checks],
        "scores": [_score(each) for each in turn.scores],
    }


def _score(score: Score) -> JsonObject:
    """The row of one grader. A grader that did not grade is a `skip` with 0, as AgentV writes it."""
    row: JsonObject = {
        "name": score.name,
        "type": score.type,
        "score": score.score or 0,
        "weight": score.weight,
        "verdict": score.verdict if score.verdict in ("pass", "fail") else "skip",
        "assertions": [_assertion(check) for check in score.checks],
        "token_usage": _tokens(score.usage),
        "duration_ms": None if score.seconds is None else round(score.seconds * _MILLISECONDS),
        "scores": [_score(each) for each in score.scores] or None,
    }
    return {key: value for key, value in row.items() if value is not None}


def _assertion(check: Check) -> JsonObject:
    evidence: JsonObject = {"evidence": check.evidence} if check.evidence else {}
    return {"text": check.text, "passed": check.passed, **evidence}


def _tokens(usage: Usage | None) -> JsonObject | None:
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    tokens: JsonObject = {"input": usage.input_tokens, "output": usage.output_tokens}
    if usage.cached_tokens is not None:
        tokens["cached"] = usage.cached_tokens
    if usage.reasoning_tokens is not None:
        tokens["reasoning"] = usage.reasoning_tokens
    return tokens


# --- JUnit XML: a suite for each target, a test case for each trial, valid by the schema of Ant's reports ---
#
# In that schema only suites have properties, so the costs are there. An answer that could not be graded is an error: a
# skipped test would leave the build green.

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPACES = re.compile(r"\s+")
_OUTCOMES = ("failures", "errors", "skipped")


def to_junit(results: Sequence[CaseResult], *, name: str = "") -> bytes:
    root = Element("testsuites")
    suites: dict[tuple[str, str], list[CaseResult]] = {}
    for result in latest_of(results):
        suites.setdefault((name or result.suite or "evals", result.target), []).append(result)
    for number, ((suite, target), own) in enumerate(suites.items()):
        root.append(_suite(number, suite, target, own))
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _suite(number: int, name: str, target: str, results: Sequence[CaseResult]) -> Element:
    outcomes = [_junit_outcome(result) for result in results]
    began = min(result.at for result in results)
    suite = Element(
        "testsuite",
        {
            "id": str(number),
            "package": _token(name),
            "name": _token(target),
            "hostname": "localhost",
            "timestamp": datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "tests": str(len(results)),
            **{key: str(outcomes.count(key)) for key in _OUTCOMES},
            "time": _decimal(fsum(result.seconds for result in results)),
        },
    )
    properties = SubElement(suite, "properties")
    for key, value in _properties(target, results):
        SubElement(properties, "property", {"name": key, "value": value})
    for result, outcome in zip(results, outcomes, strict=True):
        suite.append(_case(name, result, outcome))
    SubElement(suite, "system-out")
    SubElement(suite, "system-err")
    return suite


def _junit_outcome(result: CaseResult) -> str:
    counted = score_or_reason(result)
    if isinstance(counted, float):
        return "" if result.score.verdict == "pass" else "failures"
    return "skipped" if counted == "skipped" else "errors"


def _properties(target: str, results: Sequence[CaseResult]) -> list[tuple[str, str]]:
    scores = [score for score in map(score_or_reason, results) if isinstance(score, float)]
    found = [("target", _clean(target))]
    if scores:
        found.append(("mean_score", _decimal(fsum(scores) / len(scores))))
    ran = [each for each in results if each.status != "skipped"]
    # A cached answer reports its original cost; nothing was spent on it in this run.
    found += _amount("cost", "_usd", amount_of(each.observation.cost for each in ran if not each.cached), ".6f")
    usages = [each.observation.usage or Usage() for each in ran if was_sent(each)]
    found += _amount("input_tokens", "", amount_of(each.input_tokens for each in usages), ".0f")
    found += _amount("output_tokens", "", amount_of(each.output_tokens for each in usages), ".0f")
    return found


def _amount(name: str, unit: str, amount: Amount, form: str) -> list[tuple[str, str]]:
    """A sum, or the known part of it and the number of unknown values."""
    if amount.total is not None:
        return [(f"{name}{unit}", f"{amount.total:{form}}")]
    known = [(f"{name}_at_least{unit}", f"{amount.at_least:{form}}")] if amount.known else []
    return [*known, (f"{name}_unknown", str(amount.unknown))]


def _case(suite: str, result: CaseResult, outcome: str) -> Element:
    name = f"{result.case} [{result.trial + 1}]" if result.trial else result.case
    case = Element(
        "testcase",
        {
            "classname": _token(f"{suite}.{result.target}"),
            "name": _token(name),
            "time": _decimal(result.seconds),
        },
    )
    if outcome == "failures":
        message = f"score {result.score.score or 0:.3f}" + (f": {result.score.reason}" if result.score.reason else "")
        failure = SubElement(case, "failure", {"message": _clean(message), "type": "quality_failure"})
        failure.text = _clean(_failure_details(result))
    elif outcome == "errors":
        kind = result.observation.error_code or ("error" if result.status == "execution_error" else "not_graded")
        message = result.observation.error or result.score.reason or "not graded"
        error = SubElement(case, "error", {"message": _clean(message), "type": _clean(kind)})
        error.text = _clean(_failure_details(result))
    elif outcome == "skipped":
        SubElement(case, "skipped", {"message": _clean(result.score.reason)})
    return case


def _failure_details(result: CaseResult) -> str:
    """The failed checks, the exchanges and the answer."""
    lines = [line for score in result.score.scores for line in _failure_lines(score, "")]
    for number, turn in enumerate(result.score.turns, 1):
        lines += [line for score in turn.scores for line in _failure_lines(score, f"turn {number}: ")]
    exchanges = [f"exchanges: {', '.join(result.observation.exchanges)}"] if result.observation.exchanges else []
    answer = ["", "answer:", result.observation.text] if result.observation.text else []
    return "\n".join([*lines, *exchanges, *answer])


def _failure_lines(score: Score, before: str) -> list[str]:
    if score.verdict == "pass":
        return []
    lines = [f"{before}{score.name} ({score.type}): {score.verdict}{f' - {score.reason}' if score.reason else ''}"]
    lines += [
        f"  failed: {check.text}{f' ({check.evidence})' if check.evidence else ''}"
        for check in score.checks
        if not check.passed
    ]
    return lines + [line for inner in score.scores for line in _failure_lines(inner, f"{before}  ")]


def _clean(text: str) -> str:
    """The text without the characters that XML does not allow."""
    return _FORBIDDEN.sub("", text)


def _token(text: str) -> str:
    """The text as a name: on one line, and never empty."""
    return _SPACES.sub(" ", _clean(text)).strip() or "-"


def _decimal(value: float) -> str:
    return f"{value:.3f}"
