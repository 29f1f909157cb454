"""The head of a request as bytes. What would end a line early, or frame the body twice, is refused."""

import re
from functools import cache
from importlib import import_module

from sightline.errors import Code, Fault
from sightline.model.header_names import OF_A_CONNECTION, TOKEN
from sightline.transport.http.proxies import Proxy
from sightline.transport.http.target import Target
from sightline.wire.call import HttpRequest

# Anything but a tab and what is visible; a byte above ASCII may stand for itself.
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_WITHOUT_BODY = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "TRACE"})


def request_head(request: HttpRequest, target: Target, proxy: Proxy | None) -> bytes:
    """The request line and the headers: ours first, then the given ones in their order and spelling."""
    if not TOKEN.fullmatch(request.method) or request.method == "CONNECT":
        raise _refused("the method of the request cannot be sent")
    given = {name.lower() for name, _ in request.headers}
    forwarded = proxy is not None and not target.origin.is_tls
    lines = [f"{request.method} {_absolute(target) if forwarded else target.path} HTTP/1.1"]
    if "host" not in given:
        lines.append(f"Host: {target.origin.place}")
    if "content-length" not in given and (request.body or request.method not in _WITHOUT_BODY):
        lines.append(f"Content-Length: {len(request.body)}")
    if "accept-encoding" not in given:
        lines.append("Accept-Encoding: identity")
    if "user-agent" not in given and not request.is_passed_on:
        lines.append(f"User-Agent: {_user_agent()}")
    if forwarded and proxy is not None and proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    seen: set[str] = set()
    for name, value in request.headers:
        lines.append(_line(name, value, request, seen))
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _line(name: str, value: str, request: HttpRequest, seen: set[str]) -> str:
    key = name.lower()
    if not TOKEN.fullmatch(name):
        raise _refused(f"the header name {name!r} cannot be sent")
    if not _VALUE.fullmatch(value):
        raise _refused(f"the value of the header {name} has characters that cannot be sent")
    if key in OF_A_CONNECTION:
        raise _refused(f"the header {name} is about the connection and cannot be given", hint=f"Leave {name} out.")
    if key in ("host", "content-length"):
        if key in seen:
            raise _refused(f"the header {name} is given twice")
        seen.add(key)
    if key == "content-length" and value != str(len(request.body)):
        raise _refused(f"the header {name} does not tell the size of the body", hint=f"Leave {name} out.")
    return f"{name}: {value}"


@cache
def _user_agent() -> str:
    # The module behind this is slow to import, and a request that names its own agent does not need it.
    return f"sightline/{import_module('importlib.metadata').version('sightline')}"


def _absolute(target: Target) -> str:
    return f"{target.origin.scheme}://{target.origin.place}{target.path}"


def _refused(message: str, *, hint: str = "Check the headers of the provider and of the request.") -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=hint)
