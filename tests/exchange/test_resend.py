import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider, Route
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.recorder import FactObserver
from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange
from sightline.exchange.resend import Resender, ResendSources
from sightline.model.exchange import Received
from sightline.store.entries import BodyEntry
from sightline.store.sqlite import SqliteStore
from tests.recordings import exchange, one, store_with
from tests.relay_stage import Stage, open_stage
from tests.store.traffic import NOON, chat_body, chat_stream, noted, sha256
from tests.upstream import LAST, chunk, head, pieces, says, stall

BODY = chat_body("hi").replace(b'"large"', b'"m" ')
FRAMES = chat_stream("Hel", "lo")
MASKED = (("Content-Type", "application/json"), ("Authorization", "***"))
SSE = [("Content-Type", "text/event-stream")]
CATALOG = Catalog(
    providers={
        "acme": Provider(base_url="http://127.0.0.1:1/v1", key_env="ACME_KEY"),
        "claude": Provider(base_url="http://127.0.0.1:1", dialect="anthropic", key_env="OTHER_KEY"),
        "local": Provider(base_url="http://127.0.0.1:1", key_env="SIGHTLINE_LOCAL_KEY", embedded=True),
    },
    models={"m": Model(providers=("acme",))},
)


def recorded(folder: Path, body: bytes = BODY, **more: Any) -> RecordedExchange:
    return asyncio.run(one(folder, exchange("x_1", body, FRAMES, headers=MASKED, **more)))


# --- what is to be sent -----------------------------------------------------------------------------


def test_the_very_bytes_for_the_same_provider(tmp_path: Path) -> None:
    asked = ResendSources(CATALOG, {"ACME_KEY": "k"}).request_for(recorded(tmp_path))
    assert (asked.body, asked.provider, asked.model, asked.origin) == (BODY, "acme", "m", "x_1")


@pytest.mark.parametrize(
    ("route", "retries"),
    [(Route(model="m*", provider="acme", retries=0), 0), (Route(model="m*", provider="claude", retries=0), None)],
)
def test_the_retries_of_its_route_hold_for_a_replay(tmp_path: Path, route: Route, retries: int | None) -> None:
    catalog = replace(CATALOG, routes=(route,))
    assert ResendSources(catalog, {"ACME_KEY": "k"}).request_for(recorded(tmp_path)).retries == retries
    unknown = replace(CATALOG, models={})
    assert ResendSources(unknown, {"ACME_KEY": "k"}).request_for(recorded(tmp_path / "b")).retries is None


def test_an_edited_body_is_sent_exactly_and_says_itself_what_it_asks_for(tmp_path: Path) -> None:
    edited = b'\n{ "model":"n" ,"messages":[], "stream" : true}'
    asked = ResendSources(CATALOG, {"ACME_KEY": "k"}).request_for(recorded(tmp_path, stream=False), body=edited)
    assert (asked.body, asked.provider, asked.model, asked.is_stream) == (edited, "acme", "n", True)
    whole = ResendSources(CATALOG, {"ACME_KEY": "k"}).request_for(recorded(tmp_path / "b"), body=b'{"model":"m"}')
    assert not whole.is_stream


def test_where_the_path_says_it_the_path_goes_on_saying_it(tmp_path: Path) -> None:
    gemini = recorded(tmp_path, b'{"contents":[]}', spoken="gemini", stream=False)
    asked = ResendSources(CATALOG, {"ACME_KEY": "k"}).request_for(gemini, body=b'{"contents": []}')
    assert (asked.body, asked.path, asked.model) == (b'{"contents": []}', "/v1beta/models/m:generateContent", "m")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"model": ""}', b'{"model": 3}'])
