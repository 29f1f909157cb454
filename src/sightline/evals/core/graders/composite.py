"""The grader of graders: their scores together, by weight, by count, or by whoever is asked about them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import msgspec

from sightline.evals.core.graders.command import GraderCode, read_code
from sightline.evals.core.graders.fence import Fence
from sightline.evals.core.graders.fields import Fields
from sightline.evals.core.graders.finding import (
    Asking,
    GraderFinding,
    Run,
    finding_without_score,
    is_missing,
    is_sunk,
    reaches,
    reasons,
)
from sightline.evals.core.graders.grader import Grader, prepare_grader, run_grader
from sightline.evals.core.graders.judge_question import Question, ask_judge
from sightline.evals.core.graders.judge_text import pretty
from sightline.evals.core.graders.prompt import PromptSource, read_words
from sightline.evals.core.graders.steps import StepFailed
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.graders.verdict import read_free
from sightline.evals.core.graders.verdict_schema import FREE
from sightline.evals.core.place import SuiteProblem
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.grader_specs import read_list
from sightline.evals.core.reading.node import node_of
from sightline.evals.core.score import Check, Score
from sightline.evals.core.suite import GraderSpec
from sightline.model.json import JsonObject

RESULTS = "EVALUATOR_RESULTS_JSON"
_PLACE = re.compile(r"\{\{\s*" + RESULTS + r"\s*\}\}")
_KINDS = ("weighted_average", "threshold", "code-grader", "llm-grader")
_MEMBERS = ("assertions", "assert", "evaluators")
_PROMPT = (
    "Several graders have looked at one answer; what they say stands below. What is the answer worth, all in all? "
    "Give a score from 0 to 1 and what speaks for and against it."
)
_ROLE = "You weigh what graders say of an answer."
_NO_WEIGHT = "none of the graders within has any weight"

Verdict: TypeAlias = Callable[[tuple[Score, ...], GradingSubject], Asking]


def composite(fields: Fields) -> Run:
    """Graders within, and how they become one."""
    name = next((each for each in _MEMBERS if fields.has(each)), _MEMBERS[0])
    specs = _specs(fields, name)
    members = [
        prepare_grader(spec, f"{fields.path}.{name}[{index}]", fields.readers) for index, spec in enumerate(specs)
    ]
    for member in members:
        fields.problems += member.problems
    if fields.raw(name) == []:
        fields.tell(name, "no grader is given")
    names = [member.spec.name for member in members]
    weights, together = _aggregator(fields, names)
    fields.close()
    return partial(_run, members, weights, together)


def _specs(fields: Fields, name: str) -> list[GraderSpec]:
    """The graders within, by the same reader as those of a case. They are where the composite is."""
    findings = SuiteFindings()
    written = node_of(fields.items(name, needed=True), fields.place, (name,))
    specs = read_list(written, name, findings)
    fields.problems += [_problem_under(problem, fields.path) for problem in findings.problems]
    return specs


def _problem_under(problem: SuiteProblem, path: str) -> SuiteProblem:
    return msgspec.structs.replace(problem, path=f"{path}.{problem.path}")


def _run(members: Sequence[Grader], weights: JsonObject, together: Verdict, subject: GradingSubject) -> Asking:
    """A member that could not run leaves the composite not graded, however it is aggregated; nobody is asked then."""
    scores: list[Score] = []
    for member in members:
        scores += [(yield from run_grader(member, subject))]
    said = tuple(scores)
    missing = [score for score in said if is_missing(score, _weight(weights, score))]
    if missing:
        return replace(finding_without_score(reasons(missing)), scores=said)
    finding = yield from together(said, subject)
    return replace(finding, scores=said)


# --- together -------------------------------------------------------------------------------------


def _average(weights: JsonObject, scores: tuple[Score, ...], _subject: GradingSubject) -> Asking:
    yield from ()
    heard = _graded_only(scores)
    weighed = [(score.score or 0.0, _weight(weights, score)) for score in heard]
    total = sum(weight for _, weight in weighed)
    if not total:
        return finding_without_score(_NO_WEIGHT)
    score = sum(value * weight for value, weight in weighed) / total
    return _apply_required(
        GraderFinding(score=min(max(score, 0.0), 1.0), checks=_all_checks(heard), reason=_describe_ungraded(scores)),
        heard,
    )


def _share_of_passes(threshold: float, scores: tuple[Score, ...], _subject: GradingSubject) -> Asking:
    yield from ()
    heard = _graded_only(scores)
    counting = [score for score in heard if score.weight]
    if not counting:
        return finding_without_score(_NO_WEIGHT)
    passed = sum(score.verdict == "pass" for score in counting)
    part = passed / len(counting)
    enough = reaches(part, threshold)
    first = Check(f"at least {threshold:g} of the graders pass", enough, f"{passed} of {len(counting)}")
    finding = GraderFinding(
        score=part, checks=(first, *_all_checks(heard)), reason=_describe_ungraded(scores), passed=enough
    )
    return _apply_required(finding, heard)


def _by_code(code: GraderCode, scores: tuple[Score, ...], _subject: GradingSubject) -> Asking:
    return (yield from code.run({"results": _results(scores)}))


def _by_judge(
    prompt: PromptSource, target: str, model: str, scores: tuple[Score, ...], subject: GradingSubject
) -> Asking:
    words = yield from prompt.words(subject)
    if isinstance(words, StepFailed):
        return finding_without_score(words.fault.message)
    results = pretty(_results(scores))
    fence = Fence([results, words])
    quoted = fence.around("results", results)
    wording = words or _PROMPT
    question = Question(
        system=f"{_ROLE}\n{fence.rule}",
        user=_PLACE.sub(lambda _: quoted, wording) if _PLACE.search(wording) else f"{wording}\n\n{quoted}",
        schema=FREE,
        target=target,
        model=model,
    )
    return (yield from ask_judge(question, read_free))


def _graded_only(scores: Sequence[Score]) -> list[Score]:
    """The graders that gave a score."""
    return [score for score in scores if score.verdict != "not_graded"]


def _apply_required(finding: GraderFinding, heard: Sequence[Score]) -> GraderFinding:
    """Nothing is left of a finding if a grader that is required did not reach its score."""
    sunk = [score.name for score in heard if is_sunk(score)]
    if not sunk:
        return finding
    return replace(finding, score=0.0, passed=False, reason=f"required and not reached: {', '.join(sunk)}")


def _weight(weights: JsonObject, score: Score) -> float:
    weight = weights.get(score.name)
    return float(weight) if isinstance(weight, int | float) else score.weight


def _all_checks(scores: Sequence[Score]) -> tuple[Check, ...]:
    return tuple(
        Check(f"[{score.name}] {each.text}", each.passed, each.evidence) for score in scores for each in score.checks
    )


def _describe_ungraded(scores: Sequence[Score]) -> str:
    silent = [score.name for score in scores if score.verdict == "not_graded"]
    return f"not graded, and left out: {', '.join(silent)}" if silent else ""


def _results(scores: Sequence[Score]) -> JsonObject:
    return {
        score.name: {
            "type": score.type,
            "score": score.score,
            "verdict": score.verdict,
            "weight": score.weight,
            "reason": score.reason,
            "assertions": [
                {"text": check.text, "passed": check.passed, "evidence": check.evidence} for check in score.checks
            ],
            "details": score.details,
        }
        for score in scores
    }


# --- configuration --------------------------------------------------------------------------------


def _aggregator(fields: Fields, names: list[str]) -> tuple[JsonObject, Verdict]:
    """How much each grader within weighs, where that is said here, and how all of them become one."""
    value = fields.mapping("aggregator")
    inner = fields.inner(_old_names(value), "aggregator")
    kind = inner.word("type", words=_KINDS, otherwise="weighted_average")
    told = kind not in ("weighted_average", "threshold") or inner.has("weights")
    if told and len(set(names)) != len(names):
        fields.tell("", "two graders within have the same name", "Give each a name of its own.")
    together = _KIND[kind](inner, names)
    inner.close()
    weights = value.get("weights") if kind == "weighted_average" else None
    return weights if isinstance(weights, dict) else {}, together


def _old_names(value: JsonObject) -> JsonObject:
    kind = value.get("type")
    return {**value, "type": kind.replace("_grader", "-grader")} if isinstance(kind, str) else value


def _read_average(fields: Fields, names: list[str]) -> Verdict:
    weights = fields.mapping("weights")
    inner = fields.inner(weights, "weights")
    for name in names:
        inner.number(name)
    inner.close()
    return partial(_average, weights)


def _read_counted(fields: Fields, _names: list[str]) -> Verdict:
    return partial(_share_of_passes, fields.number("threshold", most=1.0, needed=True) or 0.0)


def _read_code(fields: Fields, _names: list[str]) -> Verdict:
    return partial(_by_code, read_code(fields, "path", "command"))


def _read_judge(fields: Fields, _names: list[str]) -> Verdict:
    return partial(_by_judge, read_words(fields, (RESULTS,)), fields.text("target"), fields.text("model"))


_KIND: dict[str, Callable[[Fields, list[str]], Verdict]] = {
    "weighted_average": _read_average,
    "threshold": _read_counted,
    "code-grader": _read_code,
    "llm-grader": _read_judge,
}
