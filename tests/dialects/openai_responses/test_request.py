import pytest

from sightline.dialects.dialect import Target
from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.signatures import NEXT
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Citation,
    Image,
    Link,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report
from sightline.model.request import Message, Request
from tests.dialects.openai_responses.cases import read, write
from tests.dialects.reports import named_losses, refused_at


def foreign(*messages, policy="in_place"):
    report = Report()
    request = Request(model="m", messages=messages, dialect="anthropic")
    return write(request, report, Target(system=policy)), report


def user(*parts, **fields):
    return Message("user", parts, at="/messages/0", **fields)


def assistant(*parts, **fields):
    return Message("assistant", parts, at="/messages/1", **fields)


def test_a_first_system_message_becomes_instructions():
    body, report = foreign(Message("system", (Text("Be brief."),), bare=True), user(Text("Hi"), bare=True))
    assert body == {
        "model": "m",
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": "Hi"}],
    }
    assert not report.losses
    assert not report.additions


@pytest.mark.parametrize(
    "first",
    [
        Message("developer", (Text("a"),)),
        Message("system", (Text("a"), Text("b"))),
        Message("system", (Text("a"), CacheBreakpoint())),
        Message("system", (Text("a"),), name="n"),
    ],
)
def test_any_other_stays_where_it_is(first):
    body, _ = foreign(first, user(Text("x")))
    assert "instructions" not in body
    assert [item["role"] for item in body["input"]] == [first.role, "user"]


def test_a_system_message_in_the_middle_keeps_its_place_and_role():
    body, report = foreign(user(Text("x")), Message("system", (Text("now"),)), Message("developer", (Text("y"),)))
    assert [item["role"] for item in body["input"]] == ["user", "system", "developer"]
    assert not report.losses


