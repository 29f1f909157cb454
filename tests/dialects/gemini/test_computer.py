import pytest

from sightline.dialects.gemini.tools import read_computer
from sightline.model.json import JsonObject


@pytest.mark.parametrize("key", ["computerUse", "computer_use"])
def test_computer_use_is_the_functions_that_the_model_would_call(key: str) -> None:
    tool: JsonObject = {key: {"environment": "ENVIRONMENT_BROWSER", "excluded_predefined_functions": ["search"]}}
    read = read_computer(tool, "/tools/0")
    assert read is not None
    names = [function.name for function in read.functions]
    assert "click_at" in names
    assert "search" not in names
    assert '"ENVIRONMENT_BROWSER"' in (read.functions[0].description or "")
    assert (read.value, read.extras) == (tool, {})


def test_what_the_functions_do_not_say_is_left() -> None:
    tool: JsonObject = {"computerUse": {"excludedPredefinedFunctions": None, "new": 1}, "googleSearch": {}}
    read = read_computer(tool, "/tools/0")
    assert read is not None
    assert read.extras == {"googleSearch": {}, "computerUse": {"new": 1}}


def test_other_tools_are_not_computer_use() -> None:
    assert read_computer({"googleSearch": {}}, "") is None
    assert read_computer({"computerUse": True}, "") is None
