import asyncio
from pathlib import Path

from sightline.evals.service.context import OwnSharing, Sharing
from tests.eval_stage import EvalStage, play
from tests.upstream import Upstream


def test_all_who_ask_for_a_targets_answers_have_the_same(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        run, around = stage.stage, stage.evaluation.surroundings
        own = OwnSharing(run.engine, run.store.logbook, around, is_cached=True)
        sharing: Sharing = own
        first, second = await asyncio.gather(sharing.answers("acme"), sharing.answers("acme"))
        assert first is second is not None
        assert await sharing.answers("other") is not first
        first.keep("k", "x_1")
        await sharing.close()
        assert len(await run.store.logbook.lines("eval-answers:acme")) == 1

    play(story, tmp_path)


def test_there_are_none_where_none_are_wanted_or_nothing_is_on_record(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        run, around = stage.stage, stage.evaluation.surroundings
        assert await OwnSharing(run.engine, run.store.logbook, around, is_cached=False).answers("acme") is None
        bare = EvalStage(run, stage.root, store=None).evaluation.surroundings
        assert await OwnSharing(run.engine, run.store.logbook, bare, is_cached=True).answers("acme") is None

    play(story, tmp_path)
