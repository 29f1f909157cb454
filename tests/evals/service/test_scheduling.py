import asyncio

from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Status, Verdict
from sightline.evals.core.run_state import CaseDone, EvalBegan, EvalState, RunOptions
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.eval_log import Meter
from sightline.evals.service.target import Spending
from tests.eval_stage import ACME, CAPITALS, EvalStage, knows, on_stage, table, verdicts
from tests.fake_clock import FakeClock
from tests.upstream import Talk, Upstream, answer

CHAIN = """
tests:
  - id: last
    depends_on: [middle]
    {how}
    input: Spain?
    assertions: [{{type: contains, value: Toledo}}]
  - id: middle
    depends_on: [first]
    input: Italy?
    assertions: [{{type: contains, value: {wanted}}}]
  - id: first
    input: France?
    assertions: [{{type: contains, value: Paris}}]
"""


def chain(wanted: str = "Rome", how: str = "on_dependency_failure: skip") -> str:
    return CHAIN.format(wanted=wanted, how=how)


@on_stage
async def test_cases_run_after_those_that_they_depend_on(stage: EvalStage, upstream: Upstream) -> None:
    standing = await stage.run(chain())
    assert [seen.json()["messages"][-1]["content"] for seen in upstream.seen] == ["France?", "Italy?", "Spain?"]
    assert verdicts(standing) == {"last": "pass", "middle": "pass", "first": "pass"}


@on_stage
async def test_what_depends_on_a_failure_is_skipped_failed_or_run_as_it_says(
    stage: EvalStage, upstream: Upstream
) -> None:
    broken = chain().replace("input: Italy?", "input: [{role: user, content: [{type: file, value: gone.md}]}]")
    skipped = await stage.run(broken, run="e_1")
    assert table(skipped)[0][3:] == ("skipped", "skip", None)
    assert skipped.results[0].score.reason == "it depends on middle, which could not be carried out"
    assert len(upstream.seen) == 1
    failed = await stage.run(broken.replace("failure: skip", "failure: fail"), run="e_2")
    assert table(failed)[0][3:] == ("quality_failure", "fail", 0.0)
    run = await stage.run(broken.replace("failure: skip", "failure: run"), run="e_3")
    assert table(run)[0][3:] == ("ok", "pass", 1.0)
    assert (stage.told[-1].errors, stage.told[-1].passed) == (1, 2)


@on_stage
async def test_what_depends_on_a_case_that_merely_failed_is_run(stage: EvalStage, upstream: Upstream) -> None:
    standing = await stage.run(chain("Milan"))
    assert verdicts(standing) == {"last": "pass", "middle": "fail", "first": "pass"}
    assert len(upstream.seen) == 3


@on_stage
async def test_a_target_has_as_many_cases_under_way_as_it_takes_and_no_more(
    stage: EvalStage, upstream: Upstream
) -> None:
    under_way, most, both = 0, 0, asyncio.Event()

    async def counting(talk: Talk) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 2:
            both.set()
        await both.wait()
        await knows(upstream, {})(talk)
        under_way -= 1

    upstream.script = [counting]
    many = "tests:\n" + "".join(
        f"  - {{id: c{n}, input: hi, assertions: [{{type: contains, value: x}}]}}\n" for n in range(10)
    )
    spec = TargetSpec(name="acme", model="acme/m", concurrency=2)
    assert len((await stage.run(many, (spec,), cache=False)).results) == 10
    assert most == 2


