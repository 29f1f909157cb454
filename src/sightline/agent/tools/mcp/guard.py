"""An HTTP transport that limits what a server can do: bounded responses, no endless reconnecting, and no lost failures.

It is below the SDK's transport, which reads a JSON response of any size, reopens a stream as often as the server closes
it, waits for the response to a notification, and ends altogether on one network failure.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx2

from sightline.agent.tools.mcp.config import MEGABYTE, ServerLimits
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.wire.jsontext import decode, encode

_STREAM = "text/event-stream"
_JSON = "application/json"
_CANCELLED = "notifications/cancelled"
_SESSION = "mcp-session-id"
_LONGEST_PLACE = 200
_INTERNAL_ERROR = -32603


class McpHttpGuard(httpx2.AsyncBaseTransport):
    """Passes requests on to `inner`. `fault` is the last failure; `lost` is set when the server no longer knows the
    session."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, bounds: ServerLimits) -> None:
        self.fault: Fault | None = None
        self.lost = asyncio.Event()
        self._inner = inner
        self._bounds = bounds
        self._telling: set[asyncio.Task[None]] = set()
        self._opened: deque[float] = deque(maxlen=bounds.reopenings)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        message = _message(request)
        if request.method == "GET":
            self._count(request)
        if message.get("method") == _CANCELLED:
            task = asyncio.get_running_loop().create_task(self._notify(request))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)
            return httpx2.Response(202, request=request)
        try:
            # Only calls may take long, and they have their own limit.
            is_call = request.method == "GET" or "id" in message
            async with asyncio.timeout(None if is_call else self._bounds.notice_s):
                response = await self._inner.handle_async_request(request)
        except (httpx2.TransportError, TimeoutError) as error:
            if request.method != "POST":
                raise
            if "id" not in message:
                return httpx2.Response(202, request=request)  # a lost notification must not end the connection
            self.fault = _unreachable(error)
            return _error_response(request, message, self.fault.message)
        return await self._check_response(request, message, response)

    async def aclose(self) -> None:
        if self._telling:
            await asyncio.wait(self._telling, timeout=self._bounds.notice_s)
        await self._inner.aclose()

    async def _notify(self, request: httpx2.Request) -> None:
        """Send a cancellation in the background: the SDK sends nothing else before a notification is answered."""
        with suppress(httpx2.TransportError, TimeoutError):  # cancellations are best effort, and no one waits for them
            async with asyncio.timeout(self._bounds.notice_s):
                response = await self._inner.handle_async_request(request)
                await response.aclose()

    async def _check_response(
        self, request: httpx2.Request, message: JsonObject, response: httpx2.Response
    ) -> httpx2.Response:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.method == "POST":
            self.fault = _fault_of(response, kind)
            if response.status_code == 404 and _SESSION in request.headers:
                self.lost.set()
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            return _error_response(request, message, "it answers compressed, which it was asked not to")
        if kind != _STREAM:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Bounded(response.stream, self._bounds.message)
        return response

    def _count(self, request: httpx2.Request) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._opened) == self._opened.maxlen and now - self._opened[0] < self._bounds.reopenings_s:
            raise httpx2.ConnectError("the server closes its stream again and again", request=request)
        self._opened.append(now)


class _Bounded(httpx2.AsyncByteStream):
    """A response body up to a limit. It fails with errors that the SDK attributes to this response only."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner, self._most = inner, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                size += len(chunk)
                if size > self._most:
                    most = self._most // MEGABYTE
                    raise httpx2.StreamError(f"the answer is longer than {most} MB, which are the most; ask for less")
                yield chunk
        except httpx2.TransportError as error:
            raise httpx2.StreamError(f"the answer broke off: {error}") from error

    async def aclose(self) -> None:
        await self._inner.aclose()


def _message(request: httpx2.Request) -> JsonObject:
    if request.method != "POST":
        return {}
    message = decode(request.content)
    return message if isinstance(message, dict) else {}


def _error_response(request: httpx2.Request, message: JsonObject, text: str) -> httpx2.Response:
    """A response that the SDK reads as this call's error."""
    body = encode({"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": _INTERNAL_ERROR, "message": text}})
    return httpx2.Response(503, headers={"content-type": _JSON}, content=body, request=request)


def _unreachable(error: Exception) -> Fault:
    words = str(error) or type(error).__name__
    return Fault(Code.NETWORK, f"cannot be reached: {words}", hint="Is it running, and is its url right?")


def _fault_of(response: httpx2.Response, kind: str) -> Fault | None:
    status = response.status_code
    if status == 401:
        hint = 'Put what it wants into "headers" in its configuration. Signing in by OAuth is not supported.'
        return Fault(Code.AUTH, "wants to know who asks (401)", hint=hint, status=status)
    if status == 403:
        hint = "Check the key in its headers, and what it is allowed to do."
        return Fault(Code.PERMISSION, "refuses us (403)", hint=hint, status=status)
    if 300 <= status < 400:
        hint = "If you trust the new place, write it into the configuration: headers are never sent after it."
        place = response.headers.get("location", "").partition("?")[0].rpartition("@")[2][:_LONGEST_PLACE]
        message = f"sends us to another place ({place!r}), which is not followed"
        return Fault(Code.CONFIG, message, hint=hint, status=status)
    if status >= 400 and kind != _JSON:
        return Fault(Code.UPSTREAM_ERROR, f"answers with status {status}", hint="Is the url right?", status=status)
    if status == 200 and kind not in (_JSON, _STREAM):
        hint = "Is the url that of its MCP endpoint (often /mcp)?"
        return Fault(Code.UPSTREAM_PROTOCOL, f"answers with {kind or 'no type'} and not with MCP", hint=hint)
    return None
