from pathlib import Path

from sightline.evals.core.options import RunOptions
from sightline.evals.service.answer_cache import PREFIX, AnswerCache
from tests.eval_stage import ACME, EvalStage, play
from tests.store.traffic import prices
from tests.upstream import Upstream


async def opened(stage: EvalStage, target: str = "acme") -> AnswerCache:
    run = stage.stage
    cache = AnswerCache(run.store.logbook, run.store, target, prices, run.clock)
    await cache.load()
    return cache


def test_an_answer_is_found_in_the_record(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        standing = await stage.run()
        ready = stage.evaluation.preview(stage.suite(), "france", ACME, RunOptions()).prepared
        assert ready is not None
        cache = await opened(stage)
        found = await cache.find(cache.key(ready, 0), ready.sha256)
        assert found is not None
        assert found.exchange == standing.results[0].observation.exchanges[0]
        assert found.reply.choice.finish == "stop"
        assert await cache.find(cache.key(ready, 1), ready.sha256) is None
        assert await cache.find(cache.key(ready, 0), "of other bytes") is None
        elsewhere = await opened(stage, "twin")
        assert await elsewhere.find(elsewhere.key(ready, 0), ready.sha256) is None

    play(story, tmp_path)


def test_what_the_record_holds_no_more_is_no_answer(tmp_path: Path) -> None:
    async def story(stage: EvalStage, upstream: Upstream) -> None:
        await stage.run()
        await stage.stage.store.settle()
        await stage.stage.store.prune(older_than=stage.stage.clock.now() + 1)
        await stage.run(run="e_2")
        assert len(upstream.seen) == 6

    play(story, tmp_path)


def test_two_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        caches = [await opened(stage), await opened(stage)]
        for number, cache in enumerate(caches):
            cache.keep(f"k{number}", f"x_{number}")
        for cache in caches:
            await cache.flush()
        assert len(await stage.stage.store.logbook.lines(PREFIX + "acme")) == 2
        assert (await opened(stage))._known == {"k0": "x_0", "k1": "x_1"}

    play(story, tmp_path)
