"""Graders of a target's behaviour: its tool calls and skills, and the time, money and tokens that it took. Unknown
values are not graded."""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from sightline.catalog.reading import key
from sightline.evals.core.graders.expectation import Absent, alike, value_at
from sightline.evals.core.graders.finding import GraderFinding, GradingSubject, finding_without_score, of_one, share
from sightline.evals.core.graders.grader import GraderReader, GraderTypes, plain_type
from sightline.evals.core.reading.document import Amount, Share, Text
from sightline.evals.core.result import CaseObservation, Check, ToolUse
from sightline.model.json import Json, JsonObject

ArgumentsMode: TypeAlias = (
    Literal["exact", "ignore", "subset", "superset"] | Annotated[tuple[Text, ...], Meta(min_length=1)]
)
"""How arguments are compared: as a whole, or only the fields at these paths."""


class ExpectedCall(msgspec.Struct, frozen=True, kw_only=True):
    """An expected call; arguments of `any` are not compared. AgentV's suites also have `input` and `output`, which it
    ignores. So do we, with a warning."""

    tool: Text
    args: Literal["any"] | dict[str, Json] = "any"
    args_match: Annotated[ArgumentsMode | None, key(aliases=("argsMatch",))] = None
    max_duration_ms: Annotated[Amount | None, key(aliases=("maxDurationMs",))] = None
    input: Json = None
    output: Json = None

    def is_met_by(self, use: ToolUse) -> bool:
        if use.name != self.tool or isinstance(self.args, str):
            return use.name == self.tool
        return fits(self.args, use.arguments, self.args_match or "exact")


class TrajectoryConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`minimums` is for the mode `any_order`, `expected` for the others."""

    mode: Literal["any_order", "in_order", "exact", "subset", "superset"]
    minimums: dict[str, Annotated[int, Meta(ge=0)]] = {}
    expected: Annotated[tuple[ExpectedCall, ...] | None, key(hint="Give the calls: [{tool: search}].")] = None
    args_match: Annotated[ArgumentsMode, key(aliases=("argsMatch",))] = "exact"


class SkillConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The name of a skill, and whether it should be used."""

    skill: Annotated[Text, key(hint="Give the name of the skill.")]
    should_trigger: bool = True


def fits(expected: JsonObject, actual: Json, mode: ArgumentsMode) -> bool:
    """Whether arguments match.

    `superset`: all expected arguments are present. `subset`: there are no others than those expected. A tuple contains
    the paths of the only fields to compare; paths that are not in `expected` are ignored.
    """
    if mode == "ignore":
        return True
    if not isinstance(actual, dict):
        return False
    if isinstance(mode, tuple):
        pairs = [(value_at(expected, path), value_at(actual, path)) for path in mode]
        return all(
            (not isinstance(found, Absent) and alike(wanted, found))
            for wanted, found in pairs
            if not isinstance(wanted, Absent)
        )
    if mode == "superset":
        return all(key in actual and alike(value, actual[key]) for key, value in expected.items())
    if mode == "subset":
        return all(key in expected and alike(value, expected[key]) for key, value in actual.items())
    return alike(expected, actual)


Found: TypeAlias = int | str
"""The index of the call that meets an expectation, or why there is none."""


def _trajectory(config: TrajectoryConfig, subject: GradingSubject) -> GraderFinding:
    """Compare the tool calls with those expected. The score is the share of the checks that hold."""
    if not subject.observation.is_traced:
        return finding_without_score(UNTRACED)
    uses = subject.observation.tools
    expected = [
        msgspec.structs.replace(each, args_match=each.args_match or config.args_match) for each in config.expected or ()
    ]
    unknown: list[str] = []
    if config.mode == "any_order":
        checks = _check_minimums(config.minimums, uses)
    elif config.mode == "subset":
        checks = _check_subset(expected, uses)
    else:
        checks, unknown = _check_calls(expected, uses, _FINDERS[config.mode](expected, uses))
    if config.mode == "exact":
        checks += [Check("nothing else is called", False, use.name) for use in uses[len(expected) :]]
    if unknown and all(check.passed for check in checks):
        return finding_without_score(f"how long it took is not known of: {', '.join(unknown)}")
    return GraderFinding(score=share(checks) if checks else 1.0, checks=tuple(checks))


