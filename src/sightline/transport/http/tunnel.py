"""The question to a proxy whether it will pass everything on: CONNECT, and its answer."""

import asyncio
import re
from typing import cast

_LIMIT = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: [^\r\n]*)?\r\n")


class Tunnel(asyncio.Protocol):
    """Speaks to the proxy until it agrees; TLS with the origin follows on the same connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._answered: asyncio.Future[int] = loop.create_future()
        self._heard = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by their class

    def data_received(self, data: bytes) -> None:
        self._heard += data
        end = self._heard.find(b"\r\n\r\n")
        if end >= 0:
            found = _STATUS.match(self._heard)
            status = int(found[1]) if found else 0
            # In TLS the client speaks first: what follows a consent is not from the origin.
            is_alone = end + 4 == len(self._heard)
            self._tell(status if is_alone or not 200 <= status < 300 else 0)
        elif len(self._heard) > _LIMIT:
            self._tell(0)

    def connection_lost(self, exc: Exception | None) -> None:
        self._tell(0)

    def _tell(self, status: int) -> None:
        if not self._answered.done():
            self._answered.set_result(status)

    async def connect(self, authority: str, authorization: str) -> int:
        """The status that the proxy answers with; 0 where that is no answer."""
        assert self._transport is not None
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        if authorization:
            lines.append(f"Proxy-Authorization: {authorization}")
        self._transport.write("\r\n".join([*lines, "", ""]).encode("ascii"))
        return await self._answered
