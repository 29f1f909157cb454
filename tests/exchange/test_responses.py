import json
from pathlib import Path
from typing import Any

import pytest

from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import (
    ClientResponse,
    WholeBody,
    header,
    headers_for_client,
    refusal,
    without,
    without_coding,
)
from sightline.model.exchange import ExchangeFinished
from sightline.model.fold import fold
from tests.contract.test_law_4_stream_is_whole import read_stream
from tests.relay_stage import DIALECTS, KEY, asks, open_stage, taken
from tests.reply_samples import SAYS, streamed, whole
from tests.upstream import answer, says, streams


async def test_a_body_that_is_here_is_given_once() -> None:
    async with ClientResponse("x_1", 200, [], WholeBody(b"data")) as relayed:
        assert [piece async for piece in relayed] == [b"data"]
        assert [piece async for piece in relayed] == []
        assert relayed.fault is None


async def test_an_answer_may_be_read_and_given_on() -> None:
    first = ClientResponse("x_1", 201, [(b"a", b"b")], WholeBody(b"one"))
    assert [piece async for piece in first] == [b"one"]
    first.set_body(b"two")
    assert (first.exchange, first.status, first.headers) == ("x_1", 201, [(b"a", b"b")])
    assert first.whole_body == b"two"
    assert [piece async for piece in first] == [b"two"]


async def test_a_fault_in_the_words_of_a_dialect() -> None:
    got = await taken(refusal("anthropic", Fault(Code.RATE_LIMITED, "slow", retry_after=1.2), [(b"x-a", b"b")]))
    assert (got.status, got.header("retry-after"), got.header("x-a")) == (429, "2", "b")
    assert got.header("content-length") == str(len(got.body))
    assert json.loads(got.body)["error"]["message"] == "slow"


