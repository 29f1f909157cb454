import pytest

from sightline.catalog.hosted_tools import FORMS, HostedTool, hosted_kind, hosted_tool
from sightline.model.tools import FunctionTool, OpaqueTool


@pytest.mark.parametrize("kind", list(FORMS))
def test_a_tool_is_known_again_in_every_dialect(kind: HostedTool) -> None:
    assert hosted_kind(hosted_tool(kind)) == kind
    assert all(hosted_kind(OpaqueTool(dialect, form)) == kind for dialect, form in FORMS[kind].items())


def test_other_tools_are_none_of_these() -> None:
    assert hosted_kind(OpaqueTool("openai-responses", {"type": "web_search", "filters": {}})) is None
    assert hosted_kind(OpaqueTool("gemini", {"type": "web_search"})) is None
    assert hosted_kind(FunctionTool("web_search")) is None
