"""The report of a run, its exports, and the tables and transcripts that the other commands share."""

import argparse
import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self, cast

import msgspec

from sightline.app.evals import random_draws
from sightline.cli.run_control import clip
from sightline.cli.terminal import harmless, money, table, unusable
from sightline.errors import Code, Fault
from sightline.evals.core.exports import to_index, to_jsonl, to_junit
from sightline.evals.core.result import CaseResult, complaints_of
from sightline.evals.core.run_state import EvalState, budget_of, cost_limit_of, has_passed
from sightline.evals.core.statistics.intervals import Draw
from sightline.evals.core.statistics.paired import number, pluralize
from sightline.evals.core.suite import SuitePlace
from sightline.evals.core.summary import Amount, TargetSummary, amount_of, costs_of, score_or_reason, summarize
from sightline.evals.service.eval_log import PREFIX, State
from sightline.evals.service.evaluation import Evaluation
from sightline.evals.service.suite_files import replace_file
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import Message
from sightline.wire.jsontext import encode


def in_full(value: object) -> Json:
    """A value as JSON with all fields, including defaults."""
    if isinstance(value, msgspec.Struct):
        return {name: in_full(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return [in_full(each) for each in value]
    return cast(Json, msgspec.to_builtins(value))


def message_lines(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        yield f"  {message.role}"
        for part in message.parts:
            for line in part_text(part).split("\n"):
                yield f"    {line}"


def part_text(part: Part) -> str:
    match part:
        case Text() | Refusal():
            return part.text
        case Thinking():
            return f"(thinking) {part.text}"
        case ToolCall():
            return f"→ {part.name}({part.arguments})"
        case ToolResult():
            return f"← {part.name or part.id}: " + "\n".join(part_text(each) for each in part.parts)
        case Image() | Audio() | Document():
            return f"<{type(part).__name__.lower()} {getattr(part.source, 'media_type', '') or 'by its address'}>"
        case CacheBreakpoint() | Opaque():
            return f"<{type(part).__name__}>"


LAST = "last"


async def resolve_run(evaluation: Evaluation, text: str) -> str:
    """The run with this id prefix, or the newest for `last`. Raises a fault unless exactly one matches."""
    if text == LAST:
        newest = await evaluation.list_runs(1)
        if newest:
            return newest[0].run
    found = [log.name.removeprefix(PREFIX) for log in await evaluation.logbook.logs(PREFIX + text)] if text else []
    if text in found:
        return text
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} runs begin with {text!r}" if found else f"there is no run {text!r} of a suite"
    raise Fault(Code.USAGE, what, hint="`sightline eval show` lists them.")


_HEAD = ("TARGET", "PASSED", "RATE", "SCORE", "INTERVAL", "ERRORS", "NOT GRADED", "TOKENS", "COST", "MEDIAN")
_RIGHT = frozenset(range(1, len(_HEAD)))
_MOST = 20
_LONGEST = 200
_LONGEST_ANSWER = 600
_FEW_TRIES = 5
_ROUND_TRIES = frozenset({10, 20, 50, 100, 200, 500, 1000})
_DASH = "–"


def report(run: str, state: State, standing: EvalState, draw: Draw) -> list[str]:
    began = standing.began
    summaries = summarize(standing.results, draw)
    suite = f"{began.suite.name} ({began.suite.file})" if began.suite.file else began.suite.name
    cases, targets = pluralize(len(began.suite.cases), "case"), pluralize(len(began.targets), "target")
    lines = [f"{suite}: {cases} on {targets}, {standing.done} of {len(standing.keys)} results, run {run}", ""]
    if summaries:
        lines += table([_HEAD, *(_row(each) for each in summaries)], right=_RIGHT)
    for each in summaries:
        lines += _target_findings(each, is_one_of_many=len(summaries) > 1)
    lines += _budget_notes(standing)
    if ungraded := count_ungraded(standing):
        of = pluralize(standing.done, "result")
        lines += ["", f"{ungraded} of {of} could not be graded, so the run has not passed."]
        lines += [f"Once the cause is fixed, run them again: sightline eval run --rerun-failed {run}"]
    lines += _troubles(run, standing)
    if state != "ended":
        why = {"running": "It is under way.", "stopped": "It was stopped.", "interrupted": "Its process ended."}[state]
        lines += ["", f"{why} {pluralize(len(standing.left), 'result')} left: {resume_command(run)}"]
    return [harmless(line) for line in lines]


def resume_command(run: str) -> str:
    return f"sightline eval run --resume {run}"


def as_json(run: str, state: State, standing: EvalState, draw: Draw) -> JsonObject:
    began = standing.began
    return {
        "run": run,
        "suite": began.suite.file,
        "name": began.suite.name,
        "state": state,
        "at": began.at,
        "cases": len(began.suite.cases),
        "results": standing.done,
        "of": len(standing.keys),
        "passed": is_passed(standing),
        "not_graded": count_ungraded(standing),
        "budget_usd": budget_of(began.suite, began.options),
        "targets": in_full(summarize(standing.results, draw)),
        "failed": [
            (
                {
                    "case": result.case,
                    "target": result.target,
                    "trial": result.trial,
                    "status": result.status,
                    "verdict": result.score.verdict,
                    "score": result.score.score,
                    "reason": result.observation.error or result.score.reason,
                    "complaints": list(complaints_of(result)),
                    "answer": result.observation.text,
                    "exchanges": list(result.observation.exchanges),
                }
            )
            for result in standing.results
            if not has_passed(result)
        ],
    }


def is_passed(standing: EvalState) -> bool:
    """Whether every case was run and passed."""
    return not standing.left and not standing.failed


def _budget_notes(standing: EvalState) -> list[str]:
    """Notes on costs that a limit could not include."""
    suite = standing.began.suite
    budget = budget_of(suite, standing.began.options)
    has_limits = any(cost_limit_of(case, suite) is not None for case in suite.cases)
    unknown = amount_of(cost for result in standing.results for cost in costs_of(result)).unknown
    if not unknown or (budget is None and not has_limits):
        return []
    limit = "cost_limit_usd of the trials" if budget is None else f"The budget of {money(budget)}"
    return ["", f"{limit} counts only what is known: the cost of {pluralize(unknown, 'request')} is not."]


def count_ungraded(standing: EvalState) -> int:
    """The number of answers that a required grader could not grade."""
    return sum(score_or_reason(result) == "not_graded" for result in standing.results)


def _row(summary: TargetSummary) -> tuple[str, ...]:
    graded = summary.passed + summary.failed
    rate = _DASH if summary.pass_rate is None else f"{summary.pass_rate * 100:.0f} %"
    if summary.pass_interval is not None:
        shown = summary.pass_interval.of_scores()
        rate += f" ({shown.low * 100:.0f}–{shown.high * 100:.0f})"
    mean = summary.score
    score = _DASH if mean is None else number(mean.value)
    if mean is not None and mean.error is not None:
        score += f" ± {number(mean.error)}"
    interval = None if mean is None or mean.interval is None else mean.interval.of_scores()
    return (
        summary.target,
        f"{summary.passed}/{graded}",
        rate,
        score,
        _DASH if interval is None else f"{number(interval.low)} to {number(interval.high)}",
        str(summary.count_excluded("error")),
        str(summary.count_excluded("not_graded")),
        _tokens(summary.input_tokens + summary.output_tokens),
        _cost(summary.cost + summary.grading_cost),
        _DASH if summary.seconds is None else f"{summary.seconds.median:.2f} s",
    )


def _cost(spent: Amount) -> str:
    if spent.unknown and not spent.known:
        return "unknown"
    text = money(spent.at_least)
    return f"{text} + {spent.unknown} unknown" if spent.unknown else text


def _tokens(used: Amount) -> str:
    if not used.known:
        return _DASH
    return f"{used.at_least:,.0f}" if used.total is not None else f"{used.at_least:,.0f} + ?"


def _target_findings(summary: TargetSummary, *, is_one_of_many: bool) -> Iterator[str]:
    yield ""
    head = f"{summary.target}: " if is_one_of_many else ""
    for sentence in summary.said:
        yield f"{head}{sentence}"
    most = max((each.k for each in summary.tries), default=0)
    for each in summary.tries:
        if each.k > _FEW_TRIES and each.k not in _ROUND_TRIES and each.k != most:
            continue  # the JSON report has all of them
        yield f"{head}pass@{each.k} {number(each.any.value)}, pass^{each.k} {number(each.all.value)}."
    if summary.cached:
        yield f"{head}{pluralize(summary.cached, 'answer')} taken from earlier requests with the same hash."


def _troubles(run: str, standing: EvalState) -> Iterator[str]:
    """Failures first, then missing answers, then answers that could not be graded."""
    kinds: dict[str, list[CaseResult]] = {"FAILED": [], "ERRORS": [], "NOT GRADED": [], "SKIPPED": []}
    names = {"error": "ERRORS", "not_graded": "NOT GRADED", "skipped": "SKIPPED"}
    for result in standing.results:
        if not has_passed(result):
            counts = score_or_reason(result)
            kinds["FAILED" if isinstance(counts, float) else names[counts]].append(result)
    for head, results in kinds.items():
        if results:
            yield ""
            yield f"{head} ({len(results)})"
            for result in results[:_MOST]:
                yield from _trouble(result, standing.cases[result.case].place)
            if len(results) > _MOST:
                yield f"  … and {len(results) - _MOST} more: sightline eval show {run}"


def _trouble(result: CaseResult, place: SuitePlace) -> Iterator[str]:
    trial = f" #{result.trial + 1}" if result.trial else ""
    score = "" if result.score.score is None else f"  score {number(result.score.score)}"
    where = f"  {place}" if place.line else ""
    yield f"  {result.case} on {result.target}{trial}{score}{where}"
    if result.observation.error:
        yield f"    {clip(result.observation.error, _LONGEST)}"
    elif result.score.reason:
        yield f"    {clip(result.score.reason, _LONGEST)}"
    for line in complaints_of(result):
        yield f"    {clip(line, _LONGEST)}"
    if answer := result.observation.text.strip():
        first, *more = clip(answer, _LONGEST_ANSWER).splitlines()
        yield f"    answer: {first}"
        yield from (f"            {line}" for line in more)
    if result.observation.exchanges:
        yield f"    sightline show {result.observation.exchanges[-1]}"


_NOT_REPLACED = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV)
"""Errors that mean a file can be written but not replaced."""


class ResultFormat(NamedTuple):
    """A format of results: its file in an export folder, how it is rendered (from results, and the suite's name if they
    are all of one suite), and the option for a file of its own, if there is one."""

    file: str
    render: Callable[[Sequence[CaseResult], str], bytes]
    option: str = ""


FORMATS = (
    ResultFormat("results.jsonl", lambda results, _: to_jsonl(results), "jsonl"),
    ResultFormat("index.jsonl", lambda results, _: to_index(results)),
    ResultFormat("junit.xml", lambda results, suite: to_junit(results, name=suite), "junit"),
    ResultFormat("summary.json", lambda results, _: encode(in_full(summarize(results, random_draws()))) + b"\n"),
)
"""Our own JSONL, AgentV's, JUnit for CI, and the figures of each target."""


@dataclass
class Exports:
    """The requested exports. `folder` gets all files; `files` are single ones, by the names of their options."""

    folder: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    _results: list[CaseResult] = field(default_factory=list)
    _suites: list[str] = field(default_factory=list)

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> Self:
        """The exports that the command line names."""
        options = (each.option for each in FORMATS if each.option)
        return cls(arguments.output, {option: getattr(arguments, option) for option in options})

    def _places_of(self, form: ResultFormat) -> list[str]:
        return [*filter(None, (self.files.get(form.option), self.folder and f"{self.folder}/{form.file}"))]

    def check(self) -> None:
        """Raise a fault if a destination cannot be written, before anything is sent."""
        for place in (place for form in FORMATS for place in self._places_of(form)):
            path = Path(place)
            if _is_stream(path):
                continue
            try:
                path = path.resolve()
                path.parent.mkdir(parents=True, exist_ok=True)
                is_new = not path.exists()
                with path.open("ab"):
                    pass
                if is_new:
                    path.unlink()  # an empty file would look like empty results
            except OSError as error:
                raise unusable(place, error) from None

    def add(self, standing: EvalState) -> None:
        self._results += standing.results
        self._suites.append(standing.began.suite.name)

    @property
    def has_results(self) -> bool:
        """Whether a run is complete."""
        return bool(self._suites)

    def write(self) -> None:
        name = self._suites[0] if len(set(self._suites)) == 1 else ""
        for form in FORMATS:
            # Rendering a large run is slow, so only requested exports are rendered.
            if places := self._places_of(form):
                data = form.render(self._results, name)
                for place in places:
                    _write(place, data)


def _write(place: str, data: bytes) -> None:
    """Write a file atomically."""
    path = Path(place)
    try:
        if _is_stream(path):
            with path.open("ab") as stream:
                stream.write(data)
            return
        try:
            replace_file(path.resolve(), data)
        except OSError as error:
            if error.errno not in _NOT_REPLACED:
                raise
            path.write_bytes(data)
    except OSError as error:
        raise unusable(place, error) from None


def _is_stream(path: Path) -> bool:
    """Whether the path is a pipe or device, which cannot be replaced by a file."""
    return path.parts[:2] == ("/", "dev") or (path.exists() and not path.is_file() and not path.is_dir())
