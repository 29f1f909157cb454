from typing import Any

from sightline.dialects.dialect import Target
from sightline.dialects.gemini import problems
from sightline.dialects.gemini.request import read_request, write_request
from sightline.model.message import Message
from sightline.model.options import Options
from sightline.model.parts import Opaque, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.model.tools import FunctionTool, ToolChoice


def write(request, **target):
    report = Report()
    body = write_request(request, Target(**target), report)
    return body, [(loss.pointer, loss.what, loss.severity) for loss in report.losses]


def test_leading_instructions_become_the_system_instruction():
    request = Request(
        model="m",
        messages=(
            Message("system", (Text("a"),), at="/0"),
            Message("developer", (Text("b"), Text("", at="/1/t")), at="/1"),
            Message("user", (Text("c"),)),
            Message("user", ()),
        ),
        dialect="openai-chat",
    )
    assert write(request) == (
        {
            "systemInstruction": {"parts": [{"text": "a"}, {"text": "b"}]},
            "contents": [{"role": "user", "parts": [{"text": "c"}]}],
        },
        [
            ("/1", "role developer", "identity"),
            ("/1/t", "an empty text", "identity"),
            ("", "a message without content", "identity"),
        ],
    )


def test_the_policy_decides_about_later_instructions():
    request = Request(messages=(Message("user", (Text("a"),)), Message("system", (Text("b"),), at="/1")))
    assert write(request)[0] == {
        "contents": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "b"}]}]
    }
    body, lost = write(request, system="merge_all")
    assert body == {
        "systemInstruction": {"parts": [{"text": "b"}]},
        "contents": [{"role": "user", "parts": [{"text": "a"}]}],
    }
    assert lost == [("/1", "place of a system message", "option")]


def test_the_items_of_one_turn_are_one_content():
    request = Request(
        messages=(
            Message("user", (Text("a"),)),
            Message("assistant", (Thinking("t"),)),
            Message("assistant", (ToolCall("1", "f", "{}"),)),
            Message("assistant", (ToolCall("2", "g", "{}"),)),
            Message("tool", (ToolResult("1", (Text("x"),)),)),
            Message("tool", (ToolResult("2", (Text("y"),)),)),
        ),
        dialect="openai-responses",
    )
    contents = write(request)[0]["contents"]
    assert [(content["role"], len(content["parts"])) for content in contents] == [
        ("user", 1),
        ("model", 3),
        ("user", 2),
    ]
    assert contents[2]["parts"][1] == {"functionResponse": {"id": "2", "name": "g", "response": {"output": "y"}}}


def test_tools_choice_and_options_have_their_places():
    request = Request(
        messages=(Message("user", (Text("a"),)),),
        tools=(FunctionTool("f"),),
        tool_choice=ToolChoice("required"),
        parallel_tool_calls=False,
        options=Options(seed=1),
        extras={"x": 1},
    )
    assert write(request) == (
        {
            "contents": [{"role": "user", "parts": [{"text": "a"}]}],
            "tools": [{"functionDeclarations": [{"name": "f"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
            "generationConfig": {"seed": 1},
        },
        [("/parallel_tool_calls", "one call at a time", "option")],
    )
    assert write(Request(messages=request.messages, parallel_tool_calls=True))[1] == []


def test_the_model_is_written_only_where_the_body_named_it():
    document: Any = {"model": "models/a", "contents": []}
    assert write(read_request(document))[0] == document
    assert write(Request(model="a", dialect="gemini"))[0] == {"contents": []}


def test_names_and_ids_of_messages_are_lost_even_where_items_join():
    request = Request(
        messages=(
            Message("user", (Text("a"),), name="Ann", at="/0"),
            Message("assistant", (Thinking("t"),), at="/1"),
            Message("assistant", (Text("b"),), id="msg_1", at="/2"),
        )
    )
    body, lost = write(request)
    assert len(body["contents"]) == 2
    assert lost == [("/0", "name of the speaker", "option"), ("/2", "id of the message", "identity")]


def test_the_flag_against_parallel_calls_is_named_where_it_stood():
    place = {"parallel_tool_calls": "/tool_choice/disable_parallel_tool_use"}
    for tools, severity in (((), "identity"), ((FunctionTool("f"),), "option")):
        request = Request(tools=tools, parallel_tool_calls=False, options=Options(places=place), dialect="anthropic")
        assert write(request)[1][1:] == [("/tool_choice/disable_parallel_tool_use", "one call at a time", severity)]


def test_what_stands_elsewhere_too_is_no_loss():
    mirror = Opaque("openai-responses", {}, mirrored=True, at="/input/0")
    messages = (Message("developer", (mirror,), at="/input/0"), Message("user", (Text("a"),)))
    assert write(Request(messages=messages, dialect="openai-responses")) == (
        {"contents": [{"role": "user", "parts": [{"text": "a"}]}]},
        [],
    )


def test_where_only_the_system_speaks_its_last_message_is_the_users():
    messages = (
        Message("system", (Text("a"),)),
        Message("system", (Text("b"),), at="/messages/1"),
        Message("user", (Text("", at="/c"),)),
    )
    assert write(Request(messages=messages, dialect="openai-chat")) == (
        {"systemInstruction": {"parts": [{"text": "a"}]}, "contents": [{"role": "user", "parts": [{"text": "b"}]}]},
        [
            ("/c", "an empty text", "identity"),
            ("", "a message without content", "identity"),
            ("/messages/1", "role of a system message", "content"),
        ],
    )


def test_where_nothing_is_left_to_answer_it_is_a_loss_and_the_rules_say_so():
    body, lost = write(Request(messages=(Message("user", (Text(""),), at="/messages/0"),), dialect="openai-chat"))
    assert lost[-1] == ("/messages/0", "every message", "content")
    assert write(Request(dialect="openai-chat"))[1] == [("", "every message", "content")]
    assert body == {"contents": []}
    assert "/contents" in [problem.pointer for problem in problems(read_request(body))]
