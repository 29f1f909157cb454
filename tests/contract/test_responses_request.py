"""What our own callers want, as bytes: key for key what the Responses API takes, and no loss in any dialect."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import OpenAI
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from sightline.catalog.choose import ModelChoice
from sightline.catalog.compose import Prompt, compose
from sightline.catalog.facts import Facts, Family
from sightline.catalog.provider import Provider, Quirks
from sightline.dialects.dialect import Client, Target
from sightline.dialects.registry import NAMES, dialect
from sightline.dialects.translate import write_request
from sightline.errors import Fault
from sightline.model.parts import Document, Image, Inline, Link, Part, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import (
    CustomTool,
    FunctionTool,
    Grammar,
    Message,
    OpaqueTool,
    Options,
    Request,
    Tool,
    ToolChoice,
)
from tests.contract.generated import words
from tests.contract.loopback import speaking

RESPONSES = "openai-responses"
NO_QUIRKS = Quirks()
HELLO = (Message("user", (Text("hello"),)),)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}

REASONER = Facts(reasoning=True, efforts=("minimal", "low", "medium", "high"))
GPT_5 = Facts(reasoning=True, efforts=("minimal", "low", "medium", "high"), verbosity=True)
SUMMING = Family(supports_reasoning_summaries=True)
PLAIN = Facts(reasoning=False)

TOOLS: tuple[Tool, ...] = (
    FunctionTool("get_weather", "Get the weather", SCHEMA, strict=True),
    CustomTool("apply_patch", "Patches files", Grammar("lark", "start: /x+/")),
    OpaqueTool(RESPONSES, {"type": "local_shell"}),
    OpaqueTool(RESPONSES, {"type": "web_search"}),
)

INPUT = {"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}]}
SAID_ALWAYS = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": False, "include": []}
BASE = {"model": "gpt-5", **INPUT, **SAID_ALWAYS, "store": False, "stream": True}
REASONED = {"include": ["reasoning.encrypted_content"]}


def body(
    prompt: Prompt, facts: Facts, family: Family, *, spoken: str = RESPONSES, quirks: Quirks = NO_QUIRKS
) -> tuple[dict[str, Any], Report]:
    report = Report()
    choice = ModelChoice("acme", Provider(dialect=spoken, quirks=quirks), "gpt-5", facts, family)
    request = compose(prompt, choice, dialect(spoken).support)
    target = Target(quirks=quirks, states_tools=True)
    return json.loads(write_request(request, spoken, target, report, with_url=True)), report


CASES: Mapping[str, tuple[Prompt, Facts, Family, Quirks, dict[str, Any]]] = {
    "plain": (Prompt(HELLO), Facts(), Family(), NO_QUIRKS, BASE),
    "instructions": (
        Prompt(HELLO, instructions="Be brief."),
        Facts(),
        Family(base_instructions="Be long."),
        NO_QUIRKS,
        {**BASE, "instructions": "Be brief."},
    ),
    "instructions of the family": (
        Prompt(HELLO),
        Facts(),
        Family(
            base_instructions="Be long.",
            tool_instructions="Patch so.",
            needs_special_apply_patch_instructions=True,
        ),
        NO_QUIRKS,
        {**BASE, "instructions": "Be long.\nPatch so."},
    ),
    "reasoning": (
        Prompt(HELLO, effort="high"),
        REASONER,
        SUMMING,
        NO_QUIRKS,
        {**BASE, **REASONED, "reasoning": {"effort": "high", "summary": "auto"}},
    ),
    "gpt-5 with verbosity": (
        Prompt(HELLO, verbosity="low", effort="minimal"),
        GPT_5,
        SUMMING,
        NO_QUIRKS,
        {
            **BASE,
            **REASONED,
            "reasoning": {"effort": "minimal", "summary": "auto"},
            "text": {"verbosity": "low"},
        },
    ),
    "output schema": (
        Prompt(HELLO, output_schema=SCHEMA, output_name="weather"),
        GPT_5,
        Family(default_verbosity="medium"),
        NO_QUIRKS,
        {
            **BASE,
            **REASONED,
            "text": {
                "verbosity": "medium",
                "format": {"type": "json_schema", "name": "weather", "strict": True, "schema": SCHEMA},
            },
        },
    ),
    "output schema of a model without reasoning": (
        Prompt(HELLO, output_schema=SCHEMA),
        PLAIN,
        Family(),
        NO_QUIRKS,
        {
            **BASE,
            "text": {"format": {"type": "json_schema", "name": "response", "strict": True, "schema": SCHEMA}},
        },
    ),
    "tools": (
        Prompt(HELLO, tools=TOOLS),
        Facts(),
        Family(),
        NO_QUIRKS,
        {
            **BASE,
            "tools": [
                {
                    "type": "function",
                    "name": "get_weather",
                    "description": "Get the weather",
                    "parameters": SCHEMA,
                    "strict": True,
                },
                {
                    "type": "custom",
                    "name": "apply_patch",
                    "description": "Patches files",
                    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x+/"},
                },
                {"type": "local_shell"},
                {"type": "web_search"},
            ],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
        },
    ),
    "azure": (Prompt(HELLO), Facts(), Family(), Quirks(store=True), {**BASE, "store": True}),
    "no reasoning": (Prompt(HELLO, effort="none", summary="none"), PLAIN, SUMMING, NO_QUIRKS, BASE),
    "conversation": (
        Prompt(HELLO, conversation="c-1"),
        Facts(),
        Family(),
        NO_QUIRKS,
        {**BASE, "prompt_cache_key": "c-1"},
    ),
    "sampling, whole": (
        Prompt(HELLO, max_tokens=9, temperature=0.5, top_p=1, stream=False),
        PLAIN,
        Family(),
        NO_QUIRKS,
        {**BASE, "max_output_tokens": 9, "temperature": 0.5, "top_p": 1, "stream": False},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_body_says_this_and_nothing_else(case: str) -> None:
    prompt, facts, family, quirks, expected = CASES[case]
    written, report = body(prompt, facts, family, quirks=quirks)
    assert written == expected
    assert not report.losses
    assert not report.additions


@pytest.mark.parametrize("case", CASES)
def test_the_vendors_types_know_every_field(case: str) -> None:
    prompt, facts, family, quirks, _ = CASES[case]
    written, _ = body(prompt, facts, family, quirks=quirks)
    params = ResponseCreateParamsStreaming if prompt.stream else ResponseCreateParamsNonStreaming
    closed = with_config(ConfigDict(extra="forbid"))(params)
    TypeAdapter(closed).validate_python(written)
    with pytest.raises(ValidationError, match="made_up"):
        TypeAdapter(closed).validate_python({**written, "made_up": 1})


@pytest.mark.parametrize("case", CASES)
def test_the_vendors_sdk_sends_the_same(case: str) -> None:
    prompt, facts, family, quirks, _ = CASES[case]
    written, _ = body(prompt, facts, family, quirks=quirks)
    with (
        speaking(dialect(RESPONSES), Client()) as upstream,
        OpenAI(base_url=upstream.url, api_key="k", max_retries=0) as client,
    ):
        answer = client.responses.create(**written)
        if prompt.stream:
            answer.close()
        assert upstream.bodies == [written]


# --- every dialect --------------------------------------------------------------------------------

PNG = Inline("image/png", "iVBORw0KGgo=")
PDF = Inline("application/pdf", "JVBERi0xLjQ=")
EVERY_TOOL = (
    FunctionTool("get_weather", "Get the weather", SCHEMA),
    FunctionTool("now", None, {"type": "object", "properties": {}}),
)
ABLE = Facts(reasoning=True, efforts=("low", "medium", "high"), verbosity=True)


@st.composite
def conversations(draw: st.DrawFn, spoken: str) -> tuple[Message, ...]:
    messages = [Message("system", (Text(draw(words)),))] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 2))):
        messages.append(Message("user", (Text(draw(words)),)))
        call = ToolCall(f"call_{number}", "get_weather", '{"city":"Oslo"}')
        if draw(st.booleans()):
            messages.append(Message("assistant", (Text(draw(words)), call)))
            messages.append(Message("tool", (ToolResult(call.id, (Text(draw(words)),)),)))
        messages.append(Message("assistant", (Text(draw(words).strip()),)))
    paper = Document(PDF, None if spoken == "gemini" else "a.pdf")  # whose files have no titles
    attached: tuple[Part, ...] = (Image(PNG), Image(Link("https://example.com/a.png")), paper)
    chosen = draw(st.lists(st.sampled_from(attached), max_size=2, unique_by=repr))
    messages.append(Message("user", (Text(draw(words)), *chosen)))
    return tuple(messages)


@st.composite
def prompts(draw: st.DrawFn, spoken: str) -> Prompt:
    """Anything that may be asked for in a dialect."""
    means = dialect(spoken).support

    def maybe(strategy: st.SearchStrategy[Any], *, sayable: bool = True) -> Any:
        return draw(st.none() | strategy) if sayable else None

    values = {
        "max_tokens": st.integers(1, 4000),
        "temperature": st.sampled_from((0, 0.5, 1)),
        "top_p": st.just(0.9),
        "top_k": st.integers(1, 40),
        "stop": st.just(("END",)),
        "seed": st.integers(0, 9),
        "presence_penalty": st.just(0.5),
        "frequency_penalty": st.just(-0.5),
    }
    tools = EVERY_TOOL if draw(st.booleans()) else ()
    choices = (ToolChoice("auto"), ToolChoice("none"), ToolChoice("required"), ToolChoice("named", ("now",)))
    return Prompt(
        draw(conversations(spoken)),
        tools=tools,
        instructions=maybe(st.sampled_from(("", "Be brief."))),
        output_schema=maybe(st.just(SCHEMA)),
        effort=maybe(st.sampled_from(ABLE.efforts or ())),
        summary=maybe(st.sampled_from(means.summaries)),
        verbosity=maybe(st.sampled_from(("low", "high")), sayable=means.verbosity),
        tool_choice=maybe(st.sampled_from(choices), sayable=bool(tools)),
        parallel_tool_calls=maybe(st.booleans(), sayable=means.one_call),
        conversation=draw(st.sampled_from(("", "c-1"))),
        stream=draw(st.booleans()),
        **{name: maybe(strategy, sayable=name in means.options) for name, strategy in values.items()},
    )


@pytest.mark.parametrize("spoken", NAMES[:4])
@given(data=st.data())
def test_request_is_written_without_losses_or_errors(spoken: str, data: st.DataObject) -> None:
    prompt = data.draw(prompts(spoken))
    quirks = data.draw(
        st.sampled_from(
            (
                NO_QUIRKS,
                Quirks(store=True, cache_key=True),
                Quirks(max_tokens_field="max_tokens", developer_role=False),
            )
        )
    )
    family = Family(base_instructions="Be kind.", supports_reasoning_summaries=True, default_effort="low")
    try:
        written, report = body(prompt, ABLE, family, spoken=spoken, quirks=quirks)
    except Fault as fault:  # what the API refuses together is refused before anything is written
        if "a summary needs thinking" not in fault.message:
            raise
        return
    assert report.losses == ()
    problems = dialect(spoken).problems(dialect(spoken).read_request(written))
    assert [problem for problem in problems if problem.severity == "error"] == []


@pytest.mark.parametrize("spoken", NAMES[:4])
def test_declared_option_support_matches_the_writer(spoken: str) -> None:
    values = {
        "max_tokens": 9,
        "temperature": 1,
        "top_p": 1,
        "top_k": 4,
        "stop": ("END",),
        "seed": 7,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.5,
    }
    for name, value in values.items():
        report = Report()
        dialect(spoken).write_request(Request(messages=HELLO, options=Options(**{name: value})), Target(), report)
        assert (name in dialect(spoken).support.options) is not any(loss.what == name for loss in report.losses), name
