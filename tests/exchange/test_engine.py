import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sightline.app.configuration import configuration
from sightline.catalog.choose import ModelChoice
from sightline.catalog.provider import Provider, Quirks
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, StreamEvent, TextReceived
from sightline.model.exchange import ExchangeCancelled
from sightline.store.entries import FactEntry
from sightline.tokens.ledger import Wait
from sightline.transport.embedded.process import EmbeddedModel, Running
from tests.engine_stage import EngineStage
from tests.local_model import needs_model
from tests.upstream import LAST, Upstream, chunk, cut, head, says, stall, streams

EVENT_STREAM = [("Content-Type", "text/event-stream")]


def event(delta: dict[str, object], finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "r", "model": "m", "choices": [choice], **more}).encode() + b"\n\n"


HELLO = (
    event({"role": "assistant", "content": "Hello"}),
    event({}, "stop", usage={"prompt_tokens": 9, "completion_tokens": 2}),
    b"data: [DONE]\n\n",
)


Stage = EngineStage


@asynccontextmanager
async def open_stage(folder: Path, **provider: Any) -> AsyncIterator[tuple[Stage, Upstream]]:
    async with Upstream() as upstream:
        stage = Stage(folder, Provider(base_url=upstream.url, key_env="ACME_KEY", **provider))
        try:
            yield stage, upstream
        finally:
            await stage.close()


async def test_events_are_delivered_as_they_arrive(tmp_path: Path) -> None:
    async def pieces_until(talk: Any, was_heard: asyncio.Event) -> None:
        await talk.say(head(200, EVENT_STREAM) + chunk(HELLO[0]))
        await was_heard.wait()  # the rest is not even sent before the first word was heard
        await talk.say(chunk(HELLO[1]) + chunk(HELLO[2]) + LAST)

    async with open_stage(tmp_path) as (stage, upstream):
        was_heard = asyncio.Event()
        upstream.script = [lambda talk: pieces_until(talk, was_heard)]

        def heard(told: StreamEvent) -> None:
            stage.heard.append(told)
            if isinstance(told, TextReceived):
                was_heard.set()

        reply = await stage.ask(on_event=heard)
        assert reply.choice.finish == "stop"
        assert isinstance(stage.heard[-1], Ended)


