"""The grader that holds a whole run to several limits at once; its score is the part of them that held."""

from sightline.evals.core.graders.fields import Fields
from sightline.evals.core.graders.finding import GraderFinding, Run, at_once, finding_without_score, share
from sightline.evals.core.graders.limits import check_limit, tokens_of
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.score import Check
from sightline.model.json import JsonObject

EXPLORING = frozenset({"read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"})
"""Tools that look at something and change nothing."""

_LIMITS = ("max_tool_calls", "max_llm_calls", "max_tokens", "max_cost_usd", "max_duration_ms")


def execution_metrics(fields: Fields) -> Run:
    """Tool calls, requests, tokens, money, time and the part of calls that explore, each within what is wanted."""
    limits = {name: fields.number(name) for name in _LIMITS}
    ratio = fields.number("target_exploration_ratio", most=1.0)
    tolerance = fields.number("exploration_tolerance")
    fields.close()
    if not fields.has(*_LIMITS, "target_exploration_ratio"):
        fields.tell("", "no limit is given", f"Give one of: {', '.join(_LIMITS)}, target_exploration_ratio.")

    def look(subject: GradingSubject) -> GraderFinding:
        actual = measure_run(subject.observation)
        wanted = {name: most for name, most in limits.items() if most is not None}
        unknown = [name.removeprefix("max_") for name in wanted if actual[name] is None]
        if ratio is not None and not subject.observation.is_traced:
            unknown.append("exploration_ratio")
        if unknown:
            return finding_without_score(f"not known: {', '.join(unknown)}")
        checks = [check_limit(name.removeprefix("max_"), actual[name] or 0, most) for name, most in wanted.items()]
        if ratio is not None:
            checks.append(_explores(subject.observation, ratio, 0.2 if tolerance is None else tolerance))
        details: JsonObject = {name.removeprefix("max_"): actual[name] for name in wanted}
        return GraderFinding(score=share(checks), checks=tuple(checks), details=details)

    return at_once(look)


def measure_run(observation: CaseObservation) -> dict[str, float | None]:
    """What a run took, by the name of the limit."""
    seconds = observation.seconds
    return {
        "max_tool_calls": len(observation.tools) if observation.is_traced else None,
        "max_llm_calls": observation.requests if observation.is_traced else None,
        "max_tokens": tokens_of(observation)[2],
        "max_cost_usd": observation.cost,
        "max_duration_ms": None if seconds is None else seconds * 1000,
    }


def _explores(observation: CaseObservation, wanted: float, tolerance: float) -> Check:
    text = f"exploration ratio: {wanted:g} ± {tolerance:g}"
    if not observation.tools:
        return Check(text, False, "no tool was called")
    ratio = sum(use.name in EXPLORING for use in observation.tools) / len(observation.tools)
    return Check(text, abs(ratio - wanted) <= tolerance, f"{ratio:.2f}")
