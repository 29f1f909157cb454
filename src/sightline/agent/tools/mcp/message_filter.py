"""Filters a server's messages before the SDK sees them: responses always pass, others only if useful and within limits.

A server may send more than can be handled: notifications that are never read, and requests faster than it reads
answers.
"""

from contextvars import Context
from types import TracebackType
from typing import cast

from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

WANTED = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/progress",
        "notifications/cancelled",
        "notifications/subscriptions/acknowledged",
    }
)
_LARGEST = 1e15
"""The largest progress value; the SDK converts to float, which fails for huge integers."""


class MessageFilter:
    """Decides for each message, and counts a server's unanswered requests."""

    def __init__(self, questions: int) -> None:
        self._most = questions
        self._open = 0

    def passes(self, item: SessionMessage | Exception) -> bool:
        """Whether this message is passed on to the SDK."""
        if isinstance(item, Exception):
            return False
        message = item.message
        if isinstance(message, JSONRPCNotification):
            return message.method in WANTED and _is_sound(message)
        if isinstance(message, JSONRPCRequest):
            if self._open >= self._most:
                return False
            self._open += 1
        return True

    def count_answer(self, item: SessionMessage) -> None:
        """Count a response that was sent to the server."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._open -= 1


def _is_sound(message: JSONRPCNotification) -> bool:
    if message.method != "notifications/progress":
        return True
    numbers = [(message.params or {}).get(key, 0) for key in ("progress", "total")]
    return all(isinstance(each, int | float) and -_LARGEST < each < _LARGEST for each in numbers)


class FilteredRead:
    """A server's messages that pass the filter."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], sieve: MessageFilter) -> None:
        self._inner, self._sieve = inner, sieve

    @property
    def last_context(self) -> Context | None:
        """The sender's context, which the SDK passes along with a message."""
        return cast("Context | None", getattr(self._inner, "last_context", None))

    async def receive(self) -> SessionMessage | Exception:
        """The next message that passes."""
        while not self._sieve.passes(item := await self._inner.receive()):
            pass
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> "FilteredRead":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._sieve.passes(item := await self._inner.__anext__()):
            pass
        return item

    async def __aenter__(self) -> "FilteredRead":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class FilteredWrite:
    """Messages to a server; responses are counted by the filter."""

    def __init__(self, inner: WriteStream[SessionMessage], sieve: MessageFilter) -> None:
        self._inner, self._sieve = inner, sieve

    async def send(self, item: SessionMessage, /) -> None:
        await self._inner.send(item)
        self._sieve.count_answer(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> "FilteredWrite":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
