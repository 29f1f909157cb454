"""The grader that looks at which tools were called, with what, in which order, and how long they took."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sightline.evals.core.graders.call_arguments import MODES as ARGUMENT_MODES
from sightline.evals.core.graders.call_arguments import fits
from sightline.evals.core.graders.fields import Fields, describe_value
from sightline.evals.core.graders.finding import GraderFinding, Run, at_once, finding_without_score, share
from sightline.evals.core.graders.limits import UNTRACED
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.observation import ToolUse
from sightline.evals.core.score import Check
from sightline.model.json import Json, JsonObject

_UNHEEDED = ("input", "output")
"""Suites of AgentV have them, and it looks at neither."""
_MODES = ("any_order", "in_order", "exact", "subset", "superset")


@dataclass(frozen=True, slots=True)
class Expected:
    """A call that is expected. `arguments` of None are not looked at."""

    tool: str
    arguments: JsonObject | None = None
    mode: str | tuple[str, ...] = "exact"
    milliseconds: float | None = None

    def is_met_by(self, use: ToolUse) -> bool:
        """Whether this is the call."""
        return use.name == self.tool and fits(self.arguments, use.arguments, self.mode)


@dataclass(slots=True)
class _Looked:
    """What was seen so far; `unknown` are the tools whose time should have been known."""

    checks: list[Check] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def add_match(self, item: Expected, use: ToolUse, at: int) -> None:
        self.checks.append(Check(f"{item.tool} is called", True, f"call {at + 1}"))
        if item.milliseconds is None:
            return
        if use.seconds is None:
            self.unknown.append(item.tool)
            return
        took = use.seconds * 1000
        self.checks.append(
            Check(f"{item.tool} takes at most {item.milliseconds:g} ms", took <= item.milliseconds, f"{took:g} ms")
        )

    def add_miss(self, item: Expected, why: str) -> None:
        self.checks.append(Check(f"{item.tool} is called", False, why))
        if item.milliseconds is not None:
            self.checks.append(Check(f"{item.tool} takes at most {item.milliseconds:g} ms", False, "it was not called"))


def tool_trajectory(fields: Fields) -> Run:
    """The calls are as expected, in the sense of the mode; the score is the part of the checks that held."""
    mode = fields.word("mode", words=_MODES)
    minimums = _minimums(fields)
    otherwise = _arguments_mode(fields)
    expected = tuple(
        _read_item(fields, value, index, otherwise or "exact") for index, value in enumerate(fields.items("expected"))
    )
    fields.close()
    _check(fields, mode, minimums, expected)

    def look(subject: GradingSubject) -> GraderFinding:
        if not subject.observation.is_traced:
            return finding_without_score(UNTRACED)
        uses = subject.observation.tools
        if mode == "any_order":
            return _finding(_Looked(checks=_often_enough(minimums, uses)))
        return _finding(_LOOKS[mode](expected, uses))

    return at_once(look)


def _finding(looked: _Looked) -> GraderFinding:
    held = all(check.passed for check in looked.checks)
    if held and looked.unknown:
        return finding_without_score(f"how long it took is not known of: {', '.join(looked.unknown)}")
    return GraderFinding(score=share(looked.checks) if looked.checks else 1.0, checks=tuple(looked.checks))


def _often_enough(minimums: dict[str, int], uses: Sequence[ToolUse]) -> list[Check]:
    counts = {name: sum(use.name == name for use in uses) for name in minimums}
    return [
        Check(f"{name} is called at least {least} times", counts[name] >= least, f"{counts[name]} times")
        for name, least in minimums.items()
    ]


def _in_order(expected: Sequence[Expected], uses: Sequence[ToolUse]) -> _Looked:
    """Each in turn, others between them allowed. The next call of the tool counts, whatever its arguments."""
    looked, at = _Looked(), 0
    for item in expected:
        found = next((n for n in range(at, len(uses)) if uses[n].name == item.tool), None)
        if found is None:
            looked.add_miss(item, "not among the calls that follow")
            at = len(uses)
            continue
        at = found + 1
        if item.is_met_by(uses[found]):
            looked.add_match(item, uses[found], found)
        else:
            looked.add_miss(item, f"call {found + 1} has other arguments")
    return looked


def _exact(expected: Sequence[Expected], uses: Sequence[ToolUse]) -> _Looked:
    """These and no others, one by one."""
    looked = _Looked()
    for at, item in enumerate(expected):
        if at >= len(uses):
            looked.add_miss(item, "there are no more calls")
        elif item.is_met_by(uses[at]):
            looked.add_match(item, uses[at], at)
        else:
            other = uses[at].name
            looked.add_miss(item, f"call {at + 1} is {other}" if other != item.tool else "it has other arguments")
    looked.checks += [Check("nothing else is called", False, use.name) for use in uses[len(expected) :]]
    return looked


def _superset(expected: Sequence[Expected], uses: Sequence[ToolUse]) -> _Looked:
    """All that is expected, each by a call of its own, in any order."""
    looked, taken = _Looked(), match_calls(expected, uses)
    for at, item in enumerate(expected):
        if at in taken:
            looked.add_match(item, uses[taken[at]], taken[at])
        else:
            looked.add_miss(item, "no such call")
    return looked


def _subset(expected: Sequence[Expected], uses: Sequence[ToolUse]) -> _Looked:
    """Nothing that is not expected, however often."""
    return _Looked(
        checks=[
            Check(f"{use.name} may be called", any(item.is_met_by(use) for item in expected), f"call {at + 1}")
            for at, use in enumerate(uses)
        ]
    )


def match_calls(expected: Sequence[Expected], uses: Sequence[ToolUse]) -> dict[int, int]:
    """A call for as many of the expected as can have one: the place of the call by that of the expected."""
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


_LOOKS: dict[str, Callable[[Sequence[Expected], Sequence[ToolUse]], _Looked]] = {
    "in_order": _in_order,
    "exact": _exact,
    "superset": _superset,
    "subset": _subset,
}


# --- configuration --------------------------------------------------------------------------------


def _check(fields: Fields, mode: str, minimums: dict[str, int], expected: tuple[Expected, ...]) -> None:
    if mode == "any_order":
        if not minimums:
            fields.tell("minimums", "minimums is missing", "Say how often each tool must be called: {search: 1}.")
        if expected:
            fields.tell("expected", "any_order looks at minimums only", "Use superset for calls in any order.")
        return
    if minimums:
        fields.tell("minimums", "minimums are for any_order only", "Use mode: any_order, or expected calls.")
    if mode and not fields.has("expected"):
        fields.tell("expected", "expected is missing", "Give the calls: [{tool: search}].")
    if mode in ("in_order", "superset") and fields.has("expected") and not expected:
        fields.tell("expected", f"{mode} expects nothing and always passes", "Give the calls.", "warning")
    if mode == "subset" and any(item.milliseconds is not None for item in expected):
        fields.tell("expected", "subset does not look at max_duration_ms", "Use superset or in_order.", "warning")


def _minimums(fields: Fields) -> dict[str, int]:
    inner = fields.inner(fields.mapping("minimums"), "minimums")
    counts = {name: inner.count(name) for name in fields.mapping("minimums")}
    return {name: count for name, count in counts.items() if count is not None}


def _arguments_mode(fields: Fields) -> str | tuple[str, ...]:
    names = ("args_match", "argsMatch")
    value = fields.raw(*names)
    if value is None:
        return ""
    return fields.texts(*names) if isinstance(value, list) else fields.word(*names, words=ARGUMENT_MODES)


def _read_item(fields: Fields, value: Json, index: int, otherwise: str | tuple[str, ...]) -> Expected:
    if not isinstance(value, dict):
        fields.tell(f"expected[{index}]", f"an object is expected, not {describe_value(value)}", "Write {tool: name}.")
        return Expected("")
    inner = fields.inner(value, f"expected[{index}]")
    item = Expected(
        tool=inner.text("tool", needed=True),
        arguments=None if value.get("args", "any") == "any" else inner.mapping("args"),
        mode=_arguments_mode(inner) or otherwise,
        milliseconds=inner.number("max_duration_ms", "maxDurationMs"),
    )
    inner.raw("args", *_UNHEEDED)
    for name in _UNHEEDED:
        if inner.has(name):
            inner.tell(name, "it is not looked at", "Write args for what the tool is called with.", "warning")
    inner.close()
    return item
