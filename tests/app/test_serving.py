import asyncio
import json
import threading
import urllib.request
from pathlib import Path

import pytest

from sightline.app.configuration import configuration
from sightline.app.machine import SystemClock
from sightline.app.server import open_server
from sightline.exchange import memory as memory_module
from sightline.exchange.memory import Memory
from sightline.filters.parsing import parse
from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.upstream import answer


@pytest.mark.parametrize("replay", [None, parse("")])
def test_a_server_opens_and_closes_without_a_client(tmp_path: Path, replay: object) -> None:
    async def link(host: str) -> str:
        opening = open_server(configuration(None), str(tmp_path / "data"), host=host, port=7799, replay=replay)  # type: ignore[arg-type] # a filter, or none
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
            request = urllib.request.Request(server.url + "/p/acme/v1/chat/completions", body)
            with urllib.request.urlopen(request, timeout=60):
                pass
            assert saved.wait(60)
            beside = Memory(tmp_path / "data", SystemClock().now)
            assert [lesson.model for lesson in beside.lessons()] == ["acme/m"]
            assert beside.forget("acme/m")
            assert server.api("/api/learned") == {"lessons": []}
