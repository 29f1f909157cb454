import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sightline.model.exchange import Budgeted
from sightline.store.entries import Entry, FactEntry
from sightline.telemetry import exporter as module
from sightline.telemetry.exporter import Exporter
from sightline.telemetry.metrics import Metrics
from sightline.transport.http.client import HttpClient
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies
from tests.recordings import exchange
from tests.store.traffic import chat_body, chat_stream
from tests.telemetry.test_spans import values
from tests.upstream import Upstream, answer, stall

BODY = chat_body("a planted secret")


def entries(number: int) -> list[Entry]:
    return exchange(f"x_{number}", BODY, chat_stream("ok"))


def without_metrics(client: HttpClient, url: str, **options: Any) -> Exporter:
    return Exporter(client, url, Metrics(0, is_counting=False), lambda: 1.0, version="9", **options)


@asynccontextmanager
async def open_collector() -> AsyncIterator[tuple[Upstream, HttpClient]]:
    async with Upstream() as upstream:
        client = HttpClient(trust=Trust(environment={}), proxies=Proxies.of({}))
        try:
            yield upstream, client
        finally:
            await client.close()


def spans(body: bytes) -> list[dict[str, Any]]:
    (resource,) = json.loads(body)["resourceSpans"]
    assert values(resource["resource"]) == {"service.name": "sightline", "service.version": "9"}
    (scope,) = resource["scopeSpans"]
    assert scope["scope"] == {"name": "sightline", "version": "9"}
    return scope["spans"]


async def test_what_has_ended_is_sent_in_batches_and_the_rest_at_the_end() -> None:
    async with open_collector() as (upstream, client):
        upstream.script = [answer(200, b"{}")]
        async with without_metrics(client, upstream.url, headers={"x-team": "blue"}) as exporter:
            for number in range(3):
                exporter.took(entries(number))
            exporter.took(entries(3)[:-1])  # this one has not ended
        (seen,) = upstream.seen
        assert (seen.method, seen.target) == ("POST", "/v1/traces")
        assert (seen.header("content-type"), seen.header("x-team")) == ("application/json", "blue")
        assert [span["name"] for span in spans(seen.body)] == ["chat m"] * 3
        assert b"planted" not in seen.body


async def test_content_is_exported_if_enabled() -> None:
    async with open_collector() as (upstream, client):
        upstream.script = [answer(200, b"{}")]
        async with without_metrics(client, f"{upstream.url}/v1/traces", with_content=True) as exporter:
            exporter.took(entries(1)[:3])
            exporter.took(entries(1)[3:])
        assert upstream.seen[0].target == "/v1/traces"
        assert b"planted" in upstream.seen[0].body
        assert b"gen_ai.output.messages" in upstream.seen[0].body


async def test_a_full_batch_goes_at_once_and_others_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_collector() as (upstream, client):
        arrived = asyncio.Queue[int]()

        async def taken(talk: Any) -> None:
            await answer(200, b"{}")(talk)
            arrived.put_nowait(len(spans(upstream.seen[-1].body)))

        upstream.script = [taken]
        monkeypatch.setattr(module, "_MOST_AT_ONCE", 2)
        async with without_metrics(client, upstream.url, pause=3600) as exporter:
            exporter.took(entries(1))
            exporter.took(entries(2))
            assert await arrived.get() == 2
        async with without_metrics(client, upstream.url, pause=0) as exporter:
            exporter.took(entries(3))
            assert await arrived.get() == 1


async def test_a_collector_that_is_busy_gets_it_again_and_the_log_hears_of_it_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_collector() as (upstream, client):
        done = asyncio.Event()

        async def taken(talk: Any) -> None:
            await answer(200, b"{}")(talk)
            done.set()

        upstream.script = [answer(503, b""), answer(429, b""), taken]
        async with without_metrics(client, upstream.url, pause=0) as exporter:
            exporter.took(entries(1))
            await done.wait()
        assert {len(spans(seen.body)) for seen in upstream.seen} == {1}
        assert caplog.text.count("does not take spans: status 503") == 1


async def test_what_a_collector_refuses_for_good_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    async with open_collector() as (upstream, client):
        upstream.script = [answer(400, b"no")]
        async with without_metrics(client, upstream.url) as exporter:
            exporter.took(entries(1))
        assert len(upstream.seen) == 1
        assert "status 400; these spans are dropped" in caplog.text


async def test_unreachable_collector_only_logs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with open_collector() as (_, client):
        async with without_metrics(client, "http://127.0.0.1:1") as exporter:
            exporter.took(entries(1))
        assert "does not take spans" in caplog.text


async def test_a_collector_that_never_answers_holds_up_no_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_collector() as (upstream, client):
        upstream.script = [stall()]
        monkeypatch.setattr(module, "_LAST_WORDS", 0)
        async with without_metrics(client, upstream.url, pause=0) as exporter:
            exporter.took(entries(1))
            await upstream.arrived(1)
        assert "1 spans did not reach" in caplog.text


async def test_too_many_are_dropped_from_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_collector() as (upstream, client):
        upstream.script = [answer(200, b"{}")]
        monkeypatch.setattr(module, "_MOST_WAITING", 2)
        async with without_metrics(client, upstream.url) as exporter:
            for number in range(4):
                exporter.took(entries(number))
        named = [
            each["value"]["stringValue"]
            for span in spans(upstream.seen[0].body)
            for each in span["attributes"]
            if each["key"] == "sightline.exchange"
        ]
        assert named == ["x_2", "x_3"]


async def test_what_a_chat_has_planned_is_not_waited_for_after_the_end() -> None:
    async with open_collector() as (upstream, client):
        upstream.script = [answer(200, b"{}")]
        async with without_metrics(client, upstream.url) as exporter:
            exporter.took(entries(1))
            exporter.took([FactEntry("x_1", 9, 1.0, Budgeted({"stage": "success"}))])
            assert exporter._open == {}
        assert len(spans(upstream.seen[0].body)) == 1


@pytest.mark.parametrize(("status", "reports"), [(200, 2), (404, 1), (503, 2)])
async def test_metrics_are_exported_unless_the_collector_refuses_them(status: int, reports: int) -> None:
    async with open_collector() as (upstream, client):
        upstream.script = [answer(200, b"{}"), answer(status, b"{}"), answer(200, b"{}"), answer(200, b"{}")]
        exporter = Exporter(client, f"{upstream.url}/v1/traces", Metrics(1), lambda: 1.0, version="9", pause=0.01)
        async with exporter:
            exporter.took(entries(1))
            await upstream.arrived(2)
            exporter.took(entries(2))
        targets = [seen.target for seen in upstream.seen]
        assert targets.count("/v1/traces") == 2
        assert targets.count("/v1/metrics") == reports


async def test_a_collector_that_is_gone_costs_nothing_but_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with open_collector() as (_, client):
        exporter = Exporter(client, "http://127.0.0.1:9", Metrics(1), lambda: 1.0, version="9", pause=0.01)
        async with exporter:
            exporter.took(entries(1))
        assert "metrics did not reach" in caplog.text
