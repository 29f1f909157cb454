"""An answer whose head is here and whose body is still coming."""

import asyncio
from collections.abc import AsyncIterator
from typing import Self

from sightline.errors import Fault
from sightline.transport.http import faults
from sightline.transport.http.answer_parser import AnswerParser
from sightline.transport.http.connection import HttpConnection
from sightline.transport.http.pool import ConnectionPool

READ_LIMIT = 64 * 1024 * 1024


class Response:
    """Iterate over it for the body in the portions in which it came, or `read` it whole; for one reader, once.

    Read to its end it gives its connection back. Left before that, by `close`, by the end of an `async with` or by a
    cancelled wait, it closes the connection at once.
    """

    def __init__(self, connection: HttpConnection, answer: AnswerParser, pool: ConnectionPool) -> None:
        self.status: int = answer.status
        self.reason: bytes = answer.reason
        self.headers: tuple[tuple[bytes, bytes], ...] = tuple(answer.headers)
        self._answer = answer
        self._connection: HttpConnection | None = connection
        self._place = connection.place
        self._pool = pool

    def header(self, name: str) -> str:
        """The first value of a header, whatever the case of its name; nothing where it is absent."""
        wanted = name.lower().encode("latin-1")
        for key, value in self.headers:
            if key.lower() == wanted:
                return value.decode("latin-1")
        return ""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        answer = self._answer
        connection = self._connection
        if connection is None:
            raise StopAsyncIteration
        while not answer.pieces:
            if answer.fault is not None:
                raise answer.fault
            if answer.is_complete:
                self._release()
                raise StopAsyncIteration
            try:
                await connection.next_change()
            except asyncio.CancelledError:
                connection.abort()
                raise
        data = connection.take(answer)
        if answer.is_complete:
            self._release()
        return data

    async def read(self, limit: int = READ_LIMIT) -> bytes:
        """The rest of the body, if it is not larger than the limit."""
        pieces = []
        size = 0
        async for piece in self:
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                await self.close()
                raise faults.too_large(self._place, limit)
        return b"".join(pieces)

    def abort(self, fault: Fault) -> None:
        """Nothing more is wanted of it: whoever reads it, now or later, gets this fault."""
        if self._connection is not None:
            self._answer.pieces.clear()
            self._connection.abort_exchange(self._answer, fault)

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection)

    async def close(self) -> None:
        """Give up what is still to come; the socket is closed, or back in its pool, when this returns."""
        connection = self._connection
        self._release()
        self._answer.pieces.clear()
        if connection is not None and not self._answer.is_complete:
            await connection.wait_until_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
