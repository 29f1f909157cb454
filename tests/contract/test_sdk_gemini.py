"""The real google-genai SDK against what we write, and what it sends against what we read."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from sightline.dialects.dialect import Client, Target
from sightline.dialects.gemini import DIALECT
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    Finished,
    LogprobsReceived,
    PartReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.parts import Citation, Image, Inline, Thinking
from sightline.model.reply import TokenLogprob, Usage
from sightline.model.report import Report
from tests.contract.loopback import Upstream, speaking


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with speaking(DIALECT, Client(model="asked")) as listening:
        yield listening


@pytest.fixture
def sdk(upstream: Upstream) -> Iterator[genai.Client]:
    address = upstream.url
    options = types.HttpOptions(base_url=address, retry_options=types.HttpRetryOptions(attempts=1))
    client = genai.Client(api_key="none", vertexai=False, http_options=options)
    yield client
    client.close()


ANSWER: list[StreamEvent] = [
    Started("r-1", "gemini-3-pro", 1773154485),
    ThinkingReceived(0, "Let me "),
    ThinkingReceived(0, "see."),
    SignatureReceived(0, "SIG", "anthropic"),
    TextReceived(1, "Wörter"),
    TextReceived(1, " und mehr"),
    CitationReceived(1, Citation(url="https://example.com", title="E", start=0, end=6)),
    SignatureReceived(1, "c2ln", "gemini"),
    PartReceived(2, Image(Inline("image/png", "iVBORw0KGgo="))),
    ToolCallBegun(3, "fc_1", "look"),
    SignatureReceived(3, "c2lnMg==", "gemini"),
    ToolCallBegun(4, "fc_2", "hear"),
    ArgumentsReceived(3, '{"at":'),
    ArgumentsReceived(4, "{}"),
    ArgumentsReceived(3, '"sky"}'),
    ToolCallCompleted(3),
    ToolCallCompleted(4),
    LogprobsReceived((TokenLogprob("W", -0.5, top=(TokenLogprob("W", -0.5),)),)),
    UsageReceived(Usage(input_tokens=10, output_tokens=7, cached_tokens=4, reasoning_tokens=3)),
    Finished("tool_calls"),
    Ended(),
]


def check(parts: list[types.Part], last: types.GenerateContentResponse) -> None:
    """That the SDK understood the answer."""
    assert "".join(part.text for part in parts if part.thought and part.text) == "Let me see."
    assert "".join(part.text for part in parts if not part.thought and part.text) == "Wörter und mehr"
    seals = [part.thought_signature for part in parts if part.thought_signature]
    assert seals == [b"sightline:anthropic::SIG", b"sig", b"sig2"]
    assert [part.inline_data.mime_type for part in parts if part.inline_data] == ["image/png"]
    calls = [part.function_call for part in parts if part.function_call]
    assert [(call.id, call.name, call.args) for call in calls] == [
        ("fc_1", "look", {"at": "sky"}),
        ("fc_2", "hear", {}),
    ]
    candidate = last.candidates[0]
    assert candidate.finish_reason == types.FinishReason.STOP
    citation = candidate.citation_metadata.citations[0]
    assert (citation.uri, citation.title, citation.end_index) == ("https://example.com", "E", 7)
    assert candidate.logprobs_result.chosen_candidates[0].token == "W"
    usage = last.usage_metadata
    assert (usage.prompt_token_count, usage.cached_content_token_count) == (10, 4)
    assert (usage.candidates_token_count, usage.thoughts_token_count, usage.total_token_count) == (4, 3, 17)
    assert (last.response_id, last.model_version) == ("r-1", "gemini-3-pro")


def test_the_sdk_reads_our_whole_reply(upstream: Upstream, sdk: genai.Client) -> None:
    upstream.events = ANSWER
    reply = sdk.models.generate_content(model="gemini-3-pro", contents="hi")
    check(reply.candidates[0].content.parts, reply)
    assert [call.name for call in reply.function_calls] == ["look", "hear"]


def test_the_sdk_reads_our_stream(upstream: Upstream, sdk: genai.Client) -> None:
    upstream.events = ANSWER
    chunks = list(sdk.models.generate_content_stream(model="gemini-3-pro", contents="hi"))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    check(parts, chunks[-1])
    assert sum(chunk.candidates[0].finish_reason is not None for chunk in chunks) == 1


def test_the_sdk_keeps_several_candidates_apart(upstream: Upstream, sdk: genai.Client) -> None:
    upstream.events = [
        TextReceived(0, "a"),
        TextReceived(0, "b", 1),
        Finished("stop"),
        Finished("length", 1),
        Ended(),
    ]
    reply = sdk.models.generate_content(model="m", contents="hi")
    assert [candidate.content.parts[0].text for candidate in reply.candidates] == ["a", "b"]
    last = list(sdk.models.generate_content_stream(model="m", contents="hi"))[-1]
    assert [candidate.finish_reason.value for candidate in last.candidates] == ["STOP", "MAX_TOKENS"]


def test_what_the_sdk_echoes_finds_its_maker_again(upstream: Upstream, sdk: genai.Client) -> None:
    upstream.events = ANSWER
    chat = sdk.chats.create(model="gemini-3-pro")
    chat.send_message("hi")
    results = [
        types.Part(function_response=types.FunctionResponse(id=call_id, name=name, response={"output": "done"}))
        for call_id, name in (("fc_1", "look"), ("fc_2", "hear"))
    ]
    chat.send_message(results)
    request = DIALECT.read_request(upstream.bodies[-1])
    assert DIALECT.problems(request) == []
    thinking = request.messages[1].parts[0]
    assert isinstance(thinking, Thinking)
    assert (thinking.signature, thinking.signed_by) == ("SIG", "anthropic")
    assert request.messages[1].parts[1].signature == "c2ln"


TOOLS = [
    types.Tool(
        function_declarations=[
            types.FunctionDeclaration(
                name="look",
                description="Looks.",
                parameters=types.Schema(
                    type="OBJECT",
                    properties={
                        "at": types.Schema(type="STRING", nullable=True, enum=["sky", "sea"]),
                        "often": types.Schema(type="ARRAY", items=types.Schema(type="INTEGER"), min_items=1),
                    },
                    required=["at"],
                ),
            ),
            types.FunctionDeclaration(
                name="hear", parameters_json_schema={"type": "object", "additionalProperties": False}
            ),
        ]
    ),
    types.Tool(google_search=types.GoogleSearch()),
    types.Tool(code_execution=types.ToolCodeExecution()),
]
CONTENTS = [
    types.Content(
        role="user",
        parts=[
            types.Part.from_text(text="Look at these."),
            types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png"),
            types.Part.from_uri(file_uri="https://example.com/a.pdf", mime_type="application/pdf"),
            types.Part(
                file_data=types.FileData(file_uri="https://youtu.be/x"),
                video_metadata=types.VideoMetadata(fps=1.0, start_offset="1s"),
            ),
        ],
    ),
    types.Content(
        role="model",
        parts=[
            types.Part(text="Hm.", thought=True),
            types.Part(text="I look.", thought_signature=b"\xff\xfe\xfd"),
            types.Part(
                function_call=types.FunctionCall(id="1", name="look", args={"at": "sky"}), thought_signature=b"sig"
            ),
            types.Part(executable_code=types.ExecutableCode(code="1+1", language="PYTHON")),
            types.Part(code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK", output="2")),
        ],
    ),
    types.Content(
        role="user",
        parts=[
            types.Part(
                function_response=types.FunctionResponse(
                    id="1",
                    name="look",
                    response={"seen": ["a cloud"]},
                    parts=[
                        types.FunctionResponsePart(
                            inline_data=types.FunctionResponseBlob(mime_type="image/png", data=b"\x89PNG")
                        )
                    ],
                )
            )
        ],
    ),
]
CONFIG = types.GenerateContentConfig(
    system_instruction="Be brief.",
    temperature=0.5,
    top_p=0.9,
    top_k=40,
    candidate_count=1,
    max_output_tokens=100,
    stop_sequences=["END"],
    response_logprobs=True,
    logprobs=3,
    presence_penalty=0.1,
    frequency_penalty=0.2,
    seed=7,
    safety_settings=[types.SafetySetting(category="HARM_CATEGORY_HARASSMENT", threshold="BLOCK_NONE")],
    tools=TOOLS,
    tool_config=types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(mode="ANY", allowed_function_names=["look"])
    ),
    cached_content="cachedContents/1",
    response_modalities=["TEXT"],
    media_resolution="MEDIA_RESOLUTION_LOW",
    thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_level="HIGH"),
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    service_tier="flex",
    store=False,
)
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def camel(value: Any) -> Any:
    """The same in one spelling: the SDK itself mixes `mimeType` and `mime_type`."""
    if isinstance(value, dict):
        return {re.sub("_([a-z])", lambda hump: hump[1].upper(), key): camel(inner) for key, inner in value.items()}
    return [camel(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("contents", "config"),
    [
        (CONTENTS, CONFIG),
        ("hi", None),
        ("hi", types.GenerateContentConfig(response_mime_type="application/json")),
        ("hi", types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=SCHEMA)),
        ("hi", types.GenerateContentConfig(response_mime_type="application/json", response_schema=list[str])),
        ("hi", types.GenerateContentConfig(response_mime_type="text/x.enum", response_schema={"enum": ["a", "b"]})),
        ("hi", types.GenerateContentConfig(thinking_config=types.ThinkingConfig(thinking_budget=0))),
        (["a", types.Part.from_text(text="b")], types.GenerateContentConfig(system_instruction=["c", "d"])),
    ],
)
def test_what_the_sdk_sends_is_read_and_comes_back(
    upstream: Upstream, sdk: genai.Client, contents: Any, config: Any
) -> None:
    upstream.events = [TextReceived(0, '["a"]'), Finished("stop"), Ended()]
    sdk.models.generate_content(model="gemini-3-pro", contents=contents, config=config)
    body = upstream.bodies[0]
    request = DIALECT.read_request(body)
    report = Report()
    assert camel(DIALECT.write_request(request, Target(), report)) == camel(body)
    assert (report.losses, report.additions) == ((), ())


@pytest.mark.parametrize(
    ("code", "kind", "status"),
    [
        (Code.INVALID_REQUEST, errors.ClientError, "INVALID_ARGUMENT"),
        (Code.AUTH, errors.ClientError, "UNAUTHENTICATED"),
        (Code.PERMISSION, errors.ClientError, "PERMISSION_DENIED"),
        (Code.MODEL_UNKNOWN, errors.ClientError, "NOT_FOUND"),
        (Code.RATE_LIMITED, errors.ClientError, "RESOURCE_EXHAUSTED"),
        (Code.OVERLOADED, errors.ServerError, "UNAVAILABLE"),
        (Code.UPSTREAM_ERROR, errors.ServerError, "INTERNAL"),
        (Code.TIMEOUT_IDLE, errors.ServerError, "DEADLINE_EXCEEDED"),
    ],
)
def test_the_sdk_raises_its_own_error(
    upstream: Upstream, sdk: genai.Client, code: Code, kind: type[errors.APIError], status: str
) -> None:
    upstream.fault = Fault(code, "the words")
    with pytest.raises(kind) as caught:
        sdk.models.generate_content(model="m", contents="hi")
    assert (caught.value.status, caught.value.message) == (status, "the words")
    with pytest.raises(kind):
        list(sdk.models.generate_content_stream(model="m", contents="hi"))


def test_the_sdk_raises_in_the_middle_of_a_stream(upstream: Upstream, sdk: genai.Client) -> None:
    upstream.events = [TextReceived(0, "half"), Failed(Fault(Code.OVERLOADED, "busy")), Ended()]
    stream = sdk.models.generate_content_stream(model="m", contents="hi")
    assert next(stream).text == "half"
    with pytest.raises(errors.ServerError) as caught:
        next(stream)
    assert (caught.value.code, caught.value.status) == (503, "UNAVAILABLE")
