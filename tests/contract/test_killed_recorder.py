"""A server whose processes are killed at any moment under load: every answer that a client saw whole is on record."""

import asyncio
import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from time import monotonic, sleep

import asyncpg
import pytest

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.model.events import Ended, Finished, TextReceived
from tests.contract.loopback import Upstream, speaking
from tests.http_call import call
from tests.postgres_server import database
from tests.server_process import PROGRAM, start
from tests.worker_stage import children_of


@contextmanager
def provider() -> Iterator[Upstream]:
    """A provider that wishes everybody a good morning."""
    with speaking(dialect("openai-chat"), Client(id="c", model="m")) as upstream:
        upstream.events = [TextReceived(0, "Good morning"), Finished("stop"), Ended()]
        yield upstream


class Server:
    """A real server, in processes of its own."""

    def __init__(self, folder: Path, provider: Upstream, store: str) -> None:
        config = folder / "sightline.toml"
        config.write_text(f'[providers.acme]\ndialect = "openai-chat"\nbase_url = "{provider.url}/v1"\n')
        command = [*PROGRAM, "serve", "--no-open", "--port", "0", "--config", str(config)]
        command += ["--data", str(folder / "data"), *(["--store", store] if store else [])]
        self.process, self.served = start(command)
        self.api = self.served.api

    def recorder(self) -> int:
        """The process that stores what is recorded, as soon as there is one."""
        deadline = monotonic() + 60
        while monotonic() < deadline:
            if found := children_of(self.process, b"sightline.app.recorder"):
                return found[0]
            sleep(0.01)
        raise AssertionError("there is no recorder")

    def ask(self, number: int) -> str:
        """The id of an exchange whose answer came whole."""
        body = {"model": "m", "messages": [{"role": "user", "content": f"question {number}"}]}
        answer = call("POST", f"{self.served.url}/p/acme/v1/chat/completions", body)
        assert b"Good morning" in answer.body
        return answer.headers["x-sightline-exchange"]

    def states(self, wanted: str = "") -> dict[str, str]:
        """What a filter finds, and what became of it."""
        found: dict[str, str] = {}
        before = ""
        while page := self.api(f"/api/exchanges?limit=100&before={before}&filter={wanted}")["exchanges"]:
            found |= {each["id"]: each["state"] for each in page}
            before = page[-1]["id"]
        return found

    def kill(self) -> None:
        """End the server as the system does when it has no memory left."""
        self.process.kill()
        self.process.communicate()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


@contextmanager
def load_on(server: Server) -> Iterator[list[str]]:
    """Ask again and again; what was answered until the server is gone, or this ends."""
    answered: list[str] = []
    is_over = threading.Event()

    def ask(client: int) -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            try:
                answered.append(server.ask(1000 * client + number))
            except (OSError, HTTPException, AssertionError):
                return

    clients = [threading.Thread(target=ask, args=(client,)) for client in range(3)]
    for client in clients:
        client.start()
    try:
        yield answered
    finally:
        is_over.set()
        for client in clients:
            client.join()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield ""
        return
    with database() as url:
        yield url


@pytest.mark.parametrize("seed", range(2))
def test_every_answer_that_a_client_saw_is_there_whoever_was_killed(tmp_path: Path, store: str, seed: int) -> None:
    chance = random.Random(seed)
    with provider() as upstream:
        server = Server(tmp_path, upstream, store)
        with load_on(server) as answered:
            for _ in range(3):
                sleep(chance.random() / 4)
                os.kill(server.recorder(), signal.SIGKILL)
            while len(answered) < 20:
                sleep(0.01)
        # A reader that comes while the recorder is started again waits for it.
        found = server.states()
        assert found.keys() >= set(answered)
        assert set(found.values()) == {"finished"}
        for exchange in chance.sample(answered, 3):  # what was brought in twice is there once
            kinds = [fact["kind"] for fact in server.api(f"/api/exchanges/{exchange}")["facts"]]
            assert [kinds.count(kind) for kind in ("received", "attempt", "finished")] == [1, 1, 1]
        with load_on(server) as more:
            sleep(chance.random() / 2)
            if seed:
                os.kill(server.recorder(), signal.SIGKILL)
            server.kill()
        server = Server(tmp_path, upstream, store)
        found = server.states()
        assert found.keys() >= {*answered, *more}
        assert set(found.values()) <= {"finished", "failed"}
        assert all(found[each] == "finished" for each in (*answered, *more))
        assert server.states("text:'question'").keys() == found.keys()
        assert "store" not in server.api("/api/health")
        server.stop()
        assert not list((tmp_path / "data" / "journal").glob("*.log"))


@contextmanager
def stopped(url: str) -> Iterator[None]:
    """A database server that does not answer: what it has running for this database stands still."""

    async def workers() -> list[int]:
        connection = await asyncpg.connect(url)
        try:
            other = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            return [row["pid"] for row in await connection.fetch(other)]
        finally:
            await connection.close()

    pids = asyncio.run(workers())
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_stopped_database_keeps_no_client_waiting_and_gets_everything_later(tmp_path: Path) -> None:
    with database() as url, provider() as upstream:
        server = Server(tmp_path, upstream, url)
        answered = [server.ask(number) for number in range(3)]
        assert server.states().keys() == set(answered)
        with stopped(url):
            answered += [server.ask(number) for number in range(10, 20)]
            os.kill(server.recorder(), signal.SIGKILL)
            answered += [server.ask(number) for number in range(20, 30)]
        found = server.states()
        assert sorted(found) == sorted(answered)
        assert set(found.values()) == {"finished"}
        kinds = [fact["kind"] for fact in server.api(f"/api/exchanges/{answered[5]}")["facts"]]
        assert [kinds.count(kind) for kind in ("received", "attempt", "finished")] == [1, 1, 1]
        server.stop()


def test_a_command_reads_what_a_server_has_just_answered(tmp_path: Path) -> None:
    with provider() as upstream:
        server = Server(tmp_path, upstream, "")
        ids = [server.ask(number) for number in range(5)]
        command = [*PROGRAM, "traffic", "--json", "--data", str(tmp_path / "data")]
        listed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert all(each in listed.stdout for each in ids)
        recorder = server.recorder()
        server.kill()
        while Path(f"/proc/{recorder}").exists():
            sleep(0.01)  # it ends with its server, by itself
        listed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert all(each in listed.stdout for each in ids)


def test_two_servers_on_one_folder_share_a_recorder_and_one_goes_on_without_the_other(tmp_path: Path) -> None:
    with provider() as upstream:
        first = Server(tmp_path, upstream, "")
        ids = {first.ask(1)}
        second = Server(tmp_path, upstream, "")
        ids |= {second.ask(2), first.ask(3)}
        assert first.states().keys() == second.states().keys() == ids
        first.kill()
        ids.add(second.ask(4))
        assert second.states().keys() == ids
        second.stop()
