"""The link to a server over pipes or HTTP, with its limits and network settings."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from sightline.agent.tools.child import Child, start_child
from sightline.agent.tools.commands import Capture, minimal
from sightline.agent.tools.mcp.config import MEGABYTE, CommandServer, ServerLimits
from sightline.errors import Code, Fault
from sightline.wire.jsontext import decode


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
        self._stray = ""
        self._trouble = ""

    def receive(self, fd: int, data: bytes) -> None:
        """Receive output of the process."""
        if fd == 2:
            self._complaints.add(data)
            return
        self._waiting.extend(self._lines.feed(data))
        if len(self._waiting) > _AHEAD and self.child is not None:
            self.child.listen(is_wanted=False)
        self._more.set()

    def over(self) -> None:
        """The process has ended."""
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
        """Why the server ended, if it has."""
        assert self.child is not None
        if self._trouble:
            hint = "Ask its tools for less, or leave the server out."
            return Fault(Code.UPSTREAM_PROTOCOL, f"was ended, because {self._trouble}", hint=hint)
        if self.child.is_alive:
            return None
        code = self.child.exit_code or 0
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return Fault(Code.UPSTREAM_ERROR, f"ended with {how}", hint="Run its command by hand to see why.")

    def words(self) -> str:
        """The last line of its stderr, or else a line of its stdout that is not a message."""
        lines = [line.strip() for line in self._complaints.text.splitlines()]
        complaint = next((line for line in reversed(lines) if line), "")
        return complaint[:_LONGEST_WORDS] or self._stray

    def _message(self, line: bytes | Overlong) -> SessionMessage | None:
        if isinstance(line, Overlong):
            return self._too_long(line)
        try:
            return SessionMessage(_parse_message(line))
        except (ValueError, Fault):
            self._stray = self._stray or line[:_LONGEST_WORDS].decode(errors="replace").strip()
            found = _ID_FIRST.match(line) if b'"result"' in line else None
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
async def open_pipes(
    command: CommandServer, bounds: ServerLimits, environment: Mapping[str, str]
) -> AsyncIterator[McpLink]:
    """Start the server. It and its descendants have ended when the context is left."""
    pipes = McpPipes(bounds)
    child = pipes.child = await _start_server(command, pipes, environment)
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
                    await _shut_down(child, bounds.close_s)
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
