"""The tools of several MCP servers as one source of tools.

A run's toolbox is fixed when it begins. What a server changes meanwhile is met here: a tool that has gone answers so,
and one that takes other arguments than it did is held to what it takes now.
"""

import asyncio
from collections.abc import Mapping

from sightline.agent.core.arguments import RefusedArguments, check_edited
from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition, Toolbox
from sightline.agent.tools.mcp.config import Configured
from sightline.agent.tools.mcp.limits import Bounds
from sightline.agent.tools.mcp.naming import ToolNames, is_exact
from sightline.agent.tools.mcp.network import McpNetwork
from sightline.agent.tools.mcp.server import McpServer
from sightline.agent.tools.tools import Progress
from sightline.errors import Fault
from sightline.model.json import JsonObject
from sightline.wire.jsontext import encode


class McpTools:
    """The tools of the servers that could be started.

    `changed` is set whenever `definitions` are others than before. Whoever builds the toolbox of the next run looks at
    them anew and clears it; a run that has begun keeps the toolbox that it has.
    """

    def __init__(
        self, configured: Configured, bounds: Bounds, environment: Mapping[str, str], network: McpNetwork
    ) -> None:
        self.changed = asyncio.Event()
        self._notes = configured.notes
        self._servers = [McpServer(spec, bounds, environment, network, self._look) for spec in configured.servers]
        self._names = ToolNames()
        self._definitions: tuple[Definition, ...] = ()
        self._first: dict[str, JsonObject | None] = {}
        self._has_started = False

    def __repr__(self) -> str:
        return f"the MCP servers {', '.join(server.spec.name for server in self._servers)}"

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """What the servers offer now."""
        return self._definitions

    @property
    def notes(self) -> tuple[str, ...]:
        """Which servers and tools are missing, and why, and what of the configuration meant nothing."""
        return (*self._notes, *(note for server in self._servers for note in server.notes))

    async def start(self) -> None:
        """Start all servers beside each other. If none of them can be used, that is a fault."""
        async with asyncio.TaskGroup() as group:
            for server in self._servers:
                group.create_task(server.start())
        self._has_started = True
        self._look()
        self.changed.clear()
        faults = [server.fault for server in self._servers if server.fault is not None]
        if faults and len(faults) == len(self._servers):
            more = "".join(f"; {fault.message}" for fault in faults[1:])
            raise Fault(faults[0].code, f"{faults[0].message}{more}", hint=faults[0].hint, status=faults[0].status)

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        """Call a tool by the name that it was given."""
        server, tool = self._meant(call.name)
        definition = Toolbox(self._definitions).find(call.name)
        if server is None or definition is None or not isinstance(call.arguments, dict):
            return self._missing(call.name)
        if definition.schema != self._first.get(call.name):
            accepted = check_edited(call.arguments, definition)
            if isinstance(accepted, RefusedArguments):
                now = encode(definition.schema).decode()
                return text_outcome(f"{accepted.text}\nThe tool has changed. What it takes now: {now}", is_error=True)
        return await server.use(tool, call.arguments, progress)

    async def close(self) -> None:
        """End all servers."""
        async with asyncio.TaskGroup() as group:
            for server in self._servers:
                group.create_task(server.close())

    def _look(self) -> None:
        """See what is offered now. Names that need no change are given first, whichever server comes first."""
        if not self._has_started:
            return  # the servers answer in any order, and names must not depend on it
        pairs = [(server, tool) for server in self._servers for tool in server.tools.values()]
        for server, tool in sorted(pairs, key=lambda pair: not is_exact(pair[0].spec.name, pair[1].name)):
            self._names.name_for(server.spec.name, tool.name)
        now = tuple(tool.definition_as(self._names.name_for(server.spec.name, tool.name)) for server, tool in pairs)
        for definition in now:
            self._first.setdefault(definition.name, definition.schema)
        if now != self._definitions:
            self._definitions = now
            self.changed.set()

    def _meant(self, name: str) -> tuple[McpServer | None, str]:
        owner, tool = self._names.meant(name) or ("", "")
        return next((server for server in self._servers if server.spec.name == owner), None), tool

    def _missing(self, name: str) -> ToolOutcome:
        owner, tool = self._names.meant(name) or ("", "")
        what = f"The MCP server {owner!r} has no tool {tool!r} any more." if owner else f"There is no tool {name!r}."
        nearest = Toolbox(self._definitions).nearest(name)
        return text_outcome(f"{what} Tools that can be called: {', '.join(nearest) or 'none'}.", is_error=True)
