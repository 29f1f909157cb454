"""Runs as rows, numbers and matrices."""

from collections.abc import Sequence

from sightline.evals.api.shapes import CaseRow, Cell, EvalBrief, EvalShown, GraderFigures, TargetFigures, TrialShown
from sightline.evals.core.result import CaseResult
from sightline.evals.core.run_state import EvalState, Key
from sightline.evals.core.statistics.intervals import Interval
from sightline.evals.core.summary import Amount, TargetSummary
from sightline.evals.service.evaluation import RunSnapshot


def brief(shown: RunSnapshot, summaries: Sequence[TargetSummary]) -> EvalBrief:
    """A run in one line."""
    began = shown.standing.began
    return EvalBrief(
        run=shown.run,
        name=began.suite.name,
        suite=began.suite.file,
        at=began.at,
        state=shown.state,
        targets=tuple(target.name for target in began.targets),
        cases=len(began.suite.cases),
        done=shown.standing.done,
        of=len(shown.standing.keys),
        summary=tuple(map(figures, summaries)),
    )


def whole(shown: RunSnapshot, summaries: Sequence[TargetSummary], *, is_here: bool) -> EvalShown:
    """All of a run, but for what its cases hold."""
    line = brief(shown, summaries)
    standing = shown.standing
    return EvalShown(
        **{name: getattr(line, name) for name in line.__struct_fields__},
        version=shown.version,
        why=standing.ended or "",
        is_here=is_here,
        file_sha256=standing.began.suite.sha256,
        matrix=_matrix(standing, line.targets),
        graders=tuple(_graders(summaries)),
    )


def figures(summary: TargetSummary) -> TargetFigures:
    """What one target came to."""
    mean = summary.score
    interval = None if mean is None else mean.interval
    low, high = within(interval)
    pass_low, pass_high = within(summary.pass_interval)
    spent = _both(summary.cost, summary.grading_cost)
    tokens = _both(summary.input_tokens, summary.output_tokens)
    return TargetFigures(
        target=summary.target,
        results=summary.results,
        passed=summary.passed,
        failed=summary.failed,
        errors=len(summary.errors),
        not_graded=len(summary.not_graded),
        skipped=sum(each.why == "skipped" for each in summary.excluded),
        cached=summary.cached,
        pass_rate=summary.pass_rate,
        pass_low=pass_low,
        pass_high=pass_high,
        mean=None if mean is None else mean.value,
        stderr=None if mean is None else mean.error,
        low=low,
        high=high,
        cost=spent.total,
        cost_at_least=spent.at_least,
        cost_unknown=spent.unknown,
        tokens=None if tokens.total is None else round(tokens.total),
        tokens_at_least=round(tokens.at_least),
        seconds=None if summary.seconds is None else summary.seconds.mean,
        said=summary.said,
    )


def within(interval: Interval | None) -> tuple[float | None, float | None]:
    """The ends of the interval of a mean of scores, which cannot leave 0 and 1."""
    return (None, None) if interval is None else (max(0.0, interval.low), min(1.0, interval.high))


def trial(key: Key, result: CaseResult | None, *, is_running: bool) -> TrialShown:
    """One try, which may have no result yet."""
    if result is None:
        return TrialShown(trial=key[2], status="running" if is_running else "waiting")
    return TrialShown(
        trial=key[2],
        status=result.status,
        verdict=result.score.verdict,
        score=result.score.score,
        cached=result.cached,
        seconds=result.observation.seconds,
        cost=result.observation.cost,
        reason=" ".join((result.observation.error or result.score.reason).split()),
    )


def _both(first: Amount, second: Amount) -> Amount:
    total = None if first.total is None or second.total is None else first.total + second.total
    known, unknown = first.known + second.known, first.unknown + second.unknown
    return Amount(total, known, unknown, first.at_least + second.at_least)


def _matrix(standing: EvalState, targets: Sequence[str]) -> tuple[CaseRow, ...]:
    running = set(standing.running)
    tries: dict[tuple[str, str], list[TrialShown]] = {}
    for key in standing.keys:
        shown = trial(key, standing.result(key), is_running=key in running)
        tries.setdefault(key[:2], []).append(shown)
    return tuple(
        CaseRow(
            case.id,
            case.group,
            case.tags,
            tuple(Cell(name, tuple(tries[case.id, name])) for name in targets if (case.id, name) in tries),
        )
        for case in standing.cases.values()
    )


def _graders(summaries: Sequence[TargetSummary]) -> list[GraderFigures]:
    return [
        GraderFigures(
            target=summary.target,
            name=each.name,
            type=each.type,
            mean=None if each.mean is None else each.mean.value,
            n=each.graded,
            passes=each.passes,
            not_graded=each.not_graded,
        )
        for summary in summaries
        for each in summary.graders
    ]
