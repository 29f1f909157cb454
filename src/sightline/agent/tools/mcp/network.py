"""How servers over HTTP are reached: whose certificates are believed, and which proxies stand in between."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass

import certifi


def _of_the_system() -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not context.get_ca_certs():
        context.load_verify_locations(certifi.where())  # a system that has none of its own
    return context


def _directly(_url: str) -> None:
    """Environments name proxies for all and sundry; a server on this machine would be looked for elsewhere."""


@dataclass(frozen=True, slots=True)
class McpNetwork:
    """`context` is asked for when a connection needs it. `proxy` tells for an address the URL of its proxy and the
    header that lets us through, which may be empty; None where there is no proxy on the way."""

    context: Callable[[], ssl.SSLContext] = _of_the_system
    proxy: Callable[[str], tuple[str, str] | None] = _directly
