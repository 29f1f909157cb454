"""The answer to a client while it is under way: its head, and its body as it comes."""

from collections.abc import AsyncIterator
from copy import copy
from typing import Protocol, Self

from sightline.errors import Fault
from sightline.exchange.client_request import ClientRequest

Headers = list[tuple[bytes, bytes]]


class ResponseBody(Protocol):
    """What a client gets, in pieces."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces, once."""
        ...

    async def leave(self) -> None:
        """Nobody wants more of it, or it has ended; nothing is left open behind it."""
        ...


class WholeBody:
    """A body that is here already."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        data, self._data = self._data, b""
        if not data:
            raise StopAsyncIteration
        return data

    async def leave(self) -> None:
        """There is nothing to close."""


class ClientResponse:
    """An answer for the client. Leaving it before its end means that the client has gone: the provider's connection is
    closed at once.

    `exchange` is the id of its record, empty where there is none. A fault out of the iteration means that the answer
    broke off where no words of its dialect can say so: the transfer must be cut off and not ended.

    `fault` is for callers of our own, who need no dialect's words: why there is no answer, or, once that is known and
    before the last words about it come, what the answer broke off with.
    """

    def __init__(
        self, exchange: str, status: int, headers: Headers, body: ResponseBody, *, fault: Fault | None = None
    ) -> None:
        self.exchange = exchange
        self.status = status
        self.headers = headers
        self.fault = fault
        self._body: ResponseBody = body

    def with_body(self, data: bytes) -> "ClientResponse":
        """The same answer, whose body has been read meanwhile."""
        again = copy(self)
        again._body = WholeBody(data)
        return again

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._body.__aiter__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._body.leave()


class RequestHandler(Protocol):
    """Whoever answers clients: the relay to the providers, or the record."""

    async def start(self, asked: ClientRequest) -> ClientResponse:
        """The answer to a request; its head is here when this returns."""
        ...

    async def close(self, grace: float, /) -> None:
        """Let what is under way end within so many seconds."""
        ...
