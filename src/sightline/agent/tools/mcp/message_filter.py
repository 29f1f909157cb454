"""What of a server's messages gets through to the SDK: answers always, the rest as far as it is of use and in bounds.

A server can send more than anybody can handle: notices that nobody reads, and questions faster than it takes answers.
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
"""No progress is as far as that; the SDK makes a float of it, and not every integer is one."""


class Sieve:
    """Decides, message by message; it knows how many of a server's own questions are still unanswered."""

    def __init__(self, questions: int) -> None:
        self._most = questions
        self._open = 0

    def passes(self, item: SessionMessage | Exception) -> bool:
        """Whether this message is handed on."""
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
        """One of our messages has been taken."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._open -= 1


def _is_sound(message: JSONRPCNotification) -> bool:
    if message.method != "notifications/progress":
        return True
    numbers = [(message.params or {}).get(key, 0) for key in ("progress", "total")]
    return all(isinstance(each, int | float) and -_LARGEST < each < _LARGEST for each in numbers)


class SievedRead:
    """A server's messages, without those that the sieve holds back."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], sieve: Sieve) -> None:
        self._inner, self._sieve = inner, sieve

    @property
    def last_context(self) -> Context | None:
        """The SDK hands the sender's context along with a message."""
        return cast("Context | None", getattr(self._inner, "last_context", None))

    async def receive(self) -> SessionMessage | Exception:
        """The next message that gets through."""
        while not self._sieve.passes(item := await self._inner.receive()):
            pass
        return item

    async def aclose(self) -> None:
        """Take no more."""
        await self._inner.aclose()

    def __aiter__(self) -> "SievedRead":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._sieve.passes(item := await self._inner.__anext__()):
            pass
        return item

    async def __aenter__(self) -> "SievedRead":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class SievedWrite:
    """Our messages to a server; the sieve learns which of its questions have been answered."""

    def __init__(self, inner: WriteStream[SessionMessage], sieve: Sieve) -> None:
        self._inner, self._sieve = inner, sieve

    async def send(self, item: SessionMessage, /) -> None:
        """Say something to the server."""
        await self._inner.send(item)
        self._sieve.count_answer(item)

    async def aclose(self) -> None:
        """Say no more."""
        await self._inner.aclose()

    async def __aenter__(self) -> "SievedWrite":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
