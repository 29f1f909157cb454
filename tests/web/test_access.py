import os
import stat
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from sightline.errors import Code, Fault
from sightline.web.access import OriginGuard, host_name, load_token
from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.reply_samples import whole
from tests.upstream import answer

OWN = OriginGuard(7700)


def refused(guard: OriginGuard, **told: str) -> bool:
    headers = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in told.items()]
    return guard.refusal(headers) is not None


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:7700", "localhost", "LocalHost:7700", "[::1]", "[::1]:7700", " localhost "]
)
def test_the_own_names_are_known_in_any_case_with_the_own_port_or_none(host: str) -> None:
    assert not refused(OWN, host=host)


@pytest.mark.parametrize(
    "host",
    [
        "", "evil.example", "evil.example:7700", "127.0.0.1:7701", "localhost:80", "localhost.evil.example",
        "127.0.0.1.evil.example", "[::1]:7701", "::1", "127.0.0.1:", "127.0.0.1:7700:7700", "user@localhost",
        "127.0.0.2", "0.0.0.0:7700", "localhost:٧٧٠٠", "localhost, evil.example",
    ],
)  # fmt: skip
def test_any_other_name_is_refused(host: str) -> None:
    assert OWN.refusal([(b"host", host.encode())]) is not None


def test_no_name_at_all_is_refused() -> None:
    fault = OWN.refusal([(b"accept", b"*/*")])
    assert fault.code is Code.PERMISSION
    assert fault.status == 403
    assert "http://127.0.0.1:7700" in fault.hint


@pytest.mark.parametrize("name", [b"host", b"origin", b"sec-fetch-site"])
def test_repeated_access_header_is_rejected(name: bytes) -> None:
    value = {b"host": b"localhost", b"origin": b"http://localhost:7700", b"sec-fetch-site": b"none"}[name]
    others = [] if name == b"host" else [(b"host", b"localhost")]
    assert OWN.refusal([*others, (name, value)]) is None
    assert OWN.refusal([*others, (name, value), (name, value)]) is not None


@pytest.mark.parametrize("origin", ["http://127.0.0.1:7700", "http://localhost:7700", "HTTP://LOCALHOST:7700"])
def test_the_own_page_may_ask(origin: str) -> None:
    assert not refused(OWN, host="localhost:7700", origin=origin, sec_fetch_site="same-origin")


@pytest.mark.parametrize(
    "origin",
    [
        "null", "", "http://evil.example", "https://localhost:7700", "http://localhost", "http://localhost:5173",
        "http://127.0.0.1:7701", "http://evil.example:7700", "localhost:7700", "http://localhost:7700.evil.example",
        "http://localhost:7700/", "chrome-extension://abc", "file://",
    ],
)  # fmt: skip
def test_pages_of_other_origins_may_not(origin: str) -> None:
    assert refused(OWN, host="localhost:7700", origin=origin)


@pytest.mark.parametrize(("site", "is_refused"), [("same-origin", False), ("none", False), ("SAME-ORIGIN", False),
                                                  ("cross-site", True), ("same-site", True), ("", True)])  # fmt: skip
def test_what_the_browser_says_of_the_sender_counts(site: str, is_refused: bool) -> None:
    assert refused(OWN, host="localhost", sec_fetch_site=site) is is_refused


def test_a_program_that_sends_a_mode_is_no_browser() -> None:
    assert not refused(OWN, host="localhost", sec_fetch_mode="cors")


def test_an_origin_that_a_person_has_allowed_may_ask_from_its_own_site() -> None:
    guard = OriginGuard(7700, origins=frozenset({"http://localhost:5173"}))
    assert not refused(guard, host="localhost:7700", origin="http://localhost:5173", sec_fetch_site="same-site")
    assert refused(guard, host="localhost:7700", origin="http://localhost:5174")
    assert refused(guard, host="evil.example", origin="http://localhost:5173")


def test_on_the_usual_port_an_origin_has_none() -> None:
    assert not refused(OriginGuard(80), host="localhost", origin="http://localhost")


def test_another_host_joins_and_only_it() -> None:
    guard = OriginGuard(7700, hosts=frozenset({"127.0.0.1", "localhost", "[::1]", "box.lan"}))
    assert not refused(guard, host="box.lan:7700", origin="http://box.lan:7700")
    assert refused(guard, host="other.lan:7700")


def test_the_hint_names_a_host_that_works() -> None:
    fault = OriginGuard(7700, hosts=frozenset({"box.lan"})).refusal([])
    assert "http://box.lan:7700" in fault.hint


@pytest.mark.parametrize(("host", "shown"), [("::1", "[::1]"), ("[::1]", "[::1]"), ("Box.LAN", "box.lan")])
def test_a_host_is_written_as_in_a_url(host: str, shown: str) -> None:
    assert host_name(host) == shown


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


@pytest.mark.parametrize("kept", [b"", b"short\n", b"with spaces in between which no token has\n", b"\xff" * 40])
def test_a_file_that_holds_no_token_is_written_anew(tmp_path: Path, kept: bytes) -> None:
    (tmp_path / "token").write_bytes(kept)
    assert load_token(tmp_path, lambda: FRESH) == FRESH
    assert (tmp_path / "token").read_text() == f"{FRESH}\n"


def test_first_of_two_concurrently_created_tokens_is_used(tmp_path: Path) -> None:
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
