"""Tools that a model's API has by itself: the kinds that can be offered, and how each dialect says them.

`local_shell` asks the client to run a command; `web_search` is run by the provider. Whether a model has one is a fact
of the catalogue (`tool_kinds`).
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from sightline.model.json import JsonObject
from sightline.model.tools import OpaqueTool, Tool

HostedTool: TypeAlias = Literal["local_shell", "web_search"]

RESPONSES = "openai-responses"

FORMS: Mapping[HostedTool, Mapping[str, JsonObject]] = {
    "local_shell": {RESPONSES: {"type": "local_shell"}},
    "web_search": {
        RESPONSES: {"type": "web_search"},
        "anthropic": {"type": "web_search_20250305", "name": "web_search"},
        "gemini": {"googleSearch": {}},
    },
}
"""The same tool in each dialect that has it."""


def make_native_tool(kind: HostedTool) -> OpaqueTool:
    """The tool before it is known in which dialect it will be offered."""
    return OpaqueTool(RESPONSES, FORMS[kind][RESPONSES])


def native_tool_kind(tool: Tool) -> HostedTool | None:
    """Which of these tools it is, in whatever dialect; None for any other."""
    if isinstance(tool, OpaqueTool):
        for kind, forms in FORMS.items():
            if forms.get(tool.dialect) == tool.value:
                return kind
    return None