def test_a_provider_s_headers_without_those_of_its_connection() -> None:
    headers = (
        (b"Date", b"now"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Connection", b"close, X-Hop"),
        (b"X-Hop", b"1"),
        (b"Content-Length", b"3"),
        (b"X-Sightline-Exchange", b"forged"),
        (b"Set-Cookie", b"a=configured-key"),
        (b"Content-Encoding", b"gzip"),
    )
    passed = headers_for_client(headers)
    assert passed == [headers[0], headers[6], headers[7]]
    assert headers_for_client(headers, ("configured-key",))[1] == (b"Set-Cookie", b"a=***")
    assert without_coding(passed) == passed[:2]
    assert header(headers, b"date") == "now"
    assert header(headers, b"none") == ""


def test_a_secret_at_the_end() -> None:
    assert without(b"ab configured-key", ("configured-key",)) == b"ab ***"
    assert without(b"ab config", ("configured-key",)) == b"ab config"


pair = pytest.mark.parametrize(("client", "provider"), [(a, b) for a in DIALECTS for b in DIALECTS])
COUNTS: dict[str, dict[str, Any]] = {
    "anthropic": {"path": "/v1/messages/count_tokens", "counts": True},
    "gemini": {"path": "/v1beta/models/m:countTokens", "counts": True},
    "openai-responses": {"path": "/v1/responses/input_tokens", "counts": True},
}
RESULTS = {"anthropic": "input_tokens", "gemini": "totalTokens", "openai-responses": "input_tokens"}


@pair
@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_call_reaches_every_client_from_every_provider(
    tmp_path: Path, client: str, provider: str, stream: bool
) -> None:
    frames = streamed(provider)
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [streams(*frames) if stream else answer(200, whole(provider))]
        got = await stage.ask(asks(client, stream=stream))
        assert got.status == 200
        reply = fold(read_stream(client, [got.body]) if stream else dialect(client).read_reply(got.json()))
        (call,) = reply.choice.tool_calls
        assert (reply.choice.finish, call.name) == ("tool_calls", "weather")
        assert "Rome" in call.arguments
        last = stage.facts()[-1]
        assert (last.finish, last.tools, last.status) == ("tool_calls", ("weather",), 200)
        assert (last.usage.input_tokens, last.usage.output_tokens) == (11, 7)
        assert stage.raw_reply() == (b"".join(frames) if stream else whole(provider))
        if client == provider:
            assert got.body == stage.raw_reply()
        kind = got.header("content-type")
        assert kind.startswith("text/event-stream" if stream else "application/json" if client != provider else "")


async def test_chat_client_gets_usage_only_if_requested(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "anthropic") as stage:
        stage.upstream.script = [streams(*streamed("anthropic"))]
        quiet = await stage.ask(asks("openai-chat", stream=True))
        body = (
            b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,'
            b'"stream_options":{"include_usage":true}}'
        )
        told = await stage.ask(asks("openai-chat", stream=True, body=body))
        assert b'"prompt_tokens"' not in quiet.body
        assert b'"prompt_tokens":11' in told.body


async def test_an_anthropic_client_gets_an_estimate_first_and_the_count_at_the_end(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [streams(*streamed("openai-chat"))]
        got = await stage.ask(asks("anthropic", stream=True))
        start, _, rest = got.body.partition(b"\n\n")
        assert b'"input_tokens":0' not in start
        assert b'"input_tokens":11' in rest


async def test_web_page_instead_of_a_reply_is_reported_as_such(tmp_path: Path) -> None:
    page, what = b"<html>Sign in</html>", "a web page: <html>Sign in</html>"
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [answer(200, page, [("Content-Type", "text/html")])]
        got = await stage.ask(asks("openai-chat"))
        assert (got.status, got.body) == (200, page)
        last = stage.facts()[-1]
        assert (last.code, last.message) == ("upstream_protocol", f"the answer is {what}")


@pytest.mark.parametrize("client", COUNTS)
async def test_a_count_of_the_same_dialect_is_passed_on(tmp_path: Path, client: str) -> None:
    async with open_stage(tmp_path, client) as stage:
        stage.upstream.script = [says({RESULTS[client]: 42}), answer(200, b"<html>")]
        got = await stage.ask(asks(client, **COUNTS[client]))
        assert got.json() == {RESULTS[client]: 42}
        assert got.header("x-sightline-estimated") == ""
        assert stage.upstream.seen[0].target.endswith(COUNTS[client]["path"].partition("/v1")[2].partition("/")[2])
        last = stage.facts()[-1]
        assert isinstance(last, ExchangeFinished)
        assert last.usage.input_tokens == 42
        got = await stage.ask(asks(client, **COUNTS[client]))
        assert got.body == b"<html>"
        last = stage.facts("x_2")[-1]
        assert last.code == "upstream_protocol"


@pytest.mark.parametrize("client", COUNTS)
async def test_a_count_across_dialects_is_estimated_and_marked_so(tmp_path: Path, client: str) -> None:
    async with open_stage(tmp_path) as stage:
        got = await stage.ask(asks(client, **COUNTS[client]))
        assert got.status == 200
        assert got.json()[RESULTS[client]] > 0
        assert got.header("x-sightline-estimated") == "1"
        assert got.header("x-sightline-exchange") == "x_1"
        assert not stage.upstream.seen
        assert stage.kinds() == ["received", "finished"]


async def test_what_a_reply_loses_is_on_record_with_what_the_client_got(tmp_path: Path) -> None:
    body = whole("openai-chat", SAYS).replace(b'"object":', b'"brand_new":[1],"object":')
    frames = streamed("openai-chat", SAYS)
    frames[0] = frames[0].replace(b'"object":', b'"brand_new":[1],"object":')
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [answer(200, body), streams(*frames)]
        for stream in (False, True):
            got = await stage.ask(asks("anthropic", stream=stream))
            back = stage.facts(got.exchange)[-2]
            assert back.dialect == "anthropic"
            assert any(loss.pointer.endswith("/brand_new") for loss in back.report)
            assert stage.bodies()[back.sha256] == got.body


async def test_an_error_in_a_whole_reply_is_an_error_for_the_client(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [says({"error": {"message": "no capacity", "code": 503}})]
        got = await stage.ask(asks("anthropic"))
        assert got.status >= 500
        assert "no capacity" in got.json()["error"]["message"]


async def test_key_in_an_error_before_the_first_token_is_masked(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        error = b'data: {"error": {"message": "bad key %s", "code": 500}}\n\n' % KEY.encode()
        stage.upstream.script = [streams(error)]
        relayed = await stage.relay.start(asks("anthropic", stream=True))
        assert relayed.fault.message == "bad key ***"
        got = await taken(relayed)
        assert got.status >= 400
        assert b"bad key ***" in got.body


async def test_limits_that_a_provider_tells_are_learned(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.ask(asks("openai-chat"))
        used = stage.memory.ledger.usage("acme", "m", stage.clock.now())
        assert "18" in repr(used)


def test_of_headers_with_one_name_the_first_counts() -> None:
    asked = ClientRequest("openai-chat", b"", (("X-A", "1"), ("x-a", "2"), ("B", "3")), "/")
    assert asked.headers_by_name() == {"x-a": "1", "b": "3"}
