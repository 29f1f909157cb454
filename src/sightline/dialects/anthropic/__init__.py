"""Anthropic's Messages API, as client and as server.

Reads and writes requests, replies, streams and errors of `POST /v1/messages`, and knows what the API rejects. Imports
only the canonical values, `wire` and the shared modules of `dialects`, never another dialect; it does no I/O.
"""

import re
from collections.abc import Iterator, Sequence

from sightline.catalog.compose import DialectSupport
from sightline.dialects.anthropic.cache_marks import place_marks
from sightline.dialects.anthropic.errors import read_error, write_error
from sightline.dialects.anthropic.names import NAME
from sightline.dialects.anthropic.options import (
    LEAST_BUDGET,
    LEAST_TOP_P,
    SERVICE_TIERS,
    open_objects,
    options_thinking_excludes,
)
from sightline.dialects.anthropic.plain import PLAIN_TEXTS
from sightline.dialects.anthropic.reply_read import MessagesMachine, read_plain, read_reply
from sightline.dialects.anthropic.reply_write import MessagesWriter, write_reply
from sightline.dialects.anthropic.request import read_request, write_request
from sightline.dialects.anthropic.sources import IMAGE_TYPES
from sightline.dialects.conversation import leading_count
from sightline.dialects.dialect import (
    ApiVersions,
    CacheDiagnosis,
    CacheRules,
    Clients,
    Counting,
    Dialect,
    Editing,
    Endpoint,
    LeafPaths,
    LimitHeaders,
    ListedModel,
    Problem,
    RequestRules,
    TokenRules,
    Unread,
)
from sightline.dialects.fields import compact, object_at, objects_in
from sightline.dialects.json_schemas import type_problems
from sightline.dialects.option_table import USER_ID, looks_like_a_person
from sightline.dialects.streaming import StreamReader, TextDeltas
from sightline.dialects.tool_names import NameRule
from sightline.dialects.validity import no_messages, pairing_problems, tool_problems
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import CacheBreakpoint, Image, Inline, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from sightline.model.request import FunctionTool, OpaqueTool, Request, SchemaFormat, parts_of

NAMES = NameRule(re.compile(r"[a-zA-Z0-9_-]{1,128}"), 128)
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MOST_BREAKPOINTS = 4


def problems(request: Request) -> list[Problem]:
    """Everything that would be refused, and what only some models take."""
    return [
        *no_messages(request, "/messages"),
        *_order_problems(request),
        *_pairing_problems(request),
        *_empty_problems(request),
        *tool_problems(request, NAMES),
        *_part_problems(parts_of(request.messages)),
        *_end_problems(request),
        *_breakpoint_problems(request),
        *_option_problems(request),
        *_schema_problems(request),
        *_thinking_problems(request),
    ]


def _order_problems(request: Request) -> Iterator[Problem]:
    count = leading_count(request.messages)
    if count < len(request.messages) and request.messages[count].role == "assistant":
        text = "some platforms want the first message to be the user's"
        yield Problem(request.messages[count].at, text, "warning")
    for message in request.messages:
        is_late = False
        for part in message.parts:
            if not isinstance(part, ToolResult):
                is_late = is_late or not isinstance(part, CacheBreakpoint)
            elif is_late:
                yield Problem(part.at, "tool results must come before anything else in their message")


def vendor_problems(document: Json) -> list[Problem]:
    """What Anthropic's own server refuses in a body, although other servers of this API may take it."""
    body = object_at(document)
    return [*_system_problems(body), *_type_problems(body), *_user_problems(body)]


def _system_problems(body: JsonObject) -> Iterator[Problem]:
    """System messages among the messages that are not between the user's turn and the assistant's."""
    messages = dict(objects_in(body.get("messages")))
    for index, message in messages.items():
        if message.get("role") != "system":
            continue
        before, after = messages.get(index - 1, {}), messages.get(index + 1, {"role": "assistant"})
        if not _is_user_turn(before) or after.get("role") != "assistant":
            text = "a system message is taken behind the user's turn and before the assistant's only"
            yield Problem(f"/messages/{index}", text)


