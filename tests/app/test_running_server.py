import fcntl
import json
import os
import stat
from pathlib import Path

import pytest

from sightline.app.running_server import RUN_LOCK, announce, find_server, keep_server, knows_token, withdraw
from sightline.errors import Code, Fault
from tests.gateway_server import served
from tests.shared_servers import free_port


def test_a_server_is_found_by_its_data_folder_while_it_runs(tmp_path: Path) -> None:
    with served(tmp_path, "") as server:
        found = find_server(tmp_path / "data")
        assert found is not None
        assert (found.url, found.token) == (server.url, server.token)
        assert found.link_to("x/1") == f"{server.url}/?token={server.token}#/x/x%2F1"
        [file] = (tmp_path / "data").glob("server.*")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert server.token not in file.read_text()
    assert find_server(tmp_path / "data") is None
    assert list((tmp_path / "data").glob("server.*")) == []


def test_what_a_crash_left_behind_misleads_nobody(tmp_path: Path) -> None:
    with served(tmp_path, "") as server:
        folder = tmp_path / "data"
        announce(folder, f"http://127.0.0.1:{free_port()}")
        (folder / "server.1.json").write_text("{")
        (folder / "server.2.json").write_text("[]")
        (folder / "server.3.json").write_text('{"url": "file:///etc/passwd"}')
        found = find_server(folder)
        assert found is not None
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


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
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


def test_the_file_says_where_and_no_more(tmp_path: Path) -> None:
    announce(tmp_path, "http://127.0.0.1:7700")
    assert json.loads((tmp_path / "server.7700.json").read_text()) == {
        "url": "http://127.0.0.1:7700",
        "pid": os.getpid(),
    }
