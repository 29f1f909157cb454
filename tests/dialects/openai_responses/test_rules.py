import pytest

from sightline.dialects.openai_responses import problems, vendor_problems
from tests.dialects.openai_responses.cases import read


def found(**fields):
    return [(problem.pointer, problem.severity) for problem in problems(read({"model": "m", "input": "hi", **fields}))]


CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "ok"}
USER = {"role": "user", "content": "x"}
REASONING = {"type": "reasoning", "id": "rs", "summary": []}


def test_calls_and_results_may_stand_apart():
    assert found(input=[CALL, USER, OUTPUT]) == []
    assert found(input=[CALL]) == [("/input/0", "error")]
    assert found(input=[OUTPUT, USER]) == [("/input/0", "error")]


@pytest.mark.parametrize(
    "state", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"prompt": {"id": "p"}}]
)
def test_a_result_may_answer_a_call_that_the_provider_has(state):
    assert found(input=[OUTPUT, USER], **state) == []
    assert found(input=[CALL], **state) == [("/input/0", "error")]


def test_a_referenced_item_may_be_that_call():
    assert found(input=[{"type": "item_reference", "id": "fc_1"}, OUTPUT]) == []


def test_there_must_be_a_model_and_an_input():
    assert found(input=[], instructions="a") == [("/input", "error")]
    assert found(input=[], model="") == [("/model", "error"), ("/input", "error")]
    assert found(input=[], model="", prompt={"id": "p"}) == []


def test_ids_have_a_length():
    long = "x" * 65
    assert found(input=[{**CALL, "call_id": long}, {**OUTPUT, "call_id": long}]) == [
        ("/input/0/call_id", "error"),
        ("/input/1/call_id", "error"),
    ]


def test_reasoning_needs_what_followed_it():
    assert found(input=[REASONING, CALL, OUTPUT]) == []
    assert found(input=[REASONING, USER]) == [("/input/0", "warning")]
    assert found(input=[USER, REASONING]) == [("/input/1", "warning")]


def test_tools_have_names_that_are_taken():
    tools = [{"type": "function", "name": name} for name in ("ok", "not ok", "x" * 65)]
    assert [each.pointer for each in vendor_problems({"tools": tools})] == ["/tools/1/name", "/tools/2/name"]
    many = [{"type": "function", "name": f"f{number}"} for number in range(129)]
    assert found(tools=many) == [("/tools", "error")]


def test_options_have_limits():
    assert found(max_output_tokens=15) == [("/max_output_tokens", "warning")]
    assert found(max_output_tokens=16) == []
    assert found(metadata={f"k{number}": "v" for number in range(17)}) == [("/metadata", "error")]
    assert found(metadata={"k": "v" * 512, "x" * 64: "v"}) == []
    for pair in ({"k": 1}, {"x" * 65: "v"}, {"k": "v" * 513}):
        assert found(metadata=pair) == [("/metadata", "error")]


def test_a_call_of_a_built_in_tool_needs_something_to_do():
    shell = {"type": "shell_call", "call_id": "c"}
    assert found(input=[{**shell, "action": "ls"}, USER]) == [("/input/0", "error")]
    assert found(input=[{**shell, "action": {}, "environment": {"type": "container_reference"}}, USER]) == []
    assert found(input=[{**shell, "action": {}}, USER]) == [("/input/0", "error")], "nothing answers it"


def test_what_the_vendor_refuses_is_named_by_its_place():
    nested = {"type": "function", "function": {"name": "f"}}
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    body = {
        "temperature": 7,
        "service_tier": "standard_only",
        "tools": [nested, {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": ""}]}],
        "text": {"format": {"type": "json_schema", "name": "r", "strict": True, "schema": schema}},
        "input": [{**CALL, "name": "a.b"}, USER, {"type": "additional_tools", "tools": [nested]}, "words"],
    }
    found = vendor_problems(body)
    assert [(each.pointer, each.rule) for each in found] == [
        ("/temperature", "range"),
        ("/service_tier", ""),
        ("/tools/0", "tool_form"),
        ("/tools/1/tools/0/name", "tool_name"),
        ("/text/format/schema", "required_properties"),
        ("/input/0/name", "tool_name"),
        ("/input/2/tools/0", "tool_form"),
    ]
    assert {each.severity for each in found} == {"error"}
    assert vendor_problems(None) == []
