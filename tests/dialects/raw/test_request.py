"""Reading a raw request, and what makes no sense in one."""

import msgspec
import pytest

from sightline.dialects.dialect import Target
from sightline.dialects.raw.request import problems, read_request, read_settings, write_request, write_settings
from sightline.errors import Code, Fault
from sightline.model.parts import (
    CacheBreakpoint,
    Document,
    Image,
    Link,
    Opaque,
    PlainText,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Addition, Loss, Report
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    Message,
    OpaqueTool,
    Options,
    Reasoning,
    Request,
    SchemaFormat,
    ToolChoice,
)
from tests.dialects.reports import losses, refused_at


def written(request, target=None):
    report = Report()
    return write_request(request, target or Target(), report), report


def messages_of(*messages):
    document, report = written(Request(model="m", messages=messages, dialect="anthropic"))
    return document["messages"], report


def test_a_bare_list_becomes_an_object_when_there_is_more_to_say():
    request = read_request([{"role": 1, "content": "hi"}])
    assert written(request)[0] == [{"role": 1, "content": "hi"}]
    body, _ = written(msgspec.structs.replace(request, model="m"))
    assert body == {"model": "m", "messages": [{"role": 1, "content": "hi"}]}


def test_a_request_that_was_composed_here_is_an_object():
    assert written(Request(messages=(Message("user"),), dialect="raw"))[0] == {"messages": [{"role": 1, "content": []}]}
    assert written(Request(dialect="raw"))[0] == {"messages": []}


def test_roles_are_numbers_and_a_developer_is_a_system():
    messages, report = messages_of(
        Message("system", (Text("a"),), bare=True),
        Message("developer", (Text("b"),), at="/messages/1"),
        Message("user", (Text("c"),), "ada"),
        Message("assistant", (Text("d"),)),
    )
    assert [(message["role"], message["content"][0]["text"]) for message in messages] == [
        (0, "a"),
        (0, "b"),
        (1, "c"),
        (2, "d"),
    ]
    assert messages[2]["name"] == "ada"
    (loss,) = report.losses
    assert (loss.pointer, loss.severity) == ("/messages/1", "identity")


def test_results_become_messages_of_their_own_in_their_order():
    results = (
        ToolResult("a", (Text("x"), Image(Link("u"))), "f"),
        ToolResult("b", (Text("y"),), is_error=True, bare=True),
    )
    messages, report = messages_of(
        Message("assistant", (ToolCall("a", "f", "{}"), ToolCall("b", "g", ""))),
        Message("user", (*results, Text("go on"))),
    )
    assert messages[0] == {
        "role": 2,
        "content": [],
        "toolCalls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    assert messages[1] == {
        "role": 3,
        "toolCallId": "a",
        "content": [{"type": 1, "text": "x"}, {"type": 0, "imageUrl": {"url": "u"}}],
        "name": "f",
    }
    assert messages[2]["content"][-1]["value"]["part"] == {"type": "tool_result", "id": "b", "is_error": True}
    assert messages[3] == {"role": 1, "content": [{"type": 1, "text": "go on"}]}
    assert report.losses == ()


def test_words_beside_results_follow_them_as_a_users():
    messages, report = messages_of(Message("tool", (Text("w"), ToolResult("a", at="/0/content/1"))))
    assert [message["role"] for message in messages] == [3, 1]
    assert losses(report) == [("/0/content/1", "content")]


def test_a_cache_mark_behind_a_result_stays_with_it():
    parts = (ToolResult("a", (Text("x"),), bare=True), CacheBreakpoint(), ToolResult("b"), Text("w"), CacheBreakpoint())
    messages, report = messages_of(Message("user", parts))
    mark = {"type": 3, "cacheType": "ephemeral"}
    assert [message["content"] for message in messages] == [
        [{"type": 1, "text": "x"}, mark],
        [],
        [{"type": 1, "text": "w"}, mark],
    ]
    assert report.losses == ()


def test_items_of_one_turn_are_one_message_and_their_ids_are_lost():
    messages, report = messages_of(
        Message("assistant", (Thinking("hm"),), id="rs_1", at="/input/0"),
        Message("assistant", (Text("w"),), id="msg_1", at="/input/1"),
    )
    assert len(messages) == 1
    assert [(loss.pointer, loss.what) for loss in report.losses] == [
        ("/input/0", "id of an item"),
        ("/input/1", "id of an item"),
    ]


