import pytest

from sightline.catalog.hosted_tools import FORMS, HostedTool, make_native_tool, native_tool_kind
from sightline.model.tools import FunctionTool, OpaqueTool


@pytest.mark.parametrize("kind", list(FORMS))
def test_a_tool_is_known_again_in_every_dialect(kind: HostedTool) -> None:
    assert native_tool_kind(make_native_tool(kind)) == kind
    assert all(native_tool_kind(OpaqueTool(dialect, form)) == kind for dialect, form in FORMS[kind].items())


def test_other_tools_are_none_of_these() -> None:
    assert native_tool_kind(OpaqueTool("openai-responses", {"type": "web_search", "filters": {}})) is None
    assert native_tool_kind(OpaqueTool("gemini", {"type": "web_search"})) is None
    assert native_tool_kind(FunctionTool("web_search")) is None
