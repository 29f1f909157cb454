"""What the page shows: runs as rows, figures and matrices, comparisons and trends, and one trial of a case."""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

import msgspec

from sightline.chat.core.pair import ChatAnswer
from sightline.chat.service.blocks import Block, CallBlock, Media, MediaBlock, blocks_of, media_of
from sightline.errors import Code, Fault
from sightline.evals.api import shapes
from sightline.evals.core.comparison import Point, RunComparison, TrendRun, choose_target, compare, trend_points
from sightline.evals.core.delivery import Note, argument_text
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, complaints_of
from sightline.evals.core.run_state import EvalState, Key, has_passed
from sightline.evals.core.statistics.intervals import Draw, Interval
from sightline.evals.core.statistics.paired import Paired
from sightline.evals.core.suite import CallSegment, Case, CaseMessage, TextSegment
from sightline.evals.core.summary import TargetSummary
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.eval_log import brief_of
from sightline.evals.service.evaluation import Evaluation, RunSnapshot
from sightline.model.json import Json
from sightline.model.parts import Part, Text, ToolCall
from sightline.model.request import Message

_LONGEST_REASON = 400
_LONGEST_ANSWER = 400
_MOST_ANSWERS = 500
"""The longest part of an answer shown in the matrix, in characters, and the most results for which answers are shown at
all: the page fetches the whole matrix again and again while a run is under way."""


def brief(shown: RunSnapshot, summaries: Sequence[TargetSummary]) -> shapes.EvalBrief:
    line = brief_of(shown.run, shown.standing, shown.state)
    return shapes.EvalBrief(**msgspec.structs.asdict(line), summary=tuple(map(figures, summaries)))


