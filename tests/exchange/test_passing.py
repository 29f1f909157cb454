import asyncio
import json
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.exchange import stream_pump as passing
from sightline.model.exchange import ExchangeFinished
from sightline.model.fold import fold
from tests.contract.test_law_4_stream_is_whole import read_stream
from tests.relay_stage import Stage, asks, play
from tests.reply_samples import streamed
from tests.upstream import LAST, chunk, head, pieces, stall

SSE = [("Content-Type", "text/event-stream")]


def test_an_answer_is_cut_between_two_reads_as_well(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.upstream.script = [stall(head(200, SSE), chunk(streamed("openai-chat")[0]))]
        pieces = []
        async with await stage.relay.start(asks("openai-chat", stream=True)) as relayed:
            async for piece in relayed:
                pieces.append(piece)
                if len(pieces) == 1:
                    (exchange,) = stage.relay._active
                    exchange.abort(Fault(Code.OVERLOADED, "that is enough"))
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


def kept_open(spoken: str, *, usage_late: bool) -> list[bytes]:
    """The frames of a stream without those that say its end."""
    frames = streamed(spoken)
    if not usage_late:
        return frames
    last = json.loads(frames[-1].removeprefix(b"data: "))
    usage = {"usageMetadata": last.pop("usageMetadata")}
    return [*frames[:-1], *(b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in (last, usage))]


@pytest.mark.parametrize("usage_late", [False, True])
@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic"])
def test_a_finished_stream_that_is_kept_open_ends_soon_for_another_dialect(
    tmp_path: Path, client: str, usage_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "LATE_SECONDS", 0.05)

    async def story(stage: Stage) -> None:
        frames = kept_open("gemini", usage_late=usage_late)
        stage.upstream.script = [stall(head(200, SSE), *(chunk(frame) for frame in frames))]
        got = await stage.ask(asks(client, stream=True))
        assert fold(read_stream(client, [got.body])).choice.finish == "tool_calls"
        last = stage.facts()[-1]
        assert isinstance(last, ExchangeFinished)
        assert last.usage is not None
        assert last.usage.input_tokens == 11
        await stage.upstream.gone()

    play(story, tmp_path, "gemini")


def test_a_stream_of_the_same_dialect_passes_until_its_server_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "LATE_SECONDS", 0.0)

    async def story(stage: Stage) -> None:
        frames, go_on = streamed("gemini"), asyncio.Event()
        more = b": and this\n\n"
        stage.upstream.script = [pieces(head(200, SSE), *map(chunk, frames), go_on, chunk(more), LAST)]
        got = []
        async with await stage.relay.start(asks("gemini", stream=True)) as relayed:
            async for piece in relayed:
                got.append(piece)
                if b"".join(got) == b"".join(frames):
                    go_on.set()
        assert b"".join(got) == b"".join(frames) + more
        assert stage.kinds()[-1] == "finished"

    play(story, tmp_path, "gemini")
