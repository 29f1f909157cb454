import asyncio
import json
from pathlib import Path

import pytest

from sightline.exchange.client_response import ClientResponse
from sightline.exchange.keepalive import TICK, sign_of_life
from tests.holding import CODED, JSON, SSE, asking, coded, held, holding, let_go, promptly
from tests.relay_stage import DIALECTS, REQUESTS, Stage, asks, open_stage
from tests.reply_samples import SAYS, heard, streamed, whole
from tests.stepping_clock import SteppingClock
from tests.upstream import answer, chunk, head, pieces, says

CODEX = (("User-Agent", "codex_cli_rs/0.99.0 (Linux)"),)


async def opened(stage: Stage, spoken: str, **more: object) -> tuple[ClientResponse, list[bytes]]:
    """A stream that was opened because nobody decides; and the first sign that comes through it."""
    starting = asyncio.get_running_loop().create_task(
        stage.relay.start(asks(spoken, stream=True, received=stage.clock.time, **more))
    )
    await held(stage)
    await stage.clock.asleep()
    await stage.clock.forward(TICK)
    relayed = await promptly(starting)
    return relayed, [await promptly(anext(aiter(relayed)))]


async def released(stage: Stage, spoken: str = "openai-chat", **more: object) -> bytes:
    """What comes through such a stream when its request is let go at last."""
    relayed, _ = await opened(stage, spoken, **more)
    async with relayed:
        let_go(stage, await held(stage))
        return await promptly(rest(relayed))


async def rest(relayed: ClientResponse) -> bytes:
    return b"".join([piece async for piece in relayed])


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_a_stream_is_opened_early_and_kept_alive_for_longer_than_any_client_waits(
    tmp_path: Path, spoken: str
) -> None:
    async with holding(tmp_path, spoken, clock=SteppingClock()) as stage:
        frames = streamed(spoken)
        stage.upstream.script = [answer(200, b"".join(frames), SSE)]
        relayed, signs = await opened(stage, spoken)
        async with relayed:
            assert relayed.status == 200
            told = dict(relayed.headers)
            assert told[b"content-type"].startswith(b"text/event-stream")
            assert told[b"x-sightline-exchange"] == b"x_1"
            assert told[b"x-sightline-overhead-ms"] == b"0.000"
            while stage.clock.time - stage.relay.holds.waiting[0].since < 400:
                coming = asyncio.ensure_future(anext(aiter(relayed)))
                await stage.clock.asleep()
                await stage.clock.forward(TICK)
                signs.append(await promptly(coming))
            assert len(signs) == 40
            assert set(signs) == {sign_of_life(asks(spoken))}
            assert not heard(spoken, b"".join(signs)).choice.parts
            assert not stage.upstream.seen
            let_go(stage, await held(stage))
            assert await promptly(rest(relayed)) == b"".join(frames)
        assert stage.kinds() == ["received", "held", "released", "attempt", "finished"]
        assert heard(spoken, b"".join([*signs, *frames])).choice.finish == "tool_calls"


def test_each_reader_gets_the_sign_that_it_passes_over() -> None:
    assert sign_of_life(asks("openai-chat")).startswith(b":")
    assert sign_of_life(asks("openai-responses")).startswith(b":")
    assert sign_of_life(asks("openai-chat", headers=CODEX)).startswith(b":")
    assert sign_of_life(asks("anthropic")).startswith(b"event: ping\n")
    assert sign_of_life(asks("gemini")).strip() == b""
    assert b"data: {" in sign_of_life(asks("openai-responses", headers=CODEX))
    assert b"data: {" in sign_of_life(asks("openai-responses", headers=(("originator", "codex_exec"),)))