@on_stage
async def test_a_budget_stops_what_is_not_begun_and_lets_the_rest_finish(stage: EvalStage, upstream: Upstream) -> None:
    one = (await stage.run(run="e_0", cache=False)).results[0].observation.cost
    assert one
    standing = await stage.run(budget_usd=one * 1.5, workers=1, cache=False)
    assert (len(standing.results), standing.ended) == (2, "budget")
    assert (await stage.evaluation.show("e_1")).state == "stopped"
    asked = len(upstream.seen)
    again = await stage.resume()
    assert (len(again.results), again.ended, len(upstream.seen)) == (2, "budget", asked)
    evaluation = stage.evaluation
    more = await evaluation.resume("e_1", stage.told.append, RunOptions(budget_usd=one * 9, workers=2))
    assert (len(more.results), more.ended) == (3, "finished")
    shown = await evaluation.show("e_1")
    assert (shown.standing.began.options.budget_usd, shown.state) == (one * 9, "ended")
    same = await evaluation.rerun("e_1", stage.told.append, options=RunOptions(workers=2))
    assert len(same.results) == 3


@on_stage
async def test_a_suite_can_want_to_end_at_the_first_error(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [answer(400, b"{}"), knows(upstream, {"Italy": "Rome"})]
    standing = await stage.run(CAPITALS + "execution: {fail_on_error: true}\n", workers=1)
    assert ([result.status for result in standing.results], standing.ended) == (["execution_error"], "stopped")
    went_on = await stage.run(workers=1, run="e_2")
    assert len(went_on.results) == 3


@on_stage
async def test_trials_that_have_cost_enough_are_not_repeated(stage: EvalStage, upstream: Upstream) -> None:
    text = """
tests:
  - id: a
    input: France?
    execution: {trials: {count: 3, cost_limit_usd: 0.0000001}}
    assertions: [{type: contains, value: Paris}]
"""
    standing = await stage.run(text, (ACME,), workers=1)
    assert [result.status for result in standing.results] == ["ok", "skipped", "skipped"]
    assert "have cost" in standing.results[1].score.reason
    assert len(upstream.seen) == 1


@on_stage
async def test_no_workers_are_started_without_work(stage: EvalStage, upstream: Upstream) -> None:
    before = len(asyncio.all_tasks())

    async def counting(talk: Talk) -> None:
        assert len(asyncio.all_tasks()) < before + 100
        await knows(upstream, {})(talk)

    upstream.script = [counting]
    spec = TargetSpec(name="acme", model="acme/m", concurrency=100_000)
    assert [each.status for each in (await stage.run(CAPITALS, (spec,))).results] == ["quality_failure"] * 3


def result(trial: int, status: Status = "ok", verdict: Verdict = "pass", *, cached: bool = False) -> CaseResult:
    score = CaseScore(verdict=verdict)
    return CaseResult(
        case="a", target="t", trial=trial, status=status, score=score, observation=CaseObservation(), cached=cached
    )


def test_remaining_time_is_estimated_from_the_rate_of_this_process() -> None:
    began = EvalBegan(
        suite=Suite(name="s", cases=(Case(id="a"),)),
        targets=(TargetSpec(name="t", mock=""),),
        options=RunOptions(trials=10),
    )
    standing = EvalState(began)
    for trial in (0, 1):
        standing.add(CaseDone(result(trial)))
    clock, purse = FakeClock(), Spending([0.5, None])
    meter = Meter("e_1", standing, purse, clock.monotonic)
    first = meter.progress()
    assert (first.done, first.of, first.rate, first.left_s, first.passed, first.last) == (2, 10, 0.0, None, 2, None)
    clock.time += 2
    for trial, (status, verdict) in enumerate(
        [("quality_failure", "fail"), ("execution_error", "not_graded"), ("ok", "not_graded"), ("skipped", "skip")], 2
    ):
        told = meter.add(result(trial, status, verdict))  # type: ignore[arg-type]
    told = meter.add(result(6, "ok", "skip", cached=True))
    assert (told.done, told.failed, told.errors, told.not_graded, told.skipped, told.cached) == (7, 1, 1, 1, 2, 1)
    assert (told.rate, told.left_s, told.seconds, told.cost, told.cost_unknown) == (2.5, 1.2, 2, 0.5, 1)
    assert told.last is not None
