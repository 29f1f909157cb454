"""Graders that compare what an answer took with limits: time, money, tokens, calls. What is not known is not graded."""

import msgspec

from sightline.evals.core.graders.finding import GraderFinding, GradingSubject, finding_without_score, of_one, share
from sightline.evals.core.graders.grader import GraderReader, GraderTypes, plain_type
from sightline.evals.core.reading.document import Amount, Share
from sightline.evals.core.result import CaseObservation, Check
from sightline.model.json import JsonObject

UNTRACED = "which tools and models the target called is not known: it tells its last words only"
EXPLORING = frozenset({"read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"})
"""Tools that look at something and change nothing."""

_TOLERANCE = 0.2


class LatencyConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds."""

    threshold: Amount


class CostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars."""

    budget: Amount


class TokenConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens; at least one limit is given."""

    max_input: Amount | None = None
    max_output: Amount | None = None
    max_total: Amount | None = None


class MetricsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a whole run, and the share of its tool calls that explore; at least one of them is given."""

    max_tool_calls: Amount | None = None
    max_llm_calls: Amount | None = None
    max_tokens: Amount | None = None
    max_cost_usd: Amount | None = None
    max_duration_ms: Amount | None = None
    target_exploration_ratio: Share | None = None
    exploration_tolerance: Amount = _TOLERANCE


def _latency(config: LatencyConfig, subject: GradingSubject) -> GraderFinding:
    seconds = subject.observation.seconds
    if seconds is None:
        return finding_without_score("how long the answer took is not known")
    took = seconds * 1000
    most = config.threshold
    return of_one(f"takes at most {most:g} ms", held=took <= most, evidence=f"{took:g} ms")


def _cost(config: CostConfig, subject: GradingSubject) -> GraderFinding:
    spent = subject.observation.cost
    if spent is None:
        return finding_without_score("what the answer cost is not known")
    return of_one(f"costs at most ${config.budget:g}", held=spent <= config.budget, evidence=f"${spent:.6g}")


def _token_usage(config: TokenConfig, subject: GradingSubject) -> GraderFinding:
    checks, unknown = [], []
    limits = (("input", config.max_input), ("output", config.max_output), ("total", config.max_total))
    for (name, most), count in zip(limits, tokens_of(subject.observation), strict=True):
        if most is None:
            continue
        if count is None:
            unknown.append(name)
        else:
            checks.append(_check_limit(f"{name} tokens", count, most))
    held = all(check.passed for check in checks)
    # Something over its limit decides it, whatever is unknown.
    if held and unknown:
        return finding_without_score(f"not known: {', '.join(unknown)}")
    return GraderFinding(score=float(held), checks=tuple(checks))


def _check_tokens(config: TokenConfig, reader: GraderReader) -> None:
    if config == TokenConfig():
        reader.tell("", "no limit is given", "Give max_total, max_input or max_output.")


def _execution_metrics(config: MetricsConfig, subject: GradingSubject) -> GraderFinding:
    """The score is the share of the limits that hold."""
    actual = _measure_run(subject.observation)
    limits = {name: most for name in actual if (most := getattr(config, f"max_{name}")) is not None}
    ratio = config.target_exploration_ratio
    unknown = [name for name in limits if actual[name] is None]
    if ratio is not None and not subject.observation.is_traced:
        unknown.append("exploration_ratio")
    if unknown:
        return finding_without_score(f"not known: {', '.join(unknown)}")
    checks = [_check_limit(name, actual[name] or 0, most) for name, most in limits.items()]
    if ratio is not None:
        checks.append(_explores(subject.observation, ratio, config.exploration_tolerance))
    details: JsonObject = {name: actual[name] for name in limits}
    return GraderFinding(score=share(checks), checks=tuple(checks), details=details)


def _check_metrics(config: MetricsConfig, reader: GraderReader) -> None:
    if config == MetricsConfig(exploration_tolerance=config.exploration_tolerance):
        names = ", ".join(name for name in MetricsConfig.__struct_fields__ if name != "exploration_tolerance")
        reader.tell("", "no limit is given", f"Give one of: {names}.")


def _measure_run(observation: CaseObservation) -> dict[str, float | None]:
    """What a run took, by the name of the limit without `max_`."""
    seconds = observation.seconds
    return {
        "tool_calls": len(observation.tools) if observation.is_traced else None,
        "llm_calls": observation.requests if observation.is_traced else None,
        "tokens": tokens_of(observation)[2],
        "cost_usd": observation.cost,
        "duration_ms": None if seconds is None else seconds * 1000,
    }


def tokens_of(observation: CaseObservation) -> tuple[int | None, int | None, int | None]:
    """The tokens in, out, and both together."""
    usage = observation.usage
    if usage is None:
        return None, None, None
    given, got = usage.input_tokens, usage.output_tokens
    return given, got, None if given is None or got is None else given + got


def _check_limit(what: str, count: float, most: float) -> Check:
    return Check(f"{what}: at most {most:g}", count <= most, f"{count:g}")


def _explores(observation: CaseObservation, wanted: float, tolerance: float) -> Check:
    text = f"exploration ratio: {wanted:g} ± {tolerance:g}"
    if not observation.tools:
        return Check(text, False, "no tool was called")
    ratio = sum(use.name in EXPLORING for use in observation.tools) / len(observation.tools)
    return Check(text, abs(ratio - wanted) <= tolerance, f"{ratio:.2f}")


LIMIT_TYPES: GraderTypes = {
    "latency": plain_type(LatencyConfig, _latency),
    "cost": plain_type(CostConfig, _cost),
    "token-usage": plain_type(TokenConfig, _token_usage, _check_tokens),
    "execution-metrics": plain_type(MetricsConfig, _execution_metrics, _check_metrics),
}
