"""The link to a server over pipes or HTTP, with limits on what the server can do.

For HTTP, a guard sits below the SDK's transport, which reads JSON responses of any size, reopens a stream as often as
the server closes it, waits for the response to a notification, and ends altogether on one network failure.
"""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import ReadStream, WriteStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from sightline.agent.tools.commands import Capture, Child, describe_exit, last_line_in, minimal, start_child
from sightline.agent.tools.mcp.config import MEGABYTE, CommandServer, HttpServer, McpContext, ServerLimits
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.wire.jsontext import decode, encode

_STREAM = "text/event-stream"
_JSON = "application/json"
_CANCELLED = "notifications/cancelled"
_SESSION = "mcp-session-id"
_LONGEST_PLACE = 200


class McpHttpGuard(httpx2.AsyncBaseTransport):
    """Passes requests on to `inner`. `fault` is the last failure; `lost` is set when the server no longer knows the
    session."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, bounds: ServerLimits) -> None:
        self.fault: Fault | None = None
        self.lost = asyncio.Event()
        self._inner = inner
        self._bounds = bounds
        self._notifications: set[asyncio.Task[None]] = set()
        self._opened: deque[float] = deque(maxlen=bounds.reopenings)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        message = _message(request)
        if request.method == "GET":
            self._count(request)
        if message.get("method") == _CANCELLED:
            task = asyncio.get_running_loop().create_task(self._notify(request))
            self._notifications.add(task)
            task.add_done_callback(self._notifications.discard)
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
            words, hint = str(error) or type(error).__name__, "Is it running, and is its url right?"
            self.fault = Fault(Code.NETWORK, f"cannot be reached: {words}", hint=hint)
            return _error_response(request, message, self.fault.message)
        return await self._check_response(request, message, response)

    async def aclose(self) -> None:
        if self._notifications:
            await asyncio.wait(self._notifications, timeout=self._bounds.notice_s)
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
    body = encode({"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": INTERNAL_ERROR, "message": text}})
    return httpx2.Response(503, headers={"content-type": _JSON}, content=body, request=request)


def _fault_of(response: httpx2.Response, kind: str) -> Fault | None:
    status = response.status_code
    if status == 401:
        hint = 'Put what it wants into "headers" in its configuration. Signing in by OAuth is not supported.'
        return Fault(Code.AUTH, "requires authentication (401)", hint=hint, status=status)
    if status == 403:
        hint = "Check the key in its headers, and what it is allowed to do."
        return Fault(Code.PERMISSION, "refuses us (403)", hint=hint, status=status)
    if 300 <= status < 400:
        hint = "If you trust the new place, write it into the configuration: headers are never sent after it."
        place = response.headers.get("location", "").partition("?")[0].rpartition("@")[2][:_LONGEST_PLACE]
        message = f"redirects to another address ({place!r}), which is not followed"
        return Fault(Code.CONFIG, message, hint=hint, status=status)
    if status >= 400 and kind != _JSON:
        return Fault(Code.UPSTREAM_ERROR, f"answers with status {status}", hint="Check the url.", status=status)
    if status == 200 and kind not in (_JSON, _STREAM):
        hint = "Is the url that of its MCP endpoint (often /mcp)?"
        return Fault(Code.UPSTREAM_PROTOCOL, f"answers with {kind or 'no type'} and not with MCP", hint=hint)
    return None


@dataclass(slots=True)
class McpLink:
    """The streams for the SDK. `ended` is set when the server is gone.

    `why` returns the failure as seen in the process or in HTTP, `words` the server's last error output.
    """

    read: ReadStream[SessionMessage | Exception]
    write: WriteStream[SessionMessage]
    why: Callable[[], Fault | None]
    words: Callable[[], str] = str
    ended: asyncio.Event = field(default_factory=asyncio.Event)


END = 512


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line that was too long: its beginning, its end, and its length in bytes."""

    head: bytes
    tail: bytes
    size: int