def test_a_turn_becomes_items_in_its_order():
    body, report = foreign(
        assistant(
            Text("One."),
            ToolCall("c1", "f", ""),
            ToolCall("c2", "g", "raw", "custom"),
            Text("Two."),
            ToolCall("c3", "h", '{"a": 1}', namespace="ns"),
        ),
        user(
            ToolResult("c1", (Text("r"),)), ToolResult("c2", ()), ToolResult("c3", (Text("r"), Text("s"))), Text("Go.")
        ),
    )
    said = {"type": "message", "role": "assistant"}
    assert body["input"] == [
        {**said, "content": [{"type": "output_text", "text": "One.", "annotations": []}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "raw"},
        {**said, "content": [{"type": "output_text", "text": "Two.", "annotations": []}]},
        {"type": "function_call", "call_id": "c3", "namespace": "ns", "name": "h", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "r"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": ""},
        {
            "type": "function_call_output",
            "call_id": "c3",
            "output": [{"type": "input_text", "text": "r"}, {"type": "input_text", "text": "s"}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
    ]
    assert not report.losses


def test_a_result_may_hold_a_picture_and_a_json_object():
    body, report = foreign(
        assistant(ToolCall("c", "f", "{}"), ToolCall("d", "f", "{}")),
        user(ToolResult("c", (Text("see"), Image(Link("u")))), ToolResult("d", structured={"a": 1})),
    )
    assert [item.get("output") for item in body["input"]][2:] == [
        [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "u"}],
        '{"a":1}',
    ]
    assert not report.losses


def test_a_result_is_of_the_kind_of_the_last_call_before_it_that_has_its_id():
    body, report = foreign(
        assistant(ToolCall("c", "f", "raw", "custom")),
        user(ToolResult("c", (Text("r"),), "f", at="/1")),
        assistant(ToolCall("c", "g", "{}")),
        user(ToolResult("c", (Text("r"),), "f", at="/2")),
    )
    assert [item["type"] for item in body["input"]] == [
        "custom_tool_call",
        "custom_tool_call_output",
        "function_call",
        "function_call_output",
    ]
    assert named_losses(report) == [("/2", "name of the tool in its result", "identity")]


def test_a_result_says_no_more_than_the_api_can_hear():
    result = ToolResult("c", (Text("r"),), "other", is_error=True, item="x", at="/r")
    body, report = foreign(
        assistant(ToolCall("c", "f", "{}", item="y", signature="s", signed_by="gemini", at="/c")), user(result)
    )
    assert [sorted(item) for item in body["input"]] == [
        ["arguments", "call_id", "name", "type"],
        ["call_id", "output", "type"],
    ]
    assert named_losses(report) == [
        ("/c", "signature", "identity"),
        ("/c", "id of an item", "identity"),
        ("/r", "error flag of a tool result", "option"),
        ("/r", "name of the tool in its result", "identity"),
        ("/r", "id of an item", "identity"),
    ]


def test_an_id_that_is_too_long_is_shortened_the_same_way_in_call_and_result():
    long = "toolu_" + "x" * 80
    body, report = foreign(assistant(ToolCall(long, "f", "{}", at="/c")), user(ToolResult(long, (Text("r"),), at="/r")))
    first, second = (item["call_id"] for item in body["input"])
    assert first == second
    assert len(first) <= 64
    assert [pointer for pointer, _, _ in named_losses(report)] == ["/c", "/r"]


def test_reasoning_goes_back_only_to_its_maker():
    body, report = foreign(
        assistant(
            Thinking("mine", id="rs_1", signature="enc", signed_by=NAME),
            Thinking("mine by id", id="rs_2", signed_by=NAME),
            Thinking("unsigned", at="/u"),
            Thinking("theirs", signature="sig", signed_by="anthropic", at="/t"),
            Thinking(id=NEXT, signature="sig", signed_by=NAME, at="/n"),
            Thinking("nothing to know it by", signed_by=NAME, at="/k"),
        )
    )
    assert body["input"] == [
        {
            "type": "reasoning",
            "id": "rs_1",
            "encrypted_content": "enc",
            "summary": [{"type": "summary_text", "text": "mine"}],
        },
        {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "mine by id"}]},
    ]
    assert named_losses(report) == [
        ("/u", "reasoning", "content"),
        ("/t", "signature", "identity"),
        ("/t", "reasoning", "content"),
        ("/n", "signature", "identity"),
        ("/k", "reasoning", "content"),
    ]


def test_what_a_message_has_besides_is_a_loss():
    body, report = foreign(user(Text("a"), CacheBreakpoint(at="/cc"), Text("b"), name="Ann", id="m1"))
    assert len(body["input"][0]["content"]) == 2
    assert named_losses(report) == [
        ("/cc", "cache mark", "option"),
        ("/messages/0", "name of a speaker", "option"),
        ("/messages/0", "id of an item", "identity"),
    ]


def test_a_message_of_which_nothing_is_left_is_not_written():
    body, report = foreign(user(Opaque("anthropic", {}, at="/o")), assistant())
    assert body["input"] == []
    assert named_losses(report) == [
        ("/o", "opaque part of anthropic", "content"),
        ("/messages/1", "an empty message", "identity"),
    ]


def test_a_result_of_which_nothing_is_left_is_empty():
    body, report = foreign(assistant(ToolCall("c", "f", "{}")), user(ToolResult("c", (Audio(at="/a"),))))
    assert body["input"][1]["output"] == ""
    assert named_losses(report) == [("/a", "audio", "content")]


def test_words_of_a_tool_that_answer_nothing_are_the_users():
    body, report = foreign(Message("tool", (Text("x"),), at="/m"))
    assert body["input"][0]["role"] == "user"
    assert named_losses(report) == [("/m", "role of a message", "content")]


def test_a_bare_text_with_a_citation_keeps_it():
    cited = Text("a", (Citation(url="u", start=0, end=1),))
    body, _ = foreign(assistant(cited, bare=True), assistant(Text("b"), bare=True))
    assert body["input"][0]["content"][0]["annotations"][0]["url"] == "u"
    assert body["input"][1]["content"] == "b"


@pytest.mark.parametrize(
    "kind",
    [
        *("item_reference", "compaction", "mcp_call", "mcp_list_tools", "mcp_approval_response", "tool_search_output"),
        *("shell_call", "shell_call_output", "reasoning", "program", "compaction_trigger", "additional_tools"),
    ],
)
def test_an_item_of_ours_is_an_item_again_whatever_held_it(kind):
    item = {"type": kind, "id": "i"}
    body, report = foreign(user(Text("a"), Opaque(NAME, item, at="/messages/0/content/1"), Text("b")))
    first, second, third = body["input"]
    assert second == item
    assert (first["content"][0]["text"], third["content"][0]["text"]) == ("a", "b")
    assert not report.losses


@pytest.mark.parametrize("value", [{"type": "input_video", "u": 1}, {"type": "computer_screenshot"}, {"u": 1}])
def test_a_part_of_ours_is_a_part_again(value):
    body, _ = foreign(user(Opaque(NAME, value, at="/messages/0/content/0")))
    assert body["input"] == [{"type": "message", "role": "user", "content": [value]}]


def test_in_our_own_requests_the_place_says_what_is_an_item():
    body = {"model": "m", "input": [{"type": "input_odd"}, {"role": "user", "content": [{"type": "odd"}]}]}
    assert write(read(body)) == body


def test_native_parts_without_a_pointer_are_placed_by_type():
    parts = (Opaque(NAME, {"type": "input_odd"}), Opaque(NAME, {"type": "odd"}))
    message, item = write(Request(messages=(Message("user", parts),), dialect=NAME))["input"]
    assert message["content"] == [{"type": "input_odd"}]
    assert item == {"type": "odd"}


def test_an_item_of_ours_goes_back_to_us_from_anywhere():
    body, report = foreign(assistant(Opaque(NAME, {"type": "web_search_call", "id": "ws"}, at="/output/0"), Text("x")))
    assert [item["type"] for item in body["input"]] == ["web_search_call", "message"]
    assert not report.losses


BOTH = {
    "model": "m",
    "instructions": "a",
    "input": [{"role": "developer", "content": "b"}, {"role": "user", "content": "c"}],
}


def test_policies_move_system_messages_of_our_own_requests_too():
    assert write(read(BOTH)) == BOTH
    merged = write(read(BOTH), target=Target(system="merge_leading"))
    texts = [{"type": "input_text", "text": text} for text in "ab"]
    assert (merged["input"][0]["role"], merged["input"][0]["content"]) == ("system", texts)
    assert "instructions" not in merged


def test_a_list_of_instructions_comes_back():
    body = {"instructions": [{"type": "input_text", "text": "a"}], "input": [], "model": "m"}
    assert write(read(body)) == body


def test_state_at_the_provider_needs_no_input():
    for body in ({"model": "m", "prompt": {"id": "p"}}, {"previous_response_id": "resp_1"}):
        assert write(read(body)) == body
    assert write(read({"model": "m", "input": []})) == {"model": "m", "input": []}


def test_a_message_of_our_own_that_was_made_of_several_items_is_taken_apart():
    mixed = Message("assistant", (Text("a"), ToolCall("c", "f", ""), Text("b")), id="msg_1", extras={"phase": "x"})
    first, call, last = write(Request(messages=(mixed,), dialect=NAME))["input"]
    assert (first["id"], first["phase"]) == ("msg_1", "x")
    assert call["arguments"] == ""
    assert "id" not in last


def test_a_request_of_our_own_says_that_it_has_no_tools():
    request = Request(model="m", messages=(user(Text("Hi")),))
    body = write(request, Report(), Target(states_tools=True))
    assert (body["tools"], body["tool_choice"]) == ([], "auto")
    assert "tools" not in write(request, Report(), Target())
    own = read({"model": "m", "input": "Hi"})
    assert "tools" not in write(own, Report(), Target(states_tools=True))


def items(*values):
    return read({"model": "m", "input": list(values)}).messages


def test_instructions_and_a_string_are_two_bare_messages():
    request = read({"model": "m", "instructions": "Be brief.", "input": "Hi"})
    assert request.messages == (
        Message("system", (Text("Be brief.", at="/instructions"),), bare=True, at="/instructions"),
        Message("user", (Text("Hi", at="/input"),), bare=True, at="/input"),
    )
    assert request.dialect == NAME


def test_instructions_may_be_a_list():
    (message,) = read(
        {"instructions": [{"type": "input_text", "text": "a"}, {"type": "message"}], "prompt": {}}
    ).messages
    assert message.parts == (Text("a", at="/instructions/0"), Opaque(NAME, {"type": "message"}, at="/instructions/1"))


def test_there_is_one_message_for_every_item():
    found = items(
        {"role": "user", "content": "a"},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": []},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{ }", "namespace": "ns"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "raw", "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok", "name": "f"},
        {
            "type": "custom_tool_call_output",
            "id": "o",
            "call_id": "c2",
            "output": [{"type": "input_text", "text": "x"}],
        },
        {"type": "web_search_call", "id": "ws"},
        {"type": "file_search_output", "call_id": "c3"},
    )
    assert found == (
        Message("user", (Text("a", at="/input/0/content"),), bare=True, at="/input/0", extras={"type": None}),
        Message("assistant", id="msg_1", at="/input/1", extras={"status": "completed"}),
        Message("assistant", (Thinking(id="rs_1", signed_by=NAME, at="/input/2"),), at="/input/2"),
        Message("assistant", (ToolCall("c1", "f", "{ }", namespace="ns", item="fc_1", at="/input/3"),), at="/input/3"),
        Message(
            "assistant",
            (ToolCall("c2", "g", "raw", "custom", at="/input/4", extras={"status": "completed"}),),
            at="/input/4",
        ),
        Message(
            "tool",
            (ToolResult("c1", (Text("ok", at="/input/5/output"),), "f", bare=True, at="/input/5"),),
            at="/input/5",
        ),
        Message(
            "tool",
            (ToolResult("c2", (Text("x", at="/input/6/output/0"),), kind="custom", item="o", at="/input/6"),),
            at="/input/6",
        ),
        Message("assistant", (Opaque(NAME, {"type": "web_search_call", "id": "ws"}, at="/input/7"),), at="/input/7"),
        Message("tool", (Opaque(NAME, {"type": "file_search_output", "call_id": "c3"}, at="/input/8"),), at="/input/8"),
    )


