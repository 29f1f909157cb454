"""What a client gets under `run --tls`: Sightline's proxy, the certificates to trust, and its base URLs left alone."""

import http.client
import json
import re
import ssl
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

from sightline.catalog.clients import BASE_URLS
from sightline.cli.clients import Outfit, Stage, client_settings
from sightline.errors import Code, Fault

_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_DIRECT = ("localhost", "127.0.0.1", "::1")
_TRUSTED = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_PATIENCE = 10


class RunProxy(msgspec.Struct, frozen=True):
    """The proxy of a run: its URL with the password, the certificate to trust, and the hosts that are opened."""

    url: str
    certificate: str
    hosts: tuple[str, ...]


class _Refusal(msgspec.Struct, frozen=True):
    host: str
    why: str
    is_tunnelled: bool


class _Refusals(msgspec.Struct, frozen=True):
    refused: tuple[_Refusal, ...]


def open_proxy(server: str, token: str, session: str) -> RunProxy:
    """Ask the server for a proxy for this session."""
    return msgspec.json.decode(_call(server, token, "POST", "/api/proxy", {"session": session}), type=RunProxy)


def refusal_notes(server: str, token: str, session: str) -> Iterator[str]:
    """What to tell about the hosts for which the client did not accept our certificate."""
    answer = _call(server, token, "GET", f"/api/proxy?session={quote(session, safe='')}")
    for each in msgspec.json.decode(answer, type=_Refusals).refused:
        then = (
            "its further connections there were tunnelled and are not on record"
            if each.is_tunnelled
            else 'its requests there failed; [server] tls_refused = "tunnel" lets them pass unread'
        )
        yield f"note: the client did not accept Sightline's certificate for {each.host} ({each.why}): {then}."


def tls_outfit(client: str, stage: Stage, proxy: RunProxy, ca_file: str = "") -> Outfit:
    """Everything for this client. `ca_file` is what Sightline itself trusts besides the system's certificates."""
    bundle = stage.folder / "certificates.pem"
    theirs = (stage.environment_value(name) for name in _TRUSTED)
    variables = {name: proxy.url for upper in _PROXIES for name in (upper, upper.lower())}
    direct = ",".join((*_DIRECT, *_proxy_exceptions(stage, proxy.hosts)))
    for each in client_settings().for_client(client, "tls", version=stage.version):
        variables |= {name: value for name, value in each.variables.items() if not stage.environment_value(name)}
        variables |= dict.fromkeys(each.certificates, str(bundle))
    return Outfit(
        {**variables, "NO_PROXY": direct, "no_proxy": direct},
        files={bundle: bundle_of((*theirs, ca_file), proxy.certificate)},
        notes=tuple(_base_url_notes(stage, proxy.hosts)),
    )


def bundle_of(named: Iterable[str], own: str) -> str:
    """The system's certificates, those in the files that the user has named, and our own, each once."""
    blocks = dict.fromkeys(_system_roots())
    for path in named:
        with suppress(OSError, UnicodeDecodeError):  # what is wrong with it, the client would have said itself
            blocks |= dict.fromkeys(_BLOCK.findall(Path(path).read_text("utf-8") if path else ""))
    return "\n".join((*blocks, own.strip(), ""))


def _system_roots() -> Iterator[str]:
    if sys.platform == "win32":
        for each in ssl.create_default_context().get_ca_certs(binary_form=True):
            yield ssl.DER_cert_to_PEM_cert(each).strip()
    else:
        yield from _openssl_roots()


def _openssl_roots() -> Iterator[str]:
    # The paths that OpenSSL was built with: the variables that replace them are the user's, and come later.
    paths = ssl.get_default_verify_paths()
    file, folder = Path(paths.openssl_cafile), Path(paths.openssl_capath)
    found = [file] if file.is_file() else sorted(folder.iterdir()) if folder.is_dir() else []
    blocks: list[str] = []
    for path in found:
        with suppress(OSError, UnicodeDecodeError):
            blocks += _BLOCK.findall(path.read_text("utf-8"))
    if not blocks:
        import certifi

        blocks = _BLOCK.findall(Path(certifi.where()).read_text("utf-8"))
    yield from blocks


def _proxy_exceptions(stage: Stage, hosts: Iterable[str]) -> Iterator[str]:
    """What the user reaches without a proxy, but for the hosts that are to be opened."""
    listed = stage.environment_value("no_proxy") or stage.environment_value("NO_PROXY")
    opened = tuple(hosts)
    for entry in filter(None, re.split(r"[\s,]+", listed)):
        name = entry.lower().removeprefix("*").strip(".")
        if name and entry not in _DIRECT and not any(host == name or host.endswith(f".{name}") for host in opened):
            yield entry


def _base_url_notes(stage: Stage, hosts: Iterable[str]) -> Iterator[str]:
    """Base URLs of the user's that lead to hosts which are not opened."""
    known = frozenset(hosts)
    for variable, _, _ in BASE_URLS:
        with suppress(ValueError):
            host = urlsplit(stage.environment_value(variable)).hostname
            if host and host not in known:
                yield (
                    f"note: {variable} leads to {host}, which is not opened, so that its requests are not on record. "
                    "Add it to [server] tls_hosts, or run without --tls."
                )


def _call(server: str, token: str, method: str, path: str, value: Mapping[str, str] | None = None) -> bytes:
    at = urlsplit(server)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=_PATIENCE)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    try:
        connection.request(method, path, None if value is None else json.dumps(value), headers)
        answer = connection.getresponse()
        status, body = answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Fault(Code.NETWORK, f"the server cannot be asked for its proxy: {error}", hint="Try again.") from None
    finally:
        connection.close()
    if status == 404:
        hint = "The running server is older, or answers from the record. Stop it and try again."
        raise Fault(Code.USAGE, "the running server has no proxy for --tls", hint=hint)
    if status >= 400:
        raise _fault_in(body)
    return body


def _fault_in(body: bytes) -> Fault:
    """The server's own words."""
    given: dict[str, object] = {}
    with suppress(ValueError):
        read = json.loads(body)
        found = read.get("error") if isinstance(read, dict) else None
        given = found if isinstance(found, dict) else {}
    hint = str(given.get("hint") or "The server's log says more.")
    return Fault(Code.CONFIG, str(given.get("message") or "the server did not open its proxy"), hint=hint)
