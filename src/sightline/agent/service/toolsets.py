"""The configured toolsets, opened once for all runs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from sightline.agent.tools.opening import Opened
from sightline.errors import Code, Fault

ToolOpener: TypeAlias = Callable[[Sequence[str]], Awaitable[Opened]]
"""Opens the toolsets of these names. Raises a fault if one cannot be opened."""


class Toolsets:
    """`names` are those of the configuration: a caller cannot name a file or a command."""

    def __init__(self, names: Sequence[str], opening: ToolOpener) -> None:
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
        async with self._lock:
            while self._open:
                _, tools = self._open.popitem()
                await tools.close()
