"""Graders that hold what an answer took to a limit: time, money, tokens. What is not known is not graded."""

from sightline.evals.core.graders.fields import Fields
from sightline.evals.core.graders.finding import GraderFinding, Run, at_once, finding_without_score, of_one
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.score import Check


def latency(fields: Fields) -> Run:
    """The answer took at most so many milliseconds."""
    most = fields.number("threshold", needed=True) or 0.0
    fields.close()

    def look(subject: GradingSubject) -> GraderFinding:
        seconds = subject.observation.seconds
        if seconds is None:
            return finding_without_score("how long the answer took is not known")
        took = seconds * 1000
        return of_one(f"takes at most {most:g} ms", held=took <= most, evidence=f"{took:g} ms")

    return at_once(look)


def cost(fields: Fields) -> Run:
    """The answer cost at most so many dollars."""
    most = fields.number("budget", needed=True) or 0.0
    fields.close()

    def look(subject: GradingSubject) -> GraderFinding:
        spent = subject.observation.cost
        if spent is None:
            return finding_without_score("what the answer cost is not known")
        return of_one(f"costs at most ${most:g}", held=spent <= most, evidence=f"${spent:.6g}")

    return at_once(look)


def token_usage(fields: Fields) -> Run:
    """The answer took at most so many tokens."""
    limits = {name: fields.number(name) for name in ("max_input", "max_output", "max_total")}
    fields.close()
    if not fields.has(*limits):
        fields.tell("", "no limit is given", "Give max_total, max_input or max_output.")

    def look(subject: GradingSubject) -> GraderFinding:
        counted = dict(zip(limits, tokens_of(subject.observation), strict=True))
        checks, unknown = [], []
        for name, most in limits.items():
            count = counted[name]
            if most is None:
                continue
            if count is None:
                unknown.append(name.removeprefix("max_"))
            else:
                checks.append(check_limit(f"{name.removeprefix('max_')} tokens", count, most))
        return all_or_nothing(checks, unknown)

    return at_once(look)


def tokens_of(observation: CaseObservation) -> tuple[int | None, int | None, int | None]:
    """The tokens in, out, and both together."""
    usage = observation.usage
    if usage is None:
        return None, None, None
    given, got = usage.input_tokens, usage.output_tokens
    return given, got, None if given is None or got is None else given + got


UNTRACED = "which tools and models the target called is not known: it tells its last words only"


def check_limit(what: str, count: float, most: float, unit: str = "") -> Check:
    """Whether a number is within its limit."""
    return Check(f"{what}: at most {unit}{most:g}", count <= most, f"{unit}{count:g}")


def all_or_nothing(checks: list[Check], unknown: list[str]) -> GraderFinding:
    """One if all held. Something over its limit decides it; else nothing may be unknown."""
    held = all(check.passed for check in checks)
    if held and unknown:
        return finding_without_score(f"not known: {', '.join(unknown)}")
    return GraderFinding(score=float(held), checks=tuple(checks))
