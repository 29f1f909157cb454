"""The vendor's own SDK against this dialect: what it sends is read whole, what we write it understands."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from sightline.dialects.dialect import Client, Target
from sightline.dialects.openai_chat import DIALECT
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    Finished,
    LogprobsReceived,
    RefusalReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.parts import Citation
from sightline.model.reply import TokenLogprob, Usage
from sightline.model.report import Report
from sightline.wire.sse import SseDecoder
from tests.contract.loopback import Upstream, speaking
from tests.dialects.reports import without_nulls

CASES = sorted((Path(__file__).parents[1] / "wire_cases" / "openai-chat").iterdir())
ASK: Any = {"model": "gpt-5.2", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with speaking(DIALECT, Client()) as listening:
        listening.events = PLAIN
        yield listening


@pytest.fixture
def client(upstream: Upstream) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="sk-test", max_retries=0) as sdk:
        yield sdk


def tool(name: str, **more: Any) -> Any:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}, **more}}


RICH: list[dict[str, Any]] = [
    ASK,
    {
        **ASK,
        "messages": [
            {"role": "developer", "content": "Be brief.", "name": "rules"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "high"}},
                    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                    {"type": "file", "file": {"file_id": "file-1"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
                    {"id": "call_2", "type": "custom", "custom": {"name": "g", "input": "free"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "one"}]},
            {"role": "tool", "tool_call_id": "call_2", "content": "two"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            {"role": "user", "content": "Again."},
        ],
        "tools": [
            tool("f", strict=True, description="F."),
            {
                "type": "custom",
                "custom": {
                    "name": "g",
                    "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: A"}},
                },
            },
        ],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
        },
        "parallel_tool_calls": False,
    },
    {
        **ASK,
        "max_completion_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "seed": 7,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "logit_bias": {"50256": -100},
        "logprobs": True,
        "top_logprobs": 2,
        "n": 2,
        "verbosity": "low",
        "prompt_cache_key": "key",
        "prompt_cache_retention": "24h",
        "store": True,
        "metadata": {"run": "1"},
        "user": "u",
        "safety_identifier": "s",
        "service_tier": "flex",
        "reasoning_effort": "low",
        "modalities": ["text"],
        "prediction": {"type": "content", "content": "x"},
        "web_search_options": {"search_context_size": "low"},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "strict": True, "schema": {"type": "object", "properties": {}}},
        },
        "extra_body": {"x_vendor": {"deep": [1, 2]}, "top_k": 5},
    },
    {
        **ASK,
        "functions": [{"name": "old", "parameters": {"type": "object", "properties": {}}}],
        "function_call": {"name": "old"},
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
            {"role": "function", "name": "old", "content": "done"},
        ],
    },
]


@pytest.mark.parametrize("arguments", RICH)
def test_what_the_sdk_sends_is_read_and_written_as_it_was(upstream, client, arguments):
    client.chat.completions.create(**arguments)
    [body] = upstream.bodies
    report = Report()
    assert without_nulls(DIALECT.write_request(DIALECT.read_request(body), Target(), report)) == without_nulls(body)
    assert report.losses == ()


def test_a_streamed_request_of_the_sdk_asks_for_its_usage(upstream, client):
    list(client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True}))
    options = DIALECT.read_request(upstream.bodies[0]).options
    assert (options.stream, options.include_usage) == (True, True)


def test_what_the_parsing_helper_sends_is_read_and_written_as_it_was(upstream, client):
    with client.chat.completions.stream(**ASK, tools=[tool("f", strict=True)]) as stream:
        stream.until_done()
    [body] = upstream.bodies
    assert DIALECT.write_request(DIALECT.read_request(body), Target(), Report()) == body


# --- replies --------------------------------------------------------------------------------------

END: list[StreamEvent] = [Finished("stop"), Ended()]
USAGE = UsageReceived(
    Usage(input_tokens=100, output_tokens=20, cached_tokens=64, reasoning_tokens=8, cache_write_tokens=0)
)
BEGUN: list[StreamEvent] = [Started("chatcmpl-1", "gpt-5.2", 1767225600)]
PLAIN = [*BEGUN, TextReceived(1, "Hel"), TextReceived(1, "lo é"), USAGE, *END]
ANSWERS: dict[str, list[StreamEvent]] = {
    "text": PLAIN,
    "reasoning with a foreign seal": [
        *BEGUN,
        ThinkingReceived(0, "Let me"),
        ThinkingReceived(0, " see."),
        SignatureReceived(0, "c2ln", "anthropic"),
        TextReceived(1, "Yes."),
        USAGE,
        *END,
    ],
    "parallel calls": [
        *BEGUN,
        TextReceived(1, "Looking."),
        ToolCallBegun(4, "call_1", "f"),
        ArgumentsReceived(4, '{"a"'),
        ToolCallBegun(5, "call_2", "f"),
        ArgumentsReceived(4, ": 1}"),
        ArgumentsReceived(5, "{}"),
        ToolCallCompleted(4),
        ToolCallCompleted(5),
        Finished("tool_calls"),
        USAGE,
        Ended(),
    ],
    "a signed call": [
        *BEGUN,
        ToolCallBegun(4, "call_1", "f"),
        SignatureReceived(4, "c2ln", "gemini"),
        ArgumentsReceived(4, "{}"),
        ToolCallCompleted(4),
        Finished("tool_calls"),
        Ended(),
    ],
    "a refusal": [*BEGUN, RefusalReceived(2, "I "), RefusalReceived(2, "cannot."), Finished("refusal"), Ended()],
    "cut at the limit": [*BEGUN, TextReceived(1, "Hel"), Finished("length"), Ended()],
    "likelihoods": [
        *BEGUN,
        TextReceived(1, "a"),
        LogprobsReceived((TokenLogprob("a", -0.5, (97,), (TokenLogprob("b", -1.0, (98,)),)),)),
        *END,
    ],
    "two choices": [
        *BEGUN,
        TextReceived(1, "a"),
        TextReceived(1, "b", 1),
        Finished("stop"),
        Finished("length", 1),
        Ended(),
    ],
    "nothing": [*BEGUN, *END],
}


def matters(completion: Any) -> Any:
    """What a caller reads of a completion; the accumulator adds parsed forms and leaves out what is empty."""
    dumped = json.loads(completion.model_dump_json())
    for key in ("object", "service_tier", "system_fingerprint"):
        dumped.pop(key, None)
    for choice in dumped["choices"]:
        message = choice["message"]
        message.pop("parsed", None)
        message["content"] = message["content"] or None
        for call in message.get("tool_calls") or []:
            call.pop("index", None)
            (call.get("function") or {}).pop("parsed_arguments", None)
        if not message.get("tool_calls"):
            message.pop("tool_calls", None)
    return without_nulls(dumped)


@pytest.mark.parametrize("events", ANSWERS.values(), ids=ANSWERS)
def test_the_sdks_accumulator_makes_of_our_stream_what_it_makes_of_our_reply(upstream, client, events):
    upstream.events = events
    whole = client.chat.completions.create(**ASK)
    with client.chat.completions.stream(**ASK) as stream:
        # A truncated answer is read with the plain reader: the helper refuses to complete it, as it should.
        accumulated = None if "length" in str(events) else stream.get_final_completion()
    if accumulated is not None:
        assert matters(accumulated) == matters(whole)
    text = [choice.message.content or "" for choice in whole.choices]
    streamed = [""] * len(text)
    finishes: dict[int, str] = {}
    for chunk in client.chat.completions.create(**ASK, stream=True):
        for choice in chunk.choices:
            streamed[choice.index] += choice.delta.content or ""
            if choice.finish_reason:
                finishes[choice.index] = choice.finish_reason
    assert streamed == text
    assert finishes == {choice.index: choice.finish_reason for choice in whole.choices}


def test_the_sdk_finds_every_field_where_it_looks_for_it(upstream, client):
    cited = CitationReceived(1, Citation(url="https://example.org", title="T", start=0, end=3))
    upstream.events = [*ANSWERS["parallel calls"][:2], cited, *ANSWERS["parallel calls"][2:]]
    completion = client.chat.completions.create(**ASK)
    message = completion.choices[0].message
    assert [(call.id, call.function.arguments) for call in message.tool_calls] == [
        ("call_1", '{"a": 1}'),
        ("call_2", "{}"),
    ]
    assert message.annotations[0].url_citation.url == "https://example.org"
    assert completion.usage.prompt_tokens_details.cached_tokens == 64
    assert completion.usage.completion_tokens_details.reasoning_tokens == 8
    assert (completion.id, completion.model, completion.created) == ("chatcmpl-1", "gpt-5.2", 1767225600)


def test_custom_calls_arrive_as_the_sdk_types_them(upstream, client):
    upstream.events = [
        *BEGUN,
        ToolCallBegun(4, "call_1", "g", kind="custom"),
        ArgumentsReceived(4, "free "),
        ArgumentsReceived(4, "text"),
        ToolCallCompleted(4),
        Finished("tool_calls"),
        Ended(),
    ]
    [call] = client.chat.completions.create(**ASK).choices[0].message.tool_calls
    assert (call.type, call.custom.name, call.custom.input) == ("custom", "g", "free text")
    pieces = [
        call.model_extra["custom"]["input"]
        for chunk in client.chat.completions.create(**ASK, stream=True)
        for choice in chunk.choices
        for call in choice.delta.tool_calls or []
    ]
    assert "".join(pieces) == "free text"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_our_telling_of_every_wire_case_is_read_by_the_sdk(upstream, client, case):
    decoder, reader = SseDecoder(), DIALECT.stream_reader()
    data = (case / "stream.sse").read_bytes()
    events = [event for frame in [*decoder.feed(data), *decoder.close()] for event in reader.feed(frame)]
    upstream.events = [*events, *reader.close()]
    said = "".join(
        choice.delta.content or ""
        for chunk in client.chat.completions.create(**ASK, stream=True)
        for choice in chunk.choices
        if choice.index == 0
    )
    assert said == (client.chat.completions.create(**ASK).choices[0].message.content or "")


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (Code.INVALID_REQUEST, openai.BadRequestError),
        (Code.CONTEXT_OVERFLOW, openai.BadRequestError),
        (Code.AUTH, openai.AuthenticationError),
        (Code.PERMISSION, openai.PermissionDeniedError),
        (Code.MODEL_UNKNOWN, openai.NotFoundError),
        (Code.RATE_LIMITED, openai.RateLimitError),
        (Code.QUOTA, openai.RateLimitError),
        (Code.OVERLOADED, openai.InternalServerError),
        (Code.UPSTREAM_PROTOCOL, openai.InternalServerError),
        (Code.REQUEST_TOO_LARGE, openai.APIStatusError),
    ],
)
def test_an_error_body_raises_the_sdks_own_exception(upstream, client, code, raised):
    upstream.fault = Fault(code, "the provider's words", pointer="/messages/0", details={"param": "messages"})
    with pytest.raises(raised) as caught:
        client.chat.completions.create(**ASK)
    assert "the provider's words" in str(caught.value)
    assert caught.value.status_code == DIALECT.write_error(upstream.fault)[0]
    assert caught.value.param == "messages"


def test_an_error_within_a_stream_raises_and_is_no_success(upstream, client):
    failed = Failed(Fault(Code.OVERLOADED, "the provider's words"))
    upstream.events = [*BEGUN, TextReceived(1, "Hel"), failed, Ended()]
    heard: list[str] = []

    def listen() -> None:
        chunks = client.chat.completions.create(**ASK, stream=True)
        heard.extend(chunk.choices[0].delta.content for chunk in chunks)

    with pytest.raises(openai.APIError, match="the provider's words") as caught:
        listen()
    assert heard == ["Hel"]
    assert caught.value.code == "server_is_overloaded"
