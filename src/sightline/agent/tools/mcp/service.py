"""A server that is reached over HTTP, through the SDK's streamable transport with a guard below it."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client

from sightline.agent.tools.mcp.config import HttpServer
from sightline.agent.tools.mcp.guard import McpHttpGuard
from sightline.agent.tools.mcp.limits import Bounds
from sightline.agent.tools.mcp.link import McpLink
from sightline.agent.tools.mcp.network import McpNetwork


@asynccontextmanager
async def open_http_link(address: HttpServer, bounds: Bounds, network: McpNetwork) -> AsyncIterator[McpLink]:
    """The way to a service. It ends with our saying so, as far as the service takes its time to hear it."""
    context = network.context()
    inner = httpx2.AsyncHTTPTransport(
        verify=context,
        proxy=_proxy(network.proxy(address.url), context),
        trust_env=False,
        limits=httpx2.Limits(max_connections=None),
    )
    guard = McpHttpGuard(inner, bounds)
    headers = {**address.headers, "accept-encoding": "identity"}
    # A call has a limit of its own, and a stream for notices may be silent for hours.
    timeout = httpx2.Timeout(bounds.start_s, read=None, pool=None)
    client = httpx2.AsyncClient(transport=guard, headers=headers, timeout=timeout, trust_env=False)
    async with (
        client,
        streamable_http_client(address.url, http_client=client, max_sse_event_size=bounds.message) as (read, write),
    ):
        yield McpLink(read, write, lambda: guard.fault, ended=guard.lost)


def _proxy(found: tuple[str, str] | None, context: ssl.SSLContext) -> httpx2.Proxy | None:
    if found is None:
        return None
    url, authorization = found
    headers = {"proxy-authorization": authorization} if authorization else {}
    return httpx2.Proxy(url, ssl_context=context if url.startswith("https:") else None, headers=headers)
