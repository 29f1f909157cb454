import asyncio
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.evals.core.run_state import RunOptions
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.evaluation import Evaluation
from sightline.exchange.hub import Announced
from tests.eval_stage import ACME, CAPITALS, EvalStage, knows, on_stage, open_evals, table, verdicts
from tests.loop_stage import says
from tests.running_stage import KEY, plays
from tests.upstream import Talk, Upstream, answer

MOCK = TargetSpec(name="parrot", mock="Paris and Rome")


@on_stage
async def test_a_suite_is_run_and_every_case_has_a_result(stage: EvalStage, upstream: Upstream) -> None:
    standing = await stage.run()
    assert verdicts(standing) == {"france": "pass", "italy": "pass", "spain": "fail"}
    assert len(upstream.seen) == 3
    france = standing.results[0]
    assert (france.observation.text, france.observation.model, france.cached) == ("Paris", "m", False)
    assert france.observation.usage is not None
    assert france.observation.cost
    shown = await stage.evaluation.show("e_1")
    assert (shown.state, table(shown.standing)) == ("ended", table(standing))
    assert (stage.told[-1].done, stage.told[-1].of, stage.told[-1].passed) == (3, 3, 2)
    await stage.stage.store.settle()
    summary = await stage.stage.store.facts(france.observation.exchanges[0])
    assert summary[0].fact.session == "eval:e_1"  # type: ignore[union-attr]


@on_stage
async def test_targets_and_trials_are_a_matrix(stage: EvalStage, upstream: Upstream) -> None:
    standing = await stage.run(targets=(ACME, MOCK), trials=2)
    assert len(standing.results) == 12
    assert len(upstream.seen) == 6
    assert [row[:5] for row in table(standing)[:4]] == [
        ("france", "acme", 0, "ok", "pass"),
        ("france", "acme", 1, "ok", "pass"),
        ("france", "parrot", 0, "ok", "pass"),
        ("france", "parrot", 1, "ok", "pass"),
    ]


@on_stage
async def test_what_a_person_may_see_is_without_keys(stage: EvalStage, upstream: Upstream) -> None:
    upstream.script = [plays(says(f"Paris {KEY}"), stream=False)]
    await stage.run()
    lines = await stage.stage.store.logbook.lines("eval:e_1")
    assert all(KEY.encode() not in line.data for line in lines)


@on_stage
async def test_news_are_announced(stage: EvalStage) -> None:
    with stage.stage.hub.watch() as watch:
        await stage.run(targets=(MOCK,))
        async for each in watch:
            if isinstance(each, Announced) and each.event == "eval" and each.value["done"] == 3:
                assert (each.value["run"], each.value["of"]) == ("e_1", 3)
                break


@on_stage
async def test_what_cannot_be_begun_is_a_fault_and_no_run(stage: EvalStage, upstream: Upstream) -> None:
    wrong = [
        ((), "no target is named"),
        ((ACME, ACME), "two targets are named acme"),
        ((TargetSpec(name="a", model="nobody/knows"),), "no provider is known"),
        ((TargetSpec(name="a", mock="x", replay=""),), "names mock and replay"),
        ((TargetSpec(name="a", model="acme/m", toolsets=("x",)),), "nothing here runs tools"),
    ]
    for targets, words in wrong:
        with pytest.raises(Fault, match=words):
            await stage.run(targets=targets)
    with pytest.raises(Fault, match="no case of"):
        await stage.run(cases=("nothing",))
    with pytest.raises(Fault, match="prices of unpriced are not known"):
        await stage.run(targets=(TargetSpec(name="a", model="acme/unpriced"),), budget_usd=1.0)
    assert (await stage.stage.store.logbook.logs("eval:"), upstream.seen) == ([], [])


@on_stage
async def test_stopped_run_finishes_running_cases_and_can_be_resumed(stage: EvalStage, upstream: Upstream) -> None:
    async def stops(talk: Talk) -> None:
        stage.evaluation.stop("e_1")
        await knows(upstream, {"France": "Paris"})(talk)

    upstream.script = [stops, knows(upstream, {"Italy": "Rome", "Spain": "Madrid"})]
    standing = await stage.run(workers=1)
    assert (verdicts(standing), standing.ended) == ({"france": "pass"}, "stopped")
    assert (await stage.evaluation.show("e_1")).state == "stopped"
    standing = await stage.resume()
    assert verdicts(standing) == {"france": "pass", "italy": "pass", "spain": "pass"}
    assert len(upstream.seen) == 3
    assert (await stage.evaluation.show("e_1")).state == "ended"
    with pytest.raises(Fault, match="not in progress here"):
        stage.evaluation.stop("e_1")


@on_stage
async def test_a_run_that_is_cut_off_keeps_what_is_done(stage: EvalStage, upstream: Upstream) -> None:
    waits = asyncio.Event()

    async def stalls(talk: Talk) -> None:
        waits.set()
        await talk.stall()

    upstream.script = [knows(upstream, {"France": "Paris"}), stalls, knows(upstream, {"Italy": "Rome"})]
    task = asyncio.ensure_future(stage.run(workers=1))
    await waits.wait()
    with pytest.raises(Fault, match="is under way"):
        await stage.resume()
    assert (await stage.evaluation.list_runs(5))[0].state == "running"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    shown = await stage.evaluation.show("e_1")
    assert (shown.state, verdicts(shown.standing)) == ("stopped", {"france": "pass"})
    assert verdicts(await stage.resume()) == {"france": "pass", "italy": "pass", "spain": "fail"}


