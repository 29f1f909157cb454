import pytest

from tests.dialects.openai_chat.telling import DIALECT

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def pointers(**fields):
    body = {"model": "m", "messages": [USER], **fields}
    return [problem.pointer for problem in DIALECT.problems(DIALECT.read_request(body))]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"model": None}, ["/model"]),
        ({"messages": [{"role": "system", "content": "s"}]}, ["/messages"]),
        ({"messages": [USER, {"role": "assistant", "content": None}]}, ["/messages/1"]),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [CALL]}]}, ["/messages/1/tool_calls/0"]),
        ({"messages": [USER, {"role": "tool", "tool_call_id": "c1", "content": "x"}]}, ["/messages/1"]),
        ({"messages": [USER, {"role": "assistant", "content": [PICTURE]}]}, ["/messages/1/content/0"]),
        ({"messages": [USER, {"role": "assistant", "audio": {"id": "a"}}]}, []),
        ({"messages": [{"role": "user", "content": [PICTURE]}]}, []),
        ({"max_tokens": 0}, ["/max_tokens"]),
        ({"stop": list("abcde")}, ["/stop"]),
        ({"tool_choice": "auto"}, ["/tool_choice"]),
        ({"parallel_tool_calls": False}, ["/parallel_tool_calls"]),
        ({"tools": [TOOL], "tool_choice": "auto", "parallel_tool_calls": False}, []),
        ({"tools": [TOOL, TOOL]}, ["/tools/0", "/tools/1"]),
    ],
)
def test_what_the_api_refuses_is_named_by_its_place(fields, expected):
    assert pointers(**fields) == expected


def test_ids_that_only_the_vendors_server_refuses_are_a_warning():
    def found(call_id):
        asked = {"role": "assistant", "tool_calls": [{**CALL, "id": call_id}]}
        answered = {"role": "tool", "tool_call_id": call_id, "content": "x"}
        request = DIALECT.read_request({"model": "m", "messages": [USER, asked, answered]})
        return [(problem.pointer, problem.severity) for problem in DIALECT.problems(request)]

    assert found("c" * 40) == []
    assert found("c" * 41) == [("/messages/1/tool_calls/0/id", "warning"), ("/messages/2/tool_call_id", "warning")]


# --- what only the vendor's own server refuses ------------------------------------------------------


def vendors(**fields):
    found = DIALECT.vendor_problems({"model": "m", "messages": [USER], **fields})
    return [(problem.pointer, problem.severity) for problem in found]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"temperature": 7}, ["/temperature"]),
        ({"service_tier": "standard_only"}, ["/service_tier"]),
        ({"tools": [{"type": "function", "name": "f"}]}, ["/tools/0"]),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, ["/tools/0/function/name"]),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {"type": "x"}}}},
            ["/response_format/json_schema/name", "/response_format/json_schema/schema/type"],
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "a.b"}}, {"custom": {}}]}]},
            ["/messages/0/tool_calls/0/function/name"],
        ),
    ],
)
def test_what_the_vendor_refuses_is_named_by_its_place(fields, expected):
    assert vendors(**fields) == [(pointer, "error") for pointer in expected]
    assert DIALECT.vendor_problems([]) == []
