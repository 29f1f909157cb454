"""A provider on loopback that answers by a script, and keeps what it was asked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.testing.script import Script
from sightline.wire.jsontext import encode

_HOST = "127.0.0.1"
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class ScriptedProvider:
    """Each request gets the next reply, whose pieces are `delay` seconds apart. `requests` are the bodies that came.

    Where the script has no further reply, the request is refused, and `is_over` says so.
    """

    def __init__(
        self, script: Script, spoken: str, *, sleep: Callable[[float], Awaitable[None]], delay: float = 0.0
    ) -> None:
        self._script = script
        self._spoken = spoken
        self._sleep = sleep
        self._delay = delay
        self._server: asyncio.Server | None = None
        self.requests: list[bytes] = []
        self.url = ""

    @property
    def is_over(self) -> bool:
        """Whether more was asked than the script has replies for."""
        return len(self.requests) > len(self._script.rounds)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, _HOST, 0)
        self.url = f"http://{_HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(await reader.readexactly(_length(head)))
                await self._answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        if self.is_over:
            writer.write(self._refusal())
            await writer.drain()
            return
        writer.write(_STREAM)
        for piece in self._script.pieces(len(self.requests) - 1, self._spoken):
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            if self._delay:
                await self._sleep(self._delay)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    def _refusal(self) -> bytes:
        fault = Fault(Code.INVALID_REQUEST, f"the script has no reply {len(self.requests)}")
        status, value = dialect(self._spoken).write_error(fault)
        body = encode(value)
        head = f"HTTP/1.1 {status} Over\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0
