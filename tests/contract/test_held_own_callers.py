"""Our own callers are held like anybody else: what they ask can be seen, changed, answered and refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sightline.catalog.provider import Provider
from sightline.editing.operations import Set
from sightline.errors import Fault
from sightline.exchange.interception.hold import Hold
from sightline.model.parts import Text
from tests.engine_stage import EngineStage
from tests.holding import JSON, SSE, promptly, said_by
from tests.reply_samples import SAYS, streamed, whole
from tests.upstream import Upstream, answer


@asynccontextmanager
async def open_stage(folder: Path) -> AsyncIterator[tuple[EngineStage, Upstream]]:
    async with Upstream() as upstream:
        stage = EngineStage(folder, Provider(base_url=upstream.url, key_env="ACME_KEY"))
        stage.engine.relay.holds.set_mode("every")
        try:
            yield stage, upstream
        finally:
            await stage.close()


async def asked(stage: EngineStage, *, stream: bool) -> tuple["asyncio.Future[Any]", Hold]:
    """A question on its way, and its hold."""
    with stage.engine.relay.hub.watch() as watch:
        asking = asyncio.ensure_future(stage.ask(stage.ready(stream=stream)))
        while not stage.engine.relay.holds.waiting:
            await anext(watch)
    return asking, stage.engine.relay.holds.waiting[0]


def words(reply: Any) -> str:
    return "".join(part.text for part in reply.choice.parts if isinstance(part, Text))


@pytest.mark.parametrize("stream", [False, True])
async def test_what_one_of_us_asks_is_held_edited_and_sent(tmp_path: Path, stream: bool) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        frames = b"".join(streamed("openai-chat", SAYS))
        upstream.script = [answer(200, frames, SSE) if stream else answer(200, whole("openai-chat", SAYS), JSON)]
        asking, hold = await asked(stage, stream=stream)
        holds = stage.engine.relay.holds
        holds.edit(hold.exchange, Set(pointer="/messages/0/content", value="ho"))
        holds.release(hold.exchange, hold.draft.sha256)
        assert words(await promptly(asking)) == "Hello there."
        assert upstream.seen[0].body == hold.draft.data
        assert stage.kinds() == ["received", "held", "edited", "released", "attempt", "finished"]
        assert [attempt.sha256 for attempt in stage.tried] == [hold.draft.sha256]


@pytest.mark.parametrize("stream", [False, True])
async def test_one_of_us_may_be_answered_by_hand_and_refused(tmp_path: Path, stream: bool) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        holds = stage.engine.relay.holds
        asking, hold = await asked(stage, stream=stream)
        holds.answer(hold.exchange, said_by("by hand"))
        assert words(await promptly(asking)) == "by hand"
        asking, hold = await asked(stage, stream=stream)
        holds.drop(hold.exchange, "not this one")
        with pytest.raises(Fault, match="not this one"):
            await promptly(asking)
        assert not upstream.seen
