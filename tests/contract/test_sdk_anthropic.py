"""The real anthropic SDK against what we write, and what it sends against what we read."""

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from sightline.dialects.anthropic import DIALECT
from sightline.dialects.dialect import Client, Target
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    Finished,
    PartReceived,
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
from sightline.model.parts import Citation, Opaque, Thinking
from sightline.model.reply import Usage
from sightline.model.report import Report
from tests.contract.loopback import Upstream, speaking


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with speaking(DIALECT, Client(model="asked", input_tokens=5)) as listening:
        yield listening


@pytest.fixture
def sdk(upstream: Upstream) -> Iterator[anthropic.Anthropic]:
    address = upstream.url
    with anthropic.Anthropic(base_url=address, api_key="sk-ant-none", max_retries=0) as client:
        yield client


ASK: Any = {"model": "claude-opus-4-8", "max_tokens": 4096, "messages": [{"role": "user", "content": "hi"}]}
COUNTS = UsageReceived(
    Usage(input_tokens=120, output_tokens=30, cached_tokens=100, cache_write_tokens=5, reasoning_tokens=7)
)
CITATION: Any = {
    "type": "char_location",
    "cited_text": "x",
    "document_index": 0,
    "document_title": "T",
    "start_char_index": 0,
    "end_char_index": 1,
    "file_id": None,
}

SEARCH: Any = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}

REPLIES: dict[str, list[StreamEvent]] = {
    "text": [Started("m1", "gpt"), TextReceived(0, "Hel"), TextReceived(0, "lo 😀"), COUNTS, Finished("stop"), Ended()],
    "no model and no counts": [TextReceived(0, "a"), Finished("length"), Ended()],
    "nothing": [Started("m1"), Finished("stop", stop_sequence="END"), Ended()],
    "thinking and parallel calls": [
        Started("m1", "gpt"),
        ThinkingReceived(0, "first", summary=True),
        ThinkingReceived(0, "second", summary=True, piece=1),
        SignatureReceived(0, "gAAA", "openai-responses", id="rs_1"),
        PartReceived(1, Thinking(signature="EmwK", signed_by="anthropic", redacted=True)),
        TextReceived(2, "I call."),
        ToolCallBegun(3, "c1", "f"),
        ArgumentsReceived(3, '{"a": [1, '),
        ToolCallBegun(4, "c2", "g"),
        ArgumentsReceived(4, "{}"),
        ArgumentsReceived(3, "2]}"),
        ToolCallCompleted(3),
        ToolCallCompleted(4),
        ToolCallBegun(5, "", "patch", kind="custom"),
        ArgumentsReceived(5, "*** Begin"),
        ToolCallCompleted(5),
        COUNTS,
        Finished("tool_calls"),
        Ended(),
    ],
    "sealed call": [
        Started("m1", "gemini"),
        ToolCallBegun(0, "c1", "f"),
        SignatureReceived(0, "sig", "gemini"),
        ToolCallCompleted(0),
        Finished("stop"),
        Ended(),
    ],
    "citations and a server tool": [
        Started("m1", "claude"),
        PartReceived(0, Opaque("anthropic", SEARCH)),
        TextReceived(1, "It is so."),
        CitationReceived(1, Citation(value=CITATION)),
        Finished("pause"),
        Ended(),
    ],
    "refusal": [Started("m1", "gpt"), RefusalReceived(0, "I cannot."), Finished("content_filter"), Ended()],
}  # fmt: skip


@pytest.mark.parametrize("events", REPLIES.values(), ids=REPLIES)
def test_the_accumulated_stream_is_the_whole_message(upstream: Upstream, sdk: anthropic.Anthropic, events: Any) -> None:
    upstream.events = events
    whole = sdk.messages.create(**ASK)
    with sdk.messages.stream(**ASK) as stream:
        texts = list(stream.text_stream)
        streamed = stream.get_final_message()
    assert plain(streamed) == plain(whole)
    assert "".join(texts) == "".join(block.text for block in whole.content if block.type == "text")


def plain(message: Any) -> dict[str, Any]:
    """The message as data. The accumulator's text blocks have one more field, for an answer parsed by a schema."""
    data: dict[str, Any] = message.to_dict(exclude_unset=False)
    for block in data["content"]:
        assert block.pop("parsed_output", None) is None
    return data


