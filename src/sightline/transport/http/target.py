"""Where a request goes: a URL taken apart, strictly."""

import ipaddress
import re
import socket
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from sightline.errors import Code, Fault

PORTS = {"http": 80, "https": 443}
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
        return f"{_bracket_ipv6(self.host)}:{self.port}"

    @property
    def place(self) -> str:
        """Host, and the port where it is not the usual one: the Host header, and the name in messages."""
        return _bracket_ipv6(self.host) if self.port == PORTS[self.scheme] else self.authority

    @property
    def is_loopback(self) -> bool:
        """Whether it is this very machine."""
        host = self.host.removesuffix(".")
        if host == "localhost" or host.endswith(".localhost"):
            return True
        address = _address(host)
        return address is not None and address.is_loopback


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """An origin and what is asked of it."""

    origin: Origin
    path: str

    def __repr__(self) -> str:
        return f"Target({self.origin.place})"


@lru_cache(maxsize=256)
def target(url: str) -> HttpTarget:
    """The URL taken apart, or a fault that says what is wrong with it and repeats none of its secrets."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refusal("it cannot be read") from None
    if parts.scheme not in PORTS:
        raise _refusal("it does not begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise _refusal("it holds a user name", hint="Give the credential in a header.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # urlsplit drops tabs and line ends in silence; a URL that has them is refused instead.
    if not _TARGET.fullmatch(path) or not url.isprintable() or not path.startswith("/"):
        raise _refusal("it has characters that must be percent-encoded")
    if port == 0:
        raise _refusal("nobody listens on port 0")
    try:
        plain_host = ascii_host(host, is_bracketed="[" in parts.netloc)
    except ValueError as error:
        raise _refusal(str(error)) from None
    return HttpTarget(Origin(parts.scheme, plain_host, port or PORTS[parts.scheme]), path)


def ascii_host(host: str, *, is_bracketed: bool) -> str:
    """A URL's host as it is looked up; a ValueError says what is wrong with it, and does not repeat it."""
    if is_bracketed:
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError:
            raise ValueError("its host is no IPv6 address") from None
        if address.scope_id is not None:
            raise ValueError("its IPv6 address has a zone")
        return str(address)
    try:
        plain = host.encode("idna").decode("ascii")
    except UnicodeError:
        plain = ""
    if not _HOST.fullmatch(plain):
        raise ValueError("its host is no host name")
    return plain


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that the system takes a host for without a look-up."""
    try:
        if ":" in host:
            address = ipaddress.IPv6Address(host)
            return address.ipv4_mapped or address
        # The short forms too, such as 127.1.
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _refusal(why: str, *, hint: str = "Check the provider's base_url.") -> Fault:
    return Fault(Code.INVALID_REQUEST, f"the URL of the request cannot be used: {why}", hint=hint)


def _bracket_ipv6(host: str) -> str:
    return f"[{host}]" if ":" in host else host
