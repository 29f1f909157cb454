"""Results as JUnit XML: a suite for each target, a test case for each try, valid for the schema of Ant's reports.

That schema has properties of suites only, so the costs are there. An answer that could not be graded is an
error: a skipped test would leave the build green.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from math import fsum
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from sightline.evals.core.result import CaseResult, Score
from sightline.evals.core.summary import Amount, amount_of
from sightline.evals.core.tally import score_or_reason, targets_of
from sightline.model.usage import Usage

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPACES = re.compile(r"\s+")
_OUTCOMES = ("failures", "errors", "skipped")


def to_junit(results: Sequence[CaseResult], *, name: str = "", hostname: str = "localhost") -> bytes:
    """The whole document."""
    root = Element("testsuites")
    latest = list({result.key: result for result in results}.values())
    for number, target in enumerate(targets_of(latest)):
        own = [result for result in latest if result.target == target]
        root.append(_suite(number, name or own[0].suite or "evals", target, own, hostname))
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _suite(number: int, name: str, target: str, results: Sequence[CaseResult], hostname: str) -> Element:
    outcomes = [_outcome(result) for result in results]
    began = min(result.at for result in results)
    suite = Element(
        "testsuite",
        {
            "id": str(number),
            "package": _token(name),
            "name": _token(target),
            "hostname": _token(hostname),
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


def _outcome(result: CaseResult) -> str:
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
    # An answer of the cache tells what it cost when it was asked for; nothing was spent on it here.
    found += _amount("cost", "_usd", amount_of(each.observation.cost for each in ran if not each.cached), ".6f")
    usages = [each.observation.usage or Usage() for each in ran]
    found += _amount("input_tokens", "", amount_of(each.input_tokens for each in usages), ".0f")
    found += _amount("output_tokens", "", amount_of(each.output_tokens for each in usages), ".0f")
    return found


def _amount(name: str, unit: str, amount: Amount, form: str) -> list[tuple[str, str]]:
    """A sum, or what is known of it and how many parts are not."""
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
        failure.text = _clean(_story(result))
    elif outcome == "errors":
        kind = result.observation.error_code or ("error" if result.status == "execution_error" else "not_graded")
        message = result.observation.error or result.score.reason or "not graded"
        error = SubElement(case, "error", {"message": _clean(message), "type": _clean(kind)})
        error.text = _clean(_story(result))
    elif outcome == "skipped":
        SubElement(case, "skipped", {"message": _clean(result.score.reason)})
    return case


def _story(result: CaseResult) -> str:
    """What did not hold, and the answer."""
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
    """The text without the characters that XML cannot hold."""
    return _FORBIDDEN.sub("", text)


def _token(text: str) -> str:
    """A name: in one line, and never empty."""
    return _SPACES.sub(" ", _clean(text)).strip() or "-"


def _decimal(value: float) -> str:
    return f"{value:.3f}"