class LineSplitter:
    """Splits a stream of bytes into lines without line ends; blank lines are skipped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """Add bytes; returns the lines that are now complete."""
        *ends, rest = data.split(b"\n")
        found: list[bytes | Overlong] = []
        for end in ends:
            self._take(end)
            line = self._line()
            if isinstance(line, Overlong) or line.strip():
                found.append(line)
        self._take(rest)
        return found

    def _take(self, data: bytes) -> None:
        self._kept.append(data)
        self._size += len(data)
        if self._size > self._most:
            whole = b"".join(self._kept)
            self._kept = [whole[:END], whole[END:][-END:]]

    def _line(self) -> bytes | Overlong:
        whole, size = b"".join(self._kept), self._size
        self._kept, self._size = [], 0
        return whole if size <= self._most else Overlong(whole[:END], whole[END:], size)


_COMPLAINTS = 4096
_LONGEST_WORDS = 200
_AHEAD = 64
"""How many unread lines may wait before reading from the server is paused."""

_ID = rb'"id"\s*:\s*(\d{1,15})\s*'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb"[,}]")
_ID_LAST = re.compile(rb"," + rb"\s*" + _ID + rb'(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


class McpPipes:
    """The pipes of a server's process."""

    def __init__(self, bounds: ServerLimits) -> None:
        self.child: Child | None = None
        self.is_over = False
        self._bounds = bounds
        self._lines = LineSplitter(bounds.message)
        self._waiting: deque[bytes | Overlong] = deque()
        self._more = asyncio.Event()
        self._complaints = Capture(0, _COMPLAINTS)
        self._unparsed_line = ""
        self._trouble = ""

    def receive(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._complaints.add(data)
            return
        self._waiting.extend(self._lines.feed(data))
        if len(self._waiting) > _AHEAD and self.child is not None:
            self.child.listen(is_wanted=False)
        self._more.set()

    def over(self) -> None:
        self.is_over = True
        self._more.set()

    async def deliver(self, out: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Deliver messages of the server until it has ended."""
        async with out:
            with suppress(anyio.BrokenResourceError):  # the reader is closed
                await self._deliver(out)

    async def _deliver(self, out: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        while not (self.is_over and not self._waiting):
            while self._waiting:
                message = self._message(self._waiting.popleft())
                if message is not None:
                    await out.send(message)
                else:
                    await anyio.lowlevel.checkpoint()  # a flood of ignored lines must not starve other tasks
            if self.child is not None and not self.is_over:
                self.child.listen(is_wanted=True)
                await self._more.wait()
                self._more.clear()

    async def send_all(self, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send messages to the server; a server that does not read them is ended."""
        assert self.child is not None
        async with messages:
            async for each in messages:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                self.child.write(text.encode(errors="replace") + b"\n")
                if self.child.unread > self._bounds.message:
                    self._trouble = "it does not read its input"
                    self.child.kill()

    def fault(self) -> Fault | None:
        """Why the server ended; None if it is running."""
        assert self.child is not None
        if self._trouble:
            hint = "Ask its tools for less, or leave the server out."
            return Fault(Code.UPSTREAM_PROTOCOL, f"was ended, because {self._trouble}", hint=hint)
        if self.child.is_alive:
            return None
        how = describe_exit(self.child.exit_code or 0)
        return Fault(Code.UPSTREAM_ERROR, f"ended with {how}", hint="Run its command by hand to see why.")

    def words(self) -> str:
        """The last line of its stderr, or else a line of its stdout that is not a message."""
        return last_line_in(self._complaints.text)[:_LONGEST_WORDS] or self._unparsed_line

    def _message(self, line: bytes | Overlong) -> SessionMessage | None:
        if isinstance(line, Overlong):
            return self._too_long(line)
        try:
            return SessionMessage(_parse_message(line))
        except (ValueError, Fault):
            self._unparsed_line = self._unparsed_line or line[:_LONGEST_WORDS].decode(errors="replace").strip()
            is_answer = b'"result"' in line or b'"method"' not in line
            found = _ID_FIRST.match(line) if is_answer else None
            return _error(found, "the answer cannot be read") if found else None

    def _too_long(self, line: Overlong) -> SessionMessage | None:
        """An error response for a call whose answer was too long. If the call is not known, the server is ended."""
        found = _ID_FIRST.match(line.head) or _ID_LAST.search(line.tail)
        most = self._bounds.message // MEGABYTE
        if found is None:
            self._trouble = f"it wrote a message of {line.size / MEGABYTE:.0f} MB, and {most} MB are the most"
            assert self.child is not None
            self.child.kill()
            return None
        text = f"the answer is {line.size / MEGABYTE:.0f} MB long, and {most} MB are the most; ask for less"
        return _error(found, text)


def _parse_message(line: bytes) -> JSONRPCMessage:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        # One tool whose schema is nested too deeply for the SDK must not lose the whole list.
        return jsonrpc_message_adapter.validate_python(decode(line), by_name=False)


def _error(found: re.Match[bytes], text: str) -> SessionMessage:
    error = ErrorData(code=INTERNAL_ERROR, message=text)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))


