"""Tools and tool choice, with tools that items bring."""

import pytest

from sightline.dialects.openai_responses.names import LOGPROBS, NAME
from sightline.dialects.openai_responses.request import ItemTools
from sightline.model.parts import CacheBreakpoint, Opaque, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    Grammar,
    JsonFormat,
    Message,
    OpaqueTool,
    Options,
    PlainFormat,
    Reasoning,
    Request,
    SchemaFormat,
    ToolChoice,
)
from tests.dialects.openai_responses.cases import read, write
from tests.dialects.reports import added_at, named_losses, refused_at

SCHEMA = {"type": "object", "properties": {}}
LARK = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
FUNCTION = {
    "type": "function",
    "name": "f",
    "description": "d",
    "parameters": SCHEMA,
    "strict": True,
    "defer_loading": True,
}
CUSTOM = {"type": "custom", "name": "c", "format": LARK}
SPACE = {
    "type": "namespace",
    "name": "ns",
    "description": "A space.",
    "tools": [FUNCTION, {"type": "custom", "name": "note"}],
}


def request(tools, **fields):
    return {"model": "m", "input": [], "tools": tools, **fields}


def foreign(*tools, choice=None):
    report = Report()
    return write(Request(model="m", tools=tools, tool_choice=choice, dialect="anthropic"), report), report


def test_tools_are_flat():
    tools = read(request([FUNCTION, CUSTOM, {"type": "web_search"}])).tools
    assert tools == (
        FunctionTool("f", "d", SCHEMA, True, at="/tools/0", extras={"defer_loading": True}),
        CustomTool("c", None, Grammar("lark", "start: /x/"), at="/tools/1"),
        OpaqueTool("openai-responses", {"type": "web_search"}, at="/tools/2"),
    )


def test_the_nested_shape_of_chat_is_read_too_and_written_flat():
    inner = {"name": "f", "parameters": SCHEMA}
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}}
    tools = [{"type": "function", "function": inner}, {"type": "custom", "custom": {"name": "c", "format": grammar}}]
    body = write(read(request(tools, tool_choice={"type": "function", "function": {"name": "f"}})))
    assert body["tools"] == [{"type": "function", **inner}, CUSTOM]
    assert body["tool_choice"] == {"type": "function", "name": "f"}


@pytest.mark.parametrize(
    "tools",
    [
        [FUNCTION, CUSTOM, SPACE, {"type": "tool_search", "x": 1}],
        [{"type": "custom", "name": "c", "format": {"type": "text"}}],
        [{"type": "custom", "name": "c", "format": {**LARK, "x": 1}}],
        [SPACE, FUNCTION, {**SPACE, "name": "other", "tools": [SPACE]}],
        [{"type": "namespace", "name": "empty", "tools": []}],
        [{"type": "namespace", "name": "odd"}],
    ],
)
def test_tools_come_back_as_they_were(tools):
    report = Report()
    assert write(read(request(tools)), report) == request(tools)
    assert not report.losses
    assert not report.additions


def test_a_namespace_is_an_opaque_tool_before_its_own():
    head, function, note = read(request([SPACE])).tools
    assert isinstance(head, OpaqueTool)
    assert head.value == {"type": "namespace", "name": "ns", "description": "A space.", "tools": []}
    assert (function.namespace, function.at) == ("ns", "/tools/0/tools/0")
    assert (note.namespace, note.at) == ("ns", "/tools/0/tools/1")


def test_namespace_without_a_description_is_created():
    body, report = foreign(
        FunctionTool("f", schema=SCHEMA, strict=True, namespace="ns"), CustomTool("c", namespace="ns")
    )
    assert body["tools"] == [
        {
            "type": "namespace",
            "name": "ns",
            "description": "ns",
            "tools": [
                {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True},
                {"type": "custom", "name": "c"},
            ],
        }
    ]
    assert added_at(report) == ["/tools/0/description"]


def test_tools_in_the_input_are_tools_and_are_not_written_twice():
    item = {"type": "additional_tools", "role": "developer", "tools": [SPACE, FUNCTION], "id": "at_1"}
    body = {"model": "m", "input": [item], "tools": [CUSTOM]}
    tools = read(body).tools
    assert [tool.at for tool in tools] == [
        "/tools/0",
        "/input/0/tools/0",
        "/input/0/tools/0/tools/0",
        "/input/0/tools/0/tools/1",
        "/input/0/tools/1",
    ]
    assert write(read(body)) == body


