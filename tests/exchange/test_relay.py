import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import brotli
import pytest
import zstandard

from sightline.catalog.provider import Provider, Route
from sightline.errors import Code
from sightline.exchange.client_request import ClientRequest
from sightline.model.exchange import (
    AttemptStarted,
    ExchangeCancelled,
    ExchangeFailed,
    ExchangeFinished,
    FrameArrived,
)
from sightline.store.entries import FactEntry, plain_entries
from sightline.transport.embedded.process import Running
from tests.fake_clock import FakeClock
from tests.relay_stage import DIALECTS, KEY, asks, open_stage, taken
from tests.reply_samples import SAYS, streamed, whole
from tests.upstream import LAST, answer, chunk, drip, head, pieces, says, stall, streams

SSE = [("Content-Type", "text/event-stream")]
JSON = [("Content-Type", "application/json")]
ODD = (
    b'\n{ "messages" : [ {"content":"caf\\u00e9 \\/ \xc3\xa9 \\ud83d\\ude00" ,\t"role":"user"}],\r\n  "zeta": 1.50e+2, '
    b'"model":"m" , "unknown":{"b":1,"a":[ ]}, "x":0.10 }\n '
)


# --- law 1: nothing is touched ----------------------------------------------------------------------


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_odd_bytes_go_out_and_come_back_as_they_are(tmp_path: Path, spoken: str) -> None:
    reply = b" \n" + whole(spoken, SAYS).replace(b'":', b'" :\t') + b"\n\n"
    async with open_stage(tmp_path, spoken) as stage:
        stage.upstream.script = [answer(200, reply, [("Content-Type", "application/json; charset=utf-8")])]
        got = await stage.ask(asks(spoken, body=ODD))
        assert stage.upstream.seen[0].body == ODD
        assert got.body == reply
        assert got.header("content-type") == "application/json; charset=utf-8"
        last = stage.facts()[-1]
        assert (last.finish, last.sha256) == ("stop", sha256(reply).hexdigest())
        assert stage.raw_reply() == reply
        assert stage.bodies()[sha256(ODD).hexdigest()] == ODD


async def test_two_megabytes_each_way(tmp_path: Path) -> None:
    text = "ü" * 1_000_000
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}, ensure_ascii=False).encode()
    reply = whole("openai-chat", SAYS).replace(b"there.", text.encode())
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [answer(200, reply, JSON)]
        got = await stage.ask(asks("openai-chat", body=body))
        assert stage.upstream.seen[0].body == body
        assert got.body == reply


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_a_stream_may_come_byte_by_byte(tmp_path: Path, spoken: str) -> None:
    frames = streamed(spoken)
    async with open_stage(tmp_path, spoken) as stage:
        stage.upstream.script = [drip(head(200, SSE) + b"".join(map(chunk, frames)) + LAST)]
        got = await stage.ask(asks(spoken, stream=True))
        assert got.body == b"".join(frames)
        last = stage.facts()[-1]
        assert (last.finish, last.tools) == ("tool_calls", ("weather",))


@pytest.mark.parametrize("client", DIALECTS)
async def test_words_reach_the_client_before_the_next_ones_are_even_sent(tmp_path: Path, client: str) -> None:
    frames = streamed("openai-chat", SAYS)
    place = next(index for index, frame in enumerate(frames) if b"Hello " in frame) + 1
    async with open_stage(tmp_path) as stage:
        was_read = asyncio.Event()
        stage.upstream.script = [
            pieces(head(200, SSE), *map(chunk, frames[:place]), was_read, *map(chunk, frames[place:]), LAST)
        ]
        async with await stage.relay.start(asks(client, stream=True)) as relayed:
            async for piece in relayed:
                if b"Hello" in piece:
                    was_read.set()
        assert stage.kinds()[-1] == "finished"


# --- codings ----------------------------------------------------------------------------------------

CODE = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstandard.compress}


@pytest.mark.parametrize(("coding", "coded"), [("gzip", gzip.compress(ODD)), ("zstd", zstandard.compress(ODD))])
async def test_coded_bytes_go_out_as_they_came_and_are_kept_decoded(tmp_path: Path, coding: str, coded: bytes) -> None:
    async with open_stage(tmp_path) as stage:
        headers = (("Content-Encoding", coding), ("Content-Length", str(len(coded))))
        await stage.ask(asks("openai-chat", body=ODD, coded=coded, coding=coding, headers=headers))
        seen = stage.upstream.seen[0]
        assert seen.body == coded
        assert seen.header("content-encoding") == coding
        received, attempt, _ = stage.facts()
        assert received.sha256 == attempt.sha256 == sha256(ODD).hexdigest()