def _check_minimums(minimums: dict[str, int], uses: Sequence[ToolUse]) -> list[Check]:
    counts = {name: sum(use.name == name for use in uses) for name in minimums}
    return [
        Check(f"{name} is called at least {least} times", counts[name] >= least, f"{counts[name]} times")
        for name, least in minimums.items()
    ]


def _check_subset(expected: Sequence[ExpectedCall], uses: Sequence[ToolUse]) -> list[Check]:
    """Only expected calls, in any number."""
    return [
        Check(f"{use.name} may be called", any(item.is_met_by(use) for item in expected), f"call {at + 1}")
        for at, use in enumerate(uses)
    ]


def _check_calls(
    expected: Sequence[ExpectedCall], uses: Sequence[ToolUse], found: Sequence[Found]
) -> tuple[list[Check], list[str]]:
    """The checks of the expected calls, and the tools whose duration is needed but unknown."""
    checks: list[Check] = []
    unknown: list[str] = []
    for item, place in zip(expected, found, strict=True):
        most = item.max_duration_ms
        limit = "" if most is None else f"{item.tool} takes at most {most:g} ms"
        if isinstance(place, str):
            checks.append(Check(f"{item.tool} is called", False, place))
            checks += [Check(limit, False, "it was not called")] if limit else []
            continue
        checks.append(Check(f"{item.tool} is called", True, f"call {place + 1}"))
        if most is None:
            continue
        seconds = uses[place].seconds
        if seconds is None:
            unknown.append(item.tool)
        else:
            checks.append(Check(limit, seconds * 1000 <= most, f"{seconds * 1000:g} ms"))
    return checks, unknown


def _in_order(expected: Sequence[ExpectedCall], uses: Sequence[ToolUse]) -> list[Found]:
    """The expected calls in order, with others between them. The next call of a tool counts, whatever its arguments."""
    found: list[Found] = []
    at = 0
    for item in expected:
        place = next((n for n in range(at, len(uses)) if uses[n].name == item.tool), None)
        if place is None:
            found.append("not among the calls that follow")
            at = len(uses)
            continue
        found.append(place if item.is_met_by(uses[place]) else f"call {place + 1} has other arguments")
        at = place + 1
    return found


def _exact(expected: Sequence[ExpectedCall], uses: Sequence[ToolUse]) -> list[Found]:
    """Exactly the expected calls, in order."""
    found: list[Found] = []
    for at, item in enumerate(expected):
        if at >= len(uses):
            found.append("there are no more calls")
        elif item.is_met_by(uses[at]):
            found.append(at)
        else:
            other = uses[at].name
            found.append(f"call {at + 1} is {other}" if other != item.tool else "it has other arguments")
    return found


def _superset(expected: Sequence[ExpectedCall], uses: Sequence[ToolUse]) -> list[Found]:
    """All expected calls, in any order, each matched by a call of its own."""
    matches = match_calls(expected, uses)
    return [matches.get(at, "no such call") for at in range(len(expected))]


def match_calls(expected: Sequence[ExpectedCall], uses: Sequence[ToolUse]) -> dict[int, int]:
    """Match as many expected calls as possible with a call each. Returns the indices of the calls by expected call."""
    holder: dict[int, int] = {}

    def place(at: int, seen: set[int]) -> bool:
        for use in range(len(uses)):
            if use in seen or not expected[at].is_met_by(uses[use]):
                continue
            seen.add(use)
            if use not in holder or place(holder[use], seen):
                holder[use] = at
                return True
        return False

    for at in range(len(expected)):
        place(at, set())
    return {at: use for use, at in holder.items()}


