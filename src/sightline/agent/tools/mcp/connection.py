"""A connection to a server, from handshake to end: keeps its list of tools up to date and calls them.

One task drives a connection, as the SDK requires; many tasks may call tools. The server's messages are filtered before
the SDK sees them: a server may send notifications that no one reads, and requests faster than it reads the answers.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context
from importlib.metadata import version
from typing import Any, Generic, Self, TypeVar, cast

import anyio
import mcp_types
from mcp import MCPError
from mcp.client._transport import ReadStream, WriteStream
from mcp.client.session import ClientSession, IncomingMessage
from mcp.client.subscriptions import listen
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from sightline.agent.core.tool import ToolOutcome, text_outcome
from sightline.agent.tools.mcp.config import CommandServer, McpContext, ServerSpec, mask_values
from sightline.agent.tools.mcp.links import McpLink, open_http_link, open_pipes
from sightline.agent.tools.mcp.listing import ToolListing, outcome
from sightline.agent.tools.tools import Progress
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.transport.waiting import WorkInterrupted, run_unless

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
    """Decides which messages are passed on, and counts a server's unanswered requests."""

    def __init__(self, questions: int) -> None:
        self._most = questions
        self._open = 0

    def passes(self, item: SessionMessage | Exception) -> bool:
        """Whether this message is passed on to the SDK."""
        if isinstance(item, Exception):
            return False
        message = item.message
        if isinstance(message, mcp_types.JSONRPCNotification):
            return message.method in WANTED and _is_sound(message)
        if isinstance(message, mcp_types.JSONRPCRequest):
            if self._open >= self._most:
                return False
            self._open += 1
        return True

    def count_answer(self, item: SessionMessage) -> None:
        """Count a response that was sent to the server."""
        if isinstance(item.message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
            self._open -= 1


def _is_sound(message: mcp_types.JSONRPCNotification) -> bool:
    if message.method != "notifications/progress":
        return True
    numbers = [(message.params or {}).get(key, 0) for key in ("progress", "total")]
    return all(isinstance(each, int | float) and -_LARGEST < each < _LARGEST for each in numbers)


S = TypeVar("S", bound=ReadStream[SessionMessage | Exception] | WriteStream[SessionMessage])


class _FilteredStream(Generic[S]):
    def __init__(self, inner: S, sieve: MessageFilter) -> None:
        self._inner: S = inner
        self._sieve = sieve

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class FilteredRead(_FilteredStream[ReadStream[SessionMessage | Exception]]):
    """A server's messages that pass the filter."""

    @property
    def last_context(self) -> Context | None:
        """The sender's context, which the SDK passes along with a message."""
        return cast("Context | None", getattr(self._inner, "last_context", None))

    async def receive(self) -> SessionMessage | Exception:
        while not self._sieve.passes(item := await self._inner.receive()):
            pass
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._sieve.passes(item := await self._inner.__anext__()):
            pass
        return item


class FilteredWrite(_FilteredStream[WriteStream[SessionMessage]]):
    """Messages to a server; responses are counted by the filter."""

    async def send(self, item: SessionMessage, /) -> None:
        await self._inner.send(item)
        self._sieve.count_answer(item)


LONGEST = 200
SPACING = 0.1
"""The minimum seconds between two reports of one call; reports in between are dropped."""


class ProgressReports:
    """Reports the progress of one call until it ends."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._next = 0.0
        self._has_ended = False

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        now = asyncio.get_running_loop().time()
        if self._has_ended or now < self._next:
            return
        self._next = now + SPACING
        self._progress(words(progress, total, message))

    def end(self) -> None:
        self._has_ended = True


def words(progress: float, total: float | None, message: str | None) -> str:
    """The server's message and numbers on one line, without control characters."""
    number = f"{progress:g} of {total:g}" if total else f"{progress:g}"
    text = "".join(letter if letter.isprintable() else " " for letter in (message or "")[: 4 * LONGEST])
    text = " ".join(text.split())[:LONGEST]
    return f"{text} ({number})" if text else number


class ListFilterDispatcher(JSONRPCDispatcher[TransportContext]):
    """A dispatcher that removes invalid tools from a list, for which the SDK would refuse the whole list."""

    def __init__(
        self,
        read: ReadStream[SessionMessage | Exception],
        write: WriteStream[SessionMessage],
        sift: Callable[[JsonObject], JsonObject],
    ) -> None:
        super().__init__(read, write)
        self._filter_list = sift

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: mcp_types.RequestId | None = None,
    ) -> dict[str, Any]:
        answer = await super().send_raw_request(method, params, opts, _related_request_id=_related_request_id)
        return self._filter_list(answer) if method == "tools/list" else answer


