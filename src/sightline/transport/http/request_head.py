"""The head of a request as bytes. What would end a line early, or frame the body twice, is refused."""

import re
from functools import cache, lru_cache
from importlib import import_module

from sightline.errors import Code, Fault
from sightline.model.header_names import OF_A_CONNECTION, TOKEN
from sightline.transport.http.proxies import Proxy
from sightline.transport.http.target import HttpTarget
from sightline.wire.call import HttpRequest

# Anything but a tab and what is visible; a byte above ASCII may stand for itself.
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_WITHOUT_BODY = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "TRACE"})


def request_head(request: HttpRequest, target: HttpTarget, proxy: Proxy | None) -> bytes:
    """The request line and the headers: ours first, then the given ones in their order and spelling."""
    before, after, told = _around_length(
        request.method, request.headers, target, proxy, is_passed_on=request.is_passed_on
    )
    size = len(request.body)
    if told is None and (size or request.method not in _WITHOUT_BODY):
        return b"%bContent-Length: %d\r\n%b" % (before, size, after)
    if told is not None and told != str(size):
        raise _refusal("the header Content-Length does not tell the size of the body", hint="Leave it out.")
    return before + after


@lru_cache(maxsize=512)
def _around_length(
    method: str, headers: tuple[tuple[str, str], ...], target: HttpTarget, proxy: Proxy | None, *, is_passed_on: bool
) -> tuple[bytes, bytes, str | None]:
    """What stands before and behind our Content-Length, and the one that was given. All but the length is the same for
    each request of a client."""
    if not TOKEN.fullmatch(method) or method == "CONNECT":
        raise _refusal("the method of the request cannot be sent")
    given = {name.lower(): value for name, value in headers}
    forwarded = proxy is not None and not target.origin.is_tls
    before = [f"{method} {_absolute(target) if forwarded else target.path} HTTP/1.1"]
    if "host" not in given:
        before.append(f"Host: {target.origin.place}")
    after = []
    if "accept-encoding" not in given:
        after.append("Accept-Encoding: identity")
    if "user-agent" not in given and not is_passed_on:
        after.append(f"User-Agent: {_user_agent()}")
    if forwarded and proxy is not None and proxy.authorization:
        after.append(f"Proxy-Authorization: {proxy.authorization}")
    seen: set[str] = set()
    after += [_line(name, value, seen) for name, value in headers]
    return _lines(before), _lines(after) + b"\r\n", given.get("content-length")


def _lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def _line(name: str, value: str, seen: set[str]) -> str:
    key = name.lower()
    if not TOKEN.fullmatch(name):
        raise _refusal(f"the header name {name!r} cannot be sent")
    if not _VALUE.fullmatch(value):
        raise _refusal(f"the value of the header {name} has characters that cannot be sent")
    if key in OF_A_CONNECTION:
        raise _refusal(f"the header {name} is about the connection and cannot be given", hint=f"Leave {name} out.")
    if key in ("host", "content-length"):
        if key in seen:
            raise _refusal(f"the header {name} is given twice")
        seen.add(key)
    return f"{name}: {value}"


@cache
def _user_agent() -> str:
    # The module behind this is slow to import, and a request that names its own agent does not need it.
    return f"sightline/{import_module('importlib.metadata').version('sightline')}"


def _absolute(target: HttpTarget) -> str:
    return f"{target.origin.scheme}://{target.origin.place}{target.path}"


def _refusal(message: str, *, hint: str = "Check the headers of the provider and of the request.") -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=hint)
