"""The vendor's own SDK sends to us and reads from us: its requests round-trip, our replies and streams satisfy it."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from sightline.dialects.dialect import Client, Target
from sightline.dialects.openai_responses import DIALECT
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    Finished,
    LogprobsReceived,
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
from sightline.model.fold import fold
from sightline.model.parts import Citation, Image, Inline, Thinking
from sightline.model.reply import TokenLogprob, Usage
from sightline.model.report import Report
from tests.contract.loopback import Upstream, speaking

CLIENT = Client(id="resp_c", model="gpt-5.5", created=1794700800)

START: list[StreamEvent] = [Started("resp_1", "gpt-5.5", 1794700800)]
END: list[StreamEvent] = [
    UsageReceived(Usage(input_tokens=12, output_tokens=5, cached_tokens=4, reasoning_tokens=2)),
    Finished("stop"),
    Ended(),
]
CALLS: list[StreamEvent] = [
    ToolCallBegun(5, "call_1", "weather"),
    ArgumentsReceived(5, '{"city"'),
    ArgumentsReceived(5, ':"Oslo"}'),
    ToolCallCompleted(5),
    ToolCallBegun(6, "call_2", "note", kind="custom"),
    ArgumentsReceived(6, "free text"),
    ToolCallCompleted(6),
]
ANSWERS: dict[str, list[StreamEvent]] = {
    "text": [*START, TextReceived(0, "Hello "), TextReceived(0, "world"), *END],
    "thinking": [
        *START,
        ThinkingReceived(0, "First. ", summary=True),
        ThinkingReceived(0, "Second.", piece=1, summary=True),
        SignatureReceived(0, "sig", "anthropic"),
        PartReceived(1, Thinking(signature="data", signed_by="anthropic", redacted=True)),
        ThinkingReceived(2, "plain reasoning"),
        TextReceived(3, "Answer."),
        *END,
    ],
    "calls": [*START, TextReceived(0, "Let me see."), *CALLS, *END],
    "cited": [
        *START,
        TextReceived(0, "See here."),
        CitationReceived(0, Citation(url="https://e.org", title="E", start=0, end=3)),
        LogprobsReceived((TokenLogprob("See here.", -0.2, None, (TokenLogprob("See", -1.0, (83,)),)),)),
        TextReceived(1, " And here."),
        *END,
    ],
    "refusal": [*START, RefusalReceived(0, "I cannot "), RefusalReceived(0, "do that."), *END],
    "picture": [*START, PartReceived(0, Image(Inline("image/png", "iVBORw0KGgo="))), TextReceived(1, "A cat."), *END],
    "empty": [*START, *END],
}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with speaking(DIALECT, CLIENT) as listening:
        yield listening


@pytest.fixture
def client(upstream: Upstream) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{upstream.url}/v1", api_key="none", max_retries=0) as sdk:
        yield sdk


def whole(events: list[StreamEvent]) -> Any:
    return DIALECT.write_reply(fold(events), CLIENT, Report())


def as_json(items: Any) -> Any:
    """The SDK's own items as JSON, without what it adds for convenience."""
    kept = [item.model_dump(mode="json", exclude_unset=True) for item in items]
    return [_without(item, ("parsed", "parsed_arguments")) for item in kept]


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _without(inner, names) for key, inner in value.items() if key not in names}
    return [_without(inner, names) for inner in value] if isinstance(value, list) else value


# --- requests -------------------------------------------------------------------------------------


class Animal(BaseModel):
    kind: str


RICH: dict[str, Any] = {
    "model": "gpt-5.5",
    "instructions": "Be brief.",
    "input": [
        {"role": "developer", "content": "Use tools."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is it?"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"at": "it"}', "id": "fc_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "a cat"}]},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "note", "input": "cat?"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "noted"},
        {"type": "item_reference", "id": "msg_1"},
    ],
    "tools": [
        {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False},
        {"type": "custom", "name": "note", "format": {"type": "grammar", "syntax": "regex", "definition": ".+"}},
        {"type": "web_search", "search_context_size": "low"},
    ],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]},
    "parallel_tool_calls": False,
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"verbosity": "low"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
    "max_output_tokens": 400,
    "temperature": 0.3,
    "metadata": {"a": "b"},
    "prompt_cache_key": "k",
    "service_tier": "flex",
    "truncation": "auto",
    "extra_body": {"vendor_field": {"deep": [1, 2]}},
}


def test_a_rich_request_of_the_sdk_comes_back_as_it_was(client: OpenAI, upstream: Upstream) -> None:
    upstream.events = ANSWERS["text"]
    client.responses.create(**RICH)
    (sent,) = upstream.bodies
    assert sent["vendor_field"] == {"deep": [1, 2]}
    assert DIALECT.write_request(DIALECT.read_request(sent), Target(), Report()) == sent
    assert DIALECT.problems(DIALECT.read_request(sent)) == []


def test_a_parsed_format_of_the_sdk_comes_back_as_it_was(client: OpenAI, upstream: Upstream) -> None:
    upstream.events = [*START, TextReceived(0, '{"kind":"cat"}'), *END]
    parsed = client.responses.parse(model="gpt-5.5", input="What is it?", text_format=Animal)
    assert parsed.output_parsed == Animal(kind="cat")
    (sent,) = upstream.bodies
    assert DIALECT.write_request(DIALECT.read_request(sent), Target(), Report()) == sent


