"""What the gateway's traffic teaches, seen and forgotten through the whole program."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.cli.clients import CLIENTS
from sightline.dialects.registry import register, unregister
from sightline.wire.call import HttpRequest
from sightline.workbench.api import Providers, about
from tests.desk_stage import JSON, SSE, DeskStage, desk_stage
from tests.dialects.plain_dialect import DIALECT as PLAIN
from tests.gateway_server import Served, served
from tests.shared_servers import free_port
from tests.upstream import Upstream, answer, says

CATALOG = Catalog(
    providers={
        "acme": Provider(key_env="ACME_KEY"),
        "lost": Provider(key_env="LOST_KEY", key_help="Ask for one at the desk."),
        "open": Provider(),
        "local": Provider(embedded=True, default_model="smol"),
    },
    models={"large": Model(providers=("acme",), context_window=1000), "far": Model(providers=("lost",))},
)
TOLD = about("1.2", "http://127.0.0.1:7700", CATALOG, lambda provider: provider.key_env != "LOST_KEY")


def test_models_are_those_that_would_get_an_answer() -> None:
    assert [(each.id, each.provider, each.context_window) for each in TOLD.models] == [
        ("large", "acme", 1000),
        ("smol", "local", None),
    ]


def test_what_is_configured_at_a_provider_without_a_key_can_be_chosen() -> None:
    mine = Catalog(
        providers={"mine": Provider(default_model="usual")},
        models={"mine/large": Model(context_window=800), "mine/usual": Model()},
    )
    told = about("1.2", "http://127.0.0.1:7700", mine, lambda _provider: True)
    assert [(each.id, each.provider, each.context_window) for each in told.models] == [
        ("usual", "mine", None),
        ("large", "mine", 800),
    ]


def test_a_model_that_is_configured_at_one_provider_with_a_key_can_be_chosen() -> None:
    mine = Catalog(
        providers={"acme": Provider(key_env="K"), "lost": Provider(key_env="L")},
        models={
            "large": Model(providers=("acme",), context_window=9),
            "acme/large": Model(context_window=800),
            "acme/own": Model(context_window=7),
            "lost/own": Model(),
        },
    )
    told = about("1.2", "http://127.0.0.1:7700", mine, lambda provider: provider.key_env == "K")
    assert [(each.id, each.provider, each.context_window) for each in told.models] == [
        ("own", "acme", 7),
        ("large", "acme", 800),
    ]


def test_providers_say_what_they_lack() -> None:
    told = {each.name: (each.ready, each.why) for each in TOLD.providers}
    assert told["acme"] == told["local"] == (True, "")
    assert told["open"][0] is True
    assert "credential" in told["open"][1]
    assert told["lost"] == (False, "LOST_KEY is not set. Ask for one at the desk.")


def test_every_client_that_can_be_started_is_shown_with_its_command() -> None:
    commands = {each.command.removeprefix("sightline run -- ") for each in TOLD.clients if each.command}
    assert commands == set(CLIENTS)
    (claude,) = [each for each in TOLD.clients if each.name == "Claude Code"]
    assert claude.env == {"ANTHROPIC_BASE_URL": "http://127.0.0.1:7700"}


def test_the_page_is_told_every_dialect_and_how_it_writes_a_message() -> None:
    register(PLAIN)
    try:
        homely = Catalog(providers={"openai": Provider(home=("openai-chat",)), "plainco": Provider(home=("plain",))})
        told = {each.name: each for each in about("1.2", "", homely, lambda _provider: True).dialects}
    finally:
        unregister("plain")
    assert list(told) == ["openai-chat", "openai-responses", "anthropic", "gemini", "raw", "plain"]
    assert (told["openai-chat"].label, told["openai-chat"].home) == ("chat", "openai")
    assert (told["plain"].label, told["plain"].home, told["plain"].container) == ("plain", "plainco", "turns")
    assert told["plain"].roles == ("system", "user", "assistant")
    new = "New message"
    assert {name: each.messages for name, each in told.items()} == {
        "openai-chat": {role: {"role": role, "content": new} for role in ("user", "assistant")},
        "openai-responses": {
            "user": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": new}]},
            "assistant": {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": new, "annotations": []}],
            },
        },
        "anthropic": {
            role: {"role": role, "content": [{"type": "text", "text": new}]} for role in ("user", "assistant")
        },
        "gemini": {
            "user": {"role": "user", "parts": [{"text": new}]},
            "assistant": {"role": "model", "parts": [{"text": new}]},
        },
        "raw": {
            "user": {"role": 1, "content": [{"type": 1, "text": new}]},
            "assistant": {"role": 2, "content": [{"type": 1, "text": new}]},
        },
        "plain": {"user": {"who": "person", "says": new}, "assistant": {"who": "machine", "says": new}},
    }


PROVIDERS_CATALOG = Catalog(
    providers={
        "far": Provider(base_url="https://far.test/v1", key_env="FAR_KEY"),
        "lost": Provider(base_url="https://lost.test/v1", key_env="LOST_KEY", key_help="Ask at the desk."),
        "open": Provider(base_url="https://open.test/v1"),
        "here": Provider(base_url="http://127.0.0.1:1/v1"),
        "claude": Provider(base_url="http://localhost:2", dialect="anthropic"),
        "named": Provider(base_url="${NAMED_URL}/v1"),
        "local": Provider(embedded=True, default_model="smol"),
    }
)


def test_only_local_providers_are_probed() -> None:
    asked: list[str] = []

    async def probe(request: HttpRequest) -> str:
        asked.append(f"{request.method} {request.url}")
        return "" if ":1/" in request.url else "Nothing listens there."

    async def embedded() -> str:
        return "It starts with its first request."

    found = Providers(PROVIDERS_CATALOG, lambda each: each.key_env != "LOST_KEY", {}, probe, embedded)
    told = {each.name: (each.ready, each.why) for each in asyncio.run(found.list_providers())}
    assert told == {
        "far": (True, "FAR_KEY is set."),
        "lost": (False, "LOST_KEY is not set. Ask at the desk."),
        "open": (True, "The client's own credential is passed on."),
        "here": (True, ""),
        "claude": (False, "Nothing listens there."),
        "named": (False, "the variable NAMED_URL is not set."),
        "local": (False, "It starts with its first request."),
    }
    assert asked == ["GET http://127.0.0.1:1/v1/models", "GET http://localhost:2/v1/models"]


@pytest.fixture
def server(acme: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.delenv("SIGHTLINE_LOCAL_URL", raising=False)
    config = f'[providers.up]\nbase_url = "{acme.url}/v1"\n[providers.down]\nbase_url = "http://127.0.0.1:{free_port()}/v1"\n'
    with served(tmp_path, config) as gateway:
        yield gateway


def test_provider_status_is_probed_on_request(server: Served, acme: Upstream) -> None:
    acme.script = [says({"data": []})]
    told = {each["name"]: (each["ready"], each["why"]) for each in server.api("/api/providers")}
    assert told["up"] == (True, "")
    assert told["down"][0] is False
    assert told["down"][1].startswith("Not running: nothing listens at 127.0.0.1:")
    assert told["local"][0] is False, "it has not been started"
    assert [seen.target for seen in acme.seen] == ["/v1/models"]


PRICED = """
[models."acme/claude-opus-5".prices]
input = 4.0
output = 20.0
cache_write = 5.0
cache_write_1h = 8.0
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskStage]:
    with desk_stage(tmp_path_factory.mktemp("learned"), "anthropic", PRICED) as made:
        made.person.put("/api/interception", {"mode": "off"})
        yield made


