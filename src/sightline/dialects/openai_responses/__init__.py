"""OpenAI's Responses API, and the servers that speak it.

Knows every field of its requests, replies, streams and errors; a request is a flat list of items, a stream tells every
item twice, in deltas and as a snapshot. Imports the shared pieces of `dialects`, `wire` and `model`, and from its
sister `openai_chat` what the two APIs have in common: the shape of errors, of logprobs, and the words for effort.
"""

from collections.abc import Mapping

from sightline.catalog.compose import DialectSupport
from sightline.catalog.fitting import HOSTED_TOOLS
from sightline.dialects.dialect import (
    KEEP_ALIVE_COMMENT,
    CacheDiagnosis,
    Clients,
    Counting,
    Dialect,
    Editing,
    Endpoint,
    LeafPaths,
    LimitHeaders,
    PlainTexts,
    RequestRules,
    TokenRules,
    Unread,
)
from sightline.dialects.embeddings import OPENAI
from sightline.dialects.openai_responses.errors import read_error, write_error
from sightline.dialects.openai_responses.names import BOOKKEEPING, ECHOES, NAME
from sightline.dialects.openai_responses.reply_read import ResponsesMachine, read_reply, read_words
from sightline.dialects.openai_responses.reply_write import ResponsesStreamWriter, write_reply
from sightline.dialects.openai_responses.request import read_request, write_request
from sightline.dialects.openai_responses.rules import NAMES, problems, vendor_problems
from sightline.dialects.openai_rules import cache_rules
from sightline.dialects.stored import RESPONSES
from sightline.dialects.streaming import StreamReader
from sightline.dialects.tool_names import BUILT_IN
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Opaque
from sightline.model.request import Message


def _keep_alive(headers: Mapping[str, str]) -> bytes:
    """Codex counts only events, and ignores those that it does not know; OpenAI's own library fails on such events,
    but takes a comment."""
    is_codex = any(headers.get(name, "").lower().startswith("codex") for name in ("user-agent", "originator"))
    return b'event: keepalive\ndata: {"type":"keepalive"}\n\n' if is_codex else KEEP_ALIVE_COMMENT


def _text_part(role: str, text: str) -> JsonObject:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": []}
    return {"type": "input_text", "text": text}


def _respell_part(part: Json, role: str) -> Json:
    """A text under the type that it has in this role."""
    if not isinstance(part, dict) or part.get("type") not in ("input_text", "output_text"):
        return part
    kind = "output_text" if role == "assistant" else "input_text"
    if part["type"] == kind:
        return part
    kept = {key: value for key, value in part.items() if key not in ("annotations", "logprobs")}
    return {**kept, "type": kind, **({"annotations": []} if role == "assistant" else {})}


def _is_linked(message: Message) -> bool:
    """Whether it brings tools, or calls a built-in tool: only if the client ran that call is its result read as one."""
    return any(isinstance(part, Opaque) or getattr(part, "kind", "") in BUILT_IN for part in message.parts)


DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=lambda: StreamReader(ResponsesMachine()),
    stream_writer=ResponsesStreamWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    vendor_problems=vendor_problems,
    names=NAMES,
    plain_texts=PlainTexts(request=lambda _body: None, reply=lambda _body: None, named_reply=read_words),
    owns_frame=lambda frame: str(frame.get("type", "")).startswith("response."),
    begins_with_count=False,
    keeps_kinds=True,
    endpoint=Endpoint(
        path="/responses",
        embeddings=OPENAI,
        stored=RESPONSES,
        counting=Counting(
            "/responses/input_tokens",
            frozenset(
                {
                    *("conversation", "input", "instructions", "model", "parallel_tool_calls", "previous_response_id"),
                    *("reasoning", "text", "tool_choice", "tools", "truncation"),
                }
            ),
        ),
    ),
    clients=Clients(
        keep_alive=_keep_alive,
        beta_header="openai-beta",
        # Codex opens a WebSocket first, and opencode by default. Codex 0.166 falls back to HTTP at once on a 426; after
        # a 401, 404 or 501 it makes seven attempts in about six seconds (seen with a recording server, 2026-11).
        tries_websocket=True,
        request_id="x-request-id",
        limits=LimitHeaders("x-ratelimit-{role}-{counted}", frozenset({"requests", "tokens"}), "duration"),
    ),
    support=DialectSupport(
        options=frozenset({"max_tokens", "temperature", "top_p"}),
        efforts=None,
        summaries=("none", "auto", "concise", "detailed"),
        verbosity=True,
        strict_schemas=True,
        one_call=True,
        custom_tools=True,
        hosted_tools=HOSTED_TOOLS,
        cache_key="always",
        store="always",
        # Our requests leave no reasoning with the provider, so it hands it over.
        reasoning_include=("reasoning.encrypted_content",),
        states_defaults=True,
    ),
    rules=RequestRules(names_last_reply=True, may_hide_length=True),
    editing=Editing(
        container="input",
        parts_key="content",
        roles={role: role for role in ("system", "developer", "user", "assistant")},
        text_part=_text_part,
        respell_part=_respell_part,
        leaves=LeafPaths(
            arguments=(("arguments",), ("input",)),
            actions=(("action",), ("operation",), ("actions",), ("arguments",)),
            outputs=(("output",), ("tools",)),
            thinking=(("text",),),
        ),
        is_linked=_is_linked,
        drops_reasoning=True,
    ),
    tokens=TokenRules(call=(2, 7, 16), picture=(0, 0, 0)),
    # "Prompt cache diagnostics", developers.openai.com, 2026-11: in replies to `comparison_response_id`.
    cache=cache_rules(
        CacheDiagnosis(
            holder="response",
            path=("prompt_cache_diagnostics",),
            reason=("reason", "type"),
            tokens="cache_missed_tokens",
            meanings={
                "model_changed": ("model", "provider"),
                "service_tier_changed": ("tier",),
                "tools_changed": ("tools", "tools_order"),
                "prompt_cache_key_changed": ("cache_key",),
                "text_format_changed": ("format",),
                "reasoning_effort_changed": ("settings",),
                "verbosity_changed": ("settings",),
                "context_compacted": ("messages",),
                "input_changed": ("messages", "system"),
            },
        )
    ),
    unread=Unread(
        bookkeeping=BOOKKEEPING,
        echoes=ECHOES,
        containers=frozenset(
            {"allowed_tools", "custom", "environment", "format", "function", "reasoning", "stream_options", "text"}
        ),
        stateful=frozenset({"conversation"}),
    ),
)
