"""Find the server that runs with a data folder: each server writes its address to a file there.

A file left behind by a crash is harmless. Before a command sends anything to the address, it asks the server to prove
that it knows the folder's token; the token itself is not sent.
"""

import contextlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from sightline.errors import Code, Fault
from sightline.exchange.remote_relay import RunningServer
from sightline.model.json import Json
from sightline.platform.files import hold_lock, replacing
from sightline.platform.support import is_supported
from sightline.web.access import read_token
from sightline.workbench.workbench import proof_of

RUN_LOCK = "run.lock"
"""The users of a server that was started for runs hold a shared lock on this file; the server ends with the last of
them."""

_PATTERN = "server.*.json"
_HEALTH_TIMEOUT_S = 5


def announce(folder: Path, url: str) -> None:
    """Announce a server of this data folder: write its URL to a file in the folder."""
    path = _file(folder, url)
    try:
        with replacing(path) as file:
            file.write(json.dumps({"url": url, "pid": os.getpid()}).encode())
    except OSError as error:
        hint = "Check the folder's permissions and the space on the disk."
        raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None


def withdraw(folder: Path, url: str) -> None:
    """Remove the address of a server that stopped listening."""
    with contextlib.suppress(OSError):
        _file(folder, url).unlink(missing_ok=True)


def find_server(folder: Path) -> RunningServer | None:
    """The server that runs with this data folder, the newest if there are several; None if there is none."""
    token = read_token(folder)
    if not token:
        return None
    for url in _list_urls(folder):
        address = urlsplit(url)
        if address.port and knows_token(address.hostname or "", address.port, token):
            return RunningServer(url, token)
    return None


def knows_token(host: str, port: int, token: str) -> bool | None:
    """Whether the server at this address knows our token, which is not sent; None if nothing listens there."""
    import http.client  # commands need it, and servers do not

    challenge = secrets.token_urlsafe(16)
    connection = http.client.HTTPConnection(host.strip("[]"), port, timeout=_HEALTH_TIMEOUT_S)
    try:
        connection.request("GET", f"/api/health?challenge={challenge}")
        health = json.loads(connection.getresponse().read(65536))
    except ConnectionRefusedError:
        return None
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
    proof = health.get("proof") if isinstance(health, dict) else None
    return isinstance(proof, str) and hmac.compare_digest(proof.encode(), proof_of(token, challenge).encode())


def call_server(
    server: RunningServer, method: str, path: str, value: Json = None, *, timeout: float | None = 60
) -> bytes:
    """Call the API of the server and return the body of its answer; a `value` is sent as JSON. Raises a Fault if the
    server does not answer within `timeout` seconds, or if it refuses: then with its message and status."""
    import http.client

    at = urlsplit(server.url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=timeout)
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    try:
        connection.request(method, path, None if value is None else json.dumps(value), headers)
        answer = connection.getresponse()
        data = answer.read()
    except (OSError, http.client.HTTPException) as error:
        hint = "Is it still running? Start it again, or stop it, and try again: what it has done stays done."
        raise Fault(Code.NETWORK, f"the running server did not answer: {error}", hint=hint) from None
    finally:
        connection.close()
    if answer.status < http.client.BAD_REQUEST:
        return data
    said: object = None
    with contextlib.suppress(ValueError):
        said = json.loads(data)
    refusal = said.get("error") if isinstance(said, dict) else None
    words = refusal if isinstance(refusal, dict) else {}
    message = str(words.get("message") or f"the running server answered {method} {path} with status {answer.status}")
    hint = str(words.get("hint") or "Perhaps the running server is older. Stop it, and try again.")
    raise Fault(Code.USAGE, message, hint=hint, status=answer.status)


class ProxyShown(msgspec.Struct, frozen=True):
    """The proxy of a run. `url` contains its password, `certificate` is the PEM certificate that the run's child
    processes have to trust; `hosts` are those whose connections are decrypted."""

    url: str
    certificate: str
    hosts: tuple[str, ...]


class RefusalShown(msgspec.Struct, frozen=True):
    """A client rejected our certificate for this host; `why` is its TLS alert. With `is_tunnelled`, its further
    connections to the host are tunnelled."""

    host: str
    why: str
    is_tunnelled: bool


class RefusalsShown(msgspec.Struct, frozen=True):
    """The hosts for which the clients of a run rejected our certificate."""

    refused: tuple[RefusalShown, ...]


@contextmanager
def keep_server(folder: Path) -> Iterator[bool]:
    """Keep a server that was started for runs from ending. Yields False if it was already too late."""
    path = folder / RUN_LOCK
    if not path.exists() or not is_supported("run"):
        yield True  # it was started by the user, and ends when they stop it
        return
    with hold_lock(path, is_shared=True, waits=False) as is_kept:
        yield is_kept


def _list_urls(folder: Path) -> list[str]:
    """The announced addresses, newest first."""
    found: list[tuple[float, str]] = []
    for path in folder.glob(_PATTERN):
        with contextlib.suppress(OSError, ValueError):
            announced = json.loads(path.read_text("utf-8"))
            url = announced.get("url") if isinstance(announced, dict) else None
            if isinstance(url, str) and url.startswith("http://"):
                found.append((path.stat().st_mtime, url))
    return [url for _, url in sorted(found, reverse=True)]


def _file(folder: Path, url: str) -> Path:
    return folder / f"server.{urlsplit(url).port}.json"