def test_a_foreign_tool_says_that_it_is_not_strict():
    body, report = foreign(FunctionTool("f"))
    assert body["tools"] == [{"type": "function", "name": "f", "parameters": None, "strict": False}]
    assert added_at(report) == ["/tools/0/parameters", "/tools/0/strict"]


def test_what_only_others_have_is_a_loss():
    mark = CacheBreakpoint(at="/t/cache_control")
    body, report = foreign(OpaqueTool("anthropic", {"type": "bash"}, at="/tools/0"), CustomTool("c", cache=mark))
    assert body["tools"] == [{"type": "custom", "name": "c"}]
    assert named_losses(report) == [
        ("/tools/0", "tool 'bash' of anthropic", "option"),
        ("/t/cache_control", "cache mark on a tool", "option"),
    ]


@pytest.mark.parametrize(
    ("tools", "choice", "pointer"),
    [
        ({}, None, "/tools"),
        ([3], None, "/tools/0"),
        ([{"type": "function"}], None, "/tools/0/name"),
        ([{"type": "function", "function": {}}], None, "/tools/0/function/name"),
        ([{"type": "namespace", "tools": []}], None, "/tools/0/name"),
        ([{"type": "custom", "name": "c", "format": {"type": "grammar"}}], None, "/tools/0/format/syntax"),
        ([], [], "/tool_choice"),
        ([], {"type": "function"}, "/tool_choice/name"),
    ],
)
def test_a_wrong_shape_is_refused_with_its_place(tools, choice, pointer):
    assert refused_at(read, request(tools, tool_choice=choice)) == pointer


ALLOWED = {
    "type": "allowed_tools",
    "mode": "required",
    "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}],
}


@pytest.mark.parametrize(
    ("wire", "mode", "names"),
    [
        ("auto", "auto", ()),
        ("none", "none", ()),
        ("required", "required", ()),
        ("whatever", "opaque", ()),
        ({"type": "function", "name": "f"}, "named", ("f",)),
        ({"type": "custom", "name": "c", "x": 1}, "named", ("c",)),
        ({"type": "custom", "name": "unlisted"}, "named", ("unlisted",)),
        (ALLOWED, "required", ("f", "c")),
        ({**ALLOWED, "mode": "auto", "x": 1}, "auto", ("f", "c")),
        ({**ALLOWED, "mode": "never"}, "opaque", ()),
        ({**ALLOWED, "tools": []}, "opaque", ()),
        ({**ALLOWED, "tools": {}}, "opaque", ()),
        ({**ALLOWED, "tools": [3]}, "opaque", ()),
        ({**ALLOWED, "tools": [{"type": "mcp", "server_label": "s"}]}, "opaque", ()),
        ({**ALLOWED, "tools": [{"type": "function", "name": "c"}]}, "opaque", ()),
        ({**ALLOWED, "tools": [{"type": "function", "name": "f", "x": 1}]}, "opaque", ()),
        ({"type": "web_search_preview"}, "opaque", ()),
        ({}, "opaque", ()),
    ],
)
def test_choices(wire, mode, names):
    body = request([FUNCTION, CUSTOM], tool_choice=wire)
    choice = read(body).tool_choice
    assert (choice.mode, choice.names) == (mode, names)
    assert write(read(body)) == body


def test_the_allowed_set_of_chat_is_read_too():
    nested = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}
    choice = read(request([], tool_choice={"type": "allowed_tools", "allowed_tools": nested})).tool_choice
    assert (choice.mode, choice.names) == ("auto", ("f",))


def test_foreign_choices():
    body, _ = foreign(CustomTool("c"), choice=ToolChoice("named", ("c",), extras={"x": 1}))
    assert body["tool_choice"] == {"type": "custom", "name": "c"}
    body, _ = foreign(FunctionTool("f"), choice=ToolChoice("auto", ("f",), extras={"x": 1}))
    assert body["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "f"}],
    }
    lost = OpaqueTool("anthropic", {"type": "bash"}, at="/t")
    body, report = foreign(lost, choice=ToolChoice("required", at="/tc"))
    assert "tool_choice" not in body
    assert named_losses(report) == [("/t", "tool 'bash' of anthropic", "option"), ("/tc", "tool choice", "option")]