@asynccontextmanager
async def open_pipes(command: CommandServer, context: McpContext) -> AsyncIterator[McpLink]:
    """Start the server. The server and its descendants have ended when the context is left."""
    pipes = McpPipes(context.limits)
    child = pipes.child = await _start_server(command, pipes, context.environment)
    into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, out = anyio.create_memory_object_stream[SessionMessage](0)
    link = McpLink(read, write, pipes.fault, pipes.words)

    async def watch() -> None:
        await child.wait_until_finished()
        pipes.over()
        link.ended.set()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            group.start_soon(pipes.deliver, into)
            group.start_soon(pipes.send_all, out)
            try:
                yield link
            finally:
                with anyio.CancelScope(shield=True):
                    await _shut_down(child, context.limits.close_s)
                group.cancel_scope.cancel()
    finally:
        child.kill()
        for stream in (into, read, write, out):
            stream.close()


async def _start_server(command: CommandServer, pipes: McpPipes, environment: Mapping[str, str]) -> Child:
    own = {**minimal(environment), **command.environment}
    try:
        return await start_child(command.words, pipes.receive, folder=command.folder, environment=own)
    except FileNotFoundError as error:
        if not command.folder.is_dir():
            hint = "Correct `cwd` in its configuration."
            raise Fault(Code.CONFIG, "has a `cwd` that is no folder", hint=hint) from error
        hint = "Install it, or name it with its full path. PATH is handed on as it is here."
        raise Fault(Code.CONFIG, "has a `command` that is not found", hint=hint) from error
    except OSError as error:
        hint = "Correct `command`, `args` and `cwd` in its configuration."
        raise Fault(Code.CONFIG, f"cannot be started: {error.strerror}", hint=hint) from error


async def _shut_down(child: Child, seconds: float) -> None:
    """Close its input so that it can exit on its own, then end what is left of it."""
    child.close_input()
    try:
        async with asyncio.timeout(seconds):
            await child.exited.wait()
    except TimeoutError:
        pass
    finally:
        await child.end()


@asynccontextmanager
async def open_http_link(address: HttpServer, context: McpContext) -> AsyncIterator[McpLink]:
    """Connect to a service. The session is ended with a request to the service, within a time limit."""
    limits, certificates = context.limits, context.network.context()
    inner = httpx2.AsyncHTTPTransport(
        verify=certificates,
        proxy=_proxy(context.network.proxy(address.url), certificates),
        trust_env=False,
        limits=httpx2.Limits(max_connections=None),
    )
    guard = McpHttpGuard(inner, limits)
    headers = {**address.headers, "accept-encoding": "identity"}
    # Calls have their own limit, and a notification stream may be silent for hours.
    timeout = httpx2.Timeout(limits.start_s, read=None, pool=None)
    client = httpx2.AsyncClient(transport=guard, headers=headers, timeout=timeout, trust_env=False)
    async with (
        client,
        streamable_http_client(address.url, http_client=client, max_sse_event_size=limits.message) as (read, write),
    ):
        yield McpLink(read, write, lambda: guard.fault, ended=guard.lost)


def _proxy(found: tuple[str, str] | None, context: ssl.SSLContext) -> httpx2.Proxy | None:
    if found is None:
        return None
    url, authorization = found
    headers = {"proxy-authorization": authorization} if authorization else {}
    return httpx2.Proxy(url, ssl_context=context if url.startswith("https:") else None, headers=headers)