async def test_client_without_event_stream_gets_no_keepalive(tmp_path: Path) -> None:
    async with holding(tmp_path, "gemini", clock=SteppingClock()) as stage:
        stage.upstream.script = [answer(200, b"[" + whole("gemini", SAYS) + b"]", JSON)]
        async with asking(stage, asks("gemini", stream=True, query="")) as (client,):
            await stage.clock.forward(10 * TICK)
            assert not stage.clock.sleepers
            let_go(stage, await held(stage))
        assert client.result().body == b"[" + whole("gemini", SAYS) + b"]"


async def test_early_release_keeps_the_status_of_the_provider(tmp_path: Path) -> None:
    async with holding(tmp_path, clock=SteppingClock()) as stage:
        gate = asyncio.Event()
        stage.upstream.script = [pieces(gate, head(401, JSON, framing="2"), b"{}")]
        async with asking(stage, asks("openai-chat", stream=True)) as (client,):
            await stage.clock.asleep()
            await stage.clock.forward(TICK - 1)
            let_go(stage, await held(stage))
            await promptly(stage.upstream.arrived(1))
            # It is the provider who is slow now, and its status may still come.
            await stage.clock.forward(TICK)
            gate.set()
        assert client.result().status == 401


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_drop_is_reported_inside_an_open_stream(tmp_path: Path, spoken: str) -> None:
    async with holding(tmp_path, spoken, clock=SteppingClock()) as stage:
        relayed, _ = await opened(stage, spoken)
        async with relayed:
            stage.relay.holds.drop("x_1", "no such luck")
            reply = heard(spoken, await promptly(rest(relayed)))
        assert "no such luck" in reply.fault.message
        assert "no such luck" in relayed.fault.message
        assert stage.kinds() == ["received", "held", "dropped"]


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_provider_error_is_reported_inside_an_open_stream(tmp_path: Path, spoken: str) -> None:
    async with holding(tmp_path, spoken, clock=SteppingClock()) as stage:
        stage.upstream.script = [answer(403, b"<html>go away</html>", JSON)]
        reply = heard(spoken, await released(stage, spoken))
        assert "go away" in reply.fault.message
        assert stage.kinds()[-1] == "failed"


async def test_an_error_of_json_keeps_its_words(tmp_path: Path) -> None:
    async with holding(tmp_path, clock=SteppingClock()) as stage:
        stage.upstream.script = [says({"error": {"message": "no such model", "code": "model_not_found"}}, 404)]
        data = await released(stage)
        assert b"no such model" in data
        assert b"model_not_found" in data


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_a_whole_answer_becomes_the_stream_that_was_begun(tmp_path: Path, spoken: str) -> None:
    async with holding(tmp_path, spoken, clock=SteppingClock()) as stage:
        stage.upstream.script = [answer(200, whole(spoken), JSON)]
        reply = heard(spoken, await released(stage, spoken))
        assert (reply.fault, reply.choice.finish) == (None, "tool_calls")
        assert stage.kinds()[-1] == "finished"


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": True}}])
async def test_early_opened_stream_includes_usage_only_if_requested(tmp_path: Path, options: dict[str, object]) -> None:
    body = json.dumps({**REQUESTS["openai-chat"], "stream": True, **options}).encode()

    async with holding(tmp_path, clock=SteppingClock()) as stage:
        stage.upstream.script = [answer(200, whole("openai-chat"), JSON)]
        data = await released(stage, body=body)
        assert (b'"choices":[]' in data) == bool(options)


async def test_a_response_that_fails_in_an_open_stream_says_when_it_was_made(tmp_path: Path) -> None:
    async with holding(tmp_path, "openai-responses", clock=SteppingClock()) as stage:
        relayed, _ = await opened(stage, "openai-responses")
        async with relayed:
            stage.relay.holds.drop("x_1", "no")
            data = await promptly(rest(relayed))
        assert f'"created_at":{int(stage.clock.time)}'.encode() in data
        assert b'"created_at":0' not in data


