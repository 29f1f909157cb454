"""The interface of tool sources, and several sources combined."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition, Toolbox, ToolOutcome, text_outcome
from sightline.errors import Code, Fault

TIMEOUT = 60.0
"""Seconds that one call may take, unless its toolset says otherwise."""

Progress: TypeAlias = Callable[[str], None]
"""Receives progress messages for a person."""


class Tools(Protocol):
    """A source of tools. A tool's failure is an outcome with `is_error`, never an exception."""

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The tools' definitions, for the toolbox of a run."""

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        """Run a call that the agent loop has accepted. Cancelling the task ends what runs."""

    async def close(self) -> None:
        """End everything that was started. May be called twice."""


def together(sources: Sequence[Tools]) -> Tools:
    """Combine sources into one. Raises a fault if two have a tool of the same name."""
    owners: dict[str, int] = {}
    for index, source in enumerate(sources):
        for definition in source.definitions:
            first = owners.setdefault(definition.name, index)
            if first != index:
                message = f"two tools are named {definition.name!r}: one in {sources[first]}, one in {source}"
                raise Fault(Code.CONFIG, message, hint="Rename one of them, or leave one of the two sources out.")
    return _CombinedTools(tuple(sources))


def unknown(name: str, definitions: tuple[Definition, ...]) -> ToolOutcome:
    """The outcome of a call of an unknown tool."""
    nearest = Toolbox(definitions).nearest(name)
    instead = f" Tools that can be called: {', '.join(nearest)}." if nearest else ""
    return text_outcome(f"The tool {name!r} does not exist.{instead}", is_error=True)


class _CombinedTools:
    """Several sources as one. Definitions are read each time because a server's tools can change."""

    def __init__(self, sources: tuple[Tools, ...]) -> None:
        self._sources = sources

    @property
    def definitions(self) -> tuple[Definition, ...]:
        return tuple(definition for source in self._sources for definition in source.definitions)

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        for source in self._sources:
            if any(definition.name == call.name for definition in source.definitions):
                return await source.use(call, progress)
        return unknown(call.name, self.definitions)

    async def close(self) -> None:
        # Close them concurrently, so that a slow one does not delay the others.
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                group.create_task(source.close())
