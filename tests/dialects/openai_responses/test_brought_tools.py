from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.openai_responses.request_write import Brought
from sightline.model.message import Message
from sightline.model.parts import Opaque, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.model.tools import CustomTool, FunctionTool, Grammar, OpaqueTool, ToolChoice
from tests.dialects.openai_responses.cases import losses, write

SCHEMA = {"type": "object", "properties": {}}
SEARCH = {"type": "web_search"}
ITEM = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [
        {
            "type": "namespace",
            "name": "ns",
            "description": "A space.",
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}],
        },
        {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        SEARCH,
    ],
}
HELD = Message("system", (Opaque(NAME, ITEM, mirrored=True, at="/messages/0/content/0"),))
FLAT = (
    FunctionTool("g", schema=SCHEMA, strict=False),
    FunctionTool("ns__f", schema=SCHEMA, strict=True),
    CustomTool("c", grammar=Grammar("lark", "x")),
    OpaqueTool(NAME, SEARCH),
)


def test_the_item_comes_back_and_its_tools_are_not_written_again():
    report = Report()
    request = Request(
        model="m",
        messages=(
            HELD,
            Message("assistant", (ToolCall("1", "ns__f", "{}"), ToolCall("2", "g", "{}"))),
            Message("tool", (ToolResult("1", (Text("r"),)), ToolResult("2", (Text("r"),)))),
        ),
        tools=FLAT,
        tool_choice=ToolChoice("named", ("ns__f",)),
        dialect="raw",
    )
    body = write(request, report)
    assert body["input"][0] == ITEM
    assert [tool["name"] for tool in body["tools"]] == ["g"]
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert [(item["name"], item.get("namespace")) for item in body["input"][1:3]] == [("f", "ns"), ("g", None)]
    assert not report.losses


def test_an_item_is_enough_to_choose_from():
    request = Request(messages=(HELD,), tool_choice=ToolChoice("required"), dialect="raw")
    assert write(request)["tool_choice"] == "required"


def test_each_tool_of_the_item_stands_for_one_of_the_request():
    twice = (FunctionTool("ns__f", "mine", at="/0"), FunctionTool("ns__f", schema=SCHEMA, strict=True, at="/1"))
    report = Report()
    assert Brought((HELD,)).others(twice, report) == [twice[0]]
    assert not report.losses


def test_a_tool_that_is_not_what_its_item_says_is_a_loss():
    report = Report()
    changed = (FunctionTool("ns__f", "changed", at="/0"), CustomTool("c", "changed", at="/1"), FunctionTool("x"))
    assert Brought((HELD,)).others(changed, report) == [changed[2]]
    assert losses(report) == [("/1", "definition of a tool", "option"), ("/0", "definition of a tool", "option")]


def test_other_parts_bring_nothing():
    others = (Opaque("gemini", ITEM), Opaque(NAME, "odd"), Opaque(NAME, {"type": "compaction"}), Text("a"))
    brought = Brought((Message("user", others),))
    assert brought.others(FLAT, Report()) == list(FLAT)
    assert brought.spaces == {}