def test_the_blocks_are_what_the_sdk_knows(upstream: Upstream, sdk: anthropic.Anthropic) -> None:
    upstream.events = REPLIES["thinking and parallel calls"]
    with sdk.messages.stream(**ASK) as stream:
        message = stream.get_final_message()
    kinds = ["thinking", "redacted_thinking", "text", "tool_use", "tool_use", "tool_use"]
    assert [block.type for block in message.content] == kinds
    assert [block.input for block in message.content if block.type == "tool_use"] == [
        {"a": [1, 2]},
        {},
        {"input": "*** Begin"},
    ]
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens == 15
    assert message.usage.cache_read_input_tokens == 100
    assert message.usage.output_tokens == 30


def test_a_signature_comes_back_through_the_sdk(upstream: Upstream, sdk: anthropic.Anthropic) -> None:
    upstream.events = REPLIES["thinking and parallel calls"]
    message = sdk.messages.create(**ASK)
    results: Any = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
        for block in message.content
        if block.type == "tool_use"
    ]
    sdk.messages.create(
        **{**ASK, "messages": [*ASK["messages"], message.to_param(), {"role": "user", "content": results}]}
    )
    request = DIALECT.read_request(upstream.bodies[-1])
    thinking = request.messages[1].parts[0]
    assert isinstance(thinking, Thinking)
    assert (thinking.signature, thinking.signed_by, thinking.id) == ("gAAA", "openai-responses", "rs_1")


RICH: dict[str, Any] = {
    "tools and thinking": {
        **ASK,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "tools": [
            {"name": "f", "description": "F", "input_schema": {"type": "object", "properties": {}}, "strict": True},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"},
        "metadata": {"user_id": "u"},
        "stop_sequences": ["END"],
        "service_tier": "standard_only",
        "inference_geo": "eu",
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "extra_body": {"temperature": 1, "top_k": 5, "context_management": {"edits": []}},
    },
    "documents and results": {
        **ASK,
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                        "citations": {"enabled": True},
                    },
                    {"type": "text", "text": "read", "cache_control": {"type": "ephemeral"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "", "signature": "EqQB"},
                    {"type": "redacted_thinking", "data": "EmwK"},
                    {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no"}, {"type": "tool_reference", "tool_name": "g"}],
                    }
                ],
            },
            {"role": "system", "content": "Hurry."},
        ],
    },
}


@pytest.mark.parametrize("arguments", RICH.values(), ids=RICH)
def test_what_the_sdk_sends_is_read_and_written_back_as_it_was(
    upstream: Upstream, sdk: anthropic.Anthropic, arguments: Any
) -> None:
    upstream.events = REPLIES["text"]
    sdk.messages.create(**arguments)
    with sdk.messages.stream(**arguments) as stream:
        stream.until_done()
    for body in upstream.bodies:
        report = Report()
        assert DIALECT.write_request(DIALECT.read_request(body), Target(), report) == body
        assert not report.losses
    assert upstream.bodies[1]["stream"] is True


@pytest.mark.parametrize(
    ("fault", "error", "word"),
    [
        (Fault(Code.INVALID_REQUEST, "no"), anthropic.BadRequestError, "invalid_request_error"),
        (Fault(Code.AUTH, "no"), anthropic.AuthenticationError, "authentication_error"),
        (Fault(Code.PERMISSION, "no"), anthropic.PermissionDeniedError, "permission_error"),
        (Fault(Code.MODEL_UNKNOWN, "no"), anthropic.NotFoundError, "not_found_error"),
        (Fault(Code.REQUEST_TOO_LARGE, "no"), anthropic.APIStatusError, "request_too_large"),
        (Fault(Code.RATE_LIMITED, "no"), anthropic.RateLimitError, "rate_limit_error"),
        (Fault(Code.OVERLOADED, "no"), anthropic.InternalServerError, "overloaded_error"),
        (Fault(Code.TIMEOUT_IDLE, "no"), anthropic.InternalServerError, "timeout_error"),
        (Fault(Code.NETWORK, "no"), anthropic.InternalServerError, "api_error"),
    ],
)
def test_every_fault_is_the_sdks_own_error(
    upstream: Upstream, sdk: anthropic.Anthropic, fault: Fault, error: Any, word: str
) -> None:
    upstream.fault = fault
    with pytest.raises(error) as caught:
        sdk.messages.create(**ASK)
    assert caught.value.type == word
    assert caught.value.api_message == "no"


@pytest.mark.parametrize("begun", [[], REPLIES["text"][:2]])
def test_a_stream_that_fails_raises(upstream: Upstream, sdk: anthropic.Anthropic, begun: Any) -> None:
    upstream.events = [*begun, Failed(Fault(Code.OVERLOADED, "Overloaded")), Ended()]
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"), sdk.messages.stream(**ASK) as stream:
        stream.get_final_message()
