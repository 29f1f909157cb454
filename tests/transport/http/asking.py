"""What the tests of the HTTP client share: a client, a question, and time that passes when it is told to."""

import asyncio
import ssl
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import pytest
import trustme

from sightline.errors import Fault
from sightline.transport.http.client import HttpClient, Response
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies, Timeouts
from sightline.wire.call import HttpRequest

Result = TypeVar("Result")

PATIENT = Timeouts(connect=0, first_byte=0, idle=0)


def told(story: Coroutine[Any, Any, Result]) -> Result:
    """Run a test's story in a loop of its own."""
    return asyncio.run(story)


def client(environment: Mapping[str, str] | None = None, *, ca_file: str = "", **options: Any) -> HttpClient:
    """A client in an environment of the test's own."""
    named = environment or {}
    return HttpClient(trust=Trust(environment=named, ca_file=ca_file), proxies=Proxies.of(named), **options)


def served_by(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    """A server's TLS, with a certificate for these names."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(context)
    return context


def post(url: str, body: bytes = b"{}", **headers: str) -> HttpRequest:
    """A request as a provider gets it."""
    return HttpRequest("POST", url, tuple(headers.items()), body)


async def failure(coroutine: Coroutine[Any, Any, object]) -> Fault:
    """The fault that it ends with."""
    with pytest.raises(Fault) as caught:
        await coroutine
    return caught.value


async def everything(response: Response) -> list[bytes]:
    """The portions of a body."""
    return [piece async for piece in response]


def kind(fault: Fault) -> str:
    """What sort of failure it was."""
    return str(fault.details["kind"])


def later(seconds: float) -> None:
    """Let time pass for the running loop."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds  # type: ignore[method-assign]


async def turns(count: int = 5) -> None:
    """Give everything that is ready its turn."""
    for _ in range(count):
        await asyncio.sleep(0)