async def test_each_attempt_is_reported_and_sends_the_prepared_body(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [says({}, 503), streams(*HELLO)]
        ready = stage.ready()
        await stage.ask(ready)
        assert [(each.number, each.reason, each.sha256) for each in stage.tried] == [
            (1, "", ready.sha256),
            (2, "overloaded", ready.sha256),
        ]
        assert [seen.body for seen in upstream.seen] == [ready.body, ready.body]
        assert stage.clock.waits == [stage.tried[1].waited]


async def test_own_request_is_recorded_like_a_client_request(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [says({}, 503), streams(*HELLO)]
        ready = stage.ready()
        await stage.ask(ready)
        assert stage.kinds() == ["received", "attempt", "attempt", "finished"]
        received, _, attempt, finished = stage.facts()
        assert (received.session, received.client, received.model) == ("ask", "sightline", "m")
        assert (received.dialect, received.sha256, received.is_stream) == ("openai-chat", ready.sha256, True)
        assert (attempt.provider, attempt.sha256, attempt.reason) == ("acme", ready.sha256, "overloaded")
        assert (finished.finish, finished.usage.input_tokens) == ("stop", 9)
        assert stage.bodies() == {ready.sha256: ready.body}
        assert "the-secret" not in repr(stage.entries)
        assert stage.aside == []


@pytest.mark.parametrize("spoken", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("stream", [True, False])
async def test_the_call_that_is_shown_is_the_one_that_is_made(tmp_path: Path, spoken: str, stream: bool) -> None:
    settings = {
        "headers": {"x-team": "blue", "accept": "*/*"},
        "env_headers": {"x-trace": "TRACE"},
        "query": {"v": "1"},
    }
    async with open_stage(tmp_path, dialect=spoken, **settings) as (stage, upstream):
        stage.environment["TRACE"] = "t1"
        upstream.script = [says({"error": {"message": "no"}}, 400)]
        ready = stage.ready(stream=stream)
        with pytest.raises(Fault, match="no"):
            await stage.ask(ready)
        (seen,) = upstream.seen
        shown = ready.call.fill(stage.environment)
        assert (seen.method, upstream.url + seen.target, seen.body) == (shown.method, shown.url, shown.body)
        sent = {name.lower(): value for name, value in seen.headers}
        assert len(sent) == len(seen.headers)
        for name in ("host", "content-length", "accept-encoding", "connection"):
            sent.pop(name, None)
        assert sent == {"user-agent": "sightline", **dict(shown.headers)}


async def test_the_label_is_the_callers_and_so_is_the_name_of_the_exchange_if_it_wants(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [streams(*HELLO)]
        await stage.ask(exchange="x_mine", session="chat")
        assert stage.facts("x_mine")[0].session == "chat"
        await stage.ask()
        assert stage.kinds("x_1")[0] == "received"


async def test_no_retries_means_none(tmp_path: Path) -> None:
    async with open_stage(tmp_path, stream_max_retries=0) as (stage, upstream):
        upstream.script = [says({}, 503), streams(*HELLO)]
        with pytest.raises(Fault) as caught:
            await stage.ask()
        assert caught.value.code is Code.OVERLOADED
        assert len(upstream.seen) == 1
        failed = stage.facts()[-1]
        assert (failed.code, failed.message, failed.hint) == ("overloaded", caught.value.message, caught.value.hint)


async def test_an_answer_that_breaks_off_keeps_what_came_and_its_fault(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [cut(head(200, EVENT_STREAM), chunk(HELLO[0]), how="eof")]
        reply = await stage.ask()
        assert reply.fault.code is Code.NETWORK
        assert reply.choice.parts[0].text == "Hello"
        assert stage.heard[-2] == Failed(reply.fault)
        assert len(upstream.seen) == 1
        assert stage.kinds() == ["received", "attempt", "failed"]


async def test_silence_in_a_stream_ends_it(tmp_path: Path) -> None:
    async with open_stage(tmp_path, stream_idle_timeout_ms=50) as (stage, upstream):
        upstream.script = [stall(head(200, EVENT_STREAM), chunk(HELLO[0]))]
        reply = await stage.ask()
        assert reply.fault.code is Code.TIMEOUT_IDLE
        assert stage.kinds()[-1] == "failed"
        await upstream.gone()


async def test_rate_limit_wait_is_reported(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [streams(*HELLO, headers=[("x-ratelimit-limit-requests", "1")]), streams(*HELLO)]
        ready = stage.ready(rpm=1)
        await stage.ask(ready)
        assert stage.paused == []
        stage.clock.time += 55
        await stage.ask(ready)
        (wait,) = stage.paused
        assert wait.limit == "rpm"
        assert stage.clock.waits == [wait.seconds]


async def test_external_rate_limits_are_used_if_configured(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        asked: list[tuple[str, str]] = []

        async def limits(choice: ModelChoice, _tokens: int) -> Wait:
            asked.append((choice.provider_name, choice.model))
            return Wait(3.0, "used_up", "rpm")

        stage.engine = replace(stage.engine, limits=limits)
        upstream.script = [streams(*HELLO)]
        await stage.ask()
        assert len(asked) == 1
        assert (stage.paused, stage.clock.waits) == ([Wait(3.0, "used_up", "rpm")], [3.0])


async def test_a_limit_that_is_far_off_is_left_to_the_provider(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [streams(*HELLO)]
        ready = stage.ready(rpd=1)
        await stage.ask(ready)
        await stage.ask(ready)
        assert (stage.paused, stage.clock.waits) == ([], [])


async def test_the_providers_count_teaches_the_estimate_and_settles_the_ledger(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [streams(*HELLO)]
        ready = stage.ready("some words " * 3)
        await stage.ask(ready)
        counted = stage.engine.estimate(ready)
        assert (counted.tokens, counted.is_exact, counted.how) == (9, True, "counted by the provider")
        longer = stage.engine.estimate(stage.ready("some words " * 4))
        assert longer.how.endswith("learned")
        assert stage.memory.ledger.usage("acme", "m", stage.clock.now()).tpm == 11


async def test_a_reply_without_usage_teaches_nothing(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [streams(HELLO[0], event({}, "stop"), HELLO[2])]
        ready = stage.ready()
        before = stage.engine.estimate(ready)
        await stage.ask(ready)
        assert stage.engine.estimate(ready) == before


async def test_a_provider_that_counts_is_believed(tmp_path: Path) -> None:
    async with open_stage(tmp_path, quirks=Quirks(counts_tokens=True)) as (stage, upstream):
        upstream.script = [says({"input_tokens": 42})]
        estimate = await stage.measure(asks_provider=True)
        assert (estimate.tokens, estimate.is_exact, estimate.how) == (42, True, "counted by acme")
        assert stage.memory.ledger.usage("acme", "m", stage.clock.now()).tpm == 0
        assert stage.kinds() == ["received", "attempt", "finished"]
        upstream.script.append(says({"error": {"message": "no such page"}}, 404))
        with pytest.raises(Fault, match="no such page"):
            await stage.engine.count_prompt(stage.ready(), tried=stage.tried.append)


@pytest.mark.parametrize("status", [404, 200])
async def test_a_server_in_the_embedded_models_place_need_not_know_how_to_count(tmp_path: Path, status: int) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [says({"error": {"message": "no such page"}}, status)]
        stage.embedded = EmbeddedModel(environment={}, make_key=lambda: "k", url=upstream.url)
        stage.engine.aside._services.embedded = stage.embedded
        stage.providers["acme"] = Provider(
            base_url="${SIGHTLINE_LOCAL_URL}",
            key_env="SIGHTLINE_LOCAL_KEY",
            embedded=True,
            quirks=Quirks(counts_tokens=True),
        )
        if status == 404:
            assert not (await stage.measure()).is_exact
        else:
            with pytest.raises(Fault, match="holds no"):
                await stage.measure()
        assert stage.entries == []


async def test_provider_is_not_called_to_count_unless_requested(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        assert not (await stage.measure()).is_exact
        with pytest.raises(Fault, match="acme does not count tokens"):
            await stage.measure(asks_provider=True)
        assert upstream.connections == []


async def test_a_missing_key_is_named_and_nothing_is_sent(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        stage.environment.clear()
        with pytest.raises(Fault, match="ACME_KEY is not set"):
            await stage.ask()
        assert upstream.connections == []
        assert stage.kinds() == ["received", "failed"]


async def test_cancelling_closes_the_upstream_at_once(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [stall(head(200, EVENT_STREAM), chunk(HELLO[0]))]
        asking = asyncio.ensure_future(stage.ask())
        await upstream.arrived(1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await upstream.gone()
        assert stage.facts()[-1] == ExchangeCancelled("interrupted")


@pytest.mark.parametrize(("used", "finish"), [(16, "length"), (15, "stop")])
async def test_a_reply_that_was_cut_is_not_called_whole(tmp_path: Path, used: int, finish: str) -> None:
    item = {"type": "message", "id": "i", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]}
    usage = {"input_tokens": 3, "output_tokens": used, "total_tokens": 3 + used}
    body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item], "usage": usage}

    async with open_stage(tmp_path, dialect="openai-responses", quirks=Quirks(reports_length=False)) as (
        stage,
        upstream,
    ):
        upstream.script = [says(body)]
        ready = stage.ready(max_tokens=16)
        assert (await stage.ask(ready)).choice.finish == finish


@needs_model
async def test_the_embedded_model_answers_and_its_count_is_exact(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        stage.providers["acme"] = Provider(
            base_url="${SIGHTLINE_LOCAL_URL}/v1",
            key_env="SIGHTLINE_LOCAL_KEY",
            embedded=True,
            quirks=Quirks(counts_tokens=True),
        )
        ready = stage.ready("Say hello.", max_tokens=16)
        estimate = await stage.measure(ready)
        reply = await stage.ask(ready)
        assert reply.fault is None
        assert reply.choice.parts[0].text
        assert reply.usage.input_tokens == estimate.tokens
        assert upstream.connections == []
        assert {entry.exchange for entry in stage.entries if isinstance(entry, FactEntry)} == {"x_1"}
        assert stage.aside != []


@needs_model
async def test_a_model_that_dies_in_its_answer_is_followed_by_a_new_one(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, _):
        stage.providers["acme"] = Provider(
            base_url="${SIGHTLINE_LOCAL_URL}/v1", key_env="SIGHTLINE_LOCAL_KEY", embedded=True, stream_max_retries=1
        )

        def heard(told: StreamEvent) -> None:
            if isinstance(told, TextReceived) and stage.embedded._child is not None:
                stage.embedded._child.kill()

        ready = stage.ready("Count from one to one hundred.", max_tokens=400)
        cut_off = await stage.ask(ready, on_event=heard)
        assert cut_off.fault.code is Code.NETWORK
        assert stage.embedded._child.ended.is_set()
        reply = await stage.ask(stage.ready("Say hello.", max_tokens=8))
        assert reply.fault is None
        assert [attempt.number for attempt in stage.tried] == [1, 1]


async def test_interrupted_answer_is_raised_inside_the_embedded_turn(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [cut(head(200, EVENT_STREAM), chunk(HELLO[0]), how="eof")]
        told: list[Fault] = []
        stage.providers["acme"] = Provider(
            base_url="${SIGHTLINE_LOCAL_URL}", key_env="SIGHTLINE_LOCAL_KEY", embedded=True
        )
        turns = EmbeddedModel(environment={}, make_key=lambda: "k", url=upstream.url)

        @asynccontextmanager
        async def watched() -> AsyncIterator[Running]:
            async with turns.turn() as turn:
                try:
                    yield turn
                except Fault as fault:
                    told.append(fault)
                    raise

        stage.embedded.turn = watched  # type: ignore[method-assign]
        reply = await stage.ask()
        assert told == [reply.fault]


async def test_absurd_token_count_is_ignored(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        usage = {"prompt_tokens": 10**400, "completion_tokens": 2}
        upstream.script = [streams(HELLO[0], event({}, "stop", usage=usage), HELLO[2])]
        ready = stage.ready()
        before = stage.engine.estimate(ready)
        await stage.ask(ready)
        assert stage.engine.estimate(ready) == before
        assert stage.memory.ledger.usage("acme", "m", stage.clock.now()).tpm == before.tokens


def test_embedded_model_is_retried_only_once() -> None:
    local = configuration(None).catalog.providers["local"]
    assert [local.retries(is_stream=each, is_own=True) for each in (False, True)] == [1, 1]
