"""Which proxy a connection goes through, by the variables that other programs read too."""

import base64
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import unquote, urlsplit

from sightline.errors import Code, Fault
from sightline.transport.http.target import PORTS, Origin, ascii_host

_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HINT = "Set it to a URL such as http://proxy.example:3128, or unset it; NO_PROXY names hosts to reach directly."


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy; `variable` is where it was named. Its repr shows no password."""

    scheme: str
    host: str
    port: int
    variable: str
    authorization: str = field(default="", repr=False)

    @property
    def is_tls(self) -> bool:
        """Whether the proxy itself is spoken to over TLS."""
        return self.scheme == "https"

    @property
    def place(self) -> str:
        """Its host and port, for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxy variables of an environment. A URL among them is read when it is needed, so that a bad one does not
    stand in the way of what needs no proxy."""

    urls: Mapping[str, tuple[str, str]] = field(repr=False)
    exceptions: tuple[str, ...]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """What the environment says: a lower-case variable wins over its upper-case twin, even when it is empty."""
        urls = {
            scheme: found
            for scheme in PORTS
            if (found := _find_variable(environment, f"{scheme}_proxy") or _find_variable(environment, "all_proxy"))
        }
        _, listed = _find_variable(environment, "no_proxy") or ("", "")
        return cls(urls, tuple(entry.lower() for entry in re.split(r"[\s,]+", listed) if entry))

    def for_origin(self, origin: Origin) -> Proxy | None:
        """The proxy on the way to an origin, if there is one."""
        if origin.scheme not in self.urls or origin.is_loopback:
            return None
        if any(_covers(entry, origin) for entry in self.exceptions):
            return None
        return _proxy(*self.urls[origin.scheme])


def _find_variable(environment: Mapping[str, str], name: str) -> tuple[str, str] | None:
    """The variable in its better spelling, and its value."""
    for variable in (name, name.upper()):
        # A CGI server turns a client's header `Proxy:` into HTTP_PROXY.
        if variable == "HTTP_PROXY" and "REQUEST_METHOD" in environment:
            continue
        if variable in environment:
            value = environment[variable].strip()
            return (variable, value) if value else None
    return None


def _covers(entry: str, origin: Origin) -> bool:
    """Whether an entry of NO_PROXY means this origin."""
    if entry == "*":
        return True
    try:
        address = ipaddress.ip_address(origin.host)
    except ValueError:
        host, port = _host_and_port(entry)
        suffix = host.removeprefix("*").strip(".")
        named = origin.host.lower().removesuffix(".")
        return port in (None, origin.port) and suffix != "" and (named == suffix or named.endswith(f".{suffix}"))
    if "/" in entry:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    host, port = _host_and_port(entry)
    try:
        return port in (None, origin.port) and address == ipaddress.ip_address(host)
    except ValueError:
        return False


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
    # The URL may hold a password, so no message repeats it.
    try:
        parts = urlsplit(url if _HAS_SCHEME.match(url) else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Fault(Code.CONFIG, f"{variable} holds no URL of a proxy", hint=_HINT) from None
    if parts.scheme.startswith("socks"):
        raise Fault(
            Code.CONFIG,
            f"{variable} names a SOCKS proxy, which is not supported",
            hint="Use an http:// or https:// proxy, or name the provider's host in NO_PROXY.",
        )
    if parts.scheme not in PORTS or not host:
        raise Fault(Code.CONFIG, f"{variable} holds no URL of a proxy", hint=_HINT)
    if port == 0:
        raise Fault(Code.CONFIG, f"{variable} cannot be used: nobody listens on port 0", hint=_HINT)
    try:
        host = ascii_host(host, is_bracketed=parts.netloc.rpartition("@")[2].startswith("["))
    except ValueError as error:
        raise Fault(Code.CONFIG, f"{variable} holds no URL of a proxy: {error}", hint=_HINT) from None
    authorization = ""
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(login.encode()).decode('ascii')}"
    return Proxy(parts.scheme, host, port or PORTS[parts.scheme], variable, authorization)