def test_an_item_that_only_its_dialect_knows_stays_a_message_of_its_own():
    search = Opaque("openai-responses", {"type": "web_search_call", "id": "ws"}, at="/input/1")
    tools = Opaque("openai-responses", {"type": "additional_tools"}, mirrored=True, at="/input/4")
    messages, report = messages_of(
        Message("assistant", (Thinking("hm"),), at="/input/0"),
        Message("assistant", (search,), at="/input/1"),
        Message("assistant", (Thinking("so"),), at="/input/2"),
        Message("assistant", (Text("w"),), at="/input/3"),
        Message("system", (tools,), at="/input/4"),
    )
    assert [len(message["content"]) for message in messages] == [1, 1, 2, 1]
    again = read_request({"messages": messages}).messages
    assert [msgspec.structs.replace(again[index].parts[0], at="") for index in (1, 3)] == [
        msgspec.structs.replace(part, at="") for part in (search, tools)
    ]
    assert report.losses == ()


def test_content_after_a_call_moves_before_it_and_is_reported():
    call = ToolCall("a", "f", "{}")
    messages, report = messages_of(
        Message("assistant", (call, Text("w", at="/1"), CacheBreakpoint(at="/2"))), Message("tool", (ToolResult("a"),))
    )
    assert [part["type"] for part in messages[0]["content"]] == [1, 3]
    assert losses(report) == [("/1", "content"), ("/2", "option")]


def test_everything_else_is_carried():
    parts = (
        Document(PlainText("d")),
        Opaque("anthropic", {"a": 1}),
        Thinking("t", signature="s", signed_by="anthropic"),
    )
    messages, report = messages_of(Message("user", parts))
    assert [part["type"] for part in messages[0]["content"]] == [2, 2, 2]
    assert report.losses == ()
    again = read_request({"messages": messages}).messages[0].parts
    assert [msgspec.structs.replace(part, at="") for part in again] == list(parts)


def fault_of(document):
    with pytest.raises(Fault) as caught:
        read_request(document)
    assert caught.value.code is Code.INVALID_REQUEST
    return caught.value


def test_a_bare_list_is_a_request():
    request = read_request(
        [{"role": 0, "content": [{"type": 1, "text": "s"}]}, {"role": 1, "content": "u", "name": "n"}]
    )
    assert request.dialect == "raw"
    assert request.messages == (
        Message("system", (Text("s", at="/0/content/0"),), at="/0"),
        Message("user", (Text("u", at="/1/content"),), "n", bare=True, at="/1"),
    )


def test_an_object_names_model_and_options():
    request = read_request(
        {"model": "m", "messages": [{"role": 1, "content": []}], "requestOptions": {"temperature": 1}, "x": 1}
    )
    assert request.model == "m"
    assert request.messages[0].at == "/messages/0"
    assert request.options.temperature == 1
    assert request.extras == {"x": 1}


def test_empty_options_are_kept_although_they_say_nothing():
    assert read_request({"messages": [], "requestOptions": {}}).extras == {"requestOptions": {}}
    assert read_request({"messages": [], "requestOptions": None}).extras == {}


def test_an_assistants_calls_stand_behind_its_words():
    entry = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    (message,) = read_request([{"role": 2, "content": "w", "toolCalls": [entry], "phase": 1}]).messages
    assert message.parts == (Text("w", at="/0/content"), ToolCall("a", "f", "{}", at="/0/toolCalls/0"))
    assert message.extras == {"phase": 1}


def test_a_tool_message_is_one_result():
    document = [{"role": 3, "toolCallId": "a", "name": "f", "content": [{"type": 1, "text": "x"}], "y": 1}]
    (message,) = read_request(document).messages
    assert message.parts == (ToolResult("a", (Text("x", at="/0/content/0"),), "f", at="/0"),)
    assert message.extras == {"y": 1}


