from typing import Any

import pytest

from sightline.dialects.anthropic.tools import read_client_tool
from sightline.model.parts import CacheBreakpoint


@pytest.mark.parametrize(
    ("kind", "name", "argument"),
    [
        ("bash_20250124", "bash", "command"),
        ("text_editor_20250728", "str_replace_based_edit_tool", "old_str"),
        ("computer_20251124", "computer", "coordinate"),
        ("memory_20250818", "memory", "new_path"),
    ],
)
def test_a_tool_that_the_client_runs_has_a_function_of_its_own_name(kind: str, name: str, argument: str) -> None:
    tool = {"type": kind, "name": name, "cache_control": {"type": "ephemeral"}, "strict": True}
    read = read_client_tool(tool, "/tools/0")
    assert read is not None
    (function,) = read.functions
    assert (read.value, read.extras, read.kind, function.name) == (tool, {"strict": True}, "function", name)
    assert isinstance(function.cache, CacheBreakpoint)
    schema: Any = function.schema
    assert argument in schema["properties"]


def test_the_size_of_the_screen_is_told_in_words() -> None:
    tool = {"type": "computer_20250124", "name": "computer", "display_width_px": 800, "display_height_px": 600}
    read = read_client_tool({**tool, "display_number": 1}, "/tools/0")
    assert read is not None
    assert "800 by 600 pixels" in (read.functions[0].description or "")
    assert read.extras == {"display_number": 1}


@pytest.mark.parametrize(
    "tool", [{"type": "web_search_20250305", "name": "web_search"}, {"type": "bash_20250124", "name": 7}]
)
def test_other_tools_are_none_of_these(tool: dict[str, Any]) -> None:
    assert read_client_tool(tool, "") is None
