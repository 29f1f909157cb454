"""Where a request goes: a URL parsed strictly, the proxy for it, and the timeouts."""

import base64
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self, TypeAlias
from urllib.parse import unquote, urlsplit

from sightline.errors import Code, Fault

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
PORTS = {"http": 80, "https": 443}
# Visible ASCII only: a space or a line break in a request line would begin something else.
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
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port, as in a CONNECT request."""
        return f"{_bracket_ipv6(self.host)}:{self.port}"

    @property
    def place(self) -> str:
        """The host, and the port if it is not the default: the Host header, and the name in messages."""
        return _bracket_ipv6(self.host) if self.port == PORTS[self.scheme] else self.authority

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine."""
        host = self.host.removesuffix(".")
        if host == "localhost" or host.endswith(".localhost"):
            return True
        address = _address(host)
        return address is not None and address.is_loopback


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """An origin, and the path and query of a request to it."""

    origin: Origin
    path: str

    def __repr__(self) -> str:
        return f"Target({self.origin.place})"


@lru_cache(maxsize=256)
def target(url: str) -> HttpTarget:
    """Parse a URL. Raises a fault that says what is wrong with it and repeats none of its secrets."""
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
    # urlsplit silently drops tabs and line breaks; a URL that contains them is refused instead.
    if not _TARGET.fullmatch(path) or not url.isprintable() or not path.startswith("/"):
        raise _refusal("it has characters that must be percent-encoded")
    if port == 0:
        raise _refusal("port 0 is not valid")
    try:
        plain_host = ascii_host(host, is_bracketed="[" in parts.netloc)
    except ValueError as error:
        raise _refusal(str(error)) from None
    return HttpTarget(Origin(parts.scheme, plain_host, port or PORTS[parts.scheme]), path)


def ascii_host(host: str, *, is_bracketed: bool) -> str:
    """A URL's host in the form in which it is looked up. Raises a ValueError that says what is wrong with it, and does
    not repeat it."""
    if is_bracketed:
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError:
            raise ValueError("its host is not an IPv6 address") from None
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


def ip_of(host: str) -> IpAddress | None:
    """The IP address in a host; None if the host is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _address(host: str) -> IpAddress | None:
    """The address for which the system takes a host without a look-up; None if the host is a name."""
    try:
        if ":" in host:
            address = ipaddress.IPv6Address(host)
            return address.ipv4_mapped or address
        # Includes the short forms, such as 127.1.
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _refusal(why: str, *, hint: str = "Check the provider's base_url.") -> Fault:
    return Fault(Code.INVALID_REQUEST, f"the URL of the request cannot be used: {why}", hint=hint)


def _bracket_ipv6(host: str) -> str:
    return f"[{host}]" if ":" in host else host


_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HINT = "Set it to a URL such as http://proxy.example:3128, or unset it; NO_PROXY names hosts to reach directly."


@dataclass(frozen=True, slots=True)
class Proxy(Origin):
    """A proxy; `variable` is the variable that names it. Its repr shows no password."""

    variable: str
    authorization: str = field(default="", repr=False)

    @property
    def place(self) -> str:
        """Its host and port, for messages."""
        return self.authority


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxy variables of an environment. A URL in them is parsed on demand, so that a bad one does not block
    requests that need no proxy."""

    urls: Mapping[str, tuple[str, str]] = field(repr=False)
    exceptions: tuple[str, ...]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Read the environment: a lowercase variable takes precedence over its uppercase twin, even if it is empty."""
        urls = {
            scheme: found
            for scheme in PORTS
            if (found := _find_variable(environment, f"{scheme}_proxy") or _find_variable(environment, "all_proxy"))
        }
        _, listed = _find_variable(environment, "no_proxy") or ("", "")
        return cls(urls, tuple(entry.lower() for entry in re.split(r"[\s,]+", listed) if entry))

    def for_origin(self, origin: Origin) -> Proxy | None:
        """The proxy for an origin; None if there is none."""
        if origin.scheme not in self.urls or origin.is_loopback:
            return None
        if any(_covers(entry, origin) for entry in self.exceptions):
            return None
        return _proxy(*self.urls[origin.scheme])


def _find_variable(environment: Mapping[str, str], name: str) -> tuple[str, str] | None:
    """The variable in its preferred spelling, and its value; None if it is not set or empty."""
    for variable in (name, name.upper()):
        # A CGI server turns a client's header `Proxy:` into HTTP_PROXY.
        if variable == "HTTP_PROXY" and "REQUEST_METHOD" in environment:
            continue
        if variable in environment:
            value = environment[variable].strip()
            return (variable, value) if value else None
    return None


def _covers(entry: str, origin: Origin) -> bool:
    """Whether an entry of NO_PROXY matches this origin."""
    if entry == "*":
        return True
    address = ip_of(origin.host)
    if address is not None and "/" in entry:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    host, port = _host_and_port(entry)
    if port not in (None, origin.port):
        return False
    if address is not None:
        return address == ip_of(host)
    suffix = host.removeprefix("*").strip(".")
    named = origin.host.lower().removesuffix(".")
    return suffix != "" and (named == suffix or named.endswith(f".{suffix}"))


def _host_and_port(entry: str) -> tuple[str, int | None]:
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        port = rest.removeprefix(":")
    elif entry.count(":") == 1:
        host, _, port = entry.partition(":")
    else:
        host, port = entry, ""
    return host, int(port) if port.isdecimal() else None


def _proxy(variable: str, url: str) -> Proxy:
    # The URL may contain a password, so no message repeats it.
    try:
        parts = urlsplit(url if _HAS_SCHEME.match(url) else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Fault(Code.CONFIG, f"{variable} is not the URL of a proxy", hint=_HINT) from None
    if parts.scheme.startswith("socks"):
        raise Fault(
            Code.CONFIG,
            f"{variable} names a SOCKS proxy, which is not supported",
            hint="Use an http:// or https:// proxy, or name the provider's host in NO_PROXY.",
        )
    if parts.scheme not in PORTS or not host:
        raise Fault(Code.CONFIG, f"{variable} is not the URL of a proxy", hint=_HINT)
    if port == 0:
        raise Fault(Code.CONFIG, f"{variable} cannot be used: port 0 is not valid", hint=_HINT)
    try:
        host = ascii_host(host, is_bracketed=parts.netloc.rpartition("@")[2].startswith("["))
    except ValueError as error:
        raise Fault(Code.CONFIG, f"{variable} is not the URL of a proxy: {error}", hint=_HINT) from None
    authorization = ""
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(login.encode()).decode('ascii')}"
    return Proxy(parts.scheme, host, port or PORTS[parts.scheme], variable, authorization)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts in seconds; 0 means no limit.

    `connect` covers the name look-up, the proxy and TLS; `first_byte` runs from the written request to the first byte
    of the response; `idle` is the longest silence after that.
    """

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 300.0
