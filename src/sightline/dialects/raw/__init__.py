"""The raw schema: messages with numbers for roles and kinds of parts, as a prompt editor holds and exports them.

Its requests are messages with options beside them in the shapes of Chat Completions, its replies one more message, its
streams the deltas that such an editor's callback gets. There is no provider behind it, so whatever the schema has no
place for is carried in it and not lost. Imports the shared pieces of `dialects`, and of `openai_chat` those for the
options and counts that both have in common.
"""

from sightline.catalog.compose import DialectSupport
from sightline.dialects.conversation import has_mirrored_part
from sightline.dialects.dialect import (
    CacheRules,
    Clients,
    Dialect,
    Editing,
    LeafPaths,
    RequestRules,
    TokenRules,
    Unread,
    comment_keep_alive,
    list_models,
    show_model,
    state_fault,
)
from sightline.dialects.raw.names import NAME, read_error, write_error
from sightline.dialects.raw.reply_read import RawMachine, read_reply
from sightline.dialects.raw.reply_write import RawStreamWriter, write_reply
from sightline.dialects.raw.request import problems, read_request, write_request
from sightline.dialects.streaming import StreamReader
from sightline.dialects.tool_names import ANY_NAME

DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=lambda: StreamReader(RawMachine()),
    stream_writer=RawStreamWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    read_plain=None,
    plain_texts=None,
    vendor_problems=lambda _document: [],
    owns_frame=lambda frame: "delta" in frame and "type" not in frame,
    error_event="",
    model_in_path=False,
    ends_with_bytes=False,
    begins_with_count=False,
    carries_parts=True,
    keeps_kinds=True,
    names=ANY_NAME,
    reasoning="effort",
    versions=None,
    operation="chat",
    endpoint=None,
    clients=Clients(
        headers=frozenset(),
        key_parameter="",
        versions=None,
        keep_alive=comment_keep_alive,
        streams_array=lambda _query: False,
        beta_header="",
        tries_websocket=False,
        list_models=list_models,
        show_model=show_model,
        state_fault=state_fault,
    ),
    # No provider speaks it, so that no request of our own is written in it.
    support=DialectSupport(
        options=frozenset(),
        efforts=(),
        summaries=(),
        verbosity=False,
        strict_schemas=False,
        one_call=False,
        custom_tools=False,
        hosted_tools={},
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
        roles={"system": 0, "user": 1, "assistant": 2},
        adds_role=False,
        text_part=lambda _role, text: {"type": 1, "text": text},
        respell_part=lambda part, _role: part,
        leaves=LeafPaths(
            arguments=(("arguments",), ("function", "arguments"), ("custom", "input"), ("input",)),
            actions=(("action",), ("operation",), ("actions",), ("arguments",)),
            responses=(),
            outputs=(("output",), ("tools",)),
            thinking=(("thinking",), ("text",), ("value", "thinking", "text")),
        ),
        reads_items_alone=False,
        is_linked=has_mirrored_part,
        drops_reasoning=False,
        alternates=False,
        signature_keys=frozenset(),
    ),
    tokens=TokenRules(
        page=(0, 900, 4500),
        second=(7, 10, 25),
        json_share=(0.5, 1.0, 1.3),
        call=(0, 6, 24),
        result=(0, 6, 24),
        picture=(0, 2, 6),
        frames_system=True,
        has_chat_tools=False,
        shows_schema=True,
    ),
    cache=CacheRules(order=("format", "tools", "system"), needs_marks=False),
    unread=Unread(
        echoes=frozenset(),
        stateful=frozenset(),
        private_lines=(),
        bookkeeping=frozenset(
            {"tokenUsage", "scope", "tokens", "metadata", "mediaType", "statefulMarker", "phase", "copilotReferences"}
        ),
        containers=frozenset(
            {
                "allowed_tools",
                "custom",
                "file",
                "format",
                "function",
                "grammar",
                "imageUrl",
                "image_url",
                "input_audio",
                "requestOptions",
                "response_format",
                "stream_options",
                "value",
            }
        ),
    ),
)
