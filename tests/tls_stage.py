"""Sightline with its proxy for `run --tls`, between real clients and vendors' hosts that a script plays.

The server reaches every host through a forward proxy on loopback that leads to the scripted upstream, whose certificate
is signed by an authority that the server is told to trust. So clients use the vendors' own addresses.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from tests.background import entered, loop_in_background
from tests.forward_proxy import ForwardProxy, _both_ways
from tests.gateway_server import Served, served
from tests.upstream import Upstream

HOSTS = ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "chatgpt.com", "other.example")
CHAT_REPLY = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}


@dataclass(frozen=True)
class TlsStage:
    """`proxy` is the URL for a client, with its password; `bundle` the file of what it is to trust; `way` the proxy by
    which Sightline itself goes out."""

    gateway: Served
    upstream: Upstream
    way: ForwardProxy
    proxy: str
    bundle: Path
    folder: Path
    loop: asyncio.AbstractEventLoop

    @property
    def port(self) -> int:
        port = urlsplit(self.proxy).port
        assert port is not None
        return port

    def exchanges(self) -> list[Any]:
        found: list[Any] = self.gateway.api("/api/exchanges")["exchanges"]
        return found

    def variables(self) -> dict[str, str]:
        """The environment of a child."""
        proxies = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"), self.proxy)
        trusted = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
        return {**proxies, **dict.fromkeys(trusted, str(self.bundle)), "NO_PROXY": "localhost,127.0.0.1"}


def context_of(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    """TLS of a server with these names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


@contextmanager
def tls_stage(
    folder: Path,
    *,
    config: str = "",
    session: str = "s1",
    variables: Mapping[str, str] | None = None,
    vendor: Callable[[trustme.CA], ssl.SSLContext] | None = None,
) -> Iterator[TlsStage]:
    """All of it, listening. `vendor` makes the TLS of the scripted hosts, with the authority that is trusted, if it is
    not to be sound."""
    authority, trusted = _authority(folder)
    upstream = Upstream(tls=vendor(authority) if vendor else context_of(authority, *HOSTS))
    with ExitStack() as stack:
        loop = stack.enter_context(loop_in_background())
        stack.enter_context(entered(upstream, loop))
        way = stack.enter_context(entered(ForwardProxy(reach=("127.0.0.1", upstream.port)), loop))
        # The server keeps the environment that it finds. The test itself must not go by these proxies.
        with pytest.MonkeyPatch.context() as environment:
            for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NO_PROXY", "no_proxy", "SSL_CERT_FILE"):
                environment.delenv(name, raising=False)
            for name, value in {"HTTPS_PROXY": way.url, "http_proxy": way.url, **(variables or {})}.items():
                environment.setenv(name, value)
            gateway = stack.enter_context(served(folder, f'[network]\nca_file = "{trusted}"\n{config}'))
        status, opened = gateway.post("/api/proxy", json.dumps({"session": session}).encode())
        assert status == 200, opened
        bundle = folder / "bundle.pem"
        bundle.write_text(trusted.read_text() + opened["certificate"])
        yield TlsStage(gateway, upstream, way, opened["url"], bundle, folder, loop)


def _authority(folder: Path) -> tuple[trustme.CA, Path]:
    """An authority, and the file of its certificate."""
    authority, trusted = trustme.CA(), folder / "vendors.pem"
    authority.cert_pem.write_to_path(str(trusted))
    return authority, trusted


@contextmanager
def vendors_in_front_of(port: int, folder: Path) -> Iterator[tuple[str, Path]]:
    """A proxy by which every vendor's host leads, behind TLS, to what listens in clear text at this port of loopback:
    the proxy's URL, and the file of the authority that vouches for the hosts."""
    authority, trusted = _authority(folder)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        with suppress(OSError, asyncio.CancelledError):
            await _both_ways((reader, back), (there, writer))
        for each in (writer, back):
            each.transport.abort()

    @asynccontextmanager
    async def front() -> AsyncIterator[ForwardProxy]:
        server = await asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context_of(authority, *HOSTS))
        async with ForwardProxy(reach=("127.0.0.1", server.sockets[0].getsockname()[1])) as way:
            yield way
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # what was aborted is closed in the next turn

    with loop_in_background() as loop, entered(front(), loop) as way:
        yield way.url, trusted
