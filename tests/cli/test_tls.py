import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme

from sightline.app.running_server import ProxyShown
from sightline.cli.clients import Stage, bundle_of, open_proxy, refusal_notes, tls_outfit
from sightline.errors import Fault
from sightline.exchange.remote_relay import RunningServer
from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.server_process import PROGRAM
from tests.tls_stage import CHAT_REPLY, vendors_in_front_of
from tests.upstream import answer, says

OWN = "-----BEGIN CERTIFICATE-----\nown\n-----END CERTIFICATE-----\n"
PROXY = ProxyShown("http://u:p@127.0.0.1:7701", OWN, ("a.example",))
ASK = """
import openai
with openai.OpenAI(max_retries=0) as sdk:
    said = sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
print(said.choices[0].message.content)
"""


def fitted(tmp_path: Path, environment: dict[str, str], client: str = "python") -> Any:
    stage = Stage("http://127.0.0.1:7700", "s1", environment, tmp_path, tmp_path / "private")
    return tls_outfit(client, stage, PROXY)


# --- what a child gets ------------------------------------------------------------------------------


def test_a_child_gets_proxy_and_certificates_and_no_base_url(tmp_path: Path) -> None:
    given = fitted(tmp_path, {}).variables
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"):
        assert given[name] == PROXY.url
    bundle = str(tmp_path / "private" / "certificates.pem")
    for name in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        assert given[name] == bundle
    assert given["NO_PROXY"] == given["no_proxy"] == "localhost,127.0.0.1,::1"
    assert not [name for name in given if "BASE" in name]
    assert "CODEX_CA_CERTIFICATE" not in given
    assert fitted(tmp_path, {}, "codex").variables["CODEX_CA_CERTIFICATE"] == bundle


def test_hosts_that_the_user_reaches_directly_stay_direct_but_for_opened_ones(tmp_path: Path) -> None:
    given = fitted(tmp_path, {"NO_PROXY": "*, .example, corp.internal 10.0.0.0/8,localhost"}).variables
    assert given["NO_PROXY"] == "localhost,127.0.0.1,::1,corp.internal,10.0.0.0/8"


def test_a_base_url_of_the_users_that_is_not_opened_is_told(tmp_path: Path) -> None:
    (note,) = fitted(tmp_path, {"OPENAI_BASE_URL": "https://gateway.example/v1"}).notes
    assert "OPENAI_BASE_URL leads to gateway.example" in note
    assert fitted(tmp_path, {"OPENAI_BASE_URL": "https://a.example/v1"}).notes == ()


def test_the_bundle_has_each_certificate_once(tmp_path: Path) -> None:
    theirs = trustme.CA().cert_pem.bytes().decode()
    file = tmp_path / "theirs.pem"
    file.write_text(f"a comment\n{theirs}")
    bundle = bundle_of([str(file), str(file), "", str(tmp_path / "missing")], PROXY.certificate)
    assert bundle.count(theirs.strip()) == 1
    assert bundle.count("own") == 1
    assert bundle.count("BEGIN CERTIFICATE") > 20  # the system's
    assert bundle.count("BEGIN") == len(set(bundle.split("-----END CERTIFICATE-----"))) - 1


# --- the whole command ------------------------------------------------------------------------------


def run(
    tmp_path: Path, variables: dict[str, str], *words: str, settings: str = "[server]\nport = 0\n"
) -> "subprocess.CompletedProcess[bytes]":
    """The command. With port 0 it has a server of its own."""
    config = tmp_path / "sightline.toml"
    config.write_text(settings)
    command = [*PROGRAM, "run", "--tls", "--config", str(config), "--data", str(tmp_path / "data"), *words]
    environment = {"OPENAI_API_KEY": "sk-of-the-client", **variables}
    return subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)


def test_an_sdk_asks_its_vendor_and_is_on_record(tmp_path: Path, variables: dict[str, str]) -> None:
    with upstream_in_background() as upstream, vendors_in_front_of(upstream.port, tmp_path) as (way, trusted):
        upstream.script = [says(CHAT_REPLY)]
        variables |= {"HTTPS_PROXY": way, "SSL_CERT_FILE": str(trusted)}
        done = run(tmp_path, variables, "--session", "mine", "--", sys.executable, "-c", ASK)
        assert (done.returncode, done.stdout) == (0, b"Hello.\n"), done.stderr
        (seen,) = upstream.seen
        assert (seen.header("host"), seen.header("authorization")) == ("api.openai.com", "Bearer sk-of-the-client")
    assert list((tmp_path / "temporary").iterdir()) == []
    assert stat.S_IMODE((tmp_path / "data/ca/key.pem").stat().st_mode) == 0o600
    with served(tmp_path, "") as gateway:
        (line,) = gateway.api("/api/exchanges")["exchanges"]
        assert (line["session"], line["provider"], line["state"]) == ("mine", "openai", "finished")


def test_a_run_uses_the_server_that_is_there(
    tmp_path: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with upstream_in_background() as upstream, vendors_in_front_of(upstream.port, tmp_path) as (way, trusted):
        upstream.script = [says(CHAT_REPLY)]
        monkeypatch.setenv("HTTPS_PROXY", way)
        with served(tmp_path, f'[network]\nca_file = "{trusted}"\n') as gateway:
            for session in ("first", "second"):
                done = run(tmp_path, variables, "--session", session, "--", sys.executable, "-c", ASK, settings="")
                assert (done.returncode, done.stdout) == (0, b"Hello.\n"), done.stderr
            lines = gateway.api("/api/exchanges")["exchanges"]
            assert [line["session"] for line in lines] == ["second", "first"]


def test_a_client_that_refuses_is_told_of_and_its_status_kept(tmp_path: Path, variables: dict[str, str]) -> None:
    script = "curl -s --cacert /etc/ssl/certs/ca-certificates.crt https://api.openai.com/; exit 7"
    done = run(tmp_path, variables, "--", "sh", "-c", script)
    assert done.returncode == 7
    assert b"did not accept Sightline's certificate for api.openai.com" in done.stderr
    assert b"tls_refused" in done.stderr


def test_a_port_that_is_taken_is_told(tmp_path: Path, variables: dict[str, str]) -> None:
    with served(tmp_path, "") as first:
        taken = first.url.rpartition(":")[2]
        other = tmp_path / "other"
        other.mkdir()
        with served(other, f"[server]\nproxy_port = {taken}\n"):
            done = subprocess.run(
                [*PROGRAM, "run", "--tls", "--data", str(other / "data"), "--", "true"],
                capture_output=True,
                env=variables,
                timeout=60,
                check=False,
            )
    assert done.returncode == 2
    assert f"the port {taken} cannot be used for the proxy".encode() in done.stderr
    assert b"proxy_port" in done.stderr


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, b"{}", "has no proxy for --tls"),
        (409, b'{"error": {"message": "the port is taken", "hint": "Take another."}}', "the port is taken"),
        (500, b"nonsense", "with status 500"),
    ],
)
def test_a_server_that_opens_no_proxy_is_told(status: int, body: bytes, said: str) -> None:
    with upstream_in_background() as server:
        server.script = [answer(status, body)]
        with pytest.raises(Fault, match=said):
            open_proxy(RunningServer(server.url, "token"), "s1")


def test_a_server_that_has_ended_is_told() -> None:
    with pytest.raises(Fault, match="did not answer"):
        list(refusal_notes(RunningServer("http://127.0.0.1:1", "token"), "s1"))
