"""What fills the context of a session: its latest request, by kind of content, by tool and by MCP server."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from sightline.editing.section import Kind, Section, SectionPart, is_added
from sightline.exchange.interception.viewer import Viewer
from sightline.workbench.session_lines import SessionLines

NAMES: Final = {
    "system": "System prompt",
    "developer": "System prompt",
    "tools": "Tools",
    "context": "Added by the client",
    "user": "User",
    "history": "Earlier conversation",
    "assistant": "Assistant",
    "thinking": "Reasoning",
    "tool_call": "Tool calls",
    "tool_result": "Tool results",
    "options": "Options",
    "other": "Other",
}
"""The label of each kind of section; several kinds may share one."""
_MCP, _MCP_OF_GEMINI = "mcp__", "mcp_"
_OPENCODE_TOOLS: Final = frozenset({"apply_patch", "plan_enter", "plan_exit"})
"""The tools of opencode itself whose names look like those of an MCP server."""


class ContextRow(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of one kind, in `count` sections or tools. `server` is the MCP server of a tool, if it has one;
    `results` are the tokens that the results of this tool take."""

    name: str
    tokens: int
    count: int = 1
    server: str = ""
    results: int = 0


class ContextShown(msgspec.Struct, frozen=True, kw_only=True):
    """The latest request of a session. `tokens` is the estimated or known size of its prompt, between `low` and `high`;
    `counted` is the provider's own count. `free` is what would still fit next to the reserve for the reply."""

    exchange: str
    session: str
    client: str
    model: str
    tokens: int
    low: int
    high: int
    counted: int | None
    cached: int | None
    window: int | None
    reserve: int | None
    free: int | None
    kinds: tuple[ContextRow, ...]
    tools: tuple[ContextRow, ...]
    servers: tuple[ContextRow, ...]


async def measure_context(viewer: Viewer, now: Callable[[], float], session: str) -> ContextShown:
    """Measure what fills the context of a session now, by its latest request in the record; without a session, by the
    latest request of any. Raises a Fault if the session has no recorded request."""
    summary = await SessionLines(viewer.records, now).latest_turn(session)
    recorded = await viewer.records.read(summary.id)
    state = await viewer.view_recorded(recorded, recorded.spoken)
    budget, sections = state.budget, state.sections
    assert budget is not None, "a recorded request has a budget"
    whole, window = budget.estimate, budget.window
    free = None if window is None else max(0, window - (budget.reserve or 0) - whole.tokens)
    tools = _tools(sections, summary.client)
    return ContextShown(
        exchange=summary.id,
        session=summary.session,
        client=summary.client,
        model=recorded.model,
        tokens=whole.tokens,
        low=whole.low,
        high=whole.high,
        counted=None if summary.is_estimated else summary.input_tokens,
        cached=summary.cached_tokens,
        window=window,
        reserve=budget.reserve,
        free=free,
        kinds=_kinds(sections),
        tools=tools,
        servers=_servers(tools),
    )


def share_by_parts(section: Section) -> Iterator[tuple[SectionPart | None, Kind, int]]:
    """Each part of a section with the kind that it counts as and its share of the section's tokens, by the length of
    its text. Tool results count as such and reminders as added by the client, even in a message whose rest the user
    wrote."""
    whole = 0 if section.tokens is None else section.tokens.tokens
    parts = [part for part in section.parts if not part.deleted]
    if not parts:
        yield None, section.kind, whole
        return
    length, taken, shared = sum(max(1, len(part.text)) for part in parts), 0, 0
    for part in parts:
        taken += max(1, len(part.text))
        share = whole * taken // length - shared  # the shares add up to the whole
        shared += share
        kind = section.kind
        if part.type == "tool_result":
            kind = "tool_result"
        elif kind in ("user", "tool_result") and part.type == "text":
            kind = "context" if is_added(part.text) else "user"
        elif kind == "assistant" and part.type in ("tool_call", "thinking"):
            kind = "tool_call" if part.type == "tool_call" else "thinking"
        yield part, kind, share


def _kinds(sections: Iterable[Section]) -> tuple[ContextRow, ...]:
    sums: dict[str, list[int]] = {}
    for section in sections:
        if section.tokens is None or section.deleted:
            continue
        names = set()
        for _, kind, tokens in share_by_parts(section):
            entry = sums.setdefault(NAMES[kind], [0, 0])
            entry[0] += tokens
            entry[1] += kind == "tools" or NAMES[kind] not in names
            names.add(NAMES[kind])
    rows = (ContextRow(name=name, tokens=tokens, count=count) for name, (tokens, count) in sums.items())
    return tuple(sorted(rows, key=lambda row: -row.tokens))


def _tools(sections: tuple[Section, ...], client: str) -> tuple[ContextRow, ...]:
    """The tools with their share of the tokens of all tools, by the length of their text, and the tokens of their
    results."""
    results: dict[str, int] = {}
    for section in sections:
        if section.deleted:
            continue
        names = {answered.call_id: answered.name for answered in section.answers}
        for part, kind, tokens in share_by_parts(section):
            if kind == "tool_result":  # a section without parts is one result
                name = next(iter(names.values()), "") if part is None else names.get(part.call_id, part.name)
                results[name] = results.get(name, 0) + tokens
    rows = []
    for section in sections:
        if section.kind != "tools" or section.tokens is None:
            continue
        length = sum(len(part.text) for part in section.parts) or 1
        for part in section.parts:
            share = round(section.tokens.tokens * len(part.text) / length)
            server, read = server_of(part.name, client), results.get(part.name, 0)
            rows.append(ContextRow(name=part.name, tokens=share, server=server, results=read))
    return tuple(sorted(rows, key=lambda row: (-row.tokens - row.results, row.name)))


def server_of(tool: str, client: str = "") -> str:
    """The MCP server of a tool, according to how agents name tools; empty for any other tool. Claude Code and Codex use
    `mcp__SERVER__TOOL`, Gemini CLI `mcp_SERVER_TOOL`, and opencode `SERVER_TOOL`, which is recognised by the
    `client`."""
    if tool.startswith(_MCP):
        return tool.removeprefix(_MCP).partition("__")[0]
    if tool.startswith(_MCP_OF_GEMINI):
        return tool.removeprefix(_MCP_OF_GEMINI).partition("_")[0]
    is_foreign = client.startswith("opencode") and "_" in tool and tool not in _OPENCODE_TOOLS
    return tool.partition("_")[0] if is_foreign else ""


def _servers(tools: tuple[ContextRow, ...]) -> tuple[ContextRow, ...]:
    sums: dict[str, list[int]] = {}
    for tool in tools:
        if tool.server:
            entry = sums.setdefault(tool.server, [0, 0, 0])
            entry[0] += tool.tokens
            entry[1] += 1
            entry[2] += tool.results
    rows = [ContextRow(name=name, tokens=sum_[0], count=sum_[1], results=sum_[2]) for name, sum_ in sums.items()]
    return tuple(sorted(rows, key=lambda row: -row.tokens))
