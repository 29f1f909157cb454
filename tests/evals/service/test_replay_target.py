from pathlib import Path

from sightline.evals.core.target import TargetSpec
from tests.eval_stage import CAPITALS, EvalStage, knows, play, table
from tests.upstream import Upstream


def replay(**more: object) -> TargetSpec:
    return TargetSpec(name="acme", model="acme/m", **{"replay": "session:eval:e_1", **more})  # type: ignore[arg-type]


def test_the_record_answers_and_nobody_is_asked(tmp_path: Path) -> None:
    async def story(stage: EvalStage, upstream: Upstream) -> None:
        first = await stage.run(trials=2, workers=1, cache=False)
        asked = len(upstream.seen)
        again = await stage.run(targets=(replay(),), trials=2, run="e_2")
        assert table(again) == table(first)
        assert len(upstream.seen) == asked
        pairs = zip(first.results, again.results, strict=True)
        assert all(one.observation.exchanges == two.observation.exchanges for one, two in pairs)
        assert all(result.cached for result in again.results)

    play(story, tmp_path)


def test_a_miss_is_loud_and_names_the_nearest_recording(tmp_path: Path) -> None:
    async def story(stage: EvalStage, upstream: Upstream) -> None:
        await stage.run()
        asked = len(upstream.seen)
        changed = CAPITALS.replace("What is the capital of France?", "Which is the capital of France?")
        france, *others = (await stage.run(changed, (replay(),), run="e_2")).results
        assert (france.status, {each.status for each in others} <= {"ok", "quality_failure"}) == (
            "execution_error",
            True,
        )
        assert "+user: Which is the capital of France?" in france.observation.error
        assert len(upstream.seen) == asked

    play(story, tmp_path)


def test_trials_get_recordings_in_their_order_however_often_they_are_asked_for(tmp_path: Path) -> None:
    async def story(stage: EvalStage, upstream: Upstream) -> None:
        upstream.script = [knows(upstream, {"France": f"Paris {number}"}) for number in (1, 2)]
        await stage.run(trials=2, workers=1, cases=("france",), cache=False)
        for run in ("e_2", "e_3"):
            again = await stage.run(targets=(replay(replay=""),), trials=3, cases=("france",), run=run)
            assert [each.observation.text for each in again.results] == ["Paris 1", "Paris 2", "Paris 2"]

    play(story, tmp_path)
