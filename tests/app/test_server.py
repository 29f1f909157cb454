import asyncio
import json
import threading
from pathlib import Path

import pytest

from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import open_engine, open_record
from sightline.app.machine import SystemClock
from sightline.app.rooms import open_chat
from sightline.app.server import open_server
from sightline.exchange import memory as memory_module
from sightline.exchange.hub import Hub
from sightline.exchange.memory import Memory
from sightline.filters.parsing import parse
from tests.background import upstream_in_background
from tests.chat.service.chat_stage import toolless
from tests.gateway_server import served
from tests.http_call import call
from tests.server.running import running
from tests.upstream import answer

CHAT_REPLY = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Ho"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8},
    }
).encode()


def test_a_server_that_answers_from_the_record_holds_nothing_and_says_so() -> None:
    with running() as server:
        assert server.api("/api/about")[1]["places"] == ["traffic"]
        for path in ("/api/rules", "/api/masks", "/api/interception", "/api/holds"):
            assert server.api(path)[0] == 404
        for call in ("edits", "release", "drop", "answer"):
            status, told = server.api(f"/api/exchanges/x_1/{call}", "POST")
            assert (status, "--replay" in told["error"]["hint"]) == (409, True)


CONFIG = """
[chat]
user_request_allowance = 600
style_directives = ["Be short."]
[providers.acme]
base_url = "http://127.0.0.1:1/v1"
[models."acme/large"]
prices = { input = 2.0, output = 4.0 }
[tools.notes]
folder = "."
"""


def loaded(folder: Path, text: str = CONFIG) -> Configuration:
    file = folder / "sightline.toml"
    file.write_text(text)
    return configuration(str(file))


def test_what_is_configured_is_what_the_chat_goes_by(tmp_path: Path) -> None:
    settings = loaded(tmp_path).settings.chat
    assert (settings.user_request_allowance, settings.style_directives) == (600, ("Be short.",))
    assert settings.max_trim_attempts == 10


async def test_a_chat_is_opened_on_a_store(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    async with open_engine(config, str(tmp_path)) as engine, open_record(config, str(tmp_path)) as store:
        parts = open_chat(config, engine, Hub(store.record), store.logbook, toolless(engine))
        assert len(await parts.chats.main.chat.load()) == 0
        assert parts.chats.main.chat.make_id().startswith("c_")
        prices = parts.prices("acme/large")
        assert prices.input == 2.0
        assert parts.prices("nobody-serves-this") is None
        assert parts.chats.context.settings.user_request_allowance == 600
        assert parts.toolsets == ("notes",)
        await parts.chats.close(0)


@pytest.mark.parametrize("replay", [None, parse("")])
def test_a_server_opens_and_closes_without_a_client(tmp_path: Path, replay: object) -> None:
    async def link(host: str) -> str:
        opening = open_server(
            configuration(None), str(tmp_path / "data"), host=host, port=7799, replay=replay
        )  # a filter, or none
        async with opening as (_, shown):
            return shown

    first = asyncio.run(link("localhost"))
    assert first.startswith("http://127.0.0.1:7799/?token=")
    assert asyncio.run(link("::1")) == first.replace("127.0.0.1", "[::1]"), "the token is kept"


def test_what_a_server_learns_is_seen_and_forgotten_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = threading.Event()
    save = Memory.save

    def save_and_tell(memory: Memory) -> None:
        save(memory)
        if memory.lessons():
            saved.set()

    monkeypatch.setattr(Memory, "save", save_and_tell)
    monkeypatch.setattr(memory_module, "SAVE_S", 0.01)
    message = {"role": "assistant", "content": "hi"}
    reply = {
        "id": "r",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 13},
    }
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "some words"}]}).encode()
    with upstream_in_background() as upstream:
        upstream.script = [answer(200, json.dumps(reply).encode(), [("Content-Type", "application/json")])]
        config = f'[providers.acme]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\n'
        with served(tmp_path, config) as server:
            assert call("POST", server.url + "/p/acme/v1/chat/completions", body).status == 200
            assert saved.wait(60)
            beside = Memory(tmp_path / "data", SystemClock().now)
            assert [lesson.model for lesson in beside.lessons()] == ["acme/m"]
            assert beside.forget("acme/m")
            assert server.api("/api/learned") == {"lessons": []}


def test_prometheus_gets_the_metrics_with_the_token_alone(tmp_path: Path) -> None:
    with upstream_in_background() as upstream:
        upstream.script = [answer(200, CHAT_REPLY, [("Content-Type", "application/json")])]
        config = f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n[[routes]]\nprovider = "acme"\n'
        with served(tmp_path, config) as gateway:
            body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
            chat, metrics = f"{gateway.url}/v1/chat/completions", f"{gateway.url}/api/metrics"
            assert call("POST", chat, body).status == 200
            assert b"{" not in gateway.data("/api/metrics"), "nothing is counted before it is asked for"
            assert call("POST", chat, body).status == 200
            assert call("GET", metrics).status == 401
            scraped = call("GET", metrics, token=gateway.token)
            assert scraped.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            text = scraped.body.decode()
    labels = '{gen_ai_operation_name="chat",gen_ai_provider_name="acme",gen_ai_request_model="m",'
    assert f"gen_ai_client_operation_duration_seconds_count{labels}" in text
    assert f'server_address="127.0.0.1",server_port="{upstream.port}"' in text
    assert 'gen_ai_token_type="input"} 7' in text
