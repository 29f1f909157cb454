"""Google's streams without `alt=sse`: one JSON array whose elements arrive one by one, on every way to a client."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.editing.operations import SetText
from sightline.exchange.client_request import ClientRequest
from sightline.model.exchange import ExchangeFailed, ExchangeFinished
from tests.contract.loopback import speaking
from tests.contract.test_law_4_stream_is_whole import read_stream
from tests.gateway_server import served
from tests.holding import asking, held, let_go, said_by
from tests.http_call import call
from tests.relay_stage import DIALECTS, Got, asks, open_stage
from tests.reply_samples import SAYS, streamed
from tests.upstream import LAST, answer, chunk, cut, head, pieces, says, streams

JSON = [("Content-Type", "application/json; charset=UTF-8")]
SSE = [("Content-Type", "text/event-stream")]
OTHERS = [name for name in DIALECTS if name != "gemini"]


def wants(query: str = "") -> ClientRequest:
    return asks("gemini", stream=True, query=query)


def array_of(spoken_frames: list[bytes]) -> bytes:
    """The array that Google would send in place of these frames."""
    return b"[" + b",\r\n".join(frame.removeprefix(b"data: ").strip() for frame in spoken_frames) + b"\n]\n"


def text_of(got: Got) -> str:
    assert got.header("content-type").startswith("application/json")
    elements: list[dict[str, Any]] = json.loads(got.body)
    return "".join(
        part.get("text", "")
        for element in elements
        for candidate in element.get("candidates", [])
        for part in candidate["content"]["parts"]
    )


@pytest.mark.parametrize("provider", OTHERS)
async def test_a_translated_stream_is_an_array_whose_elements_leave_as_they_come(tmp_path: Path, provider: str) -> None:
    async with open_stage(tmp_path, provider) as stage:
        frames = streamed(provider, SAYS)
        words = next(n for n, frame in enumerate(frames) if b"Hello" in frame) + 1
        was_read = asyncio.Event()
        rest = map(chunk, frames[words:])
        stage.upstream.script = [pieces(head(200, SSE), *map(chunk, frames[:words]), was_read, *rest, LAST)]
        relayed = await stage.relay.start(wants())
        got = Got(relayed.exchange, relayed.status, relayed.headers)
        async with relayed:
            async for piece in relayed:
                got.pieces.append(piece)
                was_read.set()
        assert got.pieces[0].startswith(b"[{")
        assert json.loads(got.pieces[0] + b"]")[0]["candidates"][0]["content"]["parts"][0]["text"].startswith("Hello")
        assert text_of(got) == "Hello there."
        assert json.loads(got.body)[-1]["candidates"][0]["finishReason"] == "STOP"


@pytest.mark.parametrize("query", ["alt=sse", "key=k&alt=sse", "%24alt=SSE"])
async def test_sse_is_sent_when_the_query_requests_it(tmp_path: Path, query: str) -> None:
    async with open_stage(tmp_path, "anthropic") as stage:
        stage.upstream.script = [streams(*streamed("anthropic", SAYS))]
        got = await stage.ask(wants(query))
        assert got.header("content-type").startswith("text/event-stream")
        assert got.body.startswith(b"data: {")


@pytest.mark.parametrize("provider", OTHERS)
async def test_a_translated_stream_that_breaks_off_ends_its_array_with_the_error(tmp_path: Path, provider: str) -> None:
    async with open_stage(tmp_path, provider, request_max_retries=0, stream_max_retries=0) as stage:
        frames = streamed(provider, SAYS)
        words = next(n for n, frame in enumerate(frames) if b"Hello" in frame) + 1
        stage.upstream.script = [streams(*frames[:words]), says({"error": {"message": "no room", "type": "x"}}, 503)]
        got = await stage.ask(wants())
        *before, last = json.loads(got.body)
        assert before[0]["candidates"][0]["content"]["parts"][0]["text"].startswith("Hello")
        assert last["error"]["code"] == 502
        assert isinstance(stage.facts()[-1], ExchangeFailed)
        refused = await stage.ask(wants())
        assert refused.status == 503
        assert "no room" in refused.json()["error"]["message"]


@pytest.mark.parametrize("provider", DIALECTS)
async def test_an_answer_by_hand_is_an_array(tmp_path: Path, provider: str) -> None:
    async with open_stage(tmp_path, provider) as stage:
        stage.relay.holds.set_mode("every")
        async with asking(stage, wants()) as (client,):
            hold = await held(stage)
            stage.relay.holds.answer(hold.exchange, said_by("By hand."))
        assert text_of(client.result()) == "By hand."


@pytest.mark.parametrize("provider", DIALECTS)
@pytest.mark.parametrize("changed", [False, True])
async def test_tool_calls_that_were_held_come_in_an_array(tmp_path: Path, provider: str, changed: bool) -> None:
    async with open_stage(tmp_path, provider) as stage:
        stage.relay.holds.set_rules([{"filter": "", "phase": "tool_calls"}])
        frames = streamed(provider)
        came = array_of(frames)
        stage.upstream.script = [answer(200, came, JSON) if provider == "gemini" else streams(*frames)]
        async with asking(stage, wants()) as (client,):
            hold = await held(stage)
            if changed:
                stage.relay.holds.edit(hold.exchange, SetText(section="s1", text='{"city":"Oslo"}'))
            let_go(stage, await held(stage))
        got = client.result()
        calls = [
            part["functionCall"]["args"]["city"]
            for element in json.loads(got.body)
            for candidate in element["candidates"]
            for part in candidate["content"]["parts"]
            if "functionCall" in part
        ]
        assert calls == ["Oslo" if changed else "Rome"]
        if provider == "gemini" and not changed:
            assert got.body == came


@pytest.mark.parametrize("size", [1, 50, 10_000])
async def test_an_array_of_the_provider_passes_as_it_comes_and_is_read_for_the_record(
    tmp_path: Path, size: int
) -> None:
    async with open_stage(tmp_path, "gemini") as stage:
        came = array_of(streamed("gemini"))
        parts = [came[at : at + size] for at in range(0, len(came), size)]
        stage.upstream.script = [pieces(head(200, JSON), *map(chunk, parts), LAST)]
        got = await stage.ask(wants())
        assert got.body == came
        last = stage.facts()[-1]
        assert isinstance(last, ExchangeFinished)
        assert (last.finish, last.tools) == ("tool_calls", ("weather",))
        assert last.usage.input_tokens == 11


async def test_elements_of_the_provider_pass_before_the_next_has_come(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "gemini") as stage:
        first, rest = array_of(streamed("gemini", SAYS)).split(b",\r\n", 1)
        was_read = asyncio.Event()
        stage.upstream.script = [pieces(head(200, JSON), chunk(first), was_read, chunk(b",\r\n" + rest), LAST)]
        relayed = await stage.relay.start(wants())
        async with relayed:
            assert await anext(aiter(relayed)) == first
            was_read.set()
            assert b"".join([piece async for piece in relayed]).endswith(b"]\n")


@pytest.mark.parametrize("how", ["cut", "ended"])
async def test_an_array_that_breaks_off_between_two_elements_ends_with_the_error(tmp_path: Path, how: str) -> None:
    async with open_stage(tmp_path, "gemini") as stage:
        first = array_of(streamed("gemini", SAYS)).split(b",\r\n", 1)[0]
        ending = (
            cut(head(200, JSON), chunk(first), how="eof")
            if how == "cut"
            else pieces(head(200, JSON), chunk(first), LAST)
        )
        stage.upstream.script = [ending]
        got = await stage.ask(wants())
        *before, last = json.loads(got.body)
        assert len(before) == 1
        assert last["error"]["status"]
        assert isinstance(stage.facts()[-1], ExchangeFailed)


async def test_an_array_that_breaks_off_within_an_element_is_cut_off(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "gemini") as stage:
        came = array_of(streamed("gemini", SAYS))
        stage.upstream.script = [cut(head(200, JSON), chunk(came[:-20]), how="eof")]
        with pytest.raises(Exception, match="lost in the middle"):
            await stage.ask(wants())
        assert isinstance(stage.facts()[-1], ExchangeFailed)


def test_a_reader_finds_the_same_in_an_array_and_in_events() -> None:
    frames = streamed("gemini")
    hearing = ReplyDecoder(dialect("gemini"))
    assert hearing.feed(array_of(frames)) + hearing.close() == read_stream("gemini", [b"".join(frames)])


def test_the_whole_program_answers_with_an_array(tmp_path: Path) -> None:
    with speaking(dialect("anthropic"), Client(id="c", model="m")) as upstream:
        upstream.events = SAYS
        config = f'[providers.acme]\ndialect = "anthropic"\nbase_url = "{upstream.url}"\n'
        with served(tmp_path, config) as gateway:
            url = f"{gateway.url}/p/acme/v1beta/models/m:streamGenerateContent"
            answer = call("POST", url, {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
            assert answer.headers["content-type"].startswith("application/json")
            elements = answer.json()
            exchange = gateway.api(f"/api/exchanges/{answer.headers['x-sightline-exchange']}")
    words = [part["text"] for each in elements for part in each["candidates"][0]["content"]["parts"]]
    assert "".join(words) == "Hello there."
    assert exchange["state"] == "finished"
    (attempt,) = [fact for fact in exchange["facts"] if fact["kind"] == "attempt"]
    assert attempt["url"] == f"{upstream.url}/v1/messages"
