import os
import stat
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from sightline.errors import Code, Fault
from sightline.web.token import load_token
from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.reply_samples import whole
from tests.upstream import answer

FRESH = "a" * 32


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_token_is_made_once_and_kept_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    assert load_token(folder, lambda: FRESH) == FRESH
    assert load_token(folder, lambda: "b" * 32) == FRESH
    assert mode(folder / "token") == 0o600
    assert mode(folder) == 0o700
    assert os.listdir(folder) == ["token"]  # noqa: PTH208 - the names are what counts


def test_a_folder_and_a_file_that_others_could_read_are_shut(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "token").write_text(f"{FRESH}\n")
    (tmp_path / "token").chmod(0o644)
    assert load_token(tmp_path, lambda: "b" * 32) == FRESH
    assert mode(tmp_path / "token") == 0o600
    assert mode(tmp_path) == 0o700


def test_a_folder_for_everybody_stays_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    load_token(tmp_path, lambda: FRESH)
    assert mode(tmp_path) == 0o1777


@pytest.mark.parametrize("kept", [b"", b"short\n", b"with spaces in between which no token has\n", b"\xff" * 40])
def test_a_file_that_holds_no_token_is_written_anew(tmp_path: Path, kept: bytes) -> None:
    (tmp_path / "token").write_bytes(kept)
    assert load_token(tmp_path, lambda: FRESH) == FRESH
    assert (tmp_path / "token").read_text() == f"{FRESH}\n"


def test_whoever_was_quicker_has_made_the_one_that_counts(tmp_path: Path) -> None:
    def slow() -> str:
        load_token(tmp_path, lambda: FRESH)
        return "b" * 32

    assert load_token(tmp_path, slow) == FRESH


def test_a_folder_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Fault) as caught:
        load_token(tmp_path / "file", lambda: FRESH)
    assert caught.value.code is Code.CONFIG
    assert "--data" in caught.value.hint


def test_all_that_a_server_keeps_is_the_owners_alone(tmp_path: Path) -> None:
    with upstream_in_background() as upstream:
        upstream.script = [answer(200, whole("openai-chat"))]
        config = f'[providers.acme]\ndialect = "openai-chat"\nbase_url = "{upstream.url}"\n'
        before = os.umask(0o022)
        try:
            with served(tmp_path, config) as gateway:
                asked = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
                urlopen(Request(f"{gateway.url}/p/acme/v1/chat/completions", asked), timeout=20).close()
                gateway.api("/api/exchanges")
                found = list((tmp_path / "data").rglob("*"))
        finally:
            os.umask(before)
    assert {"token", "record.sqlite3", "journal"} <= {path.name for path in found}
    kept = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert "learned.json" in {path.name for path in kept}
    assert {mode(path) for path in kept} == {0o600}
    assert {mode(path) for path in (tmp_path / "data", tmp_path / "data" / "journal")} == {0o700}
