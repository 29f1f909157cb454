"""OpenAI's Responses API, and the servers that speak it.

Knows every field of its requests, replies, streams and errors. A request is a flat list of items; a stream sends every
item twice, in deltas and as a snapshot. Imports the shared modules of `dialects`, `wire` and `model`, and from its
sister `openai_chat` what the two APIs have in common: the form of errors and of logprobs, and the words for effort.
"""

import re
from collections.abc import Iterator, Mapping

from sightline.catalog.compose import DialectSupport
from sightline.catalog.fitting import HOSTED_TOOLS
from sightline.dialects import openai_rules
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
    Problem,
    RequestRules,
    TokenRules,
    Unread,
)
from sightline.dialects.embeddings import OPENAI
from sightline.dialects.fields import object_at, objects_in
from sightline.dialects.openai_chat.errors import read_error, write_error
from sightline.dialects.openai_responses.client_tools import BY_CALL, arguments_field, is_client_call
from sightline.dialects.openai_responses.names import BOOKKEEPING, ECHOES, NAME
from sightline.dialects.openai_responses.reply_read import ResponsesMachine, read_reply, read_words
from sightline.dialects.openai_responses.reply_write import ResponsesStreamWriter, write_reply
from sightline.dialects.openai_responses.request import LONGEST_ID, names_state, read_request, write_request
from sightline.dialects.option_table import OF_RESPONSES
from sightline.dialects.stored import RESPONSES
from sightline.dialects.streaming import StreamReader
from sightline.dialects.tool_names import BUILT_IN, NameRule
from sightline.dialects.validity import pairing_problems, tool_problems
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Opaque, Thinking, ToolCall, ToolResult
from sightline.model.request import Message, Request, parts_of

NAMES = NameRule(re.compile(r"[a-zA-Z0-9_-]{1,64}"), 64, has_namespaces=True)
MOST_TOOLS = 128
LEAST_TOKENS = 16
MOST_METADATA, LONGEST_KEY, LONGEST_VALUE = 16, 64, 512


def problems(request: Request) -> list[Problem]:
    """Everything in this request that would be refused."""
    return [
        *_input_problems(request),
        *_pairing_problems(request),
        *_action_problems(request),
        *_id_problems(request),
        *_reasoning_problems(request),
        *tool_problems(request, None, MOST_TOOLS),
        *_option_problems(request),
    ]


def vendor_problems(document: Json) -> list[Problem]:
    """What OpenAI's own server refuses in a body, although other servers of this API may take it."""
    body = object_at(document)
    return [
        *openai_rules.option_problems(body, OF_RESPONSES),
        *openai_rules.tool_problems(body.get("tools"), "/tools", is_nested=False),
        *openai_rules.choice_problems(body.get("tool_choice"), is_nested=False),
        *openai_rules.format_problems(object_at(body, "text", "format"), "/text/format"),
        *(problem for index, item in objects_in(body.get("input")) for problem in _item_problems(item, index)),
    ]


def _item_problems(item: JsonObject, index: int) -> Iterator[Problem]:
    match item.get("type"):
        case "function_call" | "custom_tool_call":
            yield from openai_rules.name_problems(item.get("name"), f"/input/{index}", "name of a call")
        case "additional_tools":
            yield from openai_rules.tool_problems(item.get("tools"), f"/input/{index}/tools", is_nested=False)
        case _:
            pass


def brings_state(request: Request) -> bool:
    """Whether the provider knows more of the conversation than the request contains."""
    return names_state(request) or any(
        isinstance(part, Opaque) and isinstance(part.value, dict) and part.value.get("type") == "item_reference"
        for part in parts_of(request.messages)
    )


def _input_problems(request: Request) -> Iterator[Problem]:
    if not request.model and not request.extras.get("prompt"):
        yield Problem("/model", "no model is named")
    if not brings_state(request) and all(message.at == "/instructions" for message in request.messages):
        yield Problem("/input", "there is no input to answer")


