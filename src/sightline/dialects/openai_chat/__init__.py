"""OpenAI's Chat Completions, and the many servers that speak it.

Knows every field of its requests, replies, streams and errors, and nothing about providers: the differences between its
servers are named settings of the target. It may import the shared modules of `dialects` and the packages below them.
"""

import re
from collections.abc import Iterator

from sightline.catalog.compose import DialectSupport
from sightline.dialects import openai_rules
from sightline.dialects.dialect import (
    Clients,
    Counting,
    Dialect,
    Editing,
    Endpoint,
    LeafPaths,
    LimitHeaders,
    PlainStream,
    Problem,
    TokenRules,
    Unread,
)
from sightline.dialects.embeddings import OPENAI
from sightline.dialects.fields import object_at, objects_in
from sightline.dialects.openai_chat.content import is_media
from sightline.dialects.openai_chat.errors import read_error, write_error
from sightline.dialects.openai_chat.names import NAME
from sightline.dialects.openai_chat.plain import PLAIN_TEXTS, begins_stream, read_ending, read_stream
from sightline.dialects.openai_chat.reply_read import ChatMachine, read_plain, read_reply
from sightline.dialects.openai_chat.reply_write import ChatStreamWriter, write_reply
from sightline.dialects.openai_chat.request_read import read_request
from sightline.dialects.openai_chat.request_write import write_request
from sightline.dialects.openai_chat.settings import MOST_STOPS
from sightline.dialects.option_table import OF_CHAT
from sightline.dialects.stored import COMPLETIONS
from sightline.dialects.streaming import StreamReader, TextDeltas
from sightline.dialects.tool_names import NameRule
from sightline.dialects.validity import no_messages, pairing_problems, tool_problems
from sightline.model.json import Json
from sightline.model.parts import Audio, ToolCall, ToolResult, media_of
from sightline.model.request import Request, parts_of

NAMES = NameRule(re.compile(r"[a-zA-Z0-9_-]{1,64}"), 64)
MOST_TOOLS = 128
LONGEST_ID = 40
"""The vendor's own server refuses longer call ids; other servers create longer ones and expect them back unchanged."""


def problems(request: Request) -> list[Problem]:
    """Everything in this request that would be refused."""
    return [
        *no_messages(request, "/messages"),
        *pairing_problems(request, adjacent=True),
        *tool_problems(request, None, MOST_TOOLS),
        *_message_problems(request),
        *_id_problems(request),
        *_option_problems(request),
    ]


def vendor_problems(document: Json) -> list[Problem]:
    """What OpenAI's own server refuses in a body, although other servers of this API may take it."""
    body = object_at(document)
    return [
        *openai_rules.option_problems(body, OF_CHAT),
        *openai_rules.tool_problems(body.get("tools"), "/tools", is_nested=True),
        *openai_rules.choice_problems(body.get("tool_choice"), is_nested=True),
        *openai_rules.format_problems(
            object_at(body, "response_format", "json_schema"), "/response_format/json_schema"
        ),
        *(
            problem
            for index, message in objects_in(body.get("messages"))
            for number, call in objects_in(message.get("tool_calls"))
            for problem in openai_rules.name_problems(
                object_at(call, "function").get("name"),
                f"/messages/{index}/tool_calls/{number}/function",
                "name of a call",
            )
        ),
    ]


def _message_problems(request: Request) -> Iterator[Problem]:
    for message in request.messages:
        if not message.parts:
            yield Problem(message.at, "this message says nothing and calls nothing")
        if message.role == "user":
            continue
        for part in media_of(message.parts):
            if is_media(part) and not (isinstance(part, Audio) and part.id is not None):
                yield Problem(part.at, f"only a user message may hold this {part.__class__.__name__.lower()}")


def _id_problems(request: Request) -> list[Problem]:
    return [
        Problem(
            f"{part.at}/{'id' if isinstance(part, ToolCall) else 'tool_call_id'}",
            f"this id has {len(part.id)} characters, the vendor's server takes at most {LONGEST_ID}",
            "warning",
        )
        for part in parts_of(request.messages)
        if isinstance(part, (ToolCall, ToolResult)) and len(part.id) > LONGEST_ID
    ]


def _option_problems(request: Request) -> Iterator[Problem]:
    options = request.options
    if not request.model:
        yield Problem("/model", "no model is named")
    if options.max_tokens is not None and options.max_tokens < 1:
        yield Problem(options.places.get("max_tokens", ""), "the reply needs room for at least one token")
    if options.stop is not None and len(options.stop) > MOST_STOPS:
        yield Problem(options.places.get("stop", ""), f"at most {MOST_STOPS} stop texts are taken")
    if not request.tools:
        if request.tool_choice is not None:
            yield Problem(request.tool_choice.at, "there is a tool choice and no tool")
        if request.parallel_tool_calls is not None:
            yield Problem("/parallel_tool_calls", "there is a rule for parallel calls and no tool")


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
    cache=openai_rules.cache_rules(),
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
                *("response_format", "stream_options", "url_citation"),
            }
        ),
    ),
)