def whole(shown: RunSnapshot, summaries: Sequence[TargetSummary], *, is_here: bool) -> shapes.EvalShown:
    """A whole run without the contents of its cases."""
    line = brief(shown, summaries)
    standing = shown.standing
    return shapes.EvalShown(
        **{name: getattr(line, name) for name in line.__struct_fields__},
        version=shown.version,
        why=standing.ended or "",
        is_here=is_here,
        file_sha256=standing.began.suite.sha256,
        matrix=_matrix(standing, line.targets),
        graders=tuple(
            shapes.GraderFigures(
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
        ),
    )


def figures(summary: TargetSummary) -> shapes.TargetFigures:
    mean = summary.score
    interval = None if mean is None else mean.interval
    low, high = within(interval)
    pass_low, pass_high = within(summary.pass_interval)
    spent = summary.cost + summary.grading_cost
    tokens = summary.input_tokens + summary.output_tokens
    return shapes.TargetFigures(
        target=summary.target,
        results=summary.results,
        passed=summary.passed,
        failed=summary.failed,
        errors=summary.count_excluded("error"),
        not_graded=summary.count_excluded("not_graded"),
        skipped=summary.count_excluded("skipped"),
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
    """The ends of the confidence interval of a mean score."""
    shown = None if interval is None else interval.of_scores()
    return (None, None) if shown is None else (shown.low, shown.high)


def trial(key: Key, result: CaseResult | None, *, is_running: bool) -> shapes.TrialShown:
    if result is None:
        return shapes.TrialShown(trial=key[2], status="running" if is_running else "waiting")
    return shapes.TrialShown(
        trial=key[2],
        status=result.status,
        verdict=result.score.verdict,
        score=result.score.score,
        cached=result.cached,
        seconds=result.observation.seconds,
        cost=result.observation.cost,
        reason=_reason(result),
        answer=result.observation.text[:_LONGEST_ANSWER],
    )


def _reason(result: CaseResult) -> str:
    """Why there is no answer or no better score, on one line."""
    found = result.observation.error
    if not found and not has_passed(result):
        found = "; ".join(complaints_of(result))
    return " ".join((found or result.score.reason).split())[:_LONGEST_REASON]


def _matrix(standing: EvalState, targets: Sequence[str]) -> tuple[shapes.CaseRow, ...]:
    running = set(standing.running)
    tries: dict[tuple[str, str], list[shapes.TrialShown]] = {}
    has_answers = len(standing.keys) <= _MOST_ANSWERS
    for key in standing.keys:
        shown = trial(key, standing.result(key), is_running=key in running)
        if not has_answers:
            shown = msgspec.structs.replace(shown, answer="")
        tries.setdefault(key[:2], []).append(shown)
    return tuple(
        shapes.CaseRow(
            case.id,
            case.group,
            case.tags,
            tuple(shapes.Cell(name, tuple(tries[case.id, name])) for name in targets if (case.id, name) in tries),
        )
        for case in standing.cases.values()
    )


def compare_runs(first: RunSnapshot, second: RunSnapshot, targets: tuple[str, str], draw: Draw) -> shapes.CompareShown:
    """Compare the second run with the first. A target may be left out if the run has only one."""
    sides = first.standing.results, second.standing.results
    chosen = (
        choose_target(sides[0], targets[0], f"the run {first.run}", "target_a"),
        choose_target(sides[1], targets[1], f"the run {second.run}", "target_b"),
    )
    names = chosen if chosen[0] != chosen[1] else ("A", "B")
    comparison = compare(*sides, draw, targets=chosen, names=names)
    scores = comparison.scores
    difference = None if scores is None else scores.difference
    interval = None if difference is None else difference.interval
    bounds = comparison.bounds
    return shapes.CompareShown(
        a=_side(first, chosen[0]),
        b=_side(second, chosen[1]),
        level=comparison.level,
        finding=comparison.finding,
        said=comparison.said,
        mean_a=comparison.before_mean,
        mean_b=comparison.after_mean,
        difference=None if difference is None else difference.value,
        stderr=None if difference is None else difference.error,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        p=None if scores is None else scores.permutation.p,
        test="" if scores is None else _test(scores),
        sign_p=None if scores is None else scores.sign_p,
        bootstrap=None
        if scores is None or scores.bootstrap is None
        else shapes.Ends(scores.bootstrap.low, scores.bootstrap.high),
        wins=0 if scores is None else scores.wins,
        losses=0 if scores is None else scores.losses,
        ties=0 if scores is None else scores.ties,
        pairs=len(comparison.pairs),
        groups=0 if difference is None else difference.clusters,
        gain=comparison.gain,
        smallest=None if scores is None else scores.smallest,
        needed=None if scores is None else scores.needed,
        bounds=None if bounds is None else shapes.Ends(*bounds),
        passing=_passing(comparison.verdicts),
        cases=_cases(comparison, *(_exchanges(*each) for each in zip(sides, chosen, strict=True))),
        distributions=shapes.Distributions(
            tuple(pair.before.score for pair in comparison.pairs), tuple(pair.after.score for pair in comparison.pairs)
        ),
        only_a=comparison.only_before,
        only_b=comparison.only_after,
        unpaired=comparison.unpaired,
        excluded=comparison.excluded,
    )


def trend_of(runs: Sequence[RunSnapshot], draw: Draw) -> list[shapes.TrendPoint]:
    """The points of a trend, oldest first."""
    trend_runs = [TrendRun(each.run, each.standing.began.at, each.standing.results) for each in runs]
    return [_trend_point(point) for point in trend_points(trend_runs, draw)]


def _trend_point(point: Point) -> shapes.TrendPoint:
    summary, change = point.summary, point.change
    low, high = within(None if summary.score is None else summary.score.interval)
    return shapes.TrendPoint(
        run=point.run,
        at=point.at,
        target=point.target,
        mean=None if summary.score is None else summary.score.value,
        low=low,
        high=high,
        pass_rate=summary.pass_rate,
        results=summary.results,
        finding=None if change is None else change.finding,
        change="" if change is None else change.said[0],
    )


def _side(shown: RunSnapshot, target: str) -> shapes.ComparedSide:
    began = shown.standing.began
    return shapes.ComparedSide(run=shown.run, name=began.suite.name, target=target, at=began.at)


def _test(scores: Paired) -> str:
    test = scores.permutation
    drawn = f", {test.count} drawn" if test.method == "monte_carlo" else ", exact"
    return f"paired permutation test{drawn}"


def _passing(verdicts: Paired | None) -> shapes.PassShown | None:
    if verdicts is None:
        return None
    interval = verdicts.difference.interval
    return shapes.PassShown(
        difference=verdicts.difference.value,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        p=verdicts.sign_p,
        wins=verdicts.wins,
        losses=verdicts.losses,
    )


def _exchanges(results: Sequence[CaseResult], target: str) -> dict[str, str]:
    """The last exchange of each case's first trial."""
    own = (result for result in reversed(results) if result.target == target and result.observation.exchanges)
    return {result.case: result.observation.exchanges[-1] for result in own}


def _cases(
    comparison: RunComparison, first: Mapping[str, str], second: Mapping[str, str]
) -> tuple[shapes.ComparedCase, ...]:
    return tuple(
        shapes.ComparedCase(
            case=pair.case,
            group=pair.group,
            a=pair.before.score,
            b=pair.after.score,
            difference=pair.difference,
            outcome=pair.outcome,
            flip=pair.flip,
            is_same_request=pair.is_same_request,
            is_same_answer=pair.is_same_answer,
            exchange_a=first.get(pair.case, ""),
            exchange_b=second.get(pair.case, ""),
            graders=pair.graders,
        )
        for pair in comparison.pairs
    )


def show_trial(
    evaluation: Evaluation, shown: RunSnapshot, key: Key, source_of: Callable[[Case], tuple[str, Json]]
) -> shapes.CaseShown:
    """Show one trial. Raises a fault if the run has no such trial. `source_of` returns a case as its file has it now.
    Delivery notes are not stored with a result, so they are computed again."""
    standing = shown.standing
    if key not in standing.keys:
        name, target, trial = key
        hint = "GET /api/evals/{run} has all of them."
        message = f"the run has no trial {trial} of {name!r} on {target!r}"
        raise Fault(Code.USAGE, message, hint=hint, status=404)
    case = standing.cases[key[0]]
    result = standing.result(key)
    score = None if result is None else result.score
    seen = CaseObservation() if result is None else result.observation
    # For a live conversation, show the last turn, which includes all earlier messages.
    last = result.turns[-1] if result is not None and result.turns else seen
    notes, trouble = _notes(evaluation, shown, case, key[1])
    sha256, source = source_of(case)
    return shapes.CaseShown(
        **msgspec.structs.asdict(_turn(seen, score, last)),
        case=case.id,
        group=case.group,
        tags=case.tags,
        target=key[1],
        trial=key[2],
        status=("running" if key in standing.running else "waiting") if result is None else result.status,
        criteria=case.criteria,
        expected=tuple(_show_expectation(each) for each in case.expected),
        question=last.question,
        turns=() if result is None else _turns(result),
        run=seen.run,
        body_sha256=last.request_sha256,
        place=case.place,
        notes=notes,
        notes_trouble=trouble,
        usage=seen.usage,
        finish=seen.finish,
        model=seen.model,
        error_code=seen.error_code,
        cached=result is not None and result.cached,
        at=0.0 if result is None else result.at,
        source=source,
        source_sha256=sha256,
    )


def observation_of(shown: RunSnapshot, key: Key, turn: int | None = None) -> CaseObservation:
    """The observation of one trial or one of its turns; by default the last turn."""
    result = shown.standing.result(key) if key in shown.standing.keys else None
    if result is None:
        return CaseObservation()
    if turn is None:
        return result.turns[-1] if result.turns else result.observation
    return result.turns[turn] if turn < len(result.turns) else CaseObservation()


def _notes(evaluation: Evaluation, shown: RunSnapshot, case: Case, target: str) -> tuple[tuple[Note, ...], str]:
    began = shown.standing.began
    spec = next(each for each in began.targets if each.name == target)
    # Only the messages are needed here, and nothing is sent for them.
    plain = TargetSpec(name=spec.name, system=spec.system, mock="", file_form=spec.file_form)
    try:
        return evaluation.preview(began.suite, case.id, plain, began.options).delivery.notes, ""
    except Fault as fault:
        return (), fault.message


def media_in(sent: Sequence[Message], answered: Sequence[Message]) -> tuple[Media, ...]:
    """All media of the question and the answer, in the order of their numbers in the blocks."""
    return media_of(ChatAnswer(messages=(*sent, *answered)))


def messages_shown(messages: Sequence[Message]) -> tuple[shapes.MessageShown, ...]:
    """Messages as sent. A tool's result is shown within its call, if the call is there."""
    shown: list[shapes.MessageShown] = []
    for index, message in enumerate(messages):
        if message.role == "tool" and shown:
            continue  # its text is shown in the message with the call
        # The chat has blocks for answers only; other messages are shown in the same way.
        turn = Message("assistant", message.parts)
        results = takewhile(lambda each: each.role == "tool", messages[index + 1 :])
        blocks = answer_shown((turn, *results), len(media_in(messages[:index], ())))
        shown.append(shapes.MessageShown(message.role, message.name or "", blocks))
    return tuple(shown)


def answer_shown(messages: Sequence[Message], first: int = 0) -> tuple[Block, ...]:
    """The messages as blocks like the chat's. `first` is the number of the first image or file."""
    blocks = blocks_of(ChatAnswer(messages=tuple(messages)))
    return tuple(_renumber(block, first) for block in blocks) if first else blocks


def _renumber(block: Block, first: int) -> Block:
    if isinstance(block, MediaBlock):
        return msgspec.structs.replace(block, n=block.n + first)
    if isinstance(block, CallBlock) and block.result is not None and block.result.media:
        result = msgspec.structs.replace(block.result, first=block.result.first + first)
        return msgspec.structs.replace(block, result=result)
    return block


def _turns(result: CaseResult) -> tuple[shapes.TurnShown, ...]:
    scores: list[CaseScore | None] = [*result.score.turns]
    scores += [None] * (len(result.turns) - len(scores))
    return tuple(_turn(seen, score, seen) for seen, score in zip(result.turns, scores, strict=False))


def _turn(seen: CaseObservation, score: CaseScore | None, last: CaseObservation) -> shapes.TurnShown:
    """A turn, or a whole trial, for which the messages of its `last` turn are shown."""
    return shapes.TurnShown(
        messages=messages_shown(last.asked),
        answer=answer_shown(last.messages, len(media_in(last.asked, ()))),
        verdict=None if score is None else score.verdict,
        score=None if score is None else score.score,
        scores=() if score is None else score.scores,
        reason="" if score is None else score.reason,
        exchanges=seen.exchanges,
        seconds=seen.seconds,
        cost=seen.cost,
        error=seen.error,
    )


def _show_expectation(message: CaseMessage) -> shapes.MessageShown:
    """An expected message of a suite; a file is shown by its name."""
    parts: list[Part] = []
    for segment in message.segments:
        match segment:
            case TextSegment():
                parts.append(Text(segment.text))
            case CallSegment():
                parts.append(ToolCall(segment.id, segment.name, argument_text(segment.arguments)))
            case _:
                parts.append(Text(f"<{segment.path}>"))
    return shapes.MessageShown(message.role, message.name, answer_shown((Message("assistant", tuple(parts)),)))
