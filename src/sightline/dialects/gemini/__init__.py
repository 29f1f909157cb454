"""The dialect of the Gemini API: `generateContent` and `streamGenerateContent`, as Google's own clients speak it.

The URL, not the body, names the model; both spellings of every field are read, and camelCase is written. The package
may import the shared modules of `dialects`, `wire`, `model` and `errors`; it never does I/O and never reads another
dialect.
"""

import re
from collections.abc import Iterator, Sequence

from sightline.catalog.compose import DialectSupport
from sightline.dialects.conversation import SYSTEM_ROLES
from sightline.dialects.dialect import (
    CacheRules,
    Clients,
    Counting,
    Dialect,
    Editing,
    Endpoint,
    LeafPaths,
    ListedModel,
    PlainTexts,
    Problem,
    RequestRules,
    TokenRules,
    Unread,
)
from sightline.dialects.embeddings import GEMINI
from sightline.dialects.fields import compact
from sightline.dialects.gemini.errors import read_error, write_error
from sightline.dialects.gemini.field_names import NAME, both
from sightline.dialects.gemini.options import STOP_LIMIT
from sightline.dialects.gemini.reply_read import ReplyMachine, read_reply, read_text
from sightline.dialects.gemini.reply_write import StreamWriter, write_reply
from sightline.dialects.gemini.request import read_request, write_request
from sightline.dialects.streaming import StreamReader
from sightline.dialects.tool_names import NameRule
from sightline.dialects.validity import no_messages, tool_problems
from sightline.model.json import JsonObject
from sightline.model.parts import Opaque, Text, Thinking, ToolCall, ToolResult
from sightline.model.request import FunctionTool, Message, Request, SchemaFormat

