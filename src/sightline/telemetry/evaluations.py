"""Runs of suites as spans and events: the run is a workflow, each case a span below it, each score an event.

The exchanges of a run are in its trace too. What a case asked of an agent has a trace of its own, to which it links.
"""

from sightline.evals.core.result import CaseResult, Score
from sightline.evals.core.run_state import EvalState
from sightline.evals.service.eval_log import PREFIX
from sightline.model.json import Json, JsonObject
from sightline.telemetry.otlp import INFO, INTERNAL, WARN, SpanPlace, span_of, trace_of, write_event, write_span

RESULT_EVENT = "gen_ai.evaluation.result"
_OPERATION = "evaluate"


def eval_place(run: str) -> SpanPlace:
    """Where the span of a run is: its exchanges have the same name as their session, and so the same trace."""
    return SpanPlace(trace_of(PREFIX + run), span_of(PREFIX + run))


def eval_span(run: str, state: EvalState) -> JsonObject:
    """The span of a run that has ended: from its beginning to the end of its last case."""
    suite, results = state.began.suite, state.results
    values: dict[str, Json] = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": suite.name,
        "sightline.eval.run": run,
        "sightline.eval.end": state.ended,
        "sightline.eval.cases": len(results),
        "sightline.eval.passed": sum(each.status == "ok" for each in results),
    }
    failure = None if state.ended == "finished" else f"the run ended: {state.ended}"
    times = state.began.at, max((each.at + each.seconds for each in results), default=state.began.at)
    return write_span(eval_place(run), f"invoke_workflow {suite.name}", INTERNAL, times, values, failure=failure)


def case_span(run: str, result: CaseResult) -> JsonObject:
    """The span of a case, with links to the spans of what was asked for it."""
    seen = result.observation
    links = [SpanPlace(trace_of(PREFIX + run), span_of(each)) for each in seen.exchanges]
    if seen.run:
        links = [SpanPlace(trace_of(seen.run), span_of(seen.run))]
    values: dict[str, Json] = {
        "gen_ai.operation.name": _OPERATION,
        "gen_ai.request.model": seen.model,
        "sightline.eval.run": run,
        "sightline.eval.case": result.case,
        "sightline.eval.target": result.target,
        "sightline.eval.trial": result.trial,
        "sightline.eval.status": result.status,
        "error.type": (seen.error_code or result.status) if result.status == "execution_error" else None,
    }
    failure = (
        (seen.error or result.score.reason or "the case has no result") if result.status == "execution_error" else None
    )
    times = result.at, result.at + result.seconds
    return write_span(
        _case_place(run, result), f"{_OPERATION} {result.suite or run}", INTERNAL, times, values,
        failure=failure, links=links,
    )  # fmt: skip


def result_events(run: str, result: CaseResult, *, with_content: bool) -> list[JsonObject]:
    """An event for each score of a case. What a grader said of the answer is content."""
    place, ended = _case_place(run, result), result.at + result.seconds
    return [
        write_event(
            place,
            RESULT_EVENT,
            WARN if each.verdict == "not_graded" else INFO,
            ended,
            _score_values(each, with_content=with_content),
        )
        for each in result.score.scores
    ]


def _score_values(score: Score, *, with_content: bool) -> dict[str, Json]:
    return {
        "gen_ai.evaluation.name": score.name or score.type,
        "gen_ai.evaluation.score.value": None if score.score is None else float(score.score),
        "gen_ai.evaluation.score.label": score.verdict,
        "gen_ai.evaluation.explanation": score.reason if with_content else None,
        "error.type": "not_graded" if score.verdict == "not_graded" else None,
    }


def _case_place(run: str, result: CaseResult) -> SpanPlace:
    above = eval_place(run)
    return SpanPlace(above.trace, span_of(f"{run} {result.target} {result.case} {result.trial}"), above.span)
