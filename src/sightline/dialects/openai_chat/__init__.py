"""OpenAI's Chat Completions, and the many servers that speak it.

Knows every field of its requests, replies, streams and errors, and nothing of providers: what differs between its
servers is a named setting of the target. Imports the shared pieces of `dialects`, `wire` and `model` only.
"""

from sightline.catalog.compose import DialectSupport
from sightline.dialects.dialect import (
    Clients,
    Counting,
    Dialect,
    Editing,
    Endpoint,
    LeafPaths,
    LimitHeaders,
    PlainStream,
    TokenRules,
    Unread,
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
    begins_with_count=False,
    endpoint=Endpoint(
        path="/chat/completions",
        # Only the embedded model counts tokens here; the API itself has no such path.
        counting=Counting("/chat/completions/input_tokens", is_served=False),
        embeddings=OPENAI,
        stored=COMPLETIONS,
    ),
    clients=Clients(
        beta_header="openai-beta",
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
        cache_key="if_known",
        # Chat Completions stores nothing by default, and many providers refuse the field.
        store="if_known",
        asks_for_usage=True,
    ),
    editing=Editing(
        container="messages",
        parts_key="content",
        roles={role: role for role in ("system", "developer", "user", "assistant")},
        text_part=lambda _role, text: {"type": "text", "text": text},
        leaves=LeafPaths(
            arguments=(("arguments",), ("function", "arguments"), ("custom", "input")),
            thinking=(("thinking",), ("text",)),
        ),
    ),
    tokens=TokenRules(call=(2, 7, 14), picture=(0, 0, 0), has_chat_tools=True),
    # OpenAI puts the schema of the answer and the tools before all text.
    cache=cache_rules(),
    unread=Unread(
        bookkeeping=frozenset(
            {
                *("object", "system_fingerprint", "service_tier", "obfuscation", "prompt_filter_results"),
                *("content_filter_results", "content_filter_offsets", "provider", "native_finish_reason", "x_groq"),
                *("expires_at", "request_id", "tool_call_id"),
            }
        ),
        containers=frozenset(
            {
                *("allowed_tools", "custom", "file", "format", "function", "grammar", "image_url", "input_audio"),
                *("response_format", "stream_options"),
            }
        ),
    ),
)