NAMES = NameRule(re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"), 128)


def problems(request: Request) -> list[Problem]:
    """Every problem that the request would have in its current form."""
    contents = [message for message in request.messages if message.role not in SYSTEM_ROLES]
    return [
        *no_messages(request, "/contents"),
        *_empty(request.messages),
        *_pairing(contents),
        *_order(contents),
        *tool_problems(request, NAMES),
        *_schemas(request),
        *_settings(request),
    ]


def _empty(messages: tuple[Message, ...]) -> Iterator[Problem]:
    for message in messages:
        if not message.parts:
            yield Problem(message.at, "this content has no parts")
        for part in message.parts:
            if isinstance(part, Text) and not part.text and part.signature is None:
                yield Problem(part.at, "this text is empty")


def _pairing(contents: list[Message]) -> Iterator[Problem]:
    """Calls and results that do not match: the next content must answer every call, by id, or without ids by name and
    order."""
    waiting: list[ToolCall] = []
    for message in contents:
        for part in message.parts:
            if isinstance(part, ToolResult):
                call = next((call for call in waiting if _answers(part, call)), None)
                if call is None:
                    yield Problem(part.at, f"this function response ({part.name!r}) answers no call before it")
                else:
                    waiting.remove(call)
        yield from _missing_responses(waiting)
        waiting = [part for part in message.parts if isinstance(part, ToolCall)]
    yield from _missing_responses(waiting)


def _answers(result: ToolResult, call: ToolCall) -> bool:
    if result.id and call.id:
        return result.id == call.id
    return result.name == call.name


def _missing_responses(calls: list[ToolCall]) -> list[Problem]:
    return [Problem(call.at, f"the call of {call.name!r} has no response in the next content") for call in calls]


def _order(contents: list[Message]) -> Iterator[Problem]:
    for index, message in enumerate(contents):
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if calls and (index == 0 or contents[index - 1].role == "assistant"):
            yield Problem(calls[0].at, "a function call must come right after a user turn or a function response")
    if contents and contents[0].role == "assistant":
        yield Problem(contents[0].at, "a conversation should begin with the user", "warning")
    if contents and contents[-1].role == "assistant":
        yield Problem(contents[-1].at, "a conversation should end with the user", "warning")


def _schemas(request: Request) -> list[Problem]:
    return [
        Problem(f"{tool.at}/parameters", "parameters and parametersJsonSchema exclude each other")
        for tool in request.tools
        if isinstance(tool, FunctionTool) and tool.extras.get("parameters") is not None
    ]


def _settings(request: Request) -> Iterator[Problem]:
    options = request.options
    if options.stop is not None and len(options.stop) > STOP_LIMIT:
        at = options.places.get("stop", "/generationConfig/stopSequences")
        yield Problem(at, f"{len(options.stop)} stop sequences are more than the {STOP_LIMIT} that are taken")
    if isinstance(options.format, SchemaFormat) and "responseMimeType" in options.format.extras:
        yield Problem(options.format.at, "a schema for the answer needs responseMimeType application/json")
    reasoning = options.reasoning
    if reasoning is not None and reasoning.effort and (reasoning.budget is not None or reasoning.mode):
        yield Problem(reasoning.at, "thinkingLevel and thinkingBudget exclude each other")


_EVENTS_REQUESTED = re.compile(r"(?:^|&)(?:\$|%24)?alt=sse(?:&|$)", re.IGNORECASE)
"""A stream is one JSON array unless the query asks for server-sent events."""


def _show_model(model: ListedModel) -> JsonObject:
    entry: JsonObject = {
        "name": f"models/{model.id}",
        "baseModelId": model.id,
        "version": "001",
        "displayName": model.facts.title or model.id,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    }
    return entry | compact({"inputTokenLimit": model.facts.context_window, "outputTokenLimit": model.facts.max_output})


def _list_models(models: Sequence[ListedModel]) -> JsonObject:
    return {"models": [_show_model(model) for model in models]}


def _is_linked(message: Message) -> bool:
    """Whether the message may hold a piece of a thought whose other pieces are in other messages."""
    return not message.parts or any(isinstance(part, (Opaque, Thinking)) for part in message.parts)


DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=lambda: StreamReader(ReplyMachine(is_stream=True)),
    stream_writer=StreamWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    names=NAMES,
    plain_texts=PlainTexts(request=lambda _body: None, reply=read_text),
    owns_frame=lambda frame: "candidates" in frame,
    model_in_path=True,
    ends_with_bytes=True,
    begins_with_count=False,
    reasoning="level",
    operation="generate_content",
    endpoint=Endpoint(
        path="/models/{model}:generateContent",
        stream_path="/models/{model}:streamGenerateContent?alt=sse",
        version="/v1beta",
        credential=("x-goog-api-key", ""),
        counting=Counting("/models/{model}:countTokens", wrapper="generateContentRequest", result="totalTokens"),
        embeddings=GEMINI,
    ),
    clients=Clients(
        # google-genai 3.1 sends requests under /v1, where `models` is a path of three APIs: only its headers identify
        # it.
        headers=frozenset({"x-goog-api-key", "x-goog-api-client"}),
        key_parameter="key",
        versions=re.compile(r"v\d+(?:alpha|beta)\d*"),
        # Google's readers treat a comment as an error, but skip blank lines.
        keep_alive=lambda _headers: b"\n\n",
        streams_array=lambda query: _EVENTS_REQUESTED.search(query) is None,
        list_models=_list_models,
        show_model=_show_model,
        # Code Assist is at `v1internal:METHOD`; files are uploaded at `upload/v1beta/files`; Live is at
        # `ws/google.ai.…`.
        raw_paths=re.compile(r"v\d+(?:alpha|beta|internal)|(?:up|down)load/|ws/google"),
    ),
    support=DialectSupport(
        options=frozenset(
            {"max_tokens", "temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "frequency_penalty"}
        ),
        efforts=("none", "minimal", "low", "medium", "high"),
        summaries=("none", "auto"),
        hosted_tools={"web_search": {"googleSearch": {}}},
    ),
    rules=RequestRules(
        needs_result_names=True, needs_declared_properties=True, takes_model_media=True, codes_signatures=True
    ),
    editing=Editing(
        container="contents",
        parts_key="parts",
        roles={"user": "user", "assistant": "model"},
        adds_role=True,
        text_part=lambda _role, text: {"text": text},
        leaves=LeafPaths(
            arguments=(("functionCall", "args"), ("function_call", "args")),
            responses=(("functionResponse", "response"), ("function_response", "response")),
            thinking=(("text",),),
        ),
        is_linked=_is_linked,
        alternates=True,
        signature_keys=frozenset({"thoughtSignature", "thought_signature"}),
    ),
    tokens=TokenRules(page=(250, 560, 1400), second=(25, 32, 32), json_share=(0.05, 0.75, 2.0), shows_schema=False),
    # "Context caching", ai.google.dev and docs.cloud.google.com, 2026-11: what is cached implicitly is deleted within
    # 24 hours, most of it earlier; a cache that a request names is kept for the time that it was created for.
    cache=CacheRules(order=("system", "tools"), lifetime={"": 86_400.0}, omits_zero=True, named_by=("cachedContent",)),
    unread=Unread(
        bookkeeping=frozenset(
            {
                *("avgLogprobs", "createTime", "details", "displayName", "display_name", "labels"),
                *("logProbabilitySum", "modelStatus", "partMetadata", "part_metadata", "role", "safetyRatings"),
                *("thought", "tokenCount", "tokenId"),
            }
        ),
        containers=both(
            *("fileData", "functionCall", "functionCallingConfig", "functionResponse", "generationConfig"),
            *("inlineData", "thinkingConfig", "toolConfig"),
        ),
    ),
)