def test_tools_in_the_input_stand_in_the_request_too():
    item = {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "c"}]}
    request = read({"input": [item]})
    (message,) = request.messages
    assert message.parts == (Opaque(NAME, item, mirrored=True, at="/input/0"),)
    assert message.extras == {"role": "developer"}
    assert [tool.at for tool in request.tools] == ["/input/0/tools/0"]


@pytest.mark.parametrize("key", ["prompt", "conversation", "previous_response_id"])
def test_the_provider_may_have_the_input(key):
    assert read({"model": "m", key: "x"}).messages == ()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({"model": "m", "messages": []}, "/input"),
        ({"input": {}}, "/input"),
        ({"input": "x", "model": 1}, "/model"),
        ({"input": "x", "instructions": 1}, "/instructions"),
        ({"input": [3]}, "/input/0"),
        ({"input": [{}]}, "/input/0/role"),
        ({"input": [{"type": 3}]}, "/input/0/type"),
        ({"input": [{"role": "tool", "content": "x"}]}, "/input/0/role"),
        ({"input": [{"role": "user", "content": 3}]}, "/input/0/content"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "f"}]}, "/input/0/arguments"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": {}}]}, "/input/0/output"),
        ({"input": "x", "parallel_tool_calls": "yes"}, "/parallel_tool_calls"),
        ({"input": "x", "reasoning": "high"}, "/reasoning"),
    ],
)
def test_what_is_not_of_this_dialect_is_refused_with_its_place(body, pointer):
    assert refused_at(read, body) == pointer
