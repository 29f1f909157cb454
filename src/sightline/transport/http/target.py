"""Where a request goes: a URL taken apart, strictly."""

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from sightline.errors import Code, Fault

_PORTS = {"http": 80, "https": 443}
# Visible ASCII only: a space or a line end in a request line would begin something else.
_TARGET = re.compile(r"[!-~]+")
_HOST = re.compile(r"[A-Za-z0-9._~-]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """The server that a connection is for."""

    scheme: str
    host: str
    port: int

    @property
    def is_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port, as a CONNECT request names them."""
        return f"{_bracketed(self.host)}:{self.port}"

    @property
    def place(self) -> str:
        """Host, and the port where it is not the usual one: the Host header, and the name in messages."""
        return _bracketed(self.host) if self.port == _PORTS[self.scheme] else self.authority

    @property
    def is_loopback(self) -> bool:
        """Whether it is this very machine."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Target:
    """An origin and what is asked of it."""

    origin: Origin
    path: str

    def __repr__(self) -> str:
        return f"Target({self.origin.place})"


@lru_cache(maxsize=256)
def target(url: str) -> Target:
    """The URL taken apart, or a fault that says what is wrong with it and repeats none of its secrets."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refused("it cannot be read") from None
    if parts.scheme not in _PORTS:
        raise _refused("it does not begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise _refused("it holds a user name", hint="Give the credential in a header.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # urlsplit drops tabs and line ends in silence; a URL that has them is refused instead.
    if not _TARGET.fullmatch(path) or not url.isprintable() or not path.startswith("/"):
        raise _refused("it has characters that must be percent-encoded")
    plain_host = _ascii_host(host, is_bracketed="[" in parts.netloc)
    return Target(Origin(parts.scheme, plain_host, port or _PORTS[parts.scheme]), path)


def _ascii_host(host: str, *, is_bracketed: bool) -> str:
    if is_bracketed:
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError:
            raise _refused("its host is no IPv6 address") from None
        if address.scope_id is not None:
            raise _refused("its IPv6 address has a zone")
        return str(address)
    try:
        plain = host.encode("idna").decode("ascii")
    except UnicodeError:
        plain = ""
    if not _HOST.fullmatch(plain):
        raise _refused("its host is no host name")
    return plain


def _refused(why: str, *, hint: str = "Check the provider's base_url.") -> Fault:
    return Fault(Code.INVALID_REQUEST, f"the URL of the request cannot be used: {why}", hint=hint)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
