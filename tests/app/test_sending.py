import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from sightline.app.command_engine import engine_here, engine_through, running_server
from sightline.app.configuration import configuration
from sightline.app.openers import open_engine
from sightline.app.parts import means_of, nowhere
from sightline.catalog.compose import Prompt
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.rules import Interception, Rules
from sightline.exchange.interception.store import KeptInterception
from sightline.exchange.prepare import prepare
from sightline.exchange.relay import Relay
from sightline.exchange.remote_relay import RemoteRelay, RunningServer
from sightline.model.message import Message
from sightline.model.parts import Text
from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.upstream import says

WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}


def test_the_server_of_the_folder_sends_unless_it_is_to_be_apart(tmp_path: Path) -> None:
    async def story() -> None:
        folder = tmp_path / "data"
        async with AsyncExitStack() as stack:
            assert await running_server(folder, stack, apart=True) is None
            assert await running_server(folder, stack, apart=False) == RunningServer(server.url, server.token)
        loaded = configuration(str(tmp_path / "sightline.toml"))
        async with open_engine(loaded, str(folder)) as engine:
            assert isinstance(engine.relay, RemoteRelay)
            assert isinstance(engine.aside, RemoteRelay)
        async with open_engine(loaded, str(folder), apart=True) as engine:
            assert isinstance(engine.relay, Relay)
        async with AsyncExitStack() as stack:
            means = means_of(loaded, folder, stack)
            await engine_through(RunningServer(server.url, server.token), loaded, folder, means, stack, notice=print)
            means.memory.ledger.add_request("acme", "m", 5, 0.0)
        assert not (folder / "learned.json").exists(), "the server counts, and this process not once more"

    with served(tmp_path, "") as server:
        asyncio.run(story())


@pytest.mark.parametrize("mode", ["every", "next"])
def test_without_a_server_a_hold_is_said_once_and_rules_that_drop_still_do(tmp_path: Path, mode: str) -> None:
    rules = Rules.of([{"filter": "text:secret", "action": "drop", "phase": "request"}])
    kept = KeptInterception(tmp_path)
    kept.write(Interception().with_mode(mode), ())
    lines: list[str] = []

    async def asked(text: str) -> None:
        async with AsyncExitStack() as stack:
            means = means_of(loaded, tmp_path, stack)
            engine, _ = await engine_here(loaded, tmp_path, means, nowhere, stack, notice=lines.append)
            ready = prepare(Prompt((Message("user", (Text(text),)),), stream=False), loaded.choice("acme/m"))
            for _ in range(2):
                await engine.ask(ready, heard=lambda _: None, tried=lambda _: None, paused=lambda _: None)

    with upstream_in_background() as upstream:
        upstream.script = [says(WHOLE)]
        file = tmp_path / "sightline.toml"
        file.write_text(f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n')
        loaded = configuration(str(file))
        asyncio.run(asked("hi"))
        assert lines == ["note: hold is on, but no server is running to decide; sent"]
        assert kept.read()[0].mode == mode, "it waits for a server that can hold"
        kept.write(Interception().with_rules(rules), ())
        with pytest.raises(Fault, match="dropped in Sightline") as caught:
            asyncio.run(asked("a secret"))
        assert caught.value.code is Code.INVALID_REQUEST
        assert len(upstream.seen) == 2
