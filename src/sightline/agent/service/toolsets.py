"""The configured toolsets, opened once for all runs, and the tools that the chat or evals give to a run."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.tools.hooks import Hooks
from sightline.agent.tools.opening import Opened
from sightline.agent.tools.tools import Tools
from sightline.errors import Code, Fault

Opening: TypeAlias = Callable[[Sequence[str]], Awaitable[Opened]]
"""Opens the toolsets of these names."""


class Toolsets:
    """`names` are those of the configuration: a caller cannot name a file or a command."""

    def __init__(self, names: Sequence[str], opening: Opening) -> None:
        self.names = tuple(names)
        self._opening = opening
        self._open: dict[tuple[str, ...], Opened] = {}
        self._lock = asyncio.Lock()

    async def open_toolsets(self, wanted: Sequence[str]) -> Opened:
        """The tools of these toolsets together; one that cannot be opened is tried again the next time."""
        unknown = sorted(set(wanted) - set(self.names))
        if unknown:
            known = f"Configured are: {', '.join(self.names)}." if self.names else "Configure them as [tools.NAME]."
            raise Fault(Code.CONFIG, f"there are no tools named {', '.join(unknown)}", hint=known)
        key = tuple(sorted(set(wanted)))
        async with self._lock:
            if key not in self._open:
                self._open[key] = await self._opening(key)
            return self._open[key]

    async def close(self) -> None:
        """End everything that was started for them."""
        async with self._lock:
            while self._open:
                _, tools = self._open.popitem()
                await tools.close()


class RunTools(Tools, Protocol):
    """Open tools with their configured approval rules and hooks."""

    @property
    def rules(self) -> tuple[ApprovalRule, ...]:
        """The calls that need no approval."""

    @property
    def places(self) -> Mapping[str, str]:
        """Where each tool comes from, by its name."""

    @property
    def hooks(self) -> Hooks | None:
        """The hooks of the run."""


ToolOpener: TypeAlias = Callable[[tuple[str, ...]], Awaitable[RunTools]]
"""Opens the toolsets of these names; the opener closes them. Raises a fault if one cannot be opened."""
