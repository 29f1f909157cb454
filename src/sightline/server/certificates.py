"""Certificates for connections that are opened: the certificate authority of this data folder, and a certificate for
each host.

Only programs that `sightline run --tls` starts are made to trust the authority. It may issue certificates only for the
hosts that are opened: its own certificate says so, and clients check that.
"""

import contextlib
import datetime
import ipaddress
import secrets
import ssl
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sightline.errors import Code, Fault
from sightline.platform.files import add_file, make_private, replacing
from sightline.transport.http.target import ip_of

_DAY: Final = datetime.timedelta(days=1)
_LIFE: Final = 365 * _DAY
_RENEWAL: Final = 30 * _DAY
"""The authority's certificate is renewed this long before it expires, so that running child processes can continue."""

_LEAF_LIFE: Final = 30 * _DAY
_KEY, _CERTIFICATE = "key.pem", "certificate.pem"
_EVERY_ADDRESS: Final = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
ALPN: Final = ("h2", "http/1.1")

_Key = ec.EllipticCurvePrivateKey


class Authority:
    """The authority in this folder, created if there is none. `hosts` are the names and addresses for which it may
    issue certificates; `now` returns the time in seconds. Raises a Fault (CONFIG) if the folder cannot be used.

    A renewed certificate has the same key, so that child processes that trust the previous one are served as well.
    """

    def __init__(self, folder: Path, hosts: Iterable[str], now: Callable[[], float]) -> None:
        self._folder = folder
        self._hosts = tuple(sorted(set(hosts)))
        self._now = now
        self._contexts: dict[str, tuple[datetime.datetime, ssl.SSLContext]] = {}
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._key = self._load_key()
            self._certificate = self._load_certificate()
        except OSError as error:
            raise _unusable(folder, error.strerror or str(error)) from None
        except ValueError:
            raise _unusable(folder, "its key cannot be read") from None

    @property
    def certificate(self) -> str:
        """The certificate that a child process should trust, as PEM; renewed if it expires soon."""
        try:
            self._certificate = self._load_certificate()
        except OSError as error:
            raise _unusable(self._folder, error.strerror or str(error)) from None
        return _pem(self._certificate).decode("ascii")

    def context_for(self, host: str) -> ssl.SSLContext:
        """The TLS context for this host. A client that asks for another name is refused; one that names none is
        served."""
        now = self._time()
        until, context = self._contexts.get(host, (now, None))
        if context is None or until - now < _DAY:
            until = min(now + _LEAF_LIFE, self._certificate.not_valid_after_utc)
            context = self._make_context(host, until)
            self._contexts[host] = until, context
        return context

    def _time(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self._now(), datetime.UTC)

    # --- the authority ---

    def _load_key(self) -> _Key:
        path = self._folder / _KEY
        with contextlib.suppress(FileNotFoundError):
            make_private(path)
            found = serialization.load_pem_private_key(path.read_bytes(), None)
            if isinstance(found, _Key):
                return found
            raise _unusable(self._folder, "its key is of another kind")
        made = ec.generate_private_key(ec.SECP256R1())
        text = made.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        if add_file(path, text):
            return made
        return self._load_key()  # another process was faster

    def _load_certificate(self) -> x509.Certificate:
        """The certificate on disk if it is valid, has our key, covers all of our hosts and does not expire soon;
        otherwise a new one."""
        path = self._folder / _CERTIFICATE
        with contextlib.suppress(FileNotFoundError, ValueError):
            found = x509.load_pem_x509_certificate(path.read_bytes())
            is_ours = found.public_key() == self._key.public_key() and _covers(found, self._hosts)
            if is_ours and found.not_valid_before_utc <= self._time() < found.not_valid_after_utc - _RENEWAL:
                return found
        made = self._make_certificate()
        with replacing(path, mode=0o644) as file:
            file.write(_pem(made))
        return made

    def _make_certificate(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Sightline of this machine, for its own children")])
        now, public = self._time(), self._key.public_key()
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            _begin(name, name, public, now, now - _DAY + _LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(_constraints(self._hosts), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    # --- a host ---

    def _make_context(self, host: str, until: datetime.datetime) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(list(ALPN))
        context.options |= ssl.OP_NO_RENEGOTIATION

        def check_name(_connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int | None:
            is_meant = name is None or name.lower().rstrip(".") == host
            return None if is_meant else ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

        context.sni_callback = check_name
        leaf = self._make_leaf(host, until)
        # OpenSSL's binding reads only files. The key in this one is encrypted with a password that is stored nowhere
        # else, and the file is deleted a moment later.
        password = secrets.token_urlsafe(24).encode()
        text = self._leaf_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password),
        )
        with tempfile.TemporaryDirectory(prefix="sightline-tls-") as folder:
            path = Path(folder) / "host.pem"
            path.write_bytes(_pem(leaf) + text)
            context.load_cert_chain(path, password=password)
        return context

    def _make_leaf(self, host: str, until: datetime.datetime) -> x509.Certificate:
        # Only the alternative name counts. If this were an address, OpenSSL would take it for a host that is not
        # allowed.
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "opened by Sightline")])
        public = self._leaf_key.public_key()
        address = ip_of(host)
        shown = x509.DNSName(host) if address is None else x509.IPAddress(address)
        return (
            _begin(name, self._certificate.subject, public, self._time(), until)
            .add_extension(x509.SubjectAlternativeName([shown]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _begin(
    name: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    end: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)  # a child process may be in a container whose clock is slow
        .not_valid_after(end)
    )


def _constraints(hosts: Iterable[str]) -> x509.NameConstraints:
    """The names and addresses for which the authority may issue certificates. If there are no addresses, all are
    excluded explicitly, because a list of names alone does not restrict them."""
    named = [(host, ip_of(host)) for host in hosts]
    names = [x509.DNSName(host.removeprefix("*.")) for host, address in named if address is None]
    addresses = [x509.IPAddress(ipaddress.ip_network(address)) for _, address in named if address is not None]
    barred = None if addresses else [x509.IPAddress(every) for every in _EVERY_ADDRESS]
    return x509.NameConstraints([*names, *addresses] or [x509.DNSName("invalid")], barred)


def _covers(found: x509.Certificate, hosts: Iterable[str]) -> bool:
    try:
        constraints = found.extensions.get_extension_for_class(x509.NameConstraints).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    return constraints == _constraints(hosts)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _unusable(folder: Path, why: str) -> Fault:
    hint = "Check its permissions, or delete the folder: a new authority is made for the next run."
    return Fault(Code.CONFIG, f"the certificate authority in {folder} cannot be used: {why}", hint=hint)