_FINDERS: dict[str, Callable[[Sequence[ExpectedCall], Sequence[ToolUse]], list[Found]]] = {
    "in_order": _in_order,
    "exact": _exact,
    "superset": _superset,
}


def _check_trajectory(config: TrajectoryConfig, reader: GraderReader) -> None:
    mode, expected = config.mode, config.expected
    for index, call in enumerate(expected or ()):
        for name in ("input", "output"):
            if getattr(call, name) is not None:
                hint = "Write args for what the tool is called with."
                reader.tell(f"expected[{index}].{name}", "it is not looked at", hint, "warning")
    if mode == "any_order":
        if not config.minimums:
            reader.tell("minimums", "minimums is missing", "Say how often each tool must be called: {search: 1}.")
        if expected:
            reader.tell("expected", "any_order looks at minimums only", "Use superset for calls in any order.")
        return
    if config.minimums:
        reader.tell("minimums", "minimums are for any_order only", "Use mode: any_order, or expected calls.")
    if expected is None:
        reader.tell("expected", "expected is missing", "Give the calls: [{tool: search}].")
    if mode in ("in_order", "superset") and expected == ():
        reader.tell("expected", f"{mode} expects nothing and always passes", "Give the calls.", "warning")
    if mode == "subset" and any(item.max_duration_ms is not None for item in expected or ()):
        reader.tell("expected", "subset does not look at max_duration_ms", "Use superset or in_order.", "warning")


def _skill(config: SkillConfig, subject: GradingSubject) -> GraderFinding:
    if not subject.observation.is_traced:
        return finding_without_score(UNTRACED)
    uses = subject.observation.tools
    seen = next((words for use in uses if (words := _evidence(use, config.skill))), "")
    text = f'skill "{config.skill}" is {"" if config.should_trigger else "not "}used'
    return of_one(text, held=bool(seen) is config.should_trigger, evidence=seen or f"not in {len(uses)} tool calls")


def _evidence(use: ToolUse, name: str) -> str:
    arguments = use.arguments if isinstance(use.arguments, dict) else {}
    folder = f"skills/{name}/"
    if use.name.lower() == "skill" and name in str(arguments.get("skill", "")):
        return f"{use.name} was called with {arguments['skill']}"
    path = str(arguments.get("file_path", arguments.get("path", "")))
    if use.name.lower() == "read" and folder in path:
        return f"{use.name} was called with {path}"
    return f"{use.name} answered with {folder}" if folder in use.result else ""


TOOL_TYPES: GraderTypes = {
    "tool-trajectory": plain_type(TrajectoryConfig, _trajectory, _check_trajectory),
    "skill-trigger": plain_type(SkillConfig, _skill),
}


UNTRACED = "which tools and models the target called is not known: it tells its last words only"
EXPLORING = frozenset({"read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"})
"""Tools that only read."""

_TOLERANCE = 0.2


class LatencyConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The limit in milliseconds."""

    threshold: Amount


class CostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The limit in dollars."""

    budget: Amount


class TokenConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Limits in tokens; at least one is given."""

    max_input: Amount | None = None
    max_output: Amount | None = None
    max_total: Amount | None = None


class MetricsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for a whole run, and the share of its tool calls that explore; at least one is given."""

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
    # A value over its limit decides, even if others are unknown.
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
    """The measurements of a run, by the name of the limit without `max_`."""
    seconds = observation.seconds
    return {
        "tool_calls": len(observation.tools) if observation.is_traced else None,
        "llm_calls": observation.requests if observation.is_traced else None,
        "tokens": tokens_of(observation)[2],
        "cost_usd": observation.cost,
        "duration_ms": None if seconds is None else seconds * 1000,
    }


def tokens_of(observation: CaseObservation) -> tuple[int | None, int | None, int | None]:
    """The input tokens, the output tokens, and their sum; None if unknown."""
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
