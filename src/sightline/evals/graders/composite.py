"""The grader of graders: their scores together, by weight, by count, or by whoever is asked about them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from sightline.evals.graders.command import Code, read_code
from sightline.evals.graders.fence import Fence
from sightline.evals.graders.fields import Fields
from sightline.evals.graders.finding import Asking, Finding, Run, is_sunk, reaches, ungraded
from sightline.evals.graders.judging import Question, judged
from sightline.evals.graders.prompt import Prompt, read_words
from sightline.evals.graders.ready import Ready, graded, ready
from sightline.evals.graders.specs import read_specs
from sightline.evals.graders.steps import Failed
from sightline.evals.graders.subject import Subject
from sightline.evals.graders.verdict import read_free
from sightline.evals.graders.verdict_schema import FREE
from sightline.evals.graders.wording import pretty
from sightline.evals.score import Check, Score
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

Verdict: TypeAlias = Callable[[tuple[Score, ...], Subject], Asking]


def composite(fields: Fields) -> Run:
    """Graders within, and how they become one."""
    name = next((each for each in _MEMBERS if fields.has(each)), _MEMBERS[0])
    specs, problems = read_specs(fields.items(name, needed=True), fields.place, f"{fields.path}.{name}", fields.readers)
    fields.problems += problems
    members = [ready(spec, f"{fields.path}.{name}[{index}]", fields.readers) for index, spec in enumerate(specs)]
    for member in members:
        fields.problems += member.problems
    if fields.has(name) and not members:
        fields.tell(name, "no grader is given")
    names = [member.spec.name for member in members]
    together = _aggregator(fields, names)
    fields.close()
    return partial(_run, members, together)


def _run(members: Sequence[Ready], together: Verdict, subject: Subject) -> Asking:
    scores: list[Score] = []
    for member in members:
        scores += [(yield from graded(member, subject))]
    finding = yield from together(tuple(scores), subject)
    return replace(finding, scores=tuple(scores))


# --- together -------------------------------------------------------------------------------------


def _average(weights: JsonObject, scores: tuple[Score, ...], _subject: Subject) -> Asking:
    yield from ()
    heard, silent = heard_of(scores)
    if silent is not None:
        return silent
    weighed = [(score.score or 0.0, _weight(weights, score)) for score in heard]
    total = sum(weight for _, weight in weighed)
    if not total:
        return ungraded("none of the graders that could tell has any weight")
    score = sum(value * weight for value, weight in weighed) / total
    return _gated(Finding(score=min(max(score, 0.0), 1.0), checks=_all_checks(heard), reason=_left_out(scores)), heard)


def _counted(threshold: float, scores: tuple[Score, ...], _subject: Subject) -> Asking:
    yield from ()
    heard, silent = heard_of(scores)
    if silent is not None:
        return silent
    passed = sum(score.verdict == "pass" for score in heard)
    part = passed / len(heard)
    enough = reaches(part, threshold)
    first = Check(f"at least {threshold:g} of the graders pass", enough, f"{passed} of {len(heard)}")
    finding = Finding(score=part, checks=(first, *_all_checks(heard)), reason=_left_out(scores), passed=enough)
    return _gated(finding, heard)


def _by_code(code: Code, scores: tuple[Score, ...], _subject: Subject) -> Asking:
    return (yield from code.run({"results": _results(scores)}))


def _by_judge(prompt: Prompt, target: str, model: str, scores: tuple[Score, ...], subject: Subject) -> Asking:
    words = yield from prompt.words(subject)
    if isinstance(words, Failed):
        return ungraded(words.fault.message)
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
    return (yield from judged(question, read_free))


def heard_of(scores: Sequence[Score]) -> tuple[list[Score], Finding | None]:
    """The graders that could tell, and what follows if too few of them could."""
    heard = [score for score in scores if score.verdict in ("pass", "fail")]
    missing = [score for score in scores if score.verdict == "not_graded" and score.required is not None]
    if missing or not heard:
        silent = missing or scores
        return heard, ungraded("; ".join(f"{score.name}: {score.reason}" for score in silent))
    return heard, None


def _gated(finding: Finding, heard: Sequence[Score]) -> Finding:
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


def _left_out(scores: Sequence[Score]) -> str:
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


def _aggregator(fields: Fields, names: list[str]) -> Verdict:
    value = fields.mapping("aggregator")
    inner = fields.inner(_old_names(value), "aggregator")
    kind = inner.word("type", words=_KINDS, otherwise="weighted_average")
    told = kind not in ("weighted_average", "threshold") or inner.has("weights")
    if told and len(set(names)) != len(names):
        fields.tell("", "two graders within have the same name", "Give each a name of its own.")
    together = _KIND[kind](inner, names)
    inner.close()
    return together


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
    return partial(_counted, fields.number("threshold", most=1.0, needed=True) or 0.0)


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
