"""The Messages API of Anthropic, as client and as server.

It reads and writes requests, replies, streams and errors of `POST /v1/messages`, and knows what the API rejects. It
imports the values, the wire and what all dialects share; it never imports another dialect and touches nothing outside.
"""

from collections.abc import Sequence

from sightline.catalog.compose import DialectSupport
from sightline.dialects.anthropic.errors import read_error, write_error
from sightline.dialects.anthropic.names import NAME
from sightline.dialects.anthropic.reply_read import read_reply, stream_reader
from sightline.dialects.anthropic.reply_write import write_reply
from sightline.dialects.anthropic.request_read import read_request
from sightline.dialects.anthropic.request_write import write_request
from sightline.dialects.anthropic.rules import NAMES, problems, vendor_problems
from sightline.dialects.anthropic.stream_write import MessagesWriter
from sightline.dialects.conversation import has_mirrored_part
from sightline.dialects.dialect import (
    ApiVersions,
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
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject

_CREATED = "1970-01-01T00:00:00Z"
"""The catalogue does not know when a model was made, and the API's shape demands a time."""


def _show_model(model: ListedModel) -> JsonObject:
    entry: JsonObject = {
        "type": "model",
        "id": model.id,
        "display_name": model.facts.title or model.id,
        "created_at": _CREATED,
    }
    return entry | compact({"max_input_tokens": model.facts.context_window, "max_tokens": model.facts.max_output})


def _list_models(models: Sequence[ListedModel]) -> JsonObject:
    first, last = (models[0].id, models[-1].id) if models else (None, None)
    return {"data": [_show_model(model) for model in models], "has_more": False, "first_id": first, "last_id": last}


def _state_fault(_field: str) -> Fault:
    return Fault(
        Code.INVALID_REQUEST,
        "threads are not supported by the provider of this request",
        hint="Send the whole conversation with each request.",
        details={"details": {"error_code": "thread_unsupported_request"}},
    )


DIALECT = Dialect(
    name=NAME,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    write_reply=write_reply,
    stream_reader=stream_reader,
    stream_writer=MessagesWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    vendor_problems=vendor_problems,
    names=NAMES,
    read_plain=None,
    owns_frame=lambda frame: str(frame.get("type", "")).startswith(("message_", "content_block_")),
    # Anthropic's SDKs dispatch on the name of the event and ignore a frame without one.
    error_event="error",
    model_in_path=False,
    ends_with_bytes=False,
    carries_parts=False,
    keeps_kinds=False,
    reasoning="mode",
    # "Migrating to API version 2026-10-21" (platform.claude.com): these are errors for every model.
    versions=ApiVersions("anthropic-version", (("2026-10-21", ("temperature", "top_p", "top_k")),)),
    operation="chat",
    endpoint=Endpoint(
        path="/messages",
        stream_path="",
        version="/v1",
        credential=("x-api-key", ""),
        headers=(("anthropic-version", "2023-06-01"),),
        counting=Counting(
            "/messages/count_tokens",
            frozenset({"messages", "model", "output_config", "system", "thinking", "tool_choice", "tools"}),
        ),
    ),
    clients=Clients(
        headers=frozenset({"anthropic-version"}),
        key_parameter="",
        versions=None,
        keep_alive=lambda _headers: b'event: ping\ndata: {"type": "ping"}\n\n',
        streams_array=lambda _query: False,
        tries_websocket=False,
        list_models=_list_models,
        show_model=_show_model,
        state_fault=_state_fault,
    ),
    support=DialectSupport(
        options=frozenset({"max_tokens", "temperature", "top_p", "top_k", "stop"}),
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        summaries=("none", "auto"),
        verbosity=False,
        strict_schemas=False,
        one_call=True,
        custom_tools=False,
        hosted_tools={"web_search": {"type": "web_search_20250305", "name": "web_search"}},
        cache_key="never",
        store="never",
        reasoning_include=None,
        # Anthropic shows thinking only beside the setting that switches it on.
        summary_mode="adaptive",
        states_defaults=False,
        asks_for_usage=False,
    ),
    rules=RequestRules(
        needs_max_tokens=True,
        needs_tools_for_calls=True,
        needs_result_names=False,
        needs_declared_properties=False,
        takes_model_media=False,
        names_last_reply=False,
        may_hide_length=False,
    ),
    editing=Editing(
        container="messages",
        parts_key="content",
        roles={role: role for role in ("user", "assistant", "system")},
        adds_role=False,
        text_part=lambda _role, text: {"type": "text", "text": text},
        respell_part=lambda part, _role: part,
        leaves=LeafPaths(
            arguments=(("input",),),
            actions=(),
            responses=(),
            outputs=(),
            thinking=(("thinking",),),
        ),
        reads_items_alone=True,
        is_linked=has_mirrored_part,
        drops_reasoning=False,
        alternates=False,
        signature_keys=frozenset(),
    ),
    tokens=TokenRules(
        page=(1000, 2200, 5000),
        second=(7, 10, 25),
        json_share=(0.5, 1.0, 1.3),
        call=(20, 38, 60),
        result=(8, 14, 30),
        picture=(0, 2, 6),
        frames_system=False,
        has_chat_tools=False,
        shows_schema=True,
    ),
    # What is before the messages stays cached although thinking or the choice of a tool change.
    cache=CacheRules(order=("tools", "system", "settings"), needs_marks=True),
    unread=Unread(
        echoes=frozenset(),
        bookkeeping=frozenset({"id", "type", "role", "caller", "metadata", "diagnostics", "request_id", "details"}),
        containers=frozenset({"format", "output_config", "thinking"}),
        stateful=frozenset({"thread"}),
    ),
)
