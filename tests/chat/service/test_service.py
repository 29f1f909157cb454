"""The chat put together, and put away."""

import asyncio
from pathlib import Path

from tests.chat.service.chat_stage import ChatStage, play, says_until


def test_it_reads_nothing_before_it_is_asked(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        assert (stage.logbook.kept, stage.service.chat.version) == ({}, 0)
        assert stage.service.sends.sending == ""

    play(story, tmp_path)


def test_closed_it_lets_an_answer_come_to_its_end(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        gate = asyncio.Event()
        stage.watch()
        await stage.begin()
        stage.upstream.script = [says_until(gate, "so ", then=["far"])]
        name = await stage.service.sends.send("v", "hello")
        await stage.news("delta")
        closing = asyncio.ensure_future(stage.service.close(30))
        gate.set()
        await closing
        assert (stage.pair(name).state, stage.pair(name).assistant_text) == ("complete", "so far")

    play(story, tmp_path)
