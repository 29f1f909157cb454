import datetime
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest
from cryptography import x509

from sightline.errors import Code, Fault
from sightline.server.certificates import Authority

NOW = 1_800_000_000.0
DAY = 86_400.0


def authority(folder: Path, *hosts: str, now: float | None = None) -> Authority:
    moment = datetime.datetime.now(datetime.UTC).timestamp() if now is None else now
    return Authority(folder / "ca", hosts or ("api.example",), lambda: moment)


def read(text: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(text.encode())


def shake_hands(server: ssl.SSLContext, trusted: str, name: str | None) -> str:
    """The protocol that client and server agree on; raises what the client does not accept."""
    client = ssl.create_default_context(cadata=trusted)
    client.set_alpn_protocols(["h2", "http/1.1"])
    client.check_hostname = name is not None
    near, far = socket.socketpair()

    def serve() -> None:
        try:
            with server.wrap_socket(far, server_side=True) as talk:
                talk.recv(1)
        except OSError:
            far.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(near, server_hostname=name) as talk:
            return talk.selected_alpn_protocol() or ""
    finally:
        near.close()
        thread.join(10)


def test_the_key_is_private_and_made_once(tmp_path: Path) -> None:
    first = authority(tmp_path).certificate
    key = tmp_path / "ca" / "key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    key.chmod(0o644)
    assert authority(tmp_path).certificate == first
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_child_that_trusts_the_authority_accepts_an_opened_host(tmp_path: Path) -> None:
    made = authority(tmp_path, "api.example", "*.corp.example", "10.1.2.3")
    assert shake_hands(made.context_for("api.example"), made.certificate, "api.example") == "h2"
    assert shake_hands(made.context_for("a.corp.example"), made.certificate, "a.corp.example") == "h2"
    assert shake_hands(made.context_for("10.1.2.3"), made.certificate, "10.1.2.3") == "h2"
    assert made.context_for("api.example") is made.context_for("api.example")


@pytest.mark.parametrize("host", ["bank.example", "127.0.0.1"])
def test_the_authority_cannot_vouch_for_a_host_that_is_not_opened(tmp_path: Path, host: str) -> None:
    made = authority(tmp_path, "api.example")
    with pytest.raises(ssl.SSLCertVerificationError, match=r"(permitted|excluded) subtree"):
        shake_hands(made.context_for(host), made.certificate, host)


def test_a_client_that_asks_for_another_name_is_refused(tmp_path: Path) -> None:
    made = authority(tmp_path)
    with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
        shake_hands(made.context_for("api.example"), made.certificate, "other.example")


def test_a_client_that_names_no_host_is_served(tmp_path: Path) -> None:
    made = authority(tmp_path)
    assert shake_hands(made.context_for("api.example"), made.certificate, None) == "h2"


def test_a_client_of_an_old_tls_version_is_refused(tmp_path: Path) -> None:
    assert authority(tmp_path).context_for("api.example").minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_certificate_lives_a_year_and_is_renewed_with_its_key_before_it_ends(tmp_path: Path) -> None:
    first = read(authority(tmp_path, now=NOW).certificate)
    assert first.not_valid_after_utc - first.not_valid_before_utc == datetime.timedelta(days=365)
    assert read(authority(tmp_path, now=NOW + 330 * DAY).certificate) == first
    renewed = read(authority(tmp_path, now=NOW + 340 * DAY).certificate)
    assert renewed.not_valid_after_utc > first.not_valid_after_utc
    assert renewed.public_key() == first.public_key()
    assert renewed.subject == first.subject


def test_a_running_authority_renews_its_certificate_and_those_of_hosts(tmp_path: Path) -> None:
    moments = [datetime.datetime.now(datetime.UTC).timestamp()]
    made = Authority(tmp_path / "ca", ("api.example",), lambda: moments[-1])
    first, context = made.certificate, made.context_for("api.example")
    moments.append(moments[0] + 29.5 * DAY)
    assert made.context_for("api.example") is not context
    moments.append(moments[0] + 350 * DAY)
    assert made.certificate != first


def test_other_hosts_make_another_certificate_of_the_same_key(tmp_path: Path) -> None:
    first = authority(tmp_path, "a.example").certificate
    other = authority(tmp_path, "a.example", "b.example")
    assert other.certificate != first
    # Children of before trust the former certificate, and are served on.
    assert shake_hands(other.context_for("a.example"), first, "a.example") == "h2"


def test_a_key_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "ca"
    folder.mkdir()
    (folder / "key.pem").write_text("nonsense")
    with pytest.raises(Fault, match="cannot be read") as caught:
        authority(tmp_path)
    assert caught.value.code is Code.CONFIG
    assert "delete" in caught.value.hint


def test_a_broken_certificate_is_made_anew(tmp_path: Path) -> None:
    first = authority(tmp_path).certificate
    (tmp_path / "ca" / "certificate.pem").write_text("nonsense")
    again = authority(tmp_path).certificate
    assert read(again).public_key() == read(first).public_key()