async def test_a_run_whose_process_is_gone_is_interrupted_and_one_that_lives_elsewhere_runs(tmp_path: Path) -> None:
    async with open_evals(tmp_path, is_alive=lambda name: name == "alive") as (stage, upstream):
        upstream.script = [answer(500, b"{}")]
        await stage.run(targets=(MOCK,))
        logbook = stage.stage.store.logbook
        lines = [line.data for line in await logbook.lines("eval:e_1")]
        for run, by in (("e_2", b"gone"), ("e_3", b"alive")):
            kept = [line.replace(b'"here"', b'"%s"' % by) for line in lines[:4]]
            await logbook.append(f"eval:{run}", 0, kept, 1.0)
        states = {each.run: each.state for each in await stage.evaluation.list_runs(5)}
        assert states == {"e_1": "ended", "e_2": "interrupted", "e_3": "running"}
        with pytest.raises(Fault, match="is under way"):
            await stage.resume("e_3")
        assert len((await stage.resume("e_2")).results) == 3


@on_stage
async def test_what_failed_is_run_again_and_nothing_else(stage: EvalStage, upstream: Upstream) -> None:
    first = await stage.run(cache=False)
    assert first.failed == (("spain", "acme", 0),)
    upstream.script = [knows(upstream, {"Spain": "Madrid"})]
    again = await stage.evaluation.rerun("e_1", stage.told.append)
    assert verdicts(again) == {"france": "pass", "italy": "pass", "spain": "pass"}
    assert len(upstream.seen) == 4
    assert (stage.told[-1].done, stage.told[-1].passed, stage.told[-1].failed) == (3, 3, 0)
    chosen = await stage.evaluation.rerun("e_1", stage.told.append, keys=[("italy", "acme", 0)])
    assert verdicts(chosen)["italy"] == "fail"
    with pytest.raises(Fault, match="has no rome on acme"):
        await stage.evaluation.rerun("e_1", stage.told.append, keys=[("rome", "acme", 0)])


@on_stage
async def test_run_is_not_resumed_after_its_files_changed(stage: EvalStage, upstream: Upstream) -> None:
    text = """
tests:
  - id: a
    input: [{role: user, content: [{type: file, value: notes.md}, {type: text, value: France?}]}]
    assertions: [{type: contains, value: Paris}]
"""
    (stage.root / "notes.md").write_text("Be brief.")
    await stage.run(text)
    assert "Be brief." in str(upstream.seen[0].json()["messages"])
    (stage.root / "notes.md").write_text("Be long.")
    with pytest.raises(Fault, match=r"notes\.md changed since the run e_1 began"):
        await stage.resume()
    with pytest.raises(Fault, match="there is no run 'e_9'"):
        await stage.resume("e_9")
    with pytest.raises(Fault, match="there is no run 'e_9'"):
        await stage.evaluation.show("e_9")


@on_stage
async def test_a_run_that_another_process_takes_over_ends_here(stage: EvalStage, upstream: Upstream) -> None:
    async def overtaken(talk: Talk) -> None:
        logbook = stage.stage.store.logbook
        lines = await logbook.lines("eval:e_1")
        await logbook.append("eval:e_1", len(lines), [lines[1].data], 1.0)
        await knows(upstream, {})(talk)

    upstream.script = [overtaken]
    with pytest.raises(Fault, match="taken over by another process") as caught:
        await stage.run(workers=1)
    assert caught.value.status == 409


@on_stage
async def test_a_preview_is_the_exact_request(stage: EvalStage, upstream: Upstream) -> None:
    suite = stage.suite()
    preview = stage.evaluation.preview(suite, "france", ACME, RunOptions())
    assert preview.prepared is not None
    await stage.run(cases=("france",))
    assert upstream.seen[0].body == preview.prepared.body
    assert preview.delivery.question == "What is the capital of France?"
    assert stage.evaluation.preview(suite, "france", MOCK, RunOptions()).prepared is None
    with pytest.raises(Fault, match="has no case 'rome'") as caught:
        stage.evaluation.preview(suite, "rome", ACME, RunOptions())
    assert caught.value.code is Code.USAGE


@on_stage
async def test_runs_are_listed_by_suite(stage: EvalStage) -> None:
    await stage.run(targets=(MOCK,))
    await stage.run(CAPITALS.replace("name: capitals", "name: others"), (MOCK,), run="e_2")
    assert [(each.run, each.name, each.cases, each.done, each.of) for each in await stage.evaluation.list_runs(5)] == [
        ("e_2", "others", 3, 3, 3),
        ("e_1", "capitals", 3, 3, 3),
    ]
    assert [each.run for each in await stage.evaluation.list_runs(1)] == ["e_2"]
    assert [each.run for each in await stage.evaluation.list_runs(5, "capitals")] == ["e_1"]
    assert stage.evaluation.make_id().startswith("e_")


async def test_run_is_over_when_its_last_fact_is_announced(tmp_path: Path) -> None:
    class Listener:
        """Tries to stop the run in the very moment in which it hears of its last fact."""

        evaluation: Evaluation
        told = ""

        def announce(self, _event: str, value: dict[str, object]) -> None:
            if value["version"] == 2 + 2 * 3 + 1:
                try:
                    self.evaluation.stop("e_1")
                except Fault as fault:
                    self.told = fault.message

    listener = Listener()
    async with open_evals(tmp_path, hub=listener) as (stage, _):
        listener.evaluation = stage.evaluation
        await stage.run(targets=(MOCK,))
        assert listener.told == "the run 'e_1' is not in progress here"