async def test_a_translated_body_goes_out_without_the_coding(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "anthropic") as stage:
        asked = asks("openai-chat", coding="gzip", headers=(("Content-Encoding", "gzip"),))
        await stage.ask(
            ClientRequest(**{**{f: getattr(asked, f) for f in asked.__slots__}, "coded": gzip.compress(asked.body)})
        )
        seen = stage.upstream.seen[0]
        assert seen.header("content-encoding") == ""
        assert seen.json()["messages"][0]["role"] == "user"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, br"])
async def test_a_coded_answer_passes_as_it_is_and_is_read(tmp_path: Path, coding: str, stream: bool) -> None:
    plain = b"".join(streamed("openai-chat")) if stream else whole("openai-chat")
    coded = plain
    for name in coding.split(", "):
        coded = CODE[name](coded)
    kind = SSE if stream else JSON
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [answer(200, coded, [*kind, ("Content-Encoding", coding)], framing="chunked")]
        got = await stage.ask(asks("openai-chat", stream=stream, headers=(("Accept-Encoding", coding),)))
        assert stage.upstream.seen[0].header("accept-encoding") == coding
        assert got.body == coded
        assert got.header("content-encoding") == coding
        last = stage.facts()[-1]
        assert (last.finish, last.sha256) == ("tool_calls", sha256(plain).hexdigest())
        assert stage.raw_reply() == plain


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", [JSON, SSE])
async def test_an_answer_that_cannot_be_read_along_passes_with_a_warning(
    tmp_path: Path, stream: bool, kind: list[tuple[str, str]]
) -> None:
    async with open_stage(tmp_path) as stage:
        for coding, body in (("compress", b"\x1f\x9d"), ("gzip, compress", b"\x1f\x9d"), ("gzip", b"no gzip")):
            stage.upstream.script = [answer(200, body, [*kind, ("Content-Encoding", coding)], framing="chunked")]
            got = await stage.ask(asks("openai-chat", stream=stream))
            assert (got.status, got.body, got.header("content-encoding")) == (200, body, coding)
            last = stage.facts(got.exchange)[-1]
            assert coding in last.warning
            assert last.finish == "", "nobody here knows how it ended"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_cannot_be_read_is_not_translated(tmp_path: Path, stream: bool) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [answer(200, b"\x0b\x02\x80", [("Content-Encoding", "compress")])]
        got = await stage.ask(asks("anthropic", stream=stream))
        assert got.status == 502
        assert "the content coding compress cannot be read" in got.json()["error"]["message"]
        assert stage.kinds()[-1] == "failed"


# --- the record -------------------------------------------------------------------------------------


async def test_two_commits_an_exchange_and_the_last_before_the_end(tmp_path: Path) -> None:
    frames = streamed("openai-chat", SAYS)
    async with open_stage(tmp_path) as stage:
        has_begun = asyncio.Event()
        stage.upstream.script = [pieces(head(200, SSE), has_begun, *map(chunk, frames), LAST)]
        relayed = await stage.relay.start(asks("openai-chat", stream=True, session="s1"))
        has_begun.set()
        assert len(stage.commits) == 1, "before its id leaves"
        body, received, attempt = stage.commits[0]
        assert (received.exchange, received.n, attempt.n, body.near) == ("x_1", 0, 1, "s1")
        assert (b"x-sightline-exchange", b"x_1") in relayed.headers
        async with relayed:
            async for _ in relayed:
                assert len(stage.commits) == 1
            assert len(stage.commits) == 2
        *arrived, last = stage.commits[1]
        assert all(isinstance(each, FactEntry) and isinstance(each.fact, FrameArrived) for each in arrived)
        assert isinstance(last.fact, ExchangeFinished)
        assert last.fact.usage is not None


