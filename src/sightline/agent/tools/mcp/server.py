"""One server for as long as its tools are used: started, asked, started again when it has gone, and ended."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.tools.mcp.config import Spec
from sightline.agent.tools.mcp.connection import McpConnection, fault_of
from sightline.agent.tools.mcp.expansion import mask_values
from sightline.agent.tools.mcp.limits import Bounds
from sightline.agent.tools.mcp.listing import ListedTool, ToolListing
from sightline.agent.tools.mcp.network import McpNetwork
from sightline.agent.tools.tools import Progress
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject


class McpServer:
    """A server by its name. `tools` are those that it has now; `fault` is why it has none, if it failed."""

    def __init__(
        self,
        spec: Spec,
        bounds: Bounds,
        environment: Mapping[str, str],
        network: McpNetwork,
        changed: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.fault: Fault | None = None
        self._bounds, self._environment, self._network, self._changed = bounds, environment, network, changed
        self._listing = ToolListing(bounds)
        self._connection: McpConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[ToolOutcome]] = set()
        self._starting = asyncio.Lock()
        self._restarts = 0
        self._is_closed = False

    @property
    def tools(self) -> dict[str, ListedTool]:
        """What it offers, by its own names."""
        return self._listing.tools

    @property
    def notes(self) -> tuple[str, ...]:
        """What is missing of it."""
        has_gone = self._task is not None and self._task.done() and not self._is_closed
        if fault := self.fault or (self._why() if has_gone else None):
            return (f"{fault.message}. {fault.hint}",)
        return tuple(f"the MCP server {self.spec.name!r}: {note}" for note in self._listing.notes)

    async def start(self) -> None:
        """Start it and learn its tools. A failure is kept in `fault`."""
        self._connection = McpConnection(
            self.spec, self._bounds, self._environment, self._network, self._replace_listing
        )
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._connection.run())
        self._task.add_done_callback(_consume_exception)
        ready = loop.create_task(self._connection.ready.wait())
        try:
            await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        self.fault = None if self._connection.ready.is_set() else self._why()

    async def use(self, tool: str, arguments: JsonObject, progress: Progress) -> ToolOutcome:
        """Call a tool of it, within its time."""
        connection = await self._ensure_connection()
        if isinstance(connection, Fault):
            return text_outcome(f"{connection.message}. {connection.hint}", is_error=True)
        task = asyncio.get_running_loop().create_task(connection.ask(tool, arguments, progress))
        self._calls.add(task)
        task.add_done_callback(self._over)
        try:
            # Whoever is cancelled here does not wait for the server to hear of it.
            done, _ = await asyncio.wait({task}, timeout=self._bounds.call_s)
        finally:
            task.cancel()
        if not done:
            text = f"The MCP server {self.spec.name!r} did not answer within {self._bounds.call_s:g} seconds."
            return text_outcome(f"{text} The call was cancelled; whether it had an effect is not known.", is_error=True)
        self._restarts = 0 if not connection.has_ended else self._restarts
        return task.result()

    async def close(self) -> None:
        """End the server and everything that it started."""
        self._is_closed = True
        for call in self._calls:
            call.cancel()
        if self._connection is None or self._task is None:
            return
        self._connection.close()
        if not self._connection.ready.is_set():
            self._task.cancel()  # nobody waits for its greeting any more
        try:
            # It leaves on its own, then it is asked to, then it is made to: each takes its time.
            await asyncio.wait({self._task, *self._calls}, timeout=4 * self._bounds.close_s)
        finally:
            self._task.cancel()
        await asyncio.wait({self._task, *self._calls}, timeout=self._bounds.close_s)

    def _replace_listing(self, listing: ToolListing) -> None:
        self._listing = listing
        self._changed()

    def _over(self, task: asyncio.Task[ToolOutcome]) -> None:
        self._calls.discard(task)
        _consume_exception(task)

    async def _ensure_connection(self) -> McpConnection | Fault:
        """The connection; a server that has gone is started again, but not for ever."""
        async with self._starting:
            assert self._connection is not None
            assert self._task is not None
            if self._connection.has_ended:
                await asyncio.wait({self._task})
            if not self._task.done():
                return self._connection
            fault = self._why()
            if self._is_closed or self._restarts >= self._bounds.restarts:
                return fault
            self._restarts += 1
            await self.start()
            return self.fault or self._connection

    def _why(self) -> Fault:
        """Why there is no connection: what the way to it knows says more than what the SDK makes of it."""
        assert self._connection is not None
        assert self._task is not None
        error = None if self._task.cancelled() else self._task.exception()
        fault = None if isinstance(error, Fault) else self._connection.why
        fault = fault or (fault_of(error) if error is not None else _closed_fault())
        words = f"; it said: {self._connection.words}" if self._connection.words else ""
        message = mask_values(f"the MCP server {self.spec.name!r} {fault.message}{words}", self.spec.hidden)
        return Fault(fault.code, message, hint=fault.hint, status=fault.status)


def _consume_exception(task: asyncio.Task[Any]) -> None:
    """Its failure is told where it is asked for, which may be never."""
    if not task.cancelled():
        task.exception()


def _closed_fault() -> Fault:
    return Fault(Code.CANCELLED, "has been ended", hint="Open the tools anew.")