def _pairing_problems(request: Request) -> Iterator[Problem]:
    """Calls and results that do not match. They may be apart; a call may be known only to the provider."""
    is_whole = not brings_state(request)
    results = {part.at for part in parts_of(request.messages) if isinstance(part, ToolResult)}
    found = pairing_problems(request, adjacent=False)
    yield from (problem for problem in found if is_whole or problem.pointer not in results)


def _action_problems(request: Request) -> Iterator[Problem]:
    """Calls of built-in tools without an action: they are not read as calls at all."""
    for part in parts_of(request.messages):
        item = part.value if isinstance(part, Opaque) and isinstance(part.value, dict) else {}
        if is_client_call(item) and arguments_field(item) is None:
            fields = " or ".join(BY_CALL[str(item["type"])].fields)
            yield Problem(part.at, f"this call needs an object under {fields}")


def _id_problems(request: Request) -> list[Problem]:
    return [
        Problem(f"{part.at}/call_id", f"this id has {len(part.id)} characters, at most {LONGEST_ID} are taken")
        for part in parts_of(request.messages)
        if isinstance(part, (ToolCall, ToolResult)) and len(part.id) > LONGEST_ID
    ]


def _reasoning_problems(request: Request) -> Iterator[Problem]:
    """Reasoning items that are not followed by the item that they led to."""
    followers = (*request.messages[1:], None)
    for message, follower in zip(request.messages, followers, strict=False):
        is_last = follower is None or follower.role != "assistant"
        if is_last and message.parts and isinstance(message.parts[-1], Thinking):
            yield Problem(message.parts[-1].at, "reasoning is refused without the item that followed it", "warning")


def _option_problems(request: Request) -> Iterator[Problem]:
    options = request.options
    if options.max_tokens is not None and options.max_tokens < LEAST_TOKENS:
        place = options.places.get("max_tokens", "/max_output_tokens")
        yield Problem(place, f"the reply needs room for at least {LEAST_TOKENS} tokens", "warning")
    if options.metadata is not None:
        at = options.places.get("metadata", "/metadata")
        if len(options.metadata) > MOST_METADATA:
            yield Problem(at, f"at most {MOST_METADATA} pairs are taken")
        for key, value in options.metadata.items():
            if not isinstance(value, str) or len(key) > LONGEST_KEY or len(value) > LONGEST_VALUE:
                limits = f"{LONGEST_KEY} and {LONGEST_VALUE} characters at most"
                yield Problem(at, f"the pair {key[:LONGEST_KEY]!r} must be two strings of {limits}")


def _keep_alive(headers: Mapping[str, str]) -> bytes:
    """Codex counts only events, and ignores unknown ones; OpenAI's own library fails on unknown events, but accepts a
    comment."""
    is_codex = any(headers.get(name, "").lower().startswith("codex") for name in ("user-agent", "originator"))
    return b'event: keepalive\ndata: {"type":"keepalive"}\n\n' if is_codex else KEEP_ALIVE_COMMENT


def _text_part(role: str, text: str) -> JsonObject:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": []}
    return {"type": "input_text", "text": text}


def _respell_part(part: Json, role: str) -> Json:
    """A text part with the type that it has in this role."""
    if not isinstance(part, dict) or part.get("type") not in ("input_text", "output_text"):
        return part
    kind = "output_text" if role == "assistant" else "input_text"
    if part["type"] == kind:
        return part
    kept = {key: value for key, value in part.items() if key not in ("annotations", "logprobs")}
    return {**kept, "type": kind, **({"annotations": []} if role == "assistant" else {})}


def _is_linked(message: Message) -> bool:
    """Whether the message contains tools, or calls a built-in tool: the result of such a call is read as a result only
    if the client ran it."""
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
        # Codex opens a WebSocket first, and so does opencode by default. Codex 0.166 falls back to HTTP at once on a
        # 426; after a 401, 404 or 501 it makes seven attempts in about six seconds (observed with a recording server,
        # 2026-11).
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
        # Our requests store no reasoning at the provider, so it has to return it.
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
    cache=openai_rules.cache_rules(
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
