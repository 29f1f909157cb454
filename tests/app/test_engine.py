import asyncio
import fcntl
import os
import stat
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from sightline.app.configuration import configuration
from sightline.app.engine import (
    counter,
    engine_here,
    engine_through,
    make_embedded_model,
    means_of,
    nowhere,
    open_engine,
    running_server,
)
from sightline.app.running_server import RUN_LOCK, announce, find_server, keep_server, knows_token, withdraw
from sightline.catalog.compose import Prompt
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.rules import Interception, Rules
from sightline.exchange.interception.store import KeptInterception
from sightline.exchange.outbound import prepare
from sightline.exchange.relay import Relay
from sightline.exchange.remote_relay import RemoteRelay, RunningServer
from sightline.model.parts import Text
from sightline.model.request import Message
from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.shared_servers import free_port
from tests.upstream import says


def test_the_embedded_model_is_as_it_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_LOCAL_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SIGHTLINE_LOCAL_KEY", "k")
    model = make_embedded_model(configuration(None))
    assert model.elsewhere is not None
    running = asyncio.run(model.running())
    assert (running.url, running.key) == ("http://127.0.0.1:9", "k")


async def test_an_engine_opens_and_closes_without_starting_anything(tmp_path: Path) -> None:
    async with open_engine(configuration(None), str(tmp_path / "data"), is_recorded=False) as engine:
        assert engine.clock.monotonic() <= engine.clock.monotonic()
        assert engine.unrecorded is None
    assert not (tmp_path / "data").exists()


def test_an_engine_opens_its_record_or_says_why_it_cannot(tmp_path: Path) -> None:
    async def opened(data: Path) -> Fault | None:
        async with open_engine(configuration(None), str(data)) as engine:
            return engine.unrecorded

    assert asyncio.run(opened(tmp_path / "data")) is None
    assert (tmp_path / "data" / "record.sqlite3").exists()
    (tmp_path / "file").write_text("no folder")
    fault = asyncio.run(opened(tmp_path / "file"))
    assert fault.hint


def test_what_estimates_needs_neither_an_engine_nor_a_record(tmp_path: Path) -> None:
    assert counter(str(tmp_path / "data")).memory.trouble == ""
    assert not (tmp_path / "data").exists()


WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}


async def test_the_server_of_the_folder_sends_unless_it_is_to_be_apart(tmp_path: Path) -> None:
    with served(tmp_path, "") as server:
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


@pytest.mark.parametrize("mode", ["every", "next"])
def test_without_a_server_hold_is_noted_once_and_drop_rules_still_apply(tmp_path: Path, mode: str) -> None:
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
                await engine.ask(ready, on_event=lambda _: None, tried=lambda _: None, paused=lambda _: None)

    with upstream_in_background() as upstream:
        upstream.script = [says(WHOLE)]
        file = tmp_path / "sightline.toml"
        file.write_text(f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n')
        loaded = configuration(str(file))
        asyncio.run(asked("hi"))
        assert lines == ["note: interception is on, but no server is running to hold the request; it was sent"]
        assert kept.read()[0].mode == mode, "it waits for a server that can hold"
        kept.write(Interception().with_rules(rules), ())
        with pytest.raises(Fault, match="dropped in Sightline") as caught:
            asyncio.run(asked("a secret"))
        assert caught.value.code is Code.INVALID_REQUEST
        assert len(upstream.seen) == 2


def test_a_server_is_found_by_its_data_folder_while_it_runs(tmp_path: Path) -> None:
    with served(tmp_path, "") as server:
        found = find_server(tmp_path / "data")
        assert (found.url, found.token) == (server.url, server.token)
        assert found.link_to("x/1") == f"{server.url}/?token={server.token}#/x/x%2F1"
        [file] = (tmp_path / "data").glob("server.*")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert server.token not in file.read_text()
    assert find_server(tmp_path / "data") is None
    assert list((tmp_path / "data").glob("server.*")) == []


def test_stale_server_files_after_a_crash_are_ignored(tmp_path: Path) -> None:
    with served(tmp_path, "") as server:
        folder = tmp_path / "data"
        announce(folder, f"http://127.0.0.1:{free_port()}")
        (folder / "server.1.json").write_text("{")
        (folder / "server.2.json").write_text("[]")
        (folder / "server.3.json").write_text('{"url": "file:///etc/passwd"}')
        found = find_server(folder)
        assert found.url == server.url


def test_a_server_of_another_folder_is_not_taken_for_ours(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    with served(tmp_path / "theirs", "") as foreign:
        folder = tmp_path / "ours"
        folder.mkdir()
        assert find_server(folder) is None, "there is no token yet"
        (folder / "token").write_text("a-token-of-our-own-0123456789\n")
        announce(folder, foreign.url)
        assert find_server(folder) is None
        assert knows_token("127.0.0.1", int(foreign.url.rpartition(":")[2]), foreign.token) is True
        withdraw(folder, foreign.url)
        assert list(folder.glob("server.*")) == []


def test_unwritable_folder_raises_a_config_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="No such file") as caught:
        announce(tmp_path / "nowhere", "http://127.0.0.1:1")
    assert caught.value.code is Code.CONFIG


def test_a_server_that_runs_share_stays_while_a_command_uses_it(tmp_path: Path) -> None:
    with keep_server(tmp_path) as is_kept:
        assert is_kept, "nobody shares it"
    lock = tmp_path / RUN_LOCK
    lock.touch()
    file = os.open(lock, os.O_RDWR)
    try:
        with keep_server(tmp_path) as is_kept:
            assert is_kept
            with pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with keep_server(tmp_path) as is_kept:
            assert not is_kept, "it ends now"
    finally:
        os.close(file)
