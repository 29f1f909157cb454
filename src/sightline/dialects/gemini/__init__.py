"""The dialect of the Gemini API: `generateContent` and `streamGenerateContent`, as Google's own clients speak it.

The URL names the model, not the body; both spellings of every field are read and camelCase is written. The
package may import what dialects share, `wire`, `model` and `errors`; it never does I/O and never reads another dialect.
"""

import re
from collections.abc import Sequence

from sightline.catalog.compose import DialectSupport
from sightline.dialects.dialect import (
    CacheRules,
    Clients,
    Counting,
    Dialect,
    Editing,
    Endpoint,
    LeafPaths,
    ListedModel,
    RequestRules,
    TokenRules,
    Unread,
)
from sightline.dialects.fields import compact
from sightline.dialects.gemini.errors import read_error, write_error
from sightline.dialects.gemini.field_names import NAME
from sightline.dialects.gemini.reply_read import read_reply, stream_reader
from sightline.dialects.gemini.reply_write import write_reply
from sightline.dialects.gemini.request_read import read_request
from sightline.dialects.gemini.request_write import write_request
from sightline.dialects.gemini.rules import NAMES, problems
from sightline.dialects.gemini.stream_write import StreamWriter
from sightline.dialects.openai_clients import state_fault
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.model.parts import Opaque, Thinking

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
    """Whether it may hold a piece of a thought whose other pieces are in other messages."""
    return not message.parts or any(isinstance(part, (Opaque, Thinking)) for part in message.parts)


DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=stream_reader,
    stream_writer=StreamWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    names=NAMES,
    read_plain=None,
    vendor_problems=lambda _document: [],
    owns_frame=lambda frame: "candidates" in frame,
    error_event="",
    model_in_path=True,
    ends_with_bytes=True,
    carries_parts=False,
    keeps_kinds=False,
    reasoning="level",
    versions=None,
    operation="generate_content",
    endpoint=Endpoint(
        path="/models/{model}:generateContent",
        stream_path="/models/{model}:streamGenerateContent?alt=sse",
        version="/v1beta",
        credential=("x-goog-api-key", ""),
        headers=(),
        counting=Counting("/models/{model}:countTokens", wrapper="generateContentRequest", result="totalTokens"),
    ),
    clients=Clients(
        headers=frozenset({"x-goog-api-key", "x-goog-api-client"}),
        key_parameter="key",
        versions=re.compile(r"v\d+(?:alpha|beta)\d*"),
        # Google's readers take a comment for an error, but pass over blank lines.
        keep_alive=lambda _headers: b"\n\n",
        streams_array=lambda query: _EVENTS_REQUESTED.search(query) is None,
        tries_websocket=False,
        list_models=_list_models,
        show_model=_show_model,
        state_fault=state_fault,
    ),
    support=DialectSupport(
        options=frozenset(
            {"max_tokens", "temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "frequency_penalty"}
        ),
        efforts=("none", "minimal", "low", "medium", "high"),
        summaries=("none", "auto"),
        verbosity=False,
        strict_schemas=False,
        one_call=False,
        custom_tools=False,
        hosted_tools={"web_search": {"googleSearch": {}}},
        cache_key="never",
        store="never",
        reasoning_include=None,
        summary_mode=None,
        states_defaults=False,
        asks_for_usage=False,
    ),
    rules=RequestRules(
        needs_max_tokens=False,
        needs_tools_for_calls=False,
        needs_result_names=True,
        needs_declared_properties=True,
        takes_model_media=True,
        names_last_reply=False,
        may_hide_length=False,
    ),
    editing=Editing(
        container="contents",
        parts_key="parts",
        roles={"user": "user", "assistant": "model"},
        adds_role=True,
        text_part=lambda _role, text: {"text": text},
        respell_part=lambda part, _role: part,
        leaves=LeafPaths(
            arguments=(("functionCall", "args"), ("function_call", "args")),
            actions=(),
            responses=(("functionResponse", "response"), ("function_response", "response")),
            outputs=(),
            thinking=(("text",),),
        ),
        reads_items_alone=True,
        is_linked=_is_linked,
        drops_reasoning=False,
        alternates=True,
        signature_keys=frozenset({"thoughtSignature", "thought_signature"}),
    ),
    tokens=TokenRules(
        page=(250, 560, 1400),
        second=(25, 32, 32),
        json_share=(0.05, 0.75, 2.0),
        call=(0, 6, 24),
        result=(0, 6, 24),
        picture=(0, 2, 6),
        frames_system=True,
        has_chat_tools=False,
        shows_schema=False,
    ),
    cache=CacheRules(order=("system", "tools"), needs_marks=False),
    unread=Unread(
        echoes=frozenset(),
        stateful=frozenset(),
        bookkeeping=frozenset(
            {
                "avgLogprobs",
                "createTime",
                "details",
                "displayName",
                "display_name",
                "labels",
                "logProbabilitySum",
                "modelStatus",
                "partMetadata",
                "part_metadata",
                "role",
                "safetyRatings",
                "thought",
                "tokenCount",
                "tokenId",
            }
        ),
        containers=frozenset(
            {
                "fileData",
                "file_data",
                "functionCall",
                "functionCallingConfig",
                "functionResponse",
                "function_call",
                "function_calling_config",
                "function_response",
                "generationConfig",
                "generation_config",
                "inlineData",
                "inline_data",
                "thinkingConfig",
                "thinking_config",
                "toolConfig",
                "tool_config",
            }
        ),
    ),
)
