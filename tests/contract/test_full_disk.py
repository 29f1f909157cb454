"""A disk that fills up under the running program: clients are served, and no id leaves that nobody can look up."""

import errno
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.store import journal
from tests.contract.loopback import speaking
from tests.gateway_server import Served, served
from tests.http_call import call
from tests.postgres_server import HOST, OWNER, PASSWORD, execute, shared_server
from tests.reply_samples import SAYS

Disk = tuple[Path, Callable[[], None], Callable[[], None]]


@contextmanager
def real_disk(folder: Path, _patch: pytest.MonkeyPatch, size: str = "6m") -> Iterator[Disk]:
    """A file system of a few megabytes, and ways to fill it and to make room."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.name != "posix" or os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system")
    filler = folder / "filler"

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 16, 1):
                try:
                    while file.write(b"x" * size):
                        pass
                except OSError:
                    continue

    try:
        yield folder, fill, lambda: filler.unlink()
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def failing_writes(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """A journal that gets no room, as on a full disk."""

    class Full:
        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def posix_fallocate(self, _file: int, _at: int, _size: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    yield folder, lambda: patch.setattr(journal, "os", Full()), lambda: patch.setattr(journal, "os", os)


def ask(gateway: Served, number: int, *, stream: bool, words: str = "") -> tuple[str, bytes]:
    said = words or f"{number} " * 100_000
    body = {"model": "m", "messages": [{"role": "user", "content": said}], "stream": stream}
    answer = call("POST", f"{gateway.url}/p/acme/v1/chat/completions", body)
    assert answer.status == 200
    return answer.headers.get("x-sightline-exchange", ""), answer.body


def listed(gateway: Served) -> list[Any]:
    """The record, as soon as it can be read: the database may have met the full disk itself."""
    for _ in range(100):
        try:
            found: list[Any] = gateway.api("/api/exchanges?limit=100")["exchanges"]
        except urllib.error.HTTPError:
            time.sleep(0.1)
        else:
            return found
    raise AssertionError("the record does not recover")


@pytest.mark.parametrize("disk", [real_disk, failing_writes])
def test_no_id_leaves_for_what_is_not_on_record_and_nothing_stays_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: Callable[[Path, pytest.MonkeyPatch], Any]
) -> None:
    with (
        disk(tmp_path, monkeypatch) as (folder, fill, make_room),
        speaking(dialect("openai-chat"), Client(id="c", model="m")) as upstream,
    ):
        upstream.events = SAYS
        config = f'[providers.acme]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\n'
        with served(folder, config) as gateway:
            first, _ = ask(gateway, 0, stream=False)
            assert first
            assert [each["id"] for each in listed(gateway)] == [first]
            fill()
            given = [ask(gateway, n, stream=n % 2 == 1) for n in range(1, 7)]
            assert all(b"there." in body for _, body in given), "the client is served all the same"
            make_room()
            last, _ = ask(gateway, 7, stream=True)
            assert last
            ids = [id_ for id_, _ in given if id_]
            assert len(ids) < len(given), "the disk was full"
            found = {each["id"]: each for each in listed(gateway)}
            assert {first, last, *ids} <= found.keys()
            for id_, each in found.items():
                assert each["at"] > 0, each
                assert each["state"] == "finished"
                view = gateway.api(f"/api/exchanges/{id_}")
                kinds = [fact["kind"] for fact in view["facts"]]
                assert kinds[0] == "received"
                assert kinds[-1] == "finished"
                assert len(gateway.body(id_, "received")) > 1000
            assert len(found) == 8, "what waited in memory is written down once there is room"


@contextmanager
def database_on_small_disk(patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    """The URL of a database whose tables are on a disk of their own, and ways to fill that and to make room."""
    server = shared_server()
    name = f"small_{os.getpid()}"
    folder = server.folder / name
    folder.mkdir()
    with real_disk(folder, patch, "40m") as (_, fill, make_room):
        owner = server.folder.stat()
        os.chown(folder, owner.st_uid, owner.st_gid)
        execute(server.url(), f"CREATE TABLESPACE {name} LOCATION '{folder}'")
        try:
            execute(server.url(), f"CREATE DATABASE {name} TABLESPACE {name}")
            patch.setenv("PGPASSWORD", PASSWORD)
            yield f"postgresql://{OWNER}@{HOST}:{server.port}/{name}?sslmode=disable", fill, make_room
        finally:
            execute(server.url(), f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            execute(server.url(), f"DROP TABLESPACE {name}")


def trouble(gateway: Served) -> str:
    """What the state of the server says of its record; empty if all is well."""
    return gateway.api("/api/health").get("store", {}).get("trouble", "")


def test_what_is_recorded_while_the_disk_of_postgresql_is_full_is_there_once_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(1)
    words = [chance.randbytes(200_000).hex() for _ in range(6)]
    with (
        database_on_small_disk(monkeypatch) as (url, fill, make_room),
        speaking(dialect("openai-chat"), Client(id="c", model="m")) as upstream,
    ):
        upstream.events = SAYS
        config = f'[store]\nurl = "{url}"\n[providers.acme]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\n'
        with served(tmp_path, config) as gateway:
            first, _ = ask(gateway, 0, stream=False, words="before")
            assert [each["id"] for each in listed(gateway)] == [first]
            fill()
            given = [ask(gateway, n, stream=n % 2 == 1, words=each) for n, each in enumerate(words)]
            assert all(b"there." in body for _, body in given), "the client is served all the same"
            ids = [id_ for id_, _ in given]
            assert all(ids), "the journal has them"
            refused = call("GET", f"{gateway.url}/api/exchanges", token=gateway.token)
            assert refused.status >= 400
            told = refused.json()["error"]
            assert "No space left on device" in told["message"]
            assert "Make room" in told["hint"]
            assert "No space left on device" in trouble(gateway)
            make_room()
            for _ in range(300):  # the recorder tries again by itself, after five seconds at most
                if not trouble(gateway):
                    break
                time.sleep(0.1)
            found = {each["id"]: each for each in listed(gateway)}
            assert found.keys() == {first, *ids}
            assert {each["state"] for each in found.values()} == {"finished"}
            for id_, each in zip(ids, words, strict=True):
                assert each.encode() in gateway.body(id_, "received")
                assert [one["id"] for one in gateway.api(f"/api/exchanges?filter=text:{each[:20]}")["exchanges"]] == [
                    id_
                ]