def _is_user_turn(message: JsonObject) -> bool:
    """Whether a system message may follow: after the user's turn, or after a result of the server's own tools."""
    if message.get("role") == "user":
        return True
    blocks = objects_in(message.get("content"))
    kind = str(blocks[-1][1].get("type")) if blocks else ""
    return kind == "server_tool_use" or kind.endswith("_tool_result")


def _type_problems(body: JsonObject) -> Iterator[Problem]:
    for index, tool in objects_in(body.get("tools")):
        yield from type_problems(object_at(tool, "input_schema"), f"/tools/{index}/input_schema")


def _user_problems(body: JsonObject) -> Iterator[Problem]:
    user = object_at(body, "metadata").get("user_id")
    if isinstance(user, str) and looks_like_a_person(user):
        text = "user_id must be no e-mail address and no phone number"
        yield Problem("/metadata/user_id", text, rule=USER_ID)


def _pairing_problems(request: Request) -> list[Problem]:
    """Calls and results that do not match; in a continued thread, only the server knows the calls."""
    thread = request.extras.get("thread")
    is_continued = isinstance(thread, dict) and thread.get("type") == "continue"
    unpaired = [] if is_continued else list(pairing_problems(request, adjacent=True))
    known = {problem.pointer for problem in unpaired}
    return [*unpaired, *(problem for problem in _duplicate_call_ids(request) if problem.pointer not in known)]


def _duplicate_call_ids(request: Request) -> Iterator[Problem]:
    """Calls whose id an earlier call has used, even if that one was answered long ago."""
    used: set[str] = set()
    for part in parts_of(request.messages):
        if isinstance(part, ToolCall):
            if part.id in used:
                yield Problem(part.at, f"the id {part.id!r} is used by an earlier call too")
            used.add(part.id)


def _empty_problems(request: Request) -> Iterator[Problem]:
    """Empty messages and texts. The last message, if the assistant's, may have no content; `system` may be empty."""
    last = request.messages[-1] if request.messages else None
    allowed = {"/system"}
    if last is not None and last.role == "assistant":
        allowed |= {last.at, *(part.at for part in last.parts if last.bare)}
    for message in request.messages:
        if message.at not in allowed and {*map(type, message.parts)} <= {CacheBreakpoint}:
            yield Problem(message.at, "this message has no content")
        for part in message.parts:
            if isinstance(part, Text) and not part.text.strip() and part.at not in allowed:
                yield Problem(part.at, "this text is empty")


def _part_problems(parts: Sequence[Part]) -> Iterator[Problem]:
    for part in parts:
        if isinstance(part, (ToolCall, ToolResult)) and not _CALL_ID.fullmatch(part.id):
            yield Problem(part.at, f"the id {part.id!r} must match {_CALL_ID.pattern}")
        if isinstance(part, ToolResult) and part.is_error:
            others = {*map(type, part.parts)} - {Text, CacheBreakpoint}
            if others or not any(isinstance(inner, Text) and inner.text for inner in part.parts):
                yield Problem(part.at, "a result that is an error takes text and nothing else")
        if isinstance(part, ToolResult) and not part.bare:
            for inner in part.parts:
                yield from _part_problems([inner])
                if isinstance(inner, Text) and not inner.text.strip():
                    yield Problem(inner.at, "this text is empty")
        elif isinstance(part, Thinking):
            if not part.signature or part.signed_by != NAME:
                yield Problem(part.at, "this thinking has no signature of the provider")
        elif isinstance(part, Image) and isinstance(part.source, Inline) and part.source.media_type not in IMAGE_TYPES:
            yield Problem(part.at, f"pictures of type {part.source.media_type!r} are not taken")


