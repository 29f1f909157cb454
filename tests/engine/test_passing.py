import asyncio
from pathlib import Path

from sightline.errors import Code, Fault
from tests.relay_stage import Stage, asks, play
from tests.reply_samples import streamed
from tests.upstream import chunk, head, stall

SSE = [("Content-Type", "text/event-stream")]


def test_an_answer_is_cut_between_two_reads_as_well(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.upstream.script = [stall(head(200, SSE), chunk(streamed("openai-chat")[0]))]
        pieces = []
        async with await stage.relay.start(asks("openai-chat", stream=True)) as relayed:
            async for piece in relayed:
                pieces.append(piece)
                if len(pieces) == 1:
                    (journey,) = stage.relay._active
                    await journey.cut(Fault(Code.OVERLOADED, "that is enough"))
        assert b"that is enough" in pieces[-1]
        assert stage.kinds()[-1] == "failed"
        assert asyncio.current_task() is not None

    play(story, tmp_path)


def test_leaving_twice_is_leaving_once(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.upstream.script = [stall(head(200, SSE))]
        relayed = await stage.relay.start(asks("openai-chat", stream=True))
        async with relayed:
            pass
        async with relayed:
            pass
        assert stage.kinds().count("cancelled") == 1

    play(story, tmp_path)
