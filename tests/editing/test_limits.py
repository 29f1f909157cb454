import pytest

from sightline.catalog.facts import Facts
from sightline.editing.limits import argument_problems, limit_problems, refusal_problems, schema_problems
from sightline.model.message import Message
from sightline.model.options import Options, Reasoning
from sightline.model.parts import Audio, Document, Image, Inline, Link, Opaque, PlainText, Text, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.model.tools import CustomTool, FunctionTool, ToolChoice

PICTURE = Image(Link("https://example.com/a.png"), at="/p")


def told(problems) -> list[tuple[str, str, str]]:
    return [(problem.pointer, problem.severity, problem.message) for problem in problems]


def test_more_than_the_model_writes_is_an_error() -> None:
    options = Options(max_tokens=5000, places={"max_tokens": "/max_tokens"})
    request = Request(options=options)
    found = told(limit_problems(request, Facts(max_output=4096)))
    assert found == [("/max_tokens", "error", "the model writes at most 4096 tokens")]
    assert told(limit_problems(request, Facts(max_output=5000))) == []
    assert told(limit_problems(request, Facts())) == []
    assert told(limit_problems(Request(), Facts(max_output=4096))) == []


def test_tools_for_a_model_without_tools_are_a_warning() -> None:
    request = Request(tools=(FunctionTool("add", at="/tools/0"),))
    assert told(limit_problems(request, Facts(tools=False)))[0][:2] == ("/tools/0", "warning")
    assert told(limit_problems(request, Facts(tools=True))) == []
    assert told(limit_problems(Request(), Facts(tools=False))) == []


def test_what_the_model_cannot_see_or_hear_is_a_warning_wherever_it_stands() -> None:
    parts = (
        Text("look"),
        PICTURE,
        ToolResult("c", (Document(PlainText("x"), at="/d"), Text("y"))),
        Audio(Inline("audio/wav", ""), at="/a"),
    )
    request = Request(messages=(Message("user", parts),))
    found = told(limit_problems(request, Facts(input=("text",))))
    assert [each[0] for each in found] == ["/p", "/d", "/a"]
    assert {each[1] for each in found} == {"warning"}
    assert [each[2].rpartition(" ")[2] for each in found] == ["pictures", "documents", "sound"]
    assert told(limit_problems(request, Facts(input=("text", "image", "pdf", "audio")))) == []


def test_arguments_that_are_no_object_are_an_error_and_none_at_all_a_warning() -> None:
    calls = (
        ToolCall("1", "a", "{}", at="/1"),
        ToolCall("2", "b", "[", at="/2"),
        ToolCall("3", "c", "", at="/3"),
        ToolCall("4", "d", "free", kind="custom", at="/4"),
    )
    request = Request(messages=(Message("assistant", (Text("hm"), *calls)),))
    assert [(problem.pointer, problem.severity) for problem in argument_problems(request)] == [
        ("/2", "error"),
        ("/3", "warning"),
    ]


@pytest.mark.parametrize(
    ("schema", "words", "severity"),
    [
        ({"properties": {}}, "do not say", "warning"),
        ({"type": "array"}, "are of type 'array'", "error"),
        ({"type": ["string", "null"]}, "are of type", "error"),
        ({"type": "object", "properties": []}, "no object", "error"),
        ({"type": "object", "properties": {"a": 1}}, "property 'a' without a schema", "error"),
        ({"type": "object", "required": "a"}, "no list of names", "error"),
        ({"type": "object", "required": [1]}, "no list of names", "error"),
        ({"type": "object", "required": ["a"]}, "require 'a', which is no property", "warning"),
    ],
)
def test_parameters_that_are_no_schema_of_an_object(schema, words: str, severity: str) -> None:
    (problem,) = schema_problems(Request(tools=(FunctionTool("add", None, schema, at="/t"),), dialect="openai-chat"))
    assert words in problem.message
    assert (problem.pointer, problem.severity) == ("/t", severity)


@pytest.mark.parametrize(
    "schema", [None, {}, {"type": "OBJECT"}, {"type": ["object", "null"], "properties": {"a": {}}}]
)
def test_parameters_that_are_taken(schema) -> None:
    assert told(schema_problems(Request(tools=(FunctionTool("add", None, schema), CustomTool("x"))))) == []


def test_a_required_name_that_is_no_property_is_an_error_where_the_api_refuses_it() -> None:
    schema = {"type": "object", "required": ["a"]}
    strict = Request(tools=(FunctionTool("add", None, schema, strict=True),))
    assert [problem.severity for problem in schema_problems(strict)] == ["error"]
    gemini = Request(tools=(FunctionTool("add", None, schema),), dialect="gemini")
    assert [problem.severity for problem in schema_problems(gemini)] == ["error"]


# --- what the model refuses -------------------------------------------------------------------------


def refused(request: Request, facts: Facts) -> list[tuple[str, str]]:
    return [(problem.pointer, problem.message) for problem in refusal_problems(request, facts)]


def test_what_a_model_refuses_is_a_problem_unless_it_says_what_happens_anyway() -> None:
    facts = Facts(refuses=("temperature",), one_sampler=True, forced_tools=False, efforts=("low",))
    options = Options(temperature=0.2, reasoning=Reasoning(effort="max", at="/reasoning"), places={"temperature": "/t"})
    request = Request("m", dialect="openai-chat", options=options, tool_choice=ToolChoice("required", at="/c"))
    assert refused(request, facts) == [
        ("/reasoning", "effort 'max': the nearest that m takes is low"),
        ("/t", "temperature 0.2: m does not take it"),
        ("/c", "a forced tool call: m decides itself whether it calls a tool"),
    ]
    assert refused(Request("m", dialect="openai-chat", options=Options(temperature=1)), facts) == []


def test_the_older_name_of_the_limit_is_refused_in_chat_only() -> None:
    facts = Facts(max_completion_tokens=True)
    options = Options(max_tokens=5, places={"max_tokens": "/max_tokens"})
    assert [pointer for pointer, _ in refused(Request("m", dialect="openai-chat", options=options), facts)] == [
        "/max_tokens"
    ]
    newer = Options(max_tokens=5, places={"max_tokens": "/max_completion_tokens"})
    assert refused(Request("m", dialect="openai-chat", options=newer), facts) == []
    assert refused(Request("m", dialect="anthropic", options=options), facts) == []


def test_turns_that_a_model_does_not_take() -> None:
    system = Message("system", (Text("s"),), at="/messages/0")
    begun = Message("assistant", (Text("a"),), at="/messages/1")
    facts = Facts(inline_system=False, prefill=False)

    def pointers(*messages: Message, spoken: str = "anthropic") -> list[str]:
        return [pointer for pointer, _ in refused(Request("m", messages, dialect=spoken), facts)]

    assert pointers(system, begun) == ["/messages/0", "/messages/1"]
    assert pointers(Message("system", (Text("s"),), at="/system")) == []
    assert pointers(system, spoken="openai-chat") == []
    assert pointers() == pointers(Message("assistant", at="/messages/0")) == []
    assert pointers(Message("assistant", (Opaque("anthropic", {"type": "server_tool_use"}),), at="/messages/0")) == []