def _end_problems(request: Request) -> Iterator[Problem]:
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role == "assistant" and last.parts:
        part = last.parts[-1]
        if isinstance(part, Text) and part.text.strip() and part.text != part.text.rstrip():
            yield Problem(part.at, "the last assistant message must not end in whitespace")


def _breakpoint_problems(request: Request) -> list[Problem]:
    places = [tool.cache.at for tool in request.tools if tool.cache is not None]
    places += [tool.at for tool in request.tools if isinstance(tool, OpaqueTool) and _is_marked(tool.value)]
    places += _breakpoints(parts_of(request.messages))
    if request.extras.get("cache_control") is not None:
        places.append("/cache_control")
    return [
        Problem(at, f"{len(places)} cache breakpoints are more than the {_MOST_BREAKPOINTS} that are taken")
        for at in places[_MOST_BREAKPOINTS:]
    ]


def _breakpoints(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, CacheBreakpoint) or (isinstance(part, Opaque) and _is_marked(part.value)):
            yield part.at
        elif isinstance(part, ToolResult) and not part.bare:
            yield from _breakpoints(part.parts)


def _is_marked(value: object) -> bool:
    return isinstance(value, dict) and value.get("cache_control") is not None


def _option_problems(request: Request) -> Iterator[Problem]:
    options = request.options
    if options.max_tokens is None:
        yield Problem("/max_tokens", "max_tokens must be set")
    elif options.max_tokens < 0:
        yield Problem("/max_tokens", "max_tokens must not be negative")
    if options.temperature is not None and not 0 <= options.temperature <= 1:
        yield Problem("/temperature", "temperature must be between 0 and 1")
    if any(not text.strip() for text in options.stop or ()):
        yield Problem("/stop_sequences", "a stop sequence must not be blank")
    if options.service_tier is not None and options.service_tier not in SERVICE_TIERS:
        yield Problem("/service_tier", f"service_tier is one of {', '.join(sorted(SERVICE_TIERS))}")
    if request.tool_choice is not None and not request.tools:
        yield Problem(request.tool_choice.at, "a tool choice needs tools")


def _schema_problems(request: Request) -> Iterator[Problem]:
    """Open objects in schemas that the API enforces: there, every object must be closed."""
    kept = [
        (f"{tool.at}/input_schema", tool.schema)
        for tool in request.tools
        if isinstance(tool, FunctionTool) and tool.strict and tool.schema is not None
    ]
    output = request.options.format
    if isinstance(output, SchemaFormat):
        kept.append((f"{output.at}/schema", output.schema))
    for at, schema in kept:
        for path in open_objects(schema):
            yield Problem(f"{at}{path}", "this object must have additionalProperties false")


def _thinking_problems(request: Request) -> Iterator[Problem]:
    options, reasoning, choice = request.options, request.options.reasoning, request.tool_choice
    if reasoning is None or reasoning.mode != "on":
        return
    at = reasoning.places.get("budget", reasoning.at)
    if reasoning.budget is None:
        yield Problem(at, "enabled thinking needs budget_tokens")
    elif reasoning.budget < LEAST_BUDGET:
        yield Problem(at, f"budget_tokens must be {LEAST_BUDGET} at least")
    elif options.max_tokens is not None and reasoning.budget >= options.max_tokens:
        yield Problem(at, "budget_tokens must be less than max_tokens")
    if options.temperature not in (None, 1):
        yield Problem("/temperature", "temperature must be 1 while thinking is enabled")
    if options.top_k is not None:
        yield Problem("/top_k", "top_k cannot be set while thinking is enabled")
    if options.top_p is not None and options.top_p < LEAST_TOP_P:
        yield Problem("/top_p", f"top_p must be {LEAST_TOP_P} at least while thinking is enabled")
    if choice is not None and choice.mode in ("required", "named"):
        yield Problem(choice.at, "a forced tool call and enabled thinking exclude each other")


