import asyncio
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import certifi
import pytest
import trustme

from sightline.errors import Code, Fault
from sightline.transport.http.dialling import Trust
from tests.transport.http.asking import PATIENT as LIMITS
from tests.transport.http.asking import client, failure, kind, post, served_by
from tests.upstream import Upstream, answer


def believed(context: ssl.SSLContext) -> int:
    return context.cert_store_stats()["x509_ca"]


def test_tls_is_new_enough_checked_and_http_1(ca_file: str) -> None:
    context = Trust(environment={}, ca_file=ca_file).context()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_it_is_built_once() -> None:
    trust = Trust(environment={})
    assert trust.context() is trust.context()


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "ca_file"])
def test_what_is_named_is_added_to_the_system_s_store(name: str, ca_file: str) -> None:
    system = believed(Trust(environment={}).context())
    trust = Trust(environment={}, ca_file=ca_file) if name == "ca_file" else Trust(environment={name: ca_file})
    assert believed(trust.context()) == system + 1


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "[network] ca_file"])
@pytest.mark.parametrize(("content", "words"), [(None, "does not exist"), ("no certificate", "holds no certificates")])
def test_missing_or_broken_ca_file_is_reported_with_its_variable(
    name: str, content: str | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "own-ca.pem"
    if content is not None:
        path.write_text(content)
    setting = {"ca_file": str(path), "environment": {}} if " " in name else {"environment": {name: str(path)}}
    with pytest.raises(Fault) as caught:
        Trust(**setting).context()
    assert caught.value.code is Code.CONFIG
    assert caught.value.message == f"the CA file {path} (from {name}) {words}"
    assert name in caught.value.hint


def test_invalid_ca_file_name_is_reported() -> None:
    with pytest.raises(Fault) as caught:
        Trust(environment={}, ca_file="a\0b").context()
    assert caught.value.code is Code.CONFIG


def test_missing_ca_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Fault) as caught:
        Trust(environment={"SSL_CERT_DIR": str(tmp_path / "none")}).context()
    assert "SSL_CERT_DIR" in caught.value.message


@pytest.mark.parametrize("has_folder", [False, True])
def test_without_a_system_store_certifi_s_is_taken(
    has_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "certs"
    if has_folder:
        folder.mkdir()
    nowhere = SimpleNamespace(openssl_cafile=str(tmp_path / "none.pem"), openssl_capath=str(folder))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: nowhere)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    own.load_verify_locations(certifi.where())
    assert believed(Trust(environment={}).context()) == believed(own)


# --- against a server -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "a folder", "NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "ca"]
)
async def test_a_custom_authority_is_believed(authority: trustme.CA, name: str, ca_file: str, tmp_path: Path) -> None:
    value = ca_file
    if name == "a folder":
        value = hashed(ca_file, tmp_path)
    if name == "SSL_CERT_DIR":
        value = f"{tmp_path / 'none'}:{hashed(ca_file, tmp_path)}"
    variable = "REQUESTS_CA_BUNDLE" if name == "a folder" else name
    setting = {"ca_file": ca_file, "environment": {}} if name == "ca" else {"environment": {variable: value}}
    named: list[str | None] = []
    context = served_by(authority, "localhost")
    context.set_alpn_protocols(["h2", "http/1.1"])
    context.sni_callback = lambda _socket, host, _context: named.append(host)
    async with Upstream([answer(200, b"hi")], tls=context, host="localhost") as upstream, client(**setting) as http:
        for _ in range(2):
            assert await (await http.send(post(upstream.url), LIMITS)).read() == b"hi"
        assert named == ["localhost"]
        inside = upstream.connections[0].transport.get_extra_info("ssl_object")
        assert inside.selected_alpn_protocol() == "http/1.1"


def hashed(ca_file: str, folder: Path) -> str:
    """A folder as OpenSSL wants it: files named by the hash of their subject."""
    found = subprocess.run(
        ["openssl", "x509", "-subject_hash", "-noout", "-in", ca_file], check=True, capture_output=True, text=True
    )
    (folder / f"{found.stdout.strip()}.0").write_bytes(Path(ca_file).read_bytes())
    return str(folder)


async def test_an_address_is_checked_like_a_name(authority: trustme.CA, ca_file: str) -> None:
    tls = served_by(authority, "127.0.0.1")
    async with Upstream([answer(200)], tls=tls) as upstream, client(ca_file=ca_file) as http:
        assert (await http.send(post(upstream.url), LIMITS)).status == 200


async def refusal(context: ssl.SSLContext, host: str = "localhost", ca_file: str = "") -> Fault:
    async with Upstream([answer(200)], tls=context, host=host) as upstream, client(ca_file=ca_file) as http:
        fault = await failure(http.send(post(upstream.url), LIMITS))
        assert not upstream.seen
        return fault


async def test_an_unknown_authority_is_refused_with_the_way_out(authority: trustme.CA) -> None:
    fault = await refusal(served_by(authority, "localhost"))
    assert (fault.code, kind(fault)) == (Code.NETWORK, "tls")
    assert "not trusted here" in fault.message
    assert "SSL_CERT_FILE" in fault.hint


@pytest.mark.parametrize(
    ("host", "words"), [("localhost", "is for another host"), ("127.0.0.1", "is for another address")]
)
async def test_a_certificate_for_another_host_is_refused(
    authority: trustme.CA, ca_file: str, host: str, words: str
) -> None:
    assert words in (await refusal(served_by(authority, "other.example"), host, ca_file)).message


async def test_an_expired_certificate_is_refused(authority: trustme.CA, ca_file: str) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    then, until = datetime(2000, 1, 1, tzinfo=UTC), datetime(2001, 1, 1, tzinfo=UTC)
    old = authority.issue_cert("localhost", not_before=then, not_after=until)
    old.configure_cert(context)
    assert "has expired" in (await refusal(context, ca_file=ca_file)).message


async def test_a_self_signed_certificate_is_refused_and_believed_when_it_is_named(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    assert "is self-signed" in (await refusal(context)).message
    served = Upstream([answer(200)], tls=context, host="localhost")
    async with served as upstream, client(ca_file=str(certificate)) as http:
        assert (await http.send(post(upstream.url), LIMITS)).status == 200


async def test_a_server_with_old_tls_only_is_refused(authority: trustme.CA, ca_file: str) -> None:
    context = served_by(authority, "localhost")
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    # Whether it says why or just hangs up is up to the server.
    assert kind(await refusal(context, ca_file=ca_file)) in ("tls", "reset")
