from typing import Any

import pytest

from sightline.dialects.anthropic import problems, vendor_problems
from sightline.dialects.anthropic.request import read_request
from sightline.model.parts import CacheBreakpoint, Text
from sightline.model.request import Message, Request

ASK = {"role": "user", "content": "go"}
E = {"type": "ephemeral"}
F = {"name": "f", "input_schema": {"type": "object"}}


def found(*messages, **more):
    body = {"max_tokens": 4096, "messages": list(messages) or [ASK], **more}
    return [(problem.pointer, problem.severity) for problem in problems(read_request(body))]


def call(call_id="c"):
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def result(call_id="c", **more):
    return {"type": "tool_result", "tool_use_id": call_id, "content": "x", **more}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


def user(*content):
    return {"role": "user", "content": list(content)}


def test_consecutive_messages_of_one_role_are_in_order():
    assert (
        found(ASK, ASK, assistant({"type": "text", "text": "a"}), assistant({"type": "text", "text": "b"}), ASK) == []
    )


def test_there_is_something_to_answer():
    body: Any = {"max_tokens": 1, "messages": [], "system": "a"}
    assert [problem.pointer for problem in problems(read_request(body))] == ["/messages"]
    assert [problem.pointer for problem in problems(Request())] == ["/messages", "/max_tokens"]


def test_some_platforms_want_the_user_to_begin():
    assert found(assistant({"type": "text", "text": "a"}), ASK) == [("/messages/0", "warning")]


@pytest.mark.parametrize(
    ("messages", "pointers"),
    [
        ([ASK, {"role": "system", "content": "now"}], []),
        ([ASK, {"role": "system", "content": "now"}, assistant({"type": "text", "text": "a"})], []),
        ([{"role": "system", "content": "now"}, ASK], ["/messages/0"]),
        ([ASK, {"role": "system", "content": "now"}, ASK], ["/messages/1"]),
        ([ASK, assistant({"type": "text", "text": "a"}), {"role": "system", "content": "now"}], ["/messages/2"]),
        ([ASK, *[{"role": "system", "content": "now"}] * 2], ["/messages/1", "/messages/2"]),
        ([ASK, assistant({"type": "web_search_tool_result"}), {"role": "system", "content": "now"}], []),
        ([ASK, assistant({"type": "server_tool_use"}), {"role": "system", "content": "now"}], []),
        ([ASK, {"role": "assistant", "content": "a"}, {"role": "system", "content": "now"}], ["/messages/2"]),
    ],
)
def test_a_system_message_has_its_place_at_the_vendors(messages, pointers):
    assert found(*messages) == []
    assert [(each.pointer, each.severity) for each in vendor_problems({"messages": messages})] == [
        (pointer, "error") for pointer in pointers
    ]


