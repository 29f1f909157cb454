"""Connections that move from one process of the server to another: which requests require it, and how it is done.

One process, the main one, has the page, the holds and everything else of which there is only one. The others serve only
what is clearly a request to a model, and only while the main process does not have to see it first. Everything else
goes to the main process, with its connection and before it is parsed.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sightline.web.asgi import AsgiScope

if TYPE_CHECKING:
    from sightline.server.http_connection import ClientConnection

_RETRY_SECONDS: Final = 0.01
_MIN_PREFIX: Final = 12
"""Bytes that suffice to tell a path of the workbench from others."""


def is_plain(first: bytes) -> bool:
    """Whether a request that begins like this can be served by any process. False if in doubt."""
    return (
        len(first) >= _MIN_PREFIX
        and first.startswith(b"POST /")
        and not first.startswith(
            (b"POST / ", b"POST /?", b"POST /api", b"POST /ui", b"POST /favicon", b"POST /example")
        )
    )


class HandOver:
    """The way to another process of this server, which may serve a connection from its next request on. `wants` returns
    whether it has to serve the request that begins like this. `send` passes it the beginning of a request and the
    descriptor of the connection, and returns whether the process is still running."""

    def __init__(self, wants: Callable[[bytes], bool], send: Callable[[bytes, int], bool]) -> None:
        self.wants = wants
        self._send = send

    def wants_parsed(self, scope: AsgiScope) -> bool:
        """The same for a request that was parsed already, because it arrived together with the one before it."""
        return self.wants(scope["method"].encode() + b" " + scope["raw_path"] + b" HTTP/1.1")

    def take(self, connection: "ClientConnection", first: bytes) -> None:
        """Hand the connection over once the client has received everything that was written for it."""
        connection.pause_reading()
        self._transfer(connection, first)

    def _transfer(self, connection: "ClientConnection", first: bytes) -> None:
        transport = connection.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._transfer, connection, first)
        elif self._send(first, transport.get_extra_info("socket").fileno()):
            transport.abort()  # closes only this process's side: the connection itself stays open
        else:
            connection.other = None
            connection.resume_reading()
            connection.data_received(first)