def test_edited_body_without_a_model_is_rejected(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(Fault) as caught:
        ResendSources(CATALOG, {"ACME_KEY": "k"}).request_for(recorded(tmp_path), body=body)
    assert caught.value.code is Code.INVALID_REQUEST


def test_other_model_is_requested_by_name(tmp_path: Path) -> None:
    asked = ResendSources(CATALOG, {"OTHER_KEY": "k"}).request_for(recorded(tmp_path), model="claude/c")
    assert (asked.model, asked.provider, json.loads(asked.body)["model"]) == ("claude/c", "", "claude/c")
    with pytest.raises(Fault) as caught:
        ResendSources(CATALOG, {}).request_for(recorded(tmp_path / "b"), model="no-such-model")
    assert caught.value.code is Code.MODEL_UNKNOWN


def test_the_embedded_model_needs_no_key(tmp_path: Path) -> None:
    assert ResendSources(CATALOG, {}).request_for(recorded(tmp_path), model="local/m").model == "local/m"


def test_missing_key_is_reported_before_anything_is_sent(tmp_path: Path) -> None:
    past = recorded(tmp_path)
    for environment, model in (({}, ""), ({"ACME_KEY": " "}, ""), ({"ACME_KEY": "k"}, "claude/c")):
        with pytest.raises(Fault, match="is not set") as caught:
            ResendSources(CATALOG, environment).request_for(past, model=model)
        assert caught.value.code is Code.AUTH
        assert "credentials are not on record" in caught.value.hint
    keyless = Catalog(providers={"acme": Provider(base_url="http://127.0.0.1:1/v1")})
    with pytest.raises(Fault, match="credential for acme is not on record") as caught:
        ResendSources(keyless, {}).request_for(past)
    assert "key_env" in caught.value.hint


def test_what_cannot_be_sent_again_says_why(tmp_path: Path) -> None:
    means = ResendSources(CATALOG, {"ACME_KEY": "k"})
    counting = recorded(tmp_path / "a", path="/v1/messages/count_tokens", spoken="anthropic")
    with pytest.raises(Fault, match="only counted tokens"):
        means.request_for(counting)
    unsent = [BodyEntry(sha256(BODY), BODY), *noted("x_1", [Received("openai-chat", "m", sha256(BODY))])]
    with pytest.raises(Fault, match="was not sent to a provider"):
        means.request_for(asyncio.run(one(tmp_path / "b", unsent)))
    with pytest.raises(Fault, match="no longer configured"):
        ResendSources(Catalog(), {}).request_for(recorded(tmp_path / "c"))


# --- the sending ------------------------------------------------------------------------------------


@asynccontextmanager
async def open_resender(folder: Path, **settings: Any) -> AsyncIterator[tuple[Stage, Resender, SqliteStore]]:
    recorded = exchange("x_a", BODY, FRAMES, headers=MASKED)
    async with open_stage(folder, **settings) as stage, store_with(folder / "data", recorded) as store:
        means = ResendSources(Catalog(providers=stage.providers), {"ACME_KEY": "sk-configured-0123456789"})
        yield stage, Resender(stage.relay, store, means, stage.clock), store


async def test_the_new_exchange_is_named_as_soon_as_it_is_on_record_and_read_to_its_end(tmp_path: Path) -> None:
    async with open_resender(tmp_path) as (stage, resending, store):
        goes_on = asyncio.Event()
        stage.upstream.script = [pieces(head(200, SSE), goes_on, *map(chunk, FRAMES), LAST)]
        name = await resending.start(await find_exchange(store, "x_a", now=NOON))
        assert stage.kinds(name) == ["received", "attempt"]
        received = stage.facts(name)[0]
        assert received.origin == "x_a"
        goes_on.set()
        await resending.close(10)
        assert stage.kinds(name) == ["received", "attempt", "finished"]
        assert stage.raw_reply(name) == b"".join(FRAMES)
        assert stage.upstream.seen[0].body == BODY


async def test_an_edited_body_and_a_refusal_are_on_record_too(tmp_path: Path) -> None:
    async with open_resender(tmp_path) as (stage, resending, store):
        stage.upstream.script = [says({"error": {"message": "no such thing"}}, 400)]
        body = b'{"model":"n", "messages":[]}'
        name = await resending.start(await find_exchange(store, "x_a", now=NOON), body=body)
        await resending.close(10)
        assert stage.upstream.seen[0].body == body
        assert stage.kinds(name) == ["received", "attempt", "failed"]


async def test_what_is_refused_here_begins_nothing(tmp_path: Path) -> None:
    async with open_resender(tmp_path) as (stage, resending, store):
        with pytest.raises(Fault, match="no provider is known"):
            await resending.start(await find_exchange(store, "x_a", now=NOON), model="no-such-model")
        assert stage.entries == []
        assert stage.upstream.seen == []


async def test_resend_continues_after_the_caller_is_cancelled(tmp_path: Path) -> None:
    async with open_resender(tmp_path) as (stage, resending, store):
        stage.upstream.script = [pieces(head(200, SSE), *map(chunk, FRAMES), LAST)]
        was_begun, goes_on, start = asyncio.Event(), asyncio.Event(), stage.relay.start

        async def slowly(asked: ClientRequest, noted: FactObserver | None = None) -> ClientResponse:
            was_begun.set()
            await goes_on.wait()
            return await start(asked, noted)

        stage.relay.start = slowly  # type: ignore[method-assign]
        wanting = asyncio.ensure_future(resending.start(await find_exchange(store, "x_a", now=NOON)))
        await was_begun.wait()
        wanting.cancel()
        await asyncio.gather(wanting, return_exceptions=True)
        goes_on.set()
        await asyncio.gather(*resending._tasks)
        await resending.close(10)
        assert stage.kinds() == ["received", "attempt", "finished"]


async def test_at_the_end_it_is_cut_off_as_clients_are(tmp_path: Path) -> None:
    async with open_resender(tmp_path) as (stage, resending, store):
        stage.upstream.script = [stall(head(200, SSE), chunk(FRAMES[0]))]
        name = await resending.start(await find_exchange(store, "x_a", now=NOON))
        await stage.upstream.arrived(1)
        await resending.close(0)
        assert stage.kinds(name) == ["received", "attempt", "failed"]
        assert resending._tasks == set()
        await stage.upstream.gone()
        late = await resending.start(await find_exchange(store, "x_a", now=NOON))
        assert stage.kinds(late) == ["received", "failed"]


async def test_a_mistake_of_ours_is_not_waited_for(tmp_path: Path) -> None:
    async with open_resender(tmp_path) as (stage, resending, store):

        def broken() -> str:
            raise RuntimeError("no ids left")

        stage.relay.make_id = broken
        with pytest.raises(RuntimeError, match="no ids left"):
            await resending.start(await find_exchange(store, "x_a", now=NOON))