def request(text: str, model: str = "claude-opus-5", **more: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": text}], **more}


def replies(stage: DeskStage, usage: dict[str, Any], model: str = "claude-opus-5") -> None:
    reply = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hello."}], "usage": usage,
    }  # fmt: skip
    stage.upstream.script = [answer(200, json.dumps(reply).encode(), JSON)]


def streams_reply(stage: DeskStage, usage: dict[str, Any]) -> None:
    started = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5", "content": []}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**started, "usage": {**usage, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    data = b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)
    stage.upstream.script = [answer(200, data, SSE)]


def lessons(stage: DeskStage) -> dict[str, Any]:
    return {f"{each['model']} {each['kind']}": each for each in stage.person.get("/api/learned")["lessons"]}


def eventually(stage: DeskStage, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The lessons once it is so. A client may have all of a streamed answer a moment before we know that it ended."""
    for _ in range(1000):
        if is_so(told := lessons(stage)):
            return told
    raise AssertionError(told)


def test_counts_for_clients_teach_whole_and_streamed_and_can_be_forgotten(stage: DeskStage) -> None:
    person, key = stage.person, "acme/claude-opus-5 text"
    replies(stage, {"input_tokens": 12, "output_tokens": 5})
    assert stage.ask(request("some words of a prompt")).result().status == 200
    eventually(stage, lambda told: told.get(key, {}).get("seen") == 1)
    streams_reply(stage, {"input_tokens": 14})
    assert stage.ask(request("some other words of it", stream=True)).result().status == 200
    eventually(stage, lambda told: told[key]["seen"] == 2)
    replies(stage, {"input_tokens": 51_890, "output_tokens": 5})
    assert stage.ask(request("what an odd count")).result().status == 200
    told = eventually(stage, lambda told: told[key]["set_aside"] == 1)
    assert (told[key]["seen"], told[key]["added"]) == (2, 0)
    assert person.ask("POST", "/api/learned/forget", {"model": "nobody"}) == (200, {"forgotten": []})
    forgotten = person.ask("POST", "/api/learned/forget", {"model": "claude-opus-5"})
    assert forgotten == (200, {"forgotten": ["acme/claude-opus-5"]})
    assert person.get("/api/learned") == {"lessons": []}
    assert person.ask("POST", "/api/learned/forget", {"modle": "x"})[0] == 422


@pytest.mark.parametrize("is_stream", [False, True])
def test_cache_writes_of_an_hour_have_their_price_whole_and_streamed(stage: DeskStage, *, is_stream: bool) -> None:
    usage = {
        "input_tokens": 1000,
        "cache_creation_input_tokens": 3000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 2000},
        "output_tokens": 5,
    }
    (streams_reply if is_stream else replies)(stage, usage)
    got = stage.ask(request("write it down", stream=is_stream)).result()
    summary = stage.person.ended(got.exchange)
    assert summary["cost"] == pytest.approx((1000 * 4 + 1000 * 5 + 2000 * 8 + 5 * 20) / 1e6)
    reply = stage.person.get(f"/api/exchanges/{got.exchange}/reply")["reply"]
    assert reply["usage"] == {"input_tokens": 4000, "output_tokens": 5, "cache_write_tokens": 3000}


def test_a_server_of_ones_own_is_not_charged_at_the_makers_price(stage: DeskStage) -> None:
    replies(stage, {"input_tokens": 12, "output_tokens": 5}, "claude-opus-5-5")
    got = stage.ask(request("for nothing", model="claude-opus-5-5")).result()
    summary = stage.person.ended(got.exchange)
    assert summary["input_tokens"] == 12
    assert "cost" not in summary or summary["cost"] is None


def test_a_prompt_of_no_tokens_was_not_counted_and_is_estimated(stage: DeskStage) -> None:
    replies(stage, {"input_tokens": 0, "output_tokens": 5})
    got = stage.ask(request("how many words")).result()
    summary = stage.person.ended(got.exchange)
    assert (summary.get("is_estimated"), summary["input_tokens"] > 0, summary["cost"] > 0) == (True, True, True)
