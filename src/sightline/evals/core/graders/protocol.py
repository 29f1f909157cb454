"""What a command or a function says of an answer: `{"score": 0.5, "assertions": [{"text": …, "passed": true}]}`.

What cannot be understood is not graded. A score outside of 0 to 1 is no score.
"""

import math

from sightline.errors import Fault
from sightline.evals.core.graders.fields import describe_value
from sightline.evals.core.graders.finding import UNSPENT, GraderFinding, GradingCost, finding_without_score, share
from sightline.evals.core.graders.steps import Executed
from sightline.evals.core.score import Check
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import decode

LONGEST_WORDS = 2_000
_NEARLY = 1e-9
_SIGNALS = 128
"""From here on, an exit code of a shell is the number of the signal that ended its command."""


def from_command(ended: Executed) -> GraderFinding:
    """The finding of a command: an object on its standard output, or plain words with the exit code for a verdict.

    A command that fails with an object, or with words on standard error, has broken down, and so has one that a signal
    ended. What looks like a verdict and is none, such as one with words before it, is never taken for plain words:
    those would pass.
    """
    spent = GradingCost(seconds=ended.seconds)
    words = ended.stdout.decode("utf-8", "replace").strip()
    complaint = ended.stderr.decode("utf-8", "replace").strip()
    if ended.code != 0 and (complaint or words[:1] in ("{", "[")):
        said = complaint[-LONGEST_WORDS:] or words[:LONGEST_WORDS]
        return finding_without_score(f"the command ended with {ended.code}: {said}", spent)
    if ended.code < 0 or ended.code > _SIGNALS:
        signal = -ended.code if ended.code < 0 else ended.code - _SIGNALS
        return finding_without_score(f"the command was ended by signal {signal}", spent)
    try:
        value = decode(ended.stdout)
    except Fault as fault:
        if words[:1] in ("{", "[") or '"score"' in words:
            return finding_without_score(
                f"its output is no JSON alone ({fault.message}): {words[:LONGEST_WORDS]}", spent
            )
        value = None
    if isinstance(value, dict):
        return from_value(value, spent)
    if value is not None and not isinstance(value, str):
        return finding_without_score(f'an object is expected, not {describe_value(value)}: write {{"score": …}}', spent)
    passed = ended.code == 0
    text = words[:LONGEST_WORDS] or f"exit {ended.code}"
    return GraderFinding(score=float(passed), checks=(Check(text, passed),), spent=spent)


def from_value(value: Json, spent: GradingCost = UNSPENT) -> GraderFinding:
    """The finding that a value is: true or false, a score, or an object."""
    if isinstance(value, bool):
        return GraderFinding(score=float(value), checks=(Check("returns true", value),), spent=spent)
    if isinstance(value, int | float):
        value = {"score": value}
    if not isinstance(value, dict):
        return finding_without_score(f"a score is expected, not {describe_value(value)}", spent)
    checks = _checks(value)
    if checks is None:
        return finding_without_score("its assertions are not a list of {text, passed}", spent)
    given = value.get("score")
    score = share(checks) if given is None and checks else score_of(given)
    if score is None:
        return finding_without_score(f"a score from 0 to 1 is expected, not {describe_value(given)}", spent)
    details = value.get("details", value.get("metadata"))
    verdict = value.get("verdict")
    return GraderFinding(
        score=score,
        checks=checks,
        reason=_words(value),
        passed=verdict == "pass" if verdict in ("pass", "fail") else None,
        details=details if isinstance(details, dict) else {},
        spent=spent,
    )


def score_of(value: Json) -> float | None:
    """A score, if this is one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return min(max(float(value), 0.0), 1.0) if -_NEARLY <= value <= 1 + _NEARLY else None


def checks_of(value: Json) -> tuple[Check, ...] | None:
    """Assertions, if all of them are some."""
    if not isinstance(value, list):
        return None
    checks = []
    for each in value:
        match each:
            case {"text": str(text), "passed": bool(passed), "evidence": str(evidence)}:
                checks.append(Check(text, passed, evidence))
            case {"text": str(text), "passed": bool(passed)}:
                checks.append(Check(text, passed))
            case _:
                return None
    return tuple(checks)


def _checks(value: JsonObject) -> tuple[Check, ...] | None:
    return checks_of(found) if (found := value.get("assertions")) is not None else ()


def _words(value: JsonObject) -> str:
    return next((text for name in ("reasoning", "reason") if isinstance(text := value.get(name), str)), "")
