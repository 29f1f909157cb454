"""The tools of several MCP servers as one source of tools.

A run's toolbox is fixed when the run begins. Later changes of a server are handled here: a call of a removed tool gets
an error, and if a tool has changed, arguments are validated against its current schema.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable
from typing import Any

import msgspec

from sightline.agent.core.arguments import RefusedArguments, check_edited
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition, Toolbox, ToolOutcome, text_outcome
from sightline.agent.tools.mcp.config import McpContext, ServerConfig, ServerSpec, mask_values
from sightline.agent.tools.mcp.connection import McpConnection, fault_of
from sightline.agent.tools.mcp.listing import ToolListing
from sightline.agent.tools.tools import Progress
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.transport.waiting import wait_either
from sightline.wire.jsontext import encode


class McpServer:
    """One configured server. `fault` is why it has no tools, if it failed."""

    def __init__(self, spec: ServerSpec, context: McpContext, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.fault: Fault | None = None
        self._context, self._limits, self._changed = context, context.limits, changed
        self._listing = ToolListing(context.limits)
        self._connection: McpConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[ToolOutcome]] = set()
        self._starting = asyncio.Lock()
        self._restarts = 0
        self._is_closed = False

    @property
    def tools(self) -> dict[str, Definition]:
        """Its current tools, by the server's own names."""
        return self._listing.tools

    @property
    def notes(self) -> tuple[str, ...]:
        """Why the server has no tools, or what was left out of its list."""
        has_gone = self._task is not None and self._task.done() and not self._is_closed
        if fault := self.fault or (self._why() if has_gone else None):
            return (f"{fault.message}. {fault.hint}",)
        return tuple(f"the MCP server {self.spec.name!r}: {note}" for note in self._listing.notes)

    async def start(self) -> None:
        """Start it and list its tools. A failure is kept in `fault`."""
        self._connection = McpConnection(self.spec, self._context, self._replace_listing)
        self._task = asyncio.get_running_loop().create_task(self._connection.run())
        self._task.add_done_callback(_consume_exception)
        await self._wait_until_ready()

    async def _wait_until_ready(self) -> None:
        assert self._connection is not None
        assert self._task is not None
        await wait_either(self._task, self._connection.ready.wait())
        self.fault = None if self._connection.ready.is_set() else self._why()

    async def use(self, tool: str, arguments: JsonObject, progress: Progress) -> ToolOutcome:
        """Call a tool within the time limit."""
        connection = await self._ensure_connection()
        if isinstance(connection, Fault):
            return text_outcome(f"{connection.message}. {connection.hint}", is_error=True)
        task = asyncio.get_running_loop().create_task(connection.ask(tool, arguments, progress))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        task.add_done_callback(_consume_exception)
        try:
            # A cancelled caller does not wait until the server has received the cancellation.
            done, _ = await asyncio.wait({task}, timeout=self._limits.call_s)
        finally:
            task.cancel()
        if not done:
            text = f"The MCP server {self.spec.name!r} did not answer within {self._limits.call_s:g} seconds."
            return text_outcome(f"{text} The call was cancelled; whether it had an effect is not known.", is_error=True)
        self._restarts = 0 if not connection.has_ended else self._restarts
        return task.result()

    async def close(self) -> None:
        """End the server and its descendants."""
        self._is_closed = True
        for call in self._calls:
            call.cancel()
        if self._connection is None or self._task is None:
            return
        self._connection.close()
        if not self._connection.ready.is_set():
            self._task.cancel()  # no one waits for its handshake any more
        try:
            # It may exit on its own, then gets SIGTERM, then SIGKILL; each takes time.
            await asyncio.wait({self._task, *self._calls}, timeout=4 * self._limits.close_s)
        finally:
            self._task.cancel()
        await asyncio.wait({self._task, *self._calls}, timeout=self._limits.close_s)

    def _replace_listing(self, listing: ToolListing) -> None:
        self._listing = listing
        self._changed()

    async def _ensure_connection(self) -> McpConnection | Fault:
        """The connection. A server that has ended is restarted, up to a limit."""
        async with self._starting:
            assert self._connection is not None
            assert self._task is not None
            if self._connection.has_ended:
                await asyncio.wait({self._task})
            if not self._task.done():
                if not self._connection.ready.is_set():  # the call that started it anew was cancelled
                    await self._wait_until_ready()
                return self.fault or self._connection
            fault = self._why()
            if self._is_closed or self._restarts >= self._limits.restarts:
                return fault
            self._restarts += 1
            await self.start()
            return self.fault or self._connection

    def _why(self) -> Fault:
        """Why there is no connection. The link's fault is more precise than the SDK's error."""
        assert self._connection is not None
        assert self._task is not None
        error = None if self._task.cancelled() else self._task.exception()
        fault = None if isinstance(error, Fault) else self._connection.why
        if fault is None:
            is_closed = Fault(Code.CANCELLED, "has been ended", hint="Open the tools again.")
            fault = is_closed if error is None else fault_of(error)
        words = f"; it said: {self._connection.words}" if self._connection.words else ""
        message = mask_values(f"the MCP server {self.spec.name!r} {fault.message}{words}", self.spec.hidden)
        return Fault(fault.code, message, hint=fault.hint, status=fault.status)


