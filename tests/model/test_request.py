import msgspec

from sightline.model.message import Message
from sightline.model.options import Options, Reasoning, SchemaFormat
from sightline.model.parts import CacheBreakpoint, Text
from sightline.model.request import Request
from sightline.model.tools import CustomTool, FunctionTool, Grammar, OpaqueTool, ToolChoice

REQUEST = Request(
    model="m",
    messages=(Message("developer", (Text("be kind"),), "ann", bare=True, at="/messages/0"),),
    tools=(
        FunctionTool("add", "adds", {"type": "object"}, strict=True, cache=CacheBreakpoint()),
        CustomTool("patch", grammar=Grammar("lark", "start: /x/")),
        OpaqueTool("gemini", {"googleSearch": {}}),
    ),
    tool_choice=ToolChoice("auto", ("add",)),
    parallel_tool_calls=False,
    options=Options(
        temperature=0.5,
        stop=("END",),
        format=SchemaFormat({"type": "object"}, "answer"),
        reasoning=Reasoning(effort="high", places={"effort": "/reasoning_effort"}),
        places={"stop": "/stop"},
    ),
    dialect="openai-chat",
    extras={"unknown": [1, None]},
)


def test_a_request_comes_back_as_it_was() -> None:
    assert msgspec.json.decode(msgspec.json.encode(REQUEST), type=Request) == REQUEST


def test_some_dialects_say_elsewhere_whether_calls_may_be_parallel() -> None:
    assert REQUEST.parallel_at == "/parallel_tool_calls"
    inside = Request(options=Options(places={"parallel_tool_calls": "/tool_choice/disable_parallel_tool_use"}))
    assert inside.parallel_at == "/tool_choice/disable_parallel_tool_use"


def test_an_empty_request_says_nothing() -> None:
    assert msgspec.json.encode(Request()) == b"{}"