def test_what_the_sdk_gives_back_in_the_next_turn_comes_back_as_it_was(client: OpenAI, upstream: Upstream) -> None:
    upstream.events = ANSWERS["calls"]
    answer = client.responses.create(model="gpt-5.5", input="Weather?")
    history: Any = [{"role": "user", "content": "Weather?"}, *answer.output]
    history += [{"type": "function_call_output", "call_id": "call_1", "output": "-3"}]
    client.responses.create(model="gpt-5.5", input=history)
    sent = upstream.bodies[1]
    assert DIALECT.write_request(DIALECT.read_request(sent), Target(), Report()) == sent


def test_a_foreign_signature_survives_a_turn_through_the_sdk(client: OpenAI, upstream: Upstream) -> None:
    upstream.events = ANSWERS["thinking"]
    answer = client.responses.create(model="gpt-5.5", input="Hi")
    history: Any = list(answer.output)
    client.responses.create(model="gpt-5.5", input=history)
    messages = DIALECT.read_request(upstream.bodies[1]).messages
    signed, redacted, plain = (part for message in messages for part in message.parts if isinstance(part, Thinking))
    assert (signed.text, signed.signature, signed.signed_by) == ("First. \n\nSecond.", "sig", "anthropic")
    assert (redacted.signature, redacted.redacted) == ("data", True)
    assert (plain.text, plain.signature, plain.signed_by) == ("plain reasoning", None, None)


# --- replies and streams --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_reply_satisfies_the_sdk(client: OpenAI, upstream: Upstream, name: str) -> None:
    upstream.events = ANSWERS[name]
    body = whole(ANSWERS[name])
    answer = client.responses.create(model="gpt-5.5", input="Hi")
    openai.types.responses.Response.model_validate(body)
    assert as_json(answer.output) == body["output"]
    assert (answer.id, answer.status) == ("resp_1", "completed")
    assert answer.usage.total_tokens == 17


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_satisfies_the_sdk(client: OpenAI, upstream: Upstream, name: str) -> None:
    upstream.events = ANSWERS[name]
    events = list(client.responses.create(model="gpt-5.5", input="Hi", stream=True))
    for event in events:
        type(event).model_validate(event.model_dump(exclude_unset=True, by_alias=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    last = events[-1]
    assert last.type == "response.completed"
    assert as_json(last.response.output) == whole(ANSWERS[name])["output"]


@pytest.mark.parametrize("name", ANSWERS)
def test_the_accumulator_of_the_sdk_arrives_at_the_whole_reply(client: OpenAI, upstream: Upstream, name: str) -> None:
    upstream.events = ANSWERS[name]
    tools: Any = [{"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}]
    with client.responses.stream(model="gpt-5.5", input="Hi", tools=tools) as stream:
        spoken = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    body = whole(ANSWERS[name])
    assert as_json(final.output) == body["output"]
    assert final.output_text == spoken
    assert final.usage.input_tokens_details.cached_tokens == 4


def test_a_stream_that_was_cut_off_says_why(client: OpenAI, upstream: Upstream) -> None:
    upstream.events = [*START, TextReceived(0, "Once"), Finished("length"), Ended()]
    last = list(client.responses.create(model="gpt-5.5", input="Hi", stream=True))[-1]
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details.reason == "max_output_tokens"


def test_a_stream_that_fails_is_no_success(client: OpenAI, upstream: Upstream) -> None:
    upstream.events = [*START, TextReceived(0, "So"), Failed(Fault(Code.RATE_LIMITED, "slow down")), Ended()]
    last = list(client.responses.create(model="gpt-5.5", input="Hi", stream=True))[-1]
    assert last.type == "response.failed"
    assert (last.response.error.code, last.response.error.message) == ("rate_limit_exceeded", "slow down")
    with client.responses.stream(model="gpt-5.5", input="Hi") as stream, pytest.raises(RuntimeError):
        stream.get_final_response()


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected", "word"),
    [
        (Code.INVALID_REQUEST, openai.BadRequestError, None),
        (Code.CONTEXT_OVERFLOW, openai.BadRequestError, "context_length_exceeded"),
        (Code.AUTH, openai.AuthenticationError, "invalid_api_key"),
        (Code.PERMISSION, openai.PermissionDeniedError, "insufficient_permissions"),
        (Code.MODEL_UNKNOWN, openai.NotFoundError, "model_not_found"),
        (Code.RATE_LIMITED, openai.RateLimitError, "rate_limit_exceeded"),
        (Code.QUOTA, openai.RateLimitError, "insufficient_quota"),
        (Code.OVERLOADED, openai.InternalServerError, "server_is_overloaded"),
        (Code.UPSTREAM_ERROR, openai.InternalServerError, "upstream_error"),
    ],
)
def test_errors_are_the_exceptions_of_the_sdk(
    client: OpenAI, upstream: Upstream, code: Code, expected: type[openai.APIStatusError], word: str | None
) -> None:
    upstream.fault = Fault(code, "these words")
    with pytest.raises(expected) as caught:
        client.responses.create(model="gpt-5.5", input="Hi")
    assert caught.value.code == word
    assert "these words" in caught.value.message
