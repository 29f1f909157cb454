import pytest

from sightline.dialects.raw.request import read_request, read_settings, write_settings
from sightline.errors import Fault
from sightline.model.options import Options, Reasoning, SchemaFormat
from sightline.model.parts import CacheBreakpoint
from sightline.model.report import Addition, Loss, Report
from sightline.model.request import Request
from sightline.model.tools import CustomTool, FunctionTool, OpaqueTool, ToolChoice

HOLDER = {
    "temperature": 0.5,
    "top_k": 3,
    "max_tokens": 7,
    "stream_options": {"include_usage": True, "more": 1},
    "reasoning_effort": "high",
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "f"}}, {"type": "web_search"}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": False,
    "model": "stray",
    "messages": ["stray"],
    "unknown": [1],
}


def test_options_and_tools_know_their_place_in_the_whole():
    read = read_settings(HOLDER)
    at = "/requestOptions"
    assert read.options.places == {
        "temperature": f"{at}/temperature",
        "top_k": f"{at}/top_k",
        "max_tokens": f"{at}/max_tokens",
        "include_usage": f"{at}/stream_options/include_usage",
        "parallel_tool_calls": f"{at}/parallel_tool_calls",
    }
    assert read.options.reasoning == Reasoning(
        effort="high", at=f"{at}/reasoning_effort", places={"effort": f"{at}/reasoning_effort"}
    )
    assert read.options.format == SchemaFormat({"type": "object"}, "n", at=f"{at}/response_format/json_schema")
    assert read.tools == (
        FunctionTool("f", at=f"{at}/tools/0"),
        OpaqueTool("openai-chat", {"type": "web_search"}, at=f"{at}/tools/1"),
    )
    assert read.tool_choice == ToolChoice("named", ("f",), at=f"{at}/tool_choice")
    assert read.parallel_tool_calls is False


def test_what_is_not_modelled_is_kept_the_names_that_belong_elsewhere_included():
    assert read_settings(HOLDER).extras == {
        "unknown": [1],
        "stream_options": {"more": 1},
        "model": "stray",
        "messages": ["stray"],
    }


def test_they_are_written_back_as_they_stood():
    request = read_request({"messages": [], "requestOptions": HOLDER})
    report = Report()
    assert write_settings(request, report, same=True) == HOLDER
    assert report.losses == report.additions == ()


def test_the_legacy_spellings_are_kept():
    holder = {"functions": [{"name": "f"}], "function_call": {"name": "f"}}
    request = read_request({"messages": [], "requestOptions": holder})
    assert write_settings(request, Report(), same=True) == holder


@pytest.mark.parametrize(
    ("holder", "pointer"),
    [
        ({"temperature": "hot"}, "/requestOptions/temperature"),
        ({"tools": [5]}, "/requestOptions/tools/0"),
        ({"response_format": {"type": "xml"}}, "/requestOptions/response_format/type"),
    ],
)
def test_a_wrong_option_is_named_at_its_place(holder, pointer):
    with pytest.raises(Fault) as caught:
        read_settings(holder)
    assert caught.value.pointer == pointer
    assert caught.value.message.startswith(pointer)


def test_nothing_asked_is_nothing_written():
    assert write_settings(Request(dialect="gemini"), Report(), same=False) == {}


def test_top_k_is_carried_and_what_chat_lacks_is_lost():
    options = Options(
        top_k=5,
        stop=("a", "b", "c", "d", "e"),
        stream=True,
        max_tokens=9,
        safety_settings=[{}],
        places={"safety_settings": "/safetySettings"},
    )
    report = Report()
    assert write_settings(Request(options=options, dialect="gemini"), report, same=False) == {
        "max_completion_tokens": 9,
        "top_k": 5,
        "stop": ["a", "b", "c", "d", "e"],
        "stream": True,
    }
    assert report.additions == ()
    assert report.losses == (Loss("/safetySettings", "safety_settings", "raw has no such option", "option"),)


def test_losses_and_additions_speak_of_raw():
    mark = CacheBreakpoint(at="/tools/0/cache_control")
    tools = (FunctionTool("f", cache=mark), CustomTool("c", at="/tools/1"))
    request = Request(tools=tools, options=Options(format=SchemaFormat({"type": "object"})), dialect="anthropic")
    report = Report()
    document = write_settings(request, report, same=False)
    assert document["tools"] == [
        {"type": "function", "function": {"name": "f"}},
        {"type": "custom", "custom": {"name": "c"}},
    ]
    assert [(loss.pointer, loss.why) for loss in report.losses] == [
        ("/tools/0/cache_control", "raw has no cache marks")
    ]
    at = "/requestOptions/response_format/json_schema/name"
    assert report.additions == (Addition(at, "name of the schema", "raw demands one", "identity"),)


def test_a_fault_of_the_whole_inner_object_is_its_own():
    with pytest.raises(Fault) as caught:
        read_settings({"stream_options": 5})
    assert caught.value.pointer == "/requestOptions/stream_options"