TROUBLE = (MCPError, ValueError, RuntimeError, TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError)
"""The exceptions that the SDK raises for a server's behaviour; a malformed message is a ValueError."""

_LONGEST_WORDS = 2000

# The SDK logs servers' mistakes with tracebacks; what matters of them is reported in outcomes and notes.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


class McpConnection:
    """A connection to a server. `run` is its task; `ready` is set when its tools are known."""

    def __init__(self, spec: ServerSpec, context: McpContext, changed: Callable[[ToolListing], None]) -> None:
        self.ready = asyncio.Event()
        self._spec, self._context, self._limits, self._changed = spec, context, context.limits, changed
        self._listing = ToolListing(context.limits)
        self._stale = asyncio.Event()
        self._closing = asyncio.Event()
        self._link: McpLink | None = None
        self._session: ClientSession | None = None
        self.why: Fault | None = None
        self.words = ""

    @property
    def has_ended(self) -> bool:
        return self._link is not None and self._link.ended.is_set()

    def close(self) -> None:
        """Ask the task to end."""
        self._closing.set()

    async def run(self) -> None:
        """Connect, list the tools, and serve until either side ends the connection."""
        async with self._open_link() as link:
            self._link = link
            try:
                await self._serve_session(link)
            finally:
                # Read these before the link is closed: closing it determines the process's exit status.
                self.why, self.words = link.why(), link.words()

    async def ask(self, tool: str, arguments: JsonObject, progress: Progress) -> ToolOutcome:
        """Call a tool. A cancellation is sent to the server without waiting for it."""
        assert self._session is not None
        report = ProgressReports(progress)
        try:
            result = await self._session.call_tool(
                tool, arguments, progress_callback=report.report, allow_input_required=True
            )
        except MCPError as error:
            if error.code == mcp_types.CONNECTION_CLOSED:
                return self._interruption(error)
            # The SDK's message about unreadable input is long; the first line suffices.
            words = error.message.partition("\n")[0] if error.code == mcp_types.PARSE_ERROR else error.message
            return self._failure(f"answered with an error: {words}")
        except TROUBLE as error:
            return self._failure(f"gave an answer that is not as MCP wants it: {str(error).partition(chr(10))[0]}")
        finally:
            report.end()
        if isinstance(result, mcp_types.InputRequiredResult):
            wanted = ", ".join(sorted({each.method for each in (result.input_requests or {}).values()}))
            return self._failure(
                f"asks for more before it answers, which is refused here: {wanted or 'to be asked again'}"
            )
        return outcome(result, self._spec.secret)

    async def _serve_session(self, link: McpLink) -> None:
        sieve = MessageFilter(self._limits.questions)
        dispatcher = ListFilterDispatcher(
            FilteredRead(link.read, sieve),
            FilteredWrite(link.write, sieve),
            lambda page: self._listing.filter_page(page),
        )
        us = mcp_types.Implementation(name="sightline", version=version("sightline"))
        async with ClientSession(
            dispatcher=dispatcher, message_handler=self._handle_message, client_info=us
        ) as session:
            with anyio.fail_after(self._limits.start_s):
                await _handshake(session)
                await self._list(session)
            self._session = session
            self.ready.set()
            await self._keep_list_current(session, link)

    # --- the list -------------------------------------------------------------------------------------

    async def _list(self, session: ClientSession) -> None:
        self._stale.clear()
        listing = self._listing = ToolListing(self._limits)
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(self._limits.pages):
            params = mcp_types.PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await session.list_tools(params=params)
            listing.add(page.tools)
            cursor = page.next_cursor
            if not cursor or cursor in seen or listing.is_full:
                break
            seen.add(cursor)
        if cursor and not listing.is_full:
            listing.note("its list of tools has no end, and the rest of it is left out")
        self._changed(listing)

    async def _handle_message(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._stale.set()

    async def _keep_list_current(self, session: ClientSession, link: McpLink) -> None:
        """List the tools again whenever they change, but not too often, until either side ends the connection."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._refresh, session)
            if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
                group.start_soon(self._listen, session)
            with suppress(WorkInterrupted):
                await run_unless(self._closing, link.ended.wait())
            group.cancel_scope.cancel()

    async def _refresh(self, session: ClientSession) -> None:
        while True:
            await self._stale.wait()
            try:
                with anyio.fail_after(self._limits.list_s):
                    await self._list(session)
            except TROUBLE as error:
                self._listing.note(f"its list of tools has changed and cannot be read: {self._redact(str(error))}")
            await anyio.sleep(self._limits.spacing_s)

    async def _listen(self, session: ClientSession) -> None:
        """Subscribe to changes, which newer servers require; the events also arrive at `_handle_message`."""
        try:
            async with listen(session, tools_list_changed=True) as events:
                async for _ in events:
                    self._stale.set()
        except TROUBLE as error:
            self._listing.note(f"it does not tell when its tools change: {self._redact(str(error))}")

    # --- failures -------------------------------------------------------------------------------------

    def _open_link(self) -> AbstractAsyncContextManager[McpLink]:
        reached = self._spec.reached
        if isinstance(reached, CommandServer):
            return open_pipes(reached, self._context)
        return open_http_link(reached, self._context)

    def _failure(self, what: str) -> ToolOutcome:
        return text_outcome(f"The MCP server {self._spec.name!r} {self._redact(what)}", is_error=True)

    def _interruption(self, error: MCPError) -> ToolOutcome:
        fault = self._link.why() if self._link is not None else None
        words = f"it {fault.message}" if fault else error.message
        what = f"broke off while it worked: {words}"
        again = ". The next call starts it anew; what it had in memory is gone." if self.has_ended else ""
        return self._failure(f"{what}{again}")

    def _redact(self, text: str) -> str:
        return mask_values(text[:_LONGEST_WORDS], self._spec.hidden)


async def _handshake(session: ClientSession) -> None:
    """Agree on a protocol version: try the handshake of all but the newest servers, then the newer one."""
    try:
        await session.initialize()
    except MCPError as error:
        if error.code == mcp_types.CONNECTION_CLOSED:
            raise
        try:
            await session.discover()
        except TROUBLE:
            raise error from None  # the first handshake's error is more useful than that of the second try


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for each in error.exceptions for leaf in _leaves(each)]


def fault_of(error: BaseException) -> Fault:
    leaves = sorted(_leaves(error), key=lambda leaf: not isinstance(leaf, Fault | MCPError | TimeoutError))
    match error := leaves[0]:
        case Fault():
            return error
        case TimeoutError():
            return Fault(Code.TIMEOUT_IDLE, "does not answer in time", hint="Run it by hand to see what it does.")
        case MCPError():
            return Fault(Code.UPSTREAM_PROTOCOL, f"refuses to begin: {error.message}", hint="See its documentation.")
        case _:
            words = f"{type(error).__name__}: {error}"
            return Fault(Code.UPSTREAM_PROTOCOL, f"is not understood: {words}", hint="Check that it is an MCP server.")