def test_a_hosted_tool_of_ours_is_a_tool_to_choose():
    body, report = foreign(OpaqueTool(NAME, {"type": "web_search"}), choice=ToolChoice("required"))
    assert body["tool_choice"] == "required"
    assert not report.losses


SCHEMA_BROUGHT_TOOLS = {"type": "object", "properties": {}}
SEARCH = {"type": "web_search"}
ITEM = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [
        {
            "type": "namespace",
            "name": "ns",
            "description": "A space.",
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA_BROUGHT_TOOLS, "strict": True}],
        },
        {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        SEARCH,
    ],
}
HELD = Message("system", (Opaque(NAME, ITEM, mirrored=True, at="/messages/0/content/0"),))
FLAT = (
    FunctionTool("g", schema=SCHEMA_BROUGHT_TOOLS, strict=False),
    FunctionTool("ns__f", schema=SCHEMA_BROUGHT_TOOLS, strict=True),
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


def test_each_item_tool_replaces_only_one_request_tool():
    twice = (
        FunctionTool("ns__f", "mine", at="/0"),
        FunctionTool("ns__f", schema=SCHEMA_BROUGHT_TOOLS, strict=True, at="/1"),
    )
    report = Report()
    assert ItemTools((HELD,)).others(twice, report) == [twice[0]]
    assert not report.losses


def test_a_tool_that_is_not_what_its_item_says_is_a_loss():
    report = Report()
    changed = (FunctionTool("ns__f", "changed", at="/0"), CustomTool("c", "changed", at="/1"), FunctionTool("x"))
    assert ItemTools((HELD,)).others(changed, report) == [changed[2]]
    assert named_losses(report) == [("/1", "definition of a tool", "option"), ("/0", "definition of a tool", "option")]


def test_other_parts_bring_nothing():
    others = (Opaque("gemini", ITEM), Opaque(NAME, "odd"), Opaque(NAME, {"type": "compaction"}), Text("a"))
    brought = ItemTools((Message("user", others),))
    assert brought.others(FLAT, Report()) == list(FLAT)
    assert brought.spaces == {}


def request_with(**fields):
    return {"model": "m", "input": "hi", **fields}


def foreign_options(**options):
    report = Report()
    body = write(Request(model="m", options=Options(**options), dialect="openai-chat"), report)
    return {key: value for key, value in body.items() if key not in ("model", "input")}, report


EVERYTHING = request_with(
    max_output_tokens=9,
    temperature=0.5,
    top_p=1,
    top_logprobs=3,
    prompt_cache_key="k",
    prompt_cache_retention="24h",
    store=False,
    include=["reasoning.encrypted_content", LOGPROBS],
    previous_response_id="resp_0",
    metadata={"a": "b"},
    user="u",
    safety_identifier="s",
    service_tier="flex",
    stream=True,
    text={"verbosity": "low", "format": {"type": "text"}, "tone": "dry"},
    reasoning={"effort": "high", "summary": "auto", "mode": "pro"},
    truncation="auto",
)


def test_every_option_has_one_name_and_its_place():
    options = read(EVERYTHING).options
    assert (options.max_tokens, options.top_p, options.cache_key, options.verbosity) == (9, 1, "k", "low")
    assert (options.logprobs, options.include) == (True, ("reasoning.encrypted_content",))
    assert options.places["verbosity"] == "/text/verbosity"
    assert options.places["logprobs"] == "/include/1"
    assert write(read(EVERYTHING)) == EVERYTHING


def test_logprobs_are_a_word_of_include_and_nothing_else():
    options = read(request_with(include=[LOGPROBS])).options
    assert (options.logprobs, options.include) == (True, None)
    assert "include" not in options.places
    assert foreign_options(logprobs=True, top_logprobs=2)[0] == {"include": [LOGPROBS], "top_logprobs": 2}
    assert foreign_options(logprobs=False)[0] == {}


def test_what_other_apis_have_is_a_loss():
    body, report = foreign_options(top_k=5, stop=("x",), seed=1, n=2, logit_bias={"1": 2}, presence_penalty=1.0)
    assert body == {}
    assert {what for _, what, _ in named_losses(report)} == {
        "top_k",
        "stop",
        "seed",
        "n",
        "logit_bias",
        "presence_penalty",
    }


def test_usage_comes_without_asking():
    body, report = foreign_options(include_usage=True, places={"include_usage": "/stream_options/include_usage"})
    assert body == {}
    assert named_losses(report) == [("/stream_options/include_usage", "token counts requested", "identity")]


OUTPUT_SCHEMA = {"type": "object"}


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ({"type": "text"}, PlainFormat(at="/text/format")),
        ({"type": "json_object", "x": 1}, JsonFormat(at="/text/format", extras={"x": 1})),
        (
            {"type": "json_schema", "name": "n", "schema": OUTPUT_SCHEMA, "strict": True, "description": "d"},
            SchemaFormat(OUTPUT_SCHEMA, "n", "d", True, at="/text/format"),
        ),
    ],
)
def test_formats(wire, expected):
    body = request_with(text={"format": wire})
    assert read(body).options.format == expected
    assert write(read(body)) == body