def _consume_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve a task's exception, so that asyncio does not log it; it is reported where the task is awaited."""
    if not task.cancelled():
        task.exception()


LONGEST = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_HASH = 8


class ToolNames:
    """The names assigned to tools, with their servers and original names."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._taken: dict[str, tuple[str, str]] = {}

    def name_for(self, server: str, tool: str) -> str:
        """The name of a server's tool. If two tools would get the same name, the second gets a hash appended."""
        pair = (server, tool)
        if pair not in self._given:
            name = fit_name(server, tool)
            if name in self._taken:
                name = _append_hash(name, pair)
            self._given[pair] = name
            self._taken[name] = pair
        return self._given[pair]

    def tool_named(self, name: str) -> tuple[str, str] | None:
        """The server and the tool with this name; None if there is none."""
        return self._taken.get(name)


def fit_name(server: str, tool: str) -> str:
    """A name that providers accept: letters, digits, `_` and `-`, a letter or `_` first, at most 64 characters."""
    name = _FOREIGN.sub("_", f"{server}__{tool}")
    if not (name[0].isalpha() or name[0] == "_"):
        name = f"_{name}"
    return name if len(name) <= LONGEST else _append_hash(name, (server, tool))


def is_exact(server: str, tool: str) -> bool:
    """Whether the name can be used without changes."""
    return fit_name(server, tool) == f"{server}__{tool}"


def _append_hash(name: str, pair: tuple[str, str]) -> str:
    mark = hashlib.sha256("\0".join(pair).encode(errors="surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: LONGEST - _HASH - 1]}_{mark}"


class McpTools:
    """The tools of the servers that could be started. `definitions` are the tools that they currently offer.

    `changed` is set whenever `definitions` have changed. The builder of the next run's toolbox clears it; a run keeps
    the toolbox that it began with.
    """

    def __init__(self, configured: ServerConfig, context: McpContext) -> None:
        self.changed = asyncio.Event()
        self._notes = configured.notes
        self._servers = [McpServer(spec, context, self._refresh_definitions) for spec in configured.servers]
        self._names = ToolNames()
        self.definitions: tuple[Definition, ...] = ()
        self._first: dict[str, JsonObject | None] = {}
        self._has_started = False

    def __repr__(self) -> str:
        return f"the MCP servers {', '.join(server.spec.name for server in self._servers)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Which servers and tools are missing and why, and unknown keys of the configuration."""
        return (*self._notes, *(note for server in self._servers for note in server.notes))

    async def start(self) -> None:
        """Start all servers concurrently. Raises a fault if none of them can be used."""
        async with asyncio.TaskGroup() as group:
            for server in self._servers:
                group.create_task(server.start())
        self._has_started = True
        self._refresh_definitions()
        self.changed.clear()
        faults = [server.fault for server in self._servers if server.fault is not None]
        if faults and len(faults) == len(self._servers):
            more = "".join(f"; {fault.message}" for fault in faults[1:])
            raise Fault(faults[0].code, f"{faults[0].message}{more}", hint=faults[0].hint, status=faults[0].status)

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        owner, tool = self._names.tool_named(call.name) or ("", "")
        server = next((each for each in self._servers if each.spec.name == owner), None)
        definition = Toolbox(self.definitions).find(call.name)
        if server is None or definition is None or not isinstance(call.arguments, dict):
            return self._missing(call.name)
        if definition.schema != self._first.get(call.name):
            accepted = check_edited(call.arguments, definition)
            if isinstance(accepted, RefusedArguments):
                now = encode(definition.schema).decode()
                return text_outcome(f"{accepted.text}\nThe tool has changed. What it takes now: {now}", is_error=True)
        return await server.use(tool, call.arguments, progress)

    async def close(self) -> None:
        async with asyncio.TaskGroup() as group:
            for server in self._servers:
                group.create_task(server.close())

    def _refresh_definitions(self) -> None:
        """Rebuild the definitions. Tools whose names need no change get their names first, whatever the order of
        servers."""
        if not self._has_started:
            return  # servers answer in any order, and names must not depend on it
        pairs = [(server, tool) for server in self._servers for tool in server.tools.values()]
        for server, tool in sorted(pairs, key=lambda pair: not is_exact(pair[0].spec.name, pair[1].name)):
            self._names.name_for(server.spec.name, tool.name)
        now = tuple(
            msgspec.structs.replace(tool, name=self._names.name_for(server.spec.name, tool.name))
            for server, tool in pairs
        )
        for definition in now:
            self._first.setdefault(definition.name, definition.schema)
        if now != self.definitions:
            self.definitions = now
            self.changed.set()

    def _missing(self, name: str) -> ToolOutcome:
        owner, tool = self._names.tool_named(name) or ("", "")
        what = f"The MCP server {owner!r} has no tool {tool!r} any more." if owner else f"There is no tool {name!r}."
        nearest = Toolbox(self.definitions).nearest(name)
        return text_outcome(f"{what} Tools that can be called: {', '.join(nearest) or 'none'}.", is_error=True)