async def test_a_whole_answer_is_on_record_before_any_of_it_leaves(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        relayed = await stage.relay.start(asks("openai-chat"))
        assert stage.kinds() == ["received", "attempt", "finished"]
        await taken(relayed)


async def test_store_failure_does_not_affect_the_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_stage(tmp_path) as stage:

        def full(_: object) -> None:
            raise OSError(28, "No space left on device")

        stage.hub._record = full
        stage.upstream.script = [streams(*streamed("openai-chat"))]
        got = await stage.ask(asks("openai-chat", stream=True))
        assert got.body == b"".join(streamed("openai-chat"))
    assert "x_1 could not be recorded" in caplog.text


async def test_watcher_receives_every_recorded_fact_in_order(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [streams(*streamed("openai-chat", SAYS))]
        with stage.hub.watch() as watch:
            await stage.ask(asks("openai-chat", stream=True))
        told = plain_entries([noted async for noted in watch])
        assert [noted.n for noted in told] == list(range(len(told)))
        assert [noted for noted in stage.entries if isinstance(noted, FactEntry)] == told


# --- retries ----------------------------------------------------------------------------------------


async def test_each_attempt_is_a_fact_with_the_same_bytes(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "anthropic", request_max_retries=4) as stage:
        stage.upstream.script = [says({}, 503), says({}, 429, [("Retry-After", "2")]), answer(200, whole("anthropic"))]
        got = await stage.ask(asks("openai-chat", received=stage.clock.monotonic()))
        assert got.status == 200
        attempts = [fact for fact in stage.facts() if isinstance(fact, AttemptStarted)]
        assert [(each.number, each.reason) for each in attempts] == [(1, ""), (2, "overloaded"), (3, "rate_limited")]
        assert {each.sha256 for each in attempts} == {sha256(stage.upstream.seen[0].body).hexdigest()}
        assert {(each.provider, each.model, each.dialect) for each in attempts} == {("acme", "m", "anthropic")}
        assert len({seen.body for seen in stage.upstream.seen}) == 1
        assert float(got.header("x-sightline-overhead-ms")) < 1, "waiting for the provider is no overhead"


@pytest.mark.parametrize("is_stream", [False, True])
async def test_client_request_is_not_retried_but_own_requests_are(tmp_path: Path, is_stream: bool) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [says({}, 503)] * 7
        got = await stage.ask(asks("openai-chat", stream=is_stream))
        assert (got.status, len(stage.upstream.seen)) == (503, 1)
        await stage.ask(asks("openai-chat", stream=is_stream, is_own=True))
        assert len(stage.upstream.seen) == 1 + (6 if is_stream else 5), "requests of our own have a budget"


async def test_a_route_may_say_how_often_its_requests_are_sent_again(tmp_path: Path) -> None:
    async with open_stage(tmp_path, routes=(Route(provider="acme", retries=2),), request_max_retries=9) as stage:
        stage.upstream.script = [says({}, 503)] * 6
        await stage.ask(asks("openai-chat"))
        assert len(stage.upstream.seen) == 3
        await stage.ask(asks("openai-chat", provider="acme", is_own=True, retries=1))
        assert len(stage.upstream.seen) == 5, "a request of our own carries what its route said"


async def test_a_caller_of_our_own_hears_of_each_fact_and_gets_the_fault_itself(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [says({"error": {"message": f"bad key {KEY}"}}, 401)]
        told: list[FactEntry] = []
        async with await stage.relay.start(asks("openai-chat"), told.append) as relayed:
            assert relayed.fault.code is Code.AUTH
            assert KEY not in relayed.fault.message
        assert [noted.fact for noted in told] == stage.facts()
        assert [noted.exchange for noted in told] == ["x_1"] * 3


@pytest.mark.parametrize("client", DIALECTS)
async def test_what_an_answer_broke_off_with_is_known_before_its_last_words(tmp_path: Path, client: str) -> None:
    async with open_stage(tmp_path, stream_idle_timeout_ms=50) as stage:
        stage.upstream.script = [stall(head(200, SSE), *map(chunk, streamed("openai-chat", SAYS)[:-2]))]
        async with await stage.relay.start(asks(client, stream=True)) as relayed:
            assert relayed.fault is None
            last = b""
            async for piece in relayed:
                if relayed.fault is not None:
                    last = piece
        assert b"error" in last
        assert relayed.fault.code is Code.TIMEOUT_IDLE


async def test_the_size_that_a_caller_knows_is_in_the_ledger(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [says({"error": {"message": "no"}}, 400), stall(head(200, SSE))]
        await stage.ask(asks("openai-chat", tokens=70))
        assert stage.memory.ledger.usage("acme", "m", stage.clock.now()).tpm == 0
        async with await stage.relay.start(asks("openai-chat", stream=True, tokens=70)):
            assert stage.memory.ledger.usage("acme", "m", stage.clock.now()).tpm == 70


async def test_the_embedded_model_counts_beside_an_answer(tmp_path: Path) -> None:
    local = Provider(
        dialect="anthropic", base_url="${SIGHTLINE_LOCAL_URL}", key_env="SIGHTLINE_LOCAL_KEY", embedded=True
    )
    async with open_stage(tmp_path, others={"local": local}) as stage:

        @asynccontextmanager
        async def busy() -> AsyncIterator[Running]:
            await asyncio.Event().wait()
            yield await stage.embedded.running()

        stage.embedded.turn = busy  # type: ignore[method-assign]
        stage.upstream.script = [says({"input_tokens": 3})]
        asked = asks("anthropic", provider="local", path="/v1/messages/count_tokens", counts=True)
        assert (await stage.ask(asked)).json() == {"input_tokens": 3}


async def test_a_wait_that_is_too_long_goes_to_the_client(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [says({"error": {"message": "slow down"}}, 429, [("Retry-After", "11")])]
        got = await stage.ask(asks("openai-chat"))
        assert (got.status, got.header("retry-after"), len(stage.upstream.seen)) == (429, "11", 1)


# --- clients that go, and the end -------------------------------------------------------------------


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
async def test_a_client_that_leaves_closes_the_provider_at_once(tmp_path: Path, client: str) -> None:
    frames = streamed("openai-chat")
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [stall(head(200, SSE), chunk(frames[0] + frames[1]))]
        async with await stage.relay.start(asks(client, stream=True)) as relayed:
            async for _ in relayed:
                break
        assert stage.kinds()[-1] == "cancelled"
        assert stage.raw_reply() == frames[0] + frames[1]
        await stage.upstream.gone()
        await stage.relay.close(0)


async def test_a_client_that_never_reads_leaves_as_well(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [stall(head(200, SSE))]
        async with await stage.relay.start(asks("openai-chat", stream=True)):
            pass
        assert stage.kinds()[-1] == "cancelled"
        await stage.upstream.gone()


async def test_a_client_that_leaves_before_the_answer_began(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [stall()]
        task = asyncio.get_running_loop().create_task(stage.relay.start(asks("openai-chat")))
        await stage.upstream.arrived(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stage.kinds() == ["received", "attempt", "cancelled"]
        assert stage.facts()[-1] == ExchangeCancelled("client_gone")
        await stage.upstream.gone()


async def test_a_client_that_is_cancelled_while_it_reads(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        was_read = asyncio.Event()
        stage.upstream.script = [stall(head(200, SSE), chunk(streamed("openai-chat")[0]))]

        async def reading() -> None:
            async with await stage.relay.start(asks("openai-chat", stream=True)) as relayed:
                async for _ in relayed:
                    was_read.set()

        task = asyncio.get_running_loop().create_task(reading())
        await was_read.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stage.kinds()[-1] == "cancelled"
        await stage.upstream.gone()


async def test_a_client_that_leaves_behind_the_legal_end_has_had_everything(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        frames = streamed("openai-chat")
        stage.upstream.script = [stall(head(200, SSE), chunk(b"".join(frames)))]
        async with await stage.relay.start(asks("openai-chat", stream=True)) as relayed:
            async for _ in relayed:
                break
        assert stage.kinds()[-1] == "finished"


async def test_a_client_that_leaves_behind_the_providers_error_was_not_the_reason(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        error = b'data: {"error": {"message": "broken", "code": 500}}\n\n'
        stage.upstream.script = [stall(head(200, SSE), *map(chunk, [*streamed("openai-chat", SAYS)[:2], error]))]
        async with await stage.relay.start(asks("openai-chat", stream=True)) as relayed:
            async for piece in relayed:
                if b"broken" in piece:
                    break
        last = stage.facts()[-1]
        assert isinstance(last, ExchangeFailed)
        assert last.message == "broken"


async def test_a_provider_that_talks_on_after_the_end_is_hung_up_on(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [stall(head(200, SSE), chunk(b"".join(streamed("openai-chat"))))]
        got = await stage.ask(asks("anthropic", stream=True))
        assert b"message_stop" in got.body
        assert stage.kinds()[-1] == "finished"
        await stage.upstream.gone()


async def test_closing_waits_for_what_is_under_way(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        gate = asyncio.Event()
        frames = streamed("openai-chat")
        stage.upstream.script = [pieces(head(200, SSE), chunk(frames[0]), gate, *map(chunk, frames[1:]), LAST)]
        relayed = await stage.relay.start(asks("openai-chat", stream=True))
        closing = asyncio.get_running_loop().create_task(stage.relay.close(30))
        await asyncio.sleep(0)
        late = await stage.ask(asks("anthropic"))
        assert late.status == 503
        assert late.json()["type"] == "error"
        gate.set()
        got = await taken(relayed)
        assert got.body == b"".join(frames)
        await closing


async def test_requests_unfinished_at_shutdown_are_cut_off_and_reported(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [stall(head(200, SSE), chunk(streamed("openai-chat")[0])), stall()]
        relayed = await stage.relay.start(asks("openai-chat", stream=True))
        loop = asyncio.get_running_loop()
        streaming = loop.create_task(taken(relayed))
        waiting = loop.create_task(stage.ask(asks("anthropic")))
        await stage.upstream.arrived(2)
        await stage.relay.close(0)
        got, refused = await streaming, await waiting
        assert b"shutting down" in got.pieces[-1]
        assert (refused.status, refused.json()["type"]) == (503, "error")
        for exchange in ("x_1", "x_2"):
            last = stage.facts(exchange)[-1]
            assert last.code == "overloaded"


# --- other ways -------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
async def test_sightline_does_not_call_itself(tmp_path: Path, host: str) -> None:
    async with open_stage(tmp_path) as stage:
        stage.relay.own = frozenset({(host, stage.upstream.port)})
        got = await stage.ask(asks("anthropic"))
        assert (got.status, got.json()["type"]) == (508, "error")
        assert stage.kinds() == ["received", "failed"]
        assert not stage.upstream.seen
        stage.relay.own = frozenset({(host, 1)})
        stage.upstream.script = [answer(200, whole("openai-chat"))]
        assert (await stage.ask(asks("anthropic"))).status == 200


async def test_an_unknown_provider_is_answered_in_the_client_s_words(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        got = await stage.ask(asks("gemini", provider="acmee"))
        assert got.status == 404
        assert got.json()["error"]["status"] == "NOT_FOUND"
        assert "acme, open" in got.json()["error"]["message"]


async def test_embedded_model_answers_if_no_other_provider_does(tmp_path: Path) -> None:
    local = Provider(
        embedded=True,
        base_url="${SIGHTLINE_LOCAL_URL}/v1",
        key_env="SIGHTLINE_LOCAL_KEY",
        default_model="small",
        also={"anthropic": ""},
    )
    async with open_stage(tmp_path, routes=(), others={"local": local}) as stage:
        stage.upstream.script = [answer(200, whole("anthropic")), streams(*streamed("openai-chat"))]
        assert (await stage.ask(asks("anthropic"))).status == 200
        got = await stage.ask(asks("gemini", stream=True))
        assert got.status == 200
        first, second = stage.upstream.seen
        assert (first.target, first.json()["model"]) == ("/v1/messages", "small")
        assert (second.target, second.json()["model"]) == ("/v1/chat/completions", "small")
        assert (
            stage.kinds("x_2")
            == ["received", "translated", "attempt", "translated", "finished"][: len(stage.kinds("x_2"))]
        )


async def test_a_route_names_another_model_in_place(tmp_path: Path) -> None:
    async with open_stage(tmp_path, routes=(Route(model="m*", provider="acme", as_="acme-large"),)) as stage:
        await stage.ask(asks("openai-chat", body=ODD))
        assert stage.upstream.seen[0].body == ODD.replace(b'"m"', b'"acme-large"')
        attempt = stage.facts()[1]
        assert stage.bodies()[attempt.sha256] == stage.upstream.seen[0].body


async def test_overhead_header_reports_the_time_spent_inside(tmp_path: Path) -> None:
    class Slow(FakeClock):
        def monotonic(self) -> float:
            self.time += 0.001
            return self.time

    async with open_stage(tmp_path, clock=Slow()) as stage:
        got = await stage.ask(asks("openai-chat", received=stage.clock.monotonic()))
        assert 0 < float(got.header("x-sightline-overhead-ms")) < 20
        assert got.header("x-sightline-losses") == ""