@pytest.mark.parametrize("text", [{}, {"format": {"type": "grammar", "x": 1}, "y": 2}])
def test_a_text_object_that_we_cannot_say_better_comes_back(text):
    assert write(read(request_with(text=text)))["text"] == text


def test_a_null_says_what_absence_says():
    assert write(read(request_with(text={"format": None}))) == request_with()


def test_a_schema_needs_a_name():
    body, report = foreign_options(format=SchemaFormat(OUTPUT_SCHEMA))
    assert body == {"text": {"format": {"type": "json_schema", "name": "response", "schema": OUTPUT_SCHEMA}}}
    assert added_at(report) == ["/text/format/name"]
    own = request_with(text={"format": {"type": "json_schema", "schema": OUTPUT_SCHEMA}})
    assert write(read(own)) == own


def test_no_effort_is_thinking_switched_off():
    reasoning = read(request_with(reasoning={"effort": "none"})).options.reasoning
    assert (reasoning.mode, reasoning.effort, reasoning.places) == ("off", None, {"mode": "/reasoning/effort"})
    assert foreign_options(reasoning=Reasoning(mode="off"))[0] == {"reasoning": {"effort": "none"}}


@pytest.mark.parametrize(
    "wire",
    [
        {},
        {"effort": "none"},
        {"generate_summary": "auto"},
        {"summary": "auto", "generate_summary": "auto", "context": "auto"},
    ],
)
def test_reasoning_comes_back_as_it_was(wire):
    assert write(read(request_with(reasoning=wire)))["reasoning"] == wire


@pytest.mark.parametrize(("budget", "effort"), [(1024, "low"), (2048, "medium"), (8192, "high")])
def test_a_budget_becomes_the_nearest_effort_and_the_number_is_a_loss(budget, effort):
    body, report = foreign_options(reasoning=Reasoning(budget=budget, places={"budget": "/b"}))
    assert body == {"reasoning": {"effort": effort}}
    assert named_losses(report) == [("/b", f"reasoning budget of {budget} tokens", "option")]


def test_reasoning_summary_is_passed_unchanged_and_none_is_omitted():
    assert foreign_options(reasoning=Reasoning(effort="low", summary="concise"))[0] == {
        "reasoning": {"effort": "low", "summary": "concise"}
    }
    assert foreign_options(reasoning=Reasoning(effort="low", summary="none"))[0] == {"reasoning": {"effort": "low"}}


def test_what_the_api_does_unasked_is_no_setting_that_is_lost():
    usual = {"n": 1, "presence_penalty": 0.0, "frequency_penalty": 0, "logprobs": False, "stop": (), "logit_bias": {}}
    body, report = foreign_options(**usual, places={"n": "/generationConfig/candidateCount"})
    assert body == {}
    assert {severity for _, _, severity in named_losses(report)} == {"identity"}
    assert ("/generationConfig/candidateCount", "n", "identity") in named_losses(report)
    _, report = foreign_options(n=2, presence_penalty=0.5, stop=("x",))
    assert [(what, severity) for _, what, severity in named_losses(report)] == [
        ("stop", "option"),
        ("presence_penalty", "option"),
        ("n", "option"),
    ]