@pytest.mark.parametrize("is_cut", [False, True])
async def test_compressed_stream_is_decoded_once_the_head_was_sent_without_it(tmp_path: Path, is_cut: bool) -> None:
    frames = streamed("openai-chat", SAYS)
    async with holding(tmp_path, clock=SteppingClock()) as stage:
        packed = coded(frames)
        if is_cut:
            stage.upstream.script = [pieces(head(200, CODED), chunk(packed[:90]), then="eof")]
        else:
            stage.upstream.script = [answer(200, packed, CODED)]
        data = await released(stage, headers=(("Accept-Encoding", "gzip"),))
        if is_cut:
            assert b'"error"' in data
            assert stage.kinds()[-1] == "failed"
        else:
            assert data == b"".join(frames)


async def test_compressed_error_is_decoded_in_an_open_stream(tmp_path: Path) -> None:
    async with holding(tmp_path, clock=SteppingClock()) as stage:
        body = coded([b'{"error":{"message":"too bad"}}'])
        stage.upstream.script = [answer(400, body, [*JSON, ("Content-Encoding", "gzip")])]
        assert b"too bad" in await released(stage, headers=(("Accept-Encoding", "gzip"),))


async def test_a_client_that_leaves_the_open_stream_ends_its_hold(tmp_path: Path) -> None:
    async with holding(tmp_path, clock=SteppingClock()) as stage:
        relayed, _ = await opened(stage, "openai-chat")
        async with relayed:
            pass
        assert stage.kinds() == ["received", "held", "cancelled"]
        assert not stage.relay._active
        assert [piece async for piece in relayed] == []


async def test_a_client_that_leaves_behind_the_end_has_had_everything(tmp_path: Path) -> None:
    frames = streamed("openai-chat", SAYS)
    async with holding(tmp_path, clock=SteppingClock()) as stage:
        stage.upstream.script = [pieces(head(200, SSE), *map(chunk, frames), asyncio.Event())]
        relayed, _ = await opened(stage, "openai-chat")
        async with relayed:
            let_go(stage, await held(stage))
            async for piece in relayed:
                if b"[DONE]" in piece:
                    break
        assert stage.kinds()[-1] == "finished"


async def test_shutdown_is_reported_inside_an_open_stream(tmp_path: Path) -> None:
    async with holding(tmp_path, "anthropic", clock=SteppingClock()) as stage:
        relayed, _ = await opened(stage, "anthropic")
        async with relayed:
            reading = asyncio.ensure_future(rest(relayed))
            await promptly(stage.relay.close(3600))
            assert b"event: error" in await promptly(reading)
        assert stage.kinds() == ["received", "held", "cancelled"]


async def test_a_client_is_kept_alive_while_the_reply_with_its_calls_comes_and_is_held(tmp_path: Path) -> None:
    clock, frames = SteppingClock(), streamed("anthropic")

    async with open_stage(tmp_path, "anthropic", clock=clock) as stage:
        stage.relay.holds.set_rules([{"filter": "", "phase": "tool_calls"}])
        gate = asyncio.Event()
        stage.upstream.script = [answer(200, b"".join(frames), SSE)]
        stage.upstream.script = [pieces(head(200, SSE), chunk(frames[0]), gate, *map(chunk, frames[1:]), chunk(b""))]
        starting = asyncio.get_running_loop().create_task(stage.relay.start(asks("anthropic", stream=True)))
        await promptly(stage.upstream.arrived(1))
        await stage.clock.asleep()
        await stage.clock.forward(TICK)
        async with await promptly(starting) as relayed:
            assert await anext(aiter(relayed)) == sign_of_life(asks("anthropic"))
            gate.set()
            hold = await held(stage)
            coming = asyncio.ensure_future(anext(aiter(relayed)))
            await stage.clock.asleep()
            await stage.clock.forward(TICK)
            assert await promptly(coming) == sign_of_life(asks("anthropic"))
            let_go(stage, hold)
            assert await promptly(rest(relayed)) == b"".join(frames)
        assert stage.kinds() == ["received", "attempt", "held", "released", "finished"]