def test_what_the_vendor_refuses_besides():
    tools = [{"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "strin"}}}}, 7]
    assert [(each.pointer, each.rule) for each in vendor_problems({"tools": tools})] == [
        ("/tools/0/input_schema/properties/a/type", "schema_type")
    ]
    (found,) = vendor_problems({"metadata": {"user_id": "a@example.com"}})
    assert (found.pointer, found.rule) == ("/metadata/user_id", "user_id")
    assert vendor_problems({"metadata": {"user_id": "u-1"}}) == []
    assert vendor_problems("no object") == []


def test_calls_and_results_must_meet():
    assert found(ASK, assistant(call())) == [("/messages/1/content/0", "error")]
    assert found(user(result())) == [("/messages/0/content/0", "error")]
    assert found(ASK, assistant(call()), ASK, user(result())) == [
        ("/messages/1/content/0", "error"),
        ("/messages/3/content/0", "error"),
    ]


def test_a_cache_mark_between_results_parts_nothing():
    assert found(ASK, assistant(call("a"), call("b")), user(result("a", cache_control=E), result("b"))) == []


def test_results_come_first():
    text = {"type": "text", "text": "t"}
    assert found(ASK, assistant(call()), user(text, result())) == [("/messages/2/content/1", "error")]


def test_a_thread_that_goes_on_has_its_calls_elsewhere():
    assert found(user(result()), thread={"type": "continue", "previous_message_id": "m"}) == []
    assert found(user(result()), thread={"type": "create"}) == [("/messages/0/content/0", "error")]


def test_text_must_not_be_blank():
    blank = {"type": "text", "text": " \n"}
    assert found(ASK, user(blank)) == [("/messages/1/content/0", "error")]
    assert found(ASK, user()) == [("/messages/1", "error")]
    marked = Request(messages=(Message("user", (CacheBreakpoint(),), at="/marked"), Message("user", (Text("a"),))))
    assert [problem.pointer for problem in problems(marked)] == ["/marked", "/max_tokens"]
    nested = result(content=[blank])
    assert found(ASK, assistant(call()), user(nested)) == [("/messages/2/content/0/content/0", "error")]
    assert found(ASK, assistant(call()), user(result(content=""))) == []


def test_the_last_assistant_message_and_the_system_string_may_be_empty():
    assert found(ASK, {"role": "assistant", "content": ""}, system="") == []
    assert found(ASK, assistant()) == []
    assert found(ASK, assistant({"type": "text", "text": ""})) == [("/messages/1/content/0", "error")]


def test_the_last_assistant_message_does_not_end_in_whitespace():
    assert found(ASK, {"role": "assistant", "content": "so "}) == [("/messages/1/content", "error")]
    assert found(ASK, {"role": "assistant", "content": "so"}) == []


def test_names_and_ids_with_invalid_characters_or_duplicates_are_errors():
    assert found(tools=[{**F, "name": "a.b"}]) == [("/tools/0/name", "error")]
    assert found(tools=[F, F]) == [("/tools/0", "error"), ("/tools/1", "error")]
    assert found(ASK, assistant(call("a.b")), user(result("a.b"))) == [
        ("/messages/1/content/0", "error"),
        ("/messages/2/content/0", "error"),
    ]


def test_thinking_must_be_signed_by_the_provider():
    signed = {"type": "thinking", "thinking": "a", "signature": "EqQB"}
    text = {"type": "text", "text": "b"}
    assert found(ASK, assistant(signed, text)) == []
    for signature in (None, "", "sightline:gemini::x"):
        assert found(ASK, assistant({**signed, "signature": signature}, text)) == [("/messages/1/content/0", "error")]


def test_pictures_are_of_four_kinds():
    def picture(kind):
        return user({"type": "image", "source": {"type": "base64", "media_type": kind, "data": "AA"}})

    assert found(picture("image/png")) == []
    assert found(picture("image/tiff")) == [("/messages/0/content/0", "error")]


def test_the_result_of_a_call_that_failed_is_text():
    picture = {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}}
    text = {"type": "text", "text": "no", "cache_control": E}
    refused = [("/messages/2/content/0", "error")]
    for content, places in (([text, picture], refused), ([], refused), ("", refused), ([text], []), ("no", [])):
        assert found(ASK, assistant(call()), user(result(content=content, is_error=True))) == places
        assert found(ASK, assistant(call()), user(result(content=content, is_error=False))) == []


def test_four_cache_breakpoints_are_taken():
    marked = {"type": "text", "text": "a", "cache_control": E}
    opaque = {"type": "search_result", "cache_control": E}
    tools = [{**F, "cache_control": E}, {"type": "bash_20250124", "name": "bash", "cache_control": E}]
    assert found(user(marked, opaque), tools=tools) == []
    nested = user(result(content=[marked]))
    assert found(ASK, assistant(call()), nested, user(opaque, marked), tools=tools) == [
        ("/messages/3/content/1/cache_control", "error")
    ]
    assert found(user(marked, opaque), tools=tools, cache_control=E) == [("/cache_control", "error")]


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"max_tokens": None}, "/max_tokens"),
        ({"max_tokens": -1}, "/max_tokens"),
        ({"temperature": 1.5}, "/temperature"),
        ({"stop_sequences": ["\n"]}, "/stop_sequences"),
        ({"service_tier": "flex"}, "/service_tier"),
        ({"tool_choice": {"type": "auto"}}, "/tool_choice"),
        ({"thinking": {"type": "enabled"}}, "/thinking"),
        ({"thinking": {"type": "enabled", "budget_tokens": 100}}, "/thinking/budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "/thinking/budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}, "temperature": 0.5}, "/temperature"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}, "top_k": 5}, "/top_k"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}, "top_p": 0.5}, "/top_p"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2048}, "tools": [F], "tool_choice": {"type": "any"}},
            "/tool_choice",
        ),
    ],
)
def test_options_that_the_api_rejects(options, pointer):
    assert found(**options) == [(pointer, "error")]


@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 0},
        {"temperature": 1, "thinking": {"type": "enabled", "budget_tokens": 2048}},
        {"thinking": {"type": "adaptive"}, "temperature": 0.5},
        {"tools": [F], "tool_choice": {"type": "auto"}, "thinking": {"type": "enabled", "budget_tokens": 2048}},
        {"service_tier": "auto", "stop_sequences": ["x"]},
    ],
)
def test_options_that_the_api_takes(options):
    assert found(**options) == []


def test_a_schema_that_is_kept_to_must_be_closed():
    strict: Any = {"name": "f", "strict": True, "input_schema": {"type": "object", "additionalProperties": True}}
    loose: Any = {"name": "g", "input_schema": {"type": "object"}}
    bare: Any = {"name": "h", "strict": True}
    inner: Any = {"type": "object", "additionalProperties": False, "properties": {"a": {"type": ["object", "null"]}}}
    document: Any = {
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "a"}],
        "tools": [strict, loose, bare],
        "output_config": {"format": {"type": "json_schema", "schema": inner}},
    }
    assert [problem.pointer for problem in problems(read_request(document))] == [
        "/tools/0/input_schema",
        "/output_config/format/schema/properties/a",
    ]


def test_an_id_is_used_by_one_call_in_the_whole_conversation():
    turns = [ASK, assistant(call()), user(result()), assistant(call()), user(result())]
    assert found(*turns, tools=[F]) == [("/messages/3/content/0", "error")]
    # Two open calls are told once; where the server knows the other calls, an id is still used once.
    again = [ASK, assistant(call(), call()), user(result())]
    assert [pointer for pointer, _ in found(*again, tools=[F])] == ["/messages/1/content/1"]
    assert found(*again, tools=[F], thread={"type": "continue"}) == [("/messages/1/content/1", "error")]
