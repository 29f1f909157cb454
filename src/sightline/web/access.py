"""Refuses requests of foreign web pages, and stores the token of the API.

A page from elsewhere can make a browser send requests to this server, even under a host name of its own that resolves
to this machine. It cannot choose the browser's `Host`, `Origin` and `Sec-Fetch-Site` headers, so these are checked on
every path.
"""

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sightline.errors import Code, Fault
from sightline.platform.files import add_file, make_private, replacing

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:]+)(?::(\d{1,5}))?", re.IGNORECASE)
_OWN_SITE = frozenset({"same-origin", "none"})
_NAMES = frozenset({b"host", b"origin", b"sec-fetch-site"})


@dataclass(frozen=True, slots=True)
class OriginGuard:
    """Checks where a request comes from. `hosts` are the names of this server in lower case, `origins` are additional
    origins that the user has allowed."""

    port: int
    hosts: frozenset[str] = frozenset(LOOPBACK)
    origins: frozenset[str] = frozenset()

    def refusal(self, headers: list[tuple[bytes, bytes]]) -> Fault | None:
        """Why this request is refused; None if it is not."""
        return self._check(tuple([each for each in headers if each[0] in _NAMES]))

    @lru_cache(maxsize=256)  # noqa: B019 - there is one guard, for as long as the server
    def _check(self, headers: tuple[tuple[bytes, bytes], ...]) -> Fault | None:
        values: dict[bytes, str] = {}
        for name, value in headers:
            if name in values:
                return _refusal(f"the header {name.decode()} came twice", "Send it once.")
            values[name] = value.decode("latin-1").strip()
        if not self._is_own(values.get(b"host", "")):
            hint = f"Use http://{self._shown} as the address."
            return _refusal("the Host header does not name this server", hint)
        return self._wrong_page(values.get(b"origin"), values.get(b"sec-fetch-site"))

    def _wrong_page(self, origin: str | None, site: str | None) -> Fault | None:
        if origin is not None and origin.lower() in self.origins:
            return None
        scheme, _, host = (origin or "").partition("://")
        if origin is not None and not (scheme.lower() == "http" and self._is_own(host, with_port=True)):
            hint = "If that page is yours, add its origin to [server] allowed_origins."
            return _refusal("pages of another origin may not use this server", hint)
        if site is not None and site.lower() not in _OWN_SITE:
            return _refusal("another site sent this request", f"Open http://{self._shown} itself.")
        return None

    def _is_own(self, host: str, *, with_port: bool = False) -> bool:
        match = _HOST.fullmatch(host)
        if match is None or match[1].lower() not in self.hosts:
            return False
        if match[2] is None:
            return not with_port or self.port == 80  # an origin without a port means the default port
        return int(match[2]) == self.port

    @property
    def _shown(self) -> str:
        name = next((name for name in LOOPBACK if name in self.hosts), min(self.hosts))
        return f"{name}:{self.port}"


def host_name(host: str) -> str:
    """A host as it is written in a URL and in a Host header."""
    return f"[{host.lower()}]" if ":" in host and not host.startswith("[") else host.lower()


def _refusal(message: str, hint: str) -> Fault:
    return Fault(Code.PERMISSION, message, hint=hint, status=403)


FILE_NAME = "token"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22,}")
"""At least 128 bits in URL-safe base64."""


def load_token(folder: Path, make: Callable[[], str]) -> str:
    """The token of this data folder. `make` creates one if there is no valid one."""
    path = folder / FILE_NAME
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private(folder)
        kept = _read(path)
        if kept:
            make_private(path)
            return kept
        return _write(path, make())
    except OSError as error:
        hint = "Check the folder's permissions, or choose another one with --data."
        raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None


def read_token(folder: Path) -> str:
    """The token of this data folder; empty if there is none or it cannot be read."""
    with contextlib.suppress(OSError):
        return _read(folder / FILE_NAME)
    return ""


def _read(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        text = path.read_text("ascii").strip()
        if _TOKEN.fullmatch(text):
            return text
    return ""


def _write(path: Path, token: str) -> str:
    """Write it atomically. If another process was faster, its token is returned."""
    data = f"{token}\n".encode()
    if not add_file(path, data):
        if kept := _read(path):
            return kept
        with replacing(path) as file:
            file.write(data)
    return token