_CREATED = "1970-01-01T00:00:00Z"
"""The catalogue does not know when a model was created, but the API requires a time."""


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
    # The tool runner of anthropic 2.8 continues a thread by default and then sends only the new result. On a 400 with
    # this error code it sends the whole conversation again and stops using threads (observed with the SDK, 2026-11).
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
    read_plain=read_plain,
    write_reply=write_reply,
    stream_reader=lambda: StreamReader(MessagesMachine(), TextDeltas()),
    stream_writer=MessagesWriter,
    read_error=read_error,
    write_error=write_error,
    problems=problems,
    vendor_problems=vendor_problems,
    names=NAMES,
    plain_texts=PLAIN_TEXTS,
    owns_frame=lambda frame: str(frame.get("type", "")).startswith(("message_", "content_block_")),
    # Anthropic's SDKs dispatch on the event name and ignore a frame without one.
    error_event="error",
    reasoning="mode",
    # "Migrating to API version 2026-10-21" (platform.claude.com): these are errors for every model.
    versions=ApiVersions(
        "anthropic-version",
        (("2026-10-21", ("temperature", "top_p", "top_k"), ("assistant_documents", "user_citations")),),
    ),
    endpoint=Endpoint(
        path="/messages",
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
        keep_alive=lambda _headers: b'event: ping\ndata: {"type": "ping"}\n\n',
        beta_header="anthropic-beta",
        list_models=_list_models,
        show_model=_show_model,
        state_fault=_state_fault,
        request_id="request-id",
        limits=LimitHeaders(
            "anthropic-ratelimit-{counted}-{role}",
            frozenset({"requests", "tokens", "input-tokens", "output-tokens"}),
            "time",
        ),
    ),
    support=DialectSupport(
        options=frozenset({"max_tokens", "temperature", "top_p", "top_k", "stop"}),
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        summaries=("none", "auto"),
        one_call=True,
        hosted_tools={"web_search": {"type": "web_search_20250305", "name": "web_search"}},
        # Anthropic shows thinking only together with the setting that switches it on.
        summary_mode="adaptive",
        options_thinking_excludes=options_thinking_excludes,
    ),
    rules=RequestRules(needs_max_tokens=True, needs_tools_for_calls=True),
    editing=Editing(
        container="messages",
        parts_key="content",
        roles={role: role for role in ("user", "assistant", "system")},
        text_part=lambda _role, text: {"type": "text", "text": text},
        leaves=LeafPaths(arguments=(("input",),), thinking=(("thinking",),)),
    ),
    tokens=TokenRules(page=(1000, 2200, 5000), call=(20, 38, 60), result=(8, 14, 30), frames_system=False),
    # "Prompt caching" and "Cache diagnostics", platform.claude.com, 2026-11. What precedes the messages stays cached
    # even if thinking or the tool choice change.
    cache=CacheRules(
        order=("tools", "system", "settings"),
        needs_marks=True,
        lifetime={"": 300.0, "5m": 300.0, "1h": 3600.0},
        lookback=20,
        accounts=("anthropic-organization-id",),
        versions=("anthropic-version",),
        betas=("anthropic-beta",),
        place_marks=place_marks,
        diagnosis=CacheDiagnosis(
            holder="message",
            path=("diagnostics", "cache_miss_reason"),
            reason=("type",),
            tokens="cache_missed_input_tokens",
            meanings={
                "model_changed": ("model", "provider"),
                "system_changed": ("system",),
                "tools_changed": ("tools", "tools_order"),
                "messages_changed": ("messages", "settings"),
            },
        ),
    ),
    unread=Unread(
        bookkeeping=frozenset({"id", "type", "role", "caller", "metadata", "diagnostics", "request_id", "details"}),
        containers=frozenset({"format", "output_config", "thinking"}),
        stateful=frozenset({"thread"}),
        # Claude Code 2.1 begins its system prompt with this line, and it differs from request to request: in front of
        # another provider's cached prefix it would invalidate all of it (observed 2026-11; vLLM leaves it out too,
        # vllm#36829).
        private_lines=("x-anthropic-billing-header:",),
    ),
)