def test_a_result_gets_back_what_was_carried_beside_it():
    beyond = {"type": 2, "value": {"type": "sightline", "part": {"type": "tool_result", "id": "a", "is_error": True}}}
    (message,) = read_request([{"role": 3, "toolCallId": "a", "content": [beyond]}]).messages
    assert message.parts == (ToolResult("a", is_error=True, at="/0"),)


def test_a_result_for_another_call_in_its_place_stays_opaque():
    beyond = {"type": 2, "value": {"type": "sightline", "part": {"type": "tool_result", "id": "b", "is_error": True}}}
    (message,) = read_request([{"role": 3, "toolCallId": "a", "content": [beyond]}]).messages
    assert message.parts == (ToolResult("a", (Opaque("raw", beyond, at="/0/content/0"),), at="/0"),)


def test_fields_of_another_role_are_unknown_fields():
    (message,) = read_request([{"role": 1, "content": [], "toolCalls": [1], "toolCallId": 5}]).messages
    assert message.extras == {"toolCalls": [1], "toolCallId": 5}


def custom_history(arguments, name="patch"):
    return {
        "messages": [
            {
                "role": 2,
                "content": [],
                "toolCalls": [{"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}}],
            },
            {"role": 3, "toolCallId": "a", "content": "ok"},
        ],
        "requestOptions": {"tools": [{"type": "custom", "custom": {"name": "patch"}}]},
    }


def test_a_call_of_a_custom_tool_gets_its_free_text_back():
    call, result = (message.parts[0] for message in read_request(custom_history('{"input":"words"}')).messages)
    assert (call.kind, call.arguments, result.kind) == ("custom", "words", "custom")


@pytest.mark.parametrize(
    ("arguments", "name"), [('{"input": "spaced"}', "patch"), ("{}", "patch"), ('{"input":"w"}', "f")]
)
def test_a_call_that_cannot_be_written_back_exactly_stays_a_function(arguments, name):
    call, result = (message.parts[0] for message in read_request(custom_history(arguments, name)).messages)
    assert (call.kind, call.arguments, result.kind) == ("function", arguments, "function")


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (None, ""),
        ("text", ""),
        ({}, "/messages"),
        ({"messages": None}, "/messages"),
        ({"messages": [], "requestOptions": 5}, "/requestOptions"),
        ({"messages": [], "model": 5}, "/model"),
        ([5], "/0"),
        ([{"content": []}], "/0/role"),
        ([{"role": "user", "content": []}], "/0/role"),
        ([{"role": True, "content": []}], "/0/role"),
        ([{"role": 4, "content": []}], "/0/role"),
        ([{"role": -1, "content": []}], "/0/role"),
        ([{"role": 1}], "/0/content"),
        ([{"role": 1, "content": [], "name": 5}], "/0/name"),
        ([{"role": 3, "content": []}], "/0/toolCallId"),
        ([{"role": 3, "toolCallId": "a"}], "/0/content"),
        ({"messages": [{"role": 1, "content": [{"type": 7}]}]}, "/messages/0/content/0/type"),
    ],
)
def test_what_is_not_of_this_dialect_is_named(document, pointer):
    assert fault_of(document).pointer == pointer


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


USER = {"role": 1, "content": "hi"}
CALL = {"role": 2, "content": [], "toolCalls": [{"id": "a", "type": "function", "function": {"name": "f"}}]}
RESULT = {"role": 3, "toolCallId": "a", "content": "x"}


def pointers(document):
    return [problem.pointer for problem in problems(read_request(document))]


def test_a_conversation_is_fine():
    assert pointers([USER, CALL, RESULT, USER]) == []


def test_there_must_be_something_to_answer():
    system = {"role": 0, "content": "s"}
    assert pointers([]) == [""]
    assert pointers([system]) == [""]
    assert pointers({"messages": [system]}) == ["/messages"]


def test_calls_and_results_must_stand_together():
    assert pointers([USER, RESULT]) == ["/1"]
    assert pointers([USER, CALL]) == ["/1/toolCalls/0"]
    assert pointers([USER, CALL, USER, RESULT]) == ["/1/toolCalls/0", "/3"]


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


def test_request_without_settings_writes_none():
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
    assert refused_at(read_settings, {"stream_options": 5}) == "/requestOptions/stream_options"
