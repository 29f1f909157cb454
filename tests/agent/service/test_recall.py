import asyncio
from pathlib import Path

import msgspec
import pytest

from sightline.agent.service.round_sender import recall_reply
from sightline.catalog.provider import Quirks
from sightline.model.exchange import Answered
from sightline.store.entries import FactEntry
from tests.loop_stage import calls, count, plan, says
from tests.relay_stage import DIALECTS
from tests.running_stage import RunStage, begins, play, plays
from tests.upstream import Upstream
from tests.upstream import says as answers


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_on_record_is_the_reply_that_was_heard(tmp_path: Path, spoken: str, *, stream: bool) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        upstream.script = [plays(calls(count(1)), spoken, stream=stream), plays(says(), spoken, stream=stream)]
        ended = await stage.run(plan(spoken), prompt=stage.prompt(stream=stream))
        for number, exchange in enumerate(("x_001", "x_002")):
            found = await recall_reply(stage.store, exchange, stage.choice)
            assert found is not None
            assert (found.reply, found.sent) == (ended.rounds[number].reply, None)

    play(story, tmp_path, spoken)


def test_what_is_not_on_record_whole_is_not_recalled(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        upstream.script = [begins(calls(count(1))), answers({"error": {"message": "no"}}, 400), plays(says())]
        for run in ("r_1", "r_2", "r_3"):
            await stage.run(run=run)
        assert await recall_reply(stage.store, "x_000", stage.choice) is None
        assert await recall_reply(stage.store, "x_001", stage.choice) is None
        assert await recall_reply(stage.store, "x_002", stage.choice) is None
        assert await recall_reply(stage.store, "x_003", stage.choice) is not None
        after = len(await stage.store.facts("x_003"))
        stage.store.record([FactEntry("x_003", after, 0.0, Answered("00"))])
        assert await recall_reply(stage.store, "x_003", stage.choice) is None

    play(story, tmp_path)


def test_what_a_server_may_have_told_wrongly_is_not_recalled(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        upstream.script = [plays(says(), "openai-responses")]
        await stage.run(plan("openai-responses"))
        provider = msgspec.structs.replace(stage.choice.provider, quirks=Quirks(reports_length=False))
        stage.catalog.providers["acme"] = provider  # type: ignore[index]
        assert await recall_reply(stage.store, "x_001", stage.choice) is None

    play(story, tmp_path, "openai-responses")


def test_a_body_that_retention_has_taken_is_missed(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        upstream.script = [plays(says())]
        await stage.run()
        await stage.store.settle()

        async def gone(_sha256: str) -> None:
            return None

        stage.store.body = gone  # type: ignore[method-assign]
        assert await recall_reply(stage.store, "x_001", stage.choice) is None

    play(story, tmp_path)
    asyncio.run(asyncio.sleep(0))
