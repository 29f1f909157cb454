"""Opens toolsets: those of the configuration, and those of files named on a command line."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

import msgspec

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition, ToolOutcome
from sightline.agent.tools.commands import without_variables
from sightline.agent.tools.hooks import Hook, Hooks, hooks_in
from sightline.agent.tools.mcp.config import McpContext, McpNetwork, ServerLimits, open_mcp_file
from sightline.agent.tools.python_file import PythonFile
from sightline.agent.tools.tools import Callables, CombinedTools, Progress, Tools
from sightline.errors import Code, Fault
from sightline.platform.support import require
from sightline.settings import Toolset

_LONGEST_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where tools are opened: paths are relative to `base`; tools and hooks run in `folder`.

    `secrets` are the names of the variables with providers' keys, which no tool or hook gets. `network` is how remote
    servers are reached.
    """

    base: Path
    folder: Path
    environment: Mapping[str, str]
    secrets: Collection[str] = ()
    network: McpNetwork = McpNetwork()  # noqa: RUF009 - frozen
    plugins: Mapping[str, Sequence[Callable[..., object]]] = field(default_factory=dict)
    """The functions of plug-ins, by the plug-in's name."""

    @property
    def passed_on(self) -> dict[str, str]:
        """The environment for tools and hooks that a user has written."""
        return without_variables(self.environment, self.secrets)

    def path(self, text: str) -> Path:
        """Resolve a path relative to `base`."""
        if text == "~" or text.startswith("~/"):
            return Path(self.environment.get("HOME", "~")) / text[2:]
        return self.base / text


@dataclass(frozen=True, slots=True)
class _Source:
    """One open toolset, with its configuration."""

    name: str
    toolset: Toolset
    tools: Tools
    place: str

    def __str__(self) -> str:
        return f"{self.name} ({self.tools})"

    @property
    def definitions(self) -> tuple[Definition, ...]:
        return tuple(
            msgspec.structs.replace(each, is_parallel=each.is_parallel or _fits(each.name, self.toolset.parallel))
            for each in self.tools.definitions
        )

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        return await self.tools.use(call, progress)

    async def close(self) -> None:
        await self.tools.close()


class OpenToolsets(CombinedTools):
    """Open toolsets as one source of tools. The hooks are closed with it."""

    def __init__(self, sources: Sequence[_Source], hooks: Hooks | None) -> None:
        super().__init__(sources)
        self._toolsets = sources
        self.hooks = hooks

    @property
    def rules(self) -> tuple[ApprovalRule, ...]:
        """The calls that need no approval: one rule for each allowed tool, by its full name, so that a pattern of one
        toolset does not match another's tools."""
        return tuple(
            ApprovalRule(each.name, "allow")
            for source in self._toolsets
            for each in source.definitions
            if _fits(each.name, source.toolset.allow)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be opened, and why."""
        return tuple(note for source in self._toolsets for note in getattr(source.tools, "notes", ()))

    @property
    def places(self) -> dict[str, str]:
        """Where each tool comes from, by its name: the kind of source and its full path."""
        return {each.name: source.place for source in self._toolsets for each in source.definitions}

    async def close(self) -> None:
        if self.hooks is not None:
            await self.hooks.close()
        await super().close()


async def open_toolsets(toolsets: Mapping[str, Toolset], where: ToolContext, hooks: Sequence[str] = ()) -> OpenToolsets:
    """Open toolsets. If one fails, those already opened are closed again. `hooks` are additional hook files, asked
    after those of the toolsets."""
    for name, toolset in toolsets.items():
        toolset.check(name)
    asking = _hooks([*(toolset.hooks for toolset in toolsets.values()), *hooks], where)
    async with AsyncExitStack() as stack:
        sources: list[_Source] = []
        for name, toolset in toolsets.items():
            tools = await _tools(toolset, where)
            stack.push_async_callback(tools.close)
            sources.append(_Source(name, toolset, tools, _place(toolset, where)))
        run_hooks = Hooks(asking, folder=where.folder, environment=where.passed_on) if asking else None
        opened = OpenToolsets(sources, run_hooks)
        stack.pop_all()
    return opened


ToolOpener: TypeAlias = Callable[[Sequence[str]], Awaitable[OpenToolsets]]
"""Opens the toolsets of these names. Raises a fault if one cannot be opened."""


class Toolsets:
    """The toolsets of the configuration, by their `names`: a caller cannot name a file or a command."""

    def __init__(self, names: Sequence[str], opening: ToolOpener) -> None:
        self.names = tuple(names)
        self._opening = opening
        self._open: dict[tuple[str, ...], OpenToolsets] = {}
        self._lock = asyncio.Lock()

    async def open_toolsets(self, wanted: Sequence[str]) -> OpenToolsets:
        """The tools of these toolsets together. A toolset that cannot be opened is tried again next time."""
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


async def _tools(toolset: Toolset, where: ToolContext) -> Tools:
    if toolset.python:
        file = where.path(toolset.python)
        tools = PythonFile(file, folder=where.folder, environment=where.passed_on, timeout=toolset.timeout_s)
        await tools.load()
        return tools
    if toolset.mcp:
        limits = ServerLimits(call_s=toolset.timeout_s)
        return await open_mcp_file(where.path(toolset.mcp), McpContext(where.environment, limits, where.network))
    if toolset.plugin:
        if not where.plugins.get(toolset.plugin):
            hint = "Name its file or package in `use` of [plugins]; `sightline plugin list` shows what is loaded."
            raise Fault(Code.CONFIG, f"no plug-in {toolset.plugin!r} with tools is loaded", hint=hint)
        return Callables(where.plugins[toolset.plugin], timeout=toolset.timeout_s)
    require("built-in tools")
    from sightline.agent.tools.builtin.builtin import OFFERED_BY_DEFAULT, Builtin

    folder = where.path(toolset.folder)
    names = toolset.builtin or OFFERED_BY_DEFAULT
    return Builtin(folder, names, environment=where.environment, timeout=toolset.timeout_s)


def _place(toolset: Toolset, where: ToolContext) -> str:
    if toolset.plugin:
        return f"plugin {toolset.plugin}"
    kind = "python" if toolset.python else "mcp" if toolset.mcp else "folder"
    return f"{kind} {where.path(toolset.python or toolset.mcp or toolset.folder).resolve()}"


def _hooks(files: Sequence[str], where: ToolContext) -> tuple[Hook, ...]:
    """The hooks of all toolsets; a file named twice is read once."""
    paths = dict.fromkeys(where.path(file) for file in files if file)
    return tuple(hook for path in paths for hook in hooks_in(_read(path), str(path)))


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened_file:
            data = opened_file.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise Fault(Code.CONFIG, f"{file}: {error.strerror}", hint="Check the path under `hooks`.") from None
    if len(data) > _LONGEST_FILE:
        raise Fault(Code.CONFIG, f"{file}: too long for a file of hooks", hint="Check that it is the right file.")
    return data


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
