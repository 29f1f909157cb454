"""OpenAI's Chat Completions, and the many servers that speak it.

Knows every field of its requests, replies, streams and errors, and nothing of providers: what differs between its
servers is a named setting of the target. Imports the shared pieces of `dialects`, `wire` and `model` only.
"""

from sightline.catalog.compose import DialectSupport
from sightline.dialects.conversation import has_mirrored_part
from sightline.dialects.dialect import (
    Clients,
    Counting,
    Dialect,
    Editing,
    Endpoint,
    LeafPaths,
    LimitHeaders,
    PlainStream,
    RequestRules,
    TokenRules,
    Unread,
    comment_keep_alive,
    list_models,
    show_model,
    state_fault,
)
from sightline.dialects.embeddings import OPENAI
from sightline.dialects.openai_chat.errors import read_error, write_error
from sightline.dialects.openai_chat.names import NAME
from sightline.dialects.openai_chat.plain import PLAIN_TEXTS, begins_stream, read_ending, read_stream
from sightline.dialects.openai_chat.reply_read import ChatMachine, read_plain, read_reply
from sightline.dialects.openai_chat.reply_write import ChatStreamWriter, write_reply
from sightline.dialects.openai_chat.request_read import read_request
from sightline.dialects.openai_chat.request_write import write_request
from sightline.dialects.openai_chat.rules import NAMES, problems, vendor_problems
from sightline.dialects.openai_rules import cache_rules
from sightline.dialects.stored import COMPLETIONS
from sightline.dialects.streaming import StreamReader, TextDeltas

DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=lambda: StreamReader(ChatMachine(), TextDeltas()),
    read_plain=read_plain,
    read_ending=read_ending,
    plain_stream=PlainStream(begins=begins_stream, read=read_stream),
    plain_texts=PLAIN_TEXTS,
    stream_writer=ChatStreamWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    vendor_problems=vendor_problems,
    names=NAMES,
    owns_frame=lambda frame: "choices" in frame,
    error_event="",
    model_in_path=False,
    ends_with_bytes=False,
    begins_with_count=False,
    carries_parts=False,
    keeps_kinds=False,
    reasoning="effort",
    versions=None,
    operation="chat",
    endpoint=Endpoint(
        path="/chat/completions",
        stream_path="",
        version="",
        credential=("authorization", "Bearer "),
        headers=(),
        # Only the embedded model counts tokens here; the API itself has no such path.
        counting=Counting("/chat/completions/input_tokens", is_served=False),
        embeddings=OPENAI,
        stored=COMPLETIONS,
    ),
    clients=Clients(
        headers=frozenset(),
        key_parameter="",
        versions=None,
        keep_alive=comment_keep_alive,
        streams_array=lambda _query: False,
        beta_header="openai-beta",
        tries_websocket=False,
        list_models=list_models,
        show_model=show_model,
        state_fault=state_fault,
        request_id="x-request-id",
        limits=LimitHeaders("x-ratelimit-{role}-{counted}", frozenset({"requests", "tokens"}), "duration"),
    ),
    support=DialectSupport(
        options=frozenset(
            {"max_tokens", "temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty"}
        ),
        efforts=None,
        summaries=("none",),
        verbosity=True,
        strict_schemas=True,
        one_call=True,
        custom_tools=True,
        hosted_tools={},
        cache_key="if_known",
        # Chat Completions stores nothing by default, and many providers refuse the field.
        store="if_known",
        reasoning_include=None,
        summary_mode=None,
        states_defaults=False,
        asks_for_usage=True,
    ),
    rules=RequestRules(
        needs_max_tokens=False,
        needs_tools_for_calls=False,
        needs_result_names=False,
        needs_declared_properties=False,
        takes_model_media=False,
        names_last_reply=False,
        may_hide_length=False,
        codes_signatures=False,
    ),
    editing=Editing(
        container="messages",
        parts_key="content",
        roles={role: role for role in ("system", "developer", "user", "assistant")},
        adds_role=False,
        text_part=lambda _role, text: {"type": "text", "text": text},
        respell_part=lambda part, _role: part,
        leaves=LeafPaths(
            arguments=(("arguments",), ("function", "arguments"), ("custom", "input")),
            actions=(),
            responses=(),
            outputs=(),
            thinking=(("thinking",), ("text",)),
        ),
        reads_items_alone=True,
        is_linked=has_mirrored_part,
        drops_reasoning=False,
        alternates=False,
        signature_keys=frozenset(),
    ),
    tokens=TokenRules(
        page=(0, 900, 4500),
        second=(7, 10, 25),
        json_share=(0.5, 1.0, 1.3),
        call=(2, 7, 14),
        result=(0, 6, 24),
        picture=(0, 0, 0),
        frames_system=True,
        has_chat_tools=True,
        shows_schema=True,
    ),
    # OpenAI puts the schema of the answer and the tools before all text.
    cache=cache_rules(),
    unread=Unread(
        echoes=frozenset(),
        stateful=frozenset(),
        private_lines=(),
        bookkeeping=frozenset(
            {
                "object",
                "system_fingerprint",
                "service_tier",
                "obfuscation",
                "prompt_filter_results",
                "content_filter_results",
                "content_filter_offsets",
                "provider",
                "native_finish_reason",
                "x_groq",
                "expires_at",
                "request_id",
                "tool_call_id",
            }
        ),
        containers=frozenset(
            {
                "allowed_tools",
                "custom",
                "file",
                "format",
                "function",
                "grammar",
                "image_url",
                "input_audio",
                "response_format",
                "stream_options",
            }
        ),
    ),
)
