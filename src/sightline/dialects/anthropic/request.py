"""Reads and writes a Messages request: `system`, the messages, and tools."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from sightline.dialects.anthropic.blocks import BlockWriter, bare_text, read_cache, read_content, write_cache
from sightline.dialects.anthropic.cache_marks import mark_for_cache
from sightline.dialects.anthropic.names import NAME, ROLES
from sightline.dialects.anthropic.options import MODELLED, any_open, close_objects, read_settings, write_settings
from sightline.dialects.conversation import (
    SYSTEM_ROLES,
    as_turns,
    is_mirrored,
    leading_count,
    with_answers,
    with_ids,
    with_policy,
    with_user_message,
)
from sightline.dialects.dialect import Target
from sightline.dialects.fields import (
    as_list,
    as_object,
    compact,
    merge,
    objects_in,
    opt_bool,
    opt_list,
    opt_object,
    opt_str,
    rest,
    str_of,
    unknown,
)
from sightline.dialects.json_schemas import INTEGER, STRING, object_schema
from sightline.dialects.losses import describe
from sightline.dialects.tool_names import fit_choice, function_for, function_instead
from sightline.model.json import Json, JsonObject
from sightline.model.parts import CacheBreakpoint, Opaque, Part, ToolResult
from sightline.model.report import Report
from sightline.model.request import (
    ChoiceMode,
    CustomTool,
    FunctionTool,
    Message,
    OpaqueTool,
    Request,
    Tool,
    ToolChoice,
    parts_of,
)
from sightline.wire.jsontext import encode

_KNOWN = frozenset({"type", "name", "cache_control"})
_SCREEN = frozenset({"display_width_px", "display_height_px"})

_POINT: JsonObject = {"type": "array", "items": INTEGER, "minItems": 2, "maxItems": 2}


def _words(*words: Json) -> JsonObject:
    return {"type": "string", "enum": list(words)}


_FILE: JsonObject = {
    "path": {"type": "string", "description": "The file or folder."},
    "view_range": {**_POINT, "description": "The first and last line to show; -1 is the end."},
    "file_text": {"type": "string", "description": "The content of a new file."},
    "old_str": {"type": "string", "description": "The text to replace, which must be there exactly once."},
    "new_str": {"type": "string", "description": "The text in its place."},
    "insert_line": {"type": "integer", "description": "The line behind which to insert; 0 is the top."},
    "insert_text": {"type": "string", "description": "The text to insert."},
}

_COMPUTER = object_schema(
    ["action"],
    action=_words(
        *("key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", "double_click"),
        *("triple_click", "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "screenshot"),
        *("cursor_position", "zoom"),
    ),
    coordinate={**_POINT, "description": "x and y on the screen."},
    start_coordinate={**_POINT, "description": "Where a drag begins."},
    text={"type": "string", "description": "The text to type, or the keys to press."},
    scroll_direction=_words("up", "down", "left", "right"),
    scroll_amount=INTEGER,
    duration={"type": "number", "description": "Seconds to wait or to hold."},
    region={"type": "array", "items": INTEGER, "description": "x1, y1, x2, y2 of the part of the screen to show."},
)

_TOOLS: Mapping[str, tuple[str, JsonObject]] = {
    "bash_": (
        "Run a command in a bash session that lasts from call to call, and return its output.",
        object_schema([], command=STRING, restart={"type": "boolean", "description": "Start a new session instead."}),
    ),
    "text_editor_": (
        "View, create and edit text files.",
        object_schema(
            ["command", "path"], command=_words("view", "create", "str_replace", "insert", "undo_edit"), **_FILE
        ),
    ),
    "computer_": ("Control a computer with mouse and keyboard. A screenshot shows the result.", _COMPUTER),
    "memory_": (
        "Keep notes across conversations in files below /memories.",
        object_schema(
            ["command"],
            command=_words("view", "create", "str_replace", "insert", "delete", "rename"),
            **_FILE,
            old_path=STRING,
            new_path=STRING,
        ),
    ),
}
"""Description and schema by the beginning of the type, which ends in a date."""


def read_client_tool(tool: JsonObject, at: str) -> OpaqueTool | None:
    """The tool, unchanged and as a function; None if it is not one of these."""
    kind, name = str(tool["type"]), tool.get("name")
    found = next((entry for head, entry in _TOOLS.items() if kind.startswith(head)), None)
    if found is None or not isinstance(name, str):
        return None
    description, schema = found
    known = _KNOWN
    if kind.startswith("computer_"):
        width, height = (encode(tool.get(key)).decode() for key in ("display_width_px", "display_height_px"))
        description, known = f"{description} The screen has {width} by {height} pixels.", _KNOWN | _SCREEN
    function = FunctionTool(name, description, schema, cache=read_cache(tool, at), at=at)
    return OpaqueTool(NAME, tool, functions=(function,), at=at, extras=rest(tool, known))


_TOOL = frozenset({"name", "description", "input_schema", "strict", "cache_control"})
_CHOICE = frozenset({"type", "name", "disable_parallel_tool_use"})
_MODES: dict[str, ChoiceMode] = {"auto": "auto", "any": "required", "tool": "named", "none": "none"}
_WORDS: dict[ChoiceMode, str] = {"auto": "auto", "required": "any", "named": "tool", "none": "none"}


def read_tools(body: JsonObject) -> tuple[Tool, ...]:
    """The tools of a request; a tool with a type other than `custom` is the provider's own and is kept unchanged."""
    return tuple(_read_tool(value, f"/tools/{index}") for index, value in enumerate(opt_list(body, "tools", "")))


def _read_tool(value: Json, at: str) -> Tool:
    tool = as_object(value, at)
    if opt_str(tool, "type", at) not in (None, "custom"):
        return read_client_tool(tool, at) or OpaqueTool(NAME, tool, at=at)
    return FunctionTool(
        str_of(tool, "name", at),
        opt_str(tool, "description", at),
        opt_object(tool, "input_schema", at),
        opt_bool(tool, "strict", at),
        cache=read_cache(tool, at),
        at=at,
        extras=rest(tool, _TOOL),
    )


def write_tools(request: Request, body: JsonObject, report: Report, *, same: bool) -> None:
    """Write the tools into the body."""
    tools: list[Json] = []
    for tool in request.tools:
        written = _write_own_tool(tool) if same else _write_foreign_tool(tool, f"/tools/{len(tools)}", report)
        if written is not None:
            tools.append(written)
    if tools:
        body["tools"] = tools


def _write_own_tool(tool: Tool) -> Json:
    if isinstance(tool, OpaqueTool):
        return tool.value
    return merge(_function(function_for(tool) if isinstance(tool, CustomTool) else tool, same=True), tool.extras)


def _write_foreign_tool(tool: Tool, place: str, report: Report) -> Json:
    if isinstance(tool, OpaqueTool):
        if tool.dialect == NAME:
            return tool.value
        report.lose(tool.at, describe(tool), f"{NAME} does not know it", "option")
        return None
    if isinstance(tool, CustomTool):
        tool = function_instead(tool, place, report, NAME)
    written = _function(tool, same=False)
    schema: JsonObject = {"type": "object", "properties": {}} if tool.schema is None else {**tool.schema}
    if tool.schema is None or "type" not in schema:
        report.add(f"{place}/input_schema", "input_schema of an object", f"{NAME} demands one")
        schema.setdefault("type", "object")
    if tool.strict and any_open(schema):
        report.lose(tool.at, "strict", f"{NAME} keeps to a schema only where every object of it is closed", "option")
        del written["strict"]
    elif tool.strict:
        schema = close_objects(schema, tool.at, f"{place}/input_schema", report)
    written["input_schema"] = schema
    return written


def _function(tool: FunctionTool, *, same: bool) -> JsonObject:
    return compact(
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.schema,
            "strict": tool.strict,
            "cache_control": None if tool.cache is None else write_cache(tool.cache, same=same),
        }
    )


def read_choice(body: JsonObject) -> tuple[ToolChoice | None, bool | None]:
    """The tool choice, and whether calls may be parallel, which is a field inside it."""
    choice = opt_object(body, "tool_choice", "")
    if choice is None:
        return None, None
    at = "/tool_choice"
    word = str_of(choice, "type", at)
    if word not in _MODES:
        return ToolChoice("opaque", value=choice, at=at), None
    disabled = opt_bool(choice, "disable_parallel_tool_use", at)
    names = (str_of(choice, "name", at),) if word == "tool" else ()
    extras = rest(choice, _CHOICE)
    return ToolChoice(_MODES[word], names, at=at, extras=extras), None if disabled is None else not disabled


def write_choice(request: Request, body: JsonObject, report: Report, *, same: bool) -> None:
    """Write the tool choice into the body. If only parallel calls are set, the model keeps its free choice."""
    choice, parallel = request.tool_choice, request.parallel_tool_calls
    if same:
        written = _own_choice(choice, parallel)
        if written is not None:
            body["tool_choice"] = written
    else:
        names = [str(tool.get("name")) for _, tool in objects_in(body.get("tools"))]
        choice = fit_choice(choice, names, report, NAME, has_tools=bool(names))
        written = None if choice is None else _foreign_choice(choice, report)
        if parallel is not None and not names:
            report.lose(request.parallel_at, "whether calls may be parallel", "there is no tool to call", "identity")
        elif parallel is not None and written is not None and written["type"] == "none":
            report.lose(request.parallel_at, "whether calls may be parallel", "no call is allowed at all", "identity")
        elif parallel is False:
            written = {"type": "auto"} if written is None else written
            written["disable_parallel_tool_use"] = True
        if written is not None:
            body["tool_choice"] = written


def _own_choice(choice: ToolChoice | None, parallel: bool | None) -> Json:  # noqa: FBT001 - a field, not a switch
    if choice is not None and choice.mode == "opaque":
        return choice.value
    if choice is None and parallel is None:
        return None
    written: JsonObject = {"type": "auto" if choice is None else _WORDS[choice.mode]}
    if choice is not None and choice.names:
        written["name"] = choice.names[0]
    if parallel is not None:
        written["disable_parallel_tool_use"] = not parallel
    return written if choice is None else merge(written, choice.extras)


def _foreign_choice(choice: ToolChoice, report: Report) -> JsonObject:
    if len(choice.names) == 1 and choice.mode in ("named", "required"):
        return {"type": "tool", "name": choice.names[0]}
    if choice.names:
        report.lose(choice.at, "set of allowed tools", f"{NAME} can allow all of them or force one", "option")
    return {"type": _WORDS[choice.mode] if choice.mode != "named" else "any"}


_REQUEST = MODELLED | {"model", "system", "messages", "tools", "tool_choice"}
_MESSAGE = frozenset({"role", "content"})


def read_request(document: Json) -> Request:
    """Read a request body."""
    body = as_object(document, "")
    messages = [
        _read_message(value, f"/messages/{index}")
        for index, value in enumerate(as_list(body.get("messages"), "/messages"))
    ]
    if body.get("system") is not None:
        parts, bare = read_content(body["system"], "/system")
        messages.insert(0, Message("system", parts, bare=bare, at="/system"))
    choice, parallel = read_choice(body)
    options, unread = read_settings(body)
    if parallel is not None:
        options.places["parallel_tool_calls"] = "/tool_choice/disable_parallel_tool_use"
    return Request(
        model=opt_str(body, "model", "") or "",
        messages=tuple(messages),
        tools=read_tools(body),
        tool_choice=choice,
        parallel_tool_calls=parallel,
        options=options,
        dialect=NAME,
        extras=rest(body, _REQUEST) | unread,
    )


def _read_message(value: Json, at: str) -> Message:
    message = as_object(value, at)
    role = str_of(message, "role", at)  # may be system: Claude Code 2.1 sends such messages within the conversation
    if role not in ROLES:
        raise unknown(role, f"{at}/role", "role", ROLES)
    parts, bare = read_content(message.get("content"), f"{at}/content")
    return Message(ROLES[role], parts, bare=bare, at=at, extras=rest(message, _MESSAGE))


Written: TypeAlias = tuple[Message, list[Json]]
"""A message and its written blocks."""

_WHY_NOT_TAKEN = "the model takes none inside the conversation: demoted to user"
_WHY_NOT_AFTER_USER = f"{NAME} takes one behind a user's turn only: demoted to user"


def place_system(written: list[Written], report: Report, *, is_taken: bool) -> list[Written]:
    """The messages with each system message where the API takes it; `is_taken`: the model takes them at all.

    After the leading ones, which become `system`, a system message must follow a user's turn and must come before the
    assistant's or at the end, and no two may follow each other (platform.claude.com, "Mid-conversation system
    messages", 2026-11). One that precedes the user's turn is moved after it: the model reads it for the same answer.
    One without an adjacent user's turn becomes a user message.
    """
    roles = [message.role for message, _ in written]
    count = leading_count(tuple([message for message, _ in written]))
    if SYSTEM_ROLES.isdisjoint(roles[count:]):
        return written
    out = written[:count]
    waiting: list[tuple[int, Written]] = []
    for each in written[count:]:
        message = each[0]
        if message.role in SYSTEM_ROLES:
            if is_taken:
                waiting.append((len(out), each))
            else:
                out.append(_demote(each, _WHY_NOT_TAKEN, report))
            continue
        if message.role == "assistant":
            _place_waiting_system(out, waiting, report)
            waiting = []
        out.append(each)
    _place_waiting_system(out, waiting, report)
    return out


def _place_waiting_system(out: list[Written], waiting: list[tuple[int, Written]], report: Report) -> None:
    """Put the system messages that wait for the end of the user's turn after it, as one message."""
    if not waiting:
        return
    if not out or out[-1][0].role not in ("user", "tool"):
        out.extend(_demote(each, _WHY_NOT_AFTER_USER, report) for _, each in waiting)
        return
    for place, (message, _) in waiting:
        if place != len(out):
            why = f"{NAME} takes it behind the user's turn"
            report.lose(message.at, f"place of a {message.role} message", why, "option")
    (_, (first, blocks)), *others = waiting
    for _, (message, more) in others:
        report.lose(message.at, "a system message of its own", f"{NAME} takes no two in a row: joined", "identity")
        blocks = [*blocks, *more]
    out.append((first, blocks))


def _demote(written: Written, why: str, report: Report) -> Written:
    message, blocks = written
    report.lose(message.at, f"role of a {message.role} message", why, "content")
    return msgspec.structs.replace(message, role="user"), blocks


def with_turns(messages: tuple[Message, ...], report: Report) -> tuple[Message, ...]:
    """The messages as turns in which every call is answered by the next message, results first."""
    turns = with_answers(as_turns(with_ids(messages, report)), report, NAME)
    return tuple(_results_first(turn, report) for turn in turns)


def _results_first(message: Message, report: Report) -> Message:
    """The message with its tool results in front, each with the cache mark that follows it."""
    if ToolResult not in map(type, message.parts) or len(message.parts) == 1:
        return message
    results: list[Part] = []
    others: list[Part] = []
    moved: list[Part] = []
    current = others
    for part in message.parts:
        if isinstance(part, ToolResult):
            current = results
            if others:
                moved.append(part)
        elif not isinstance(part, CacheBreakpoint):
            current = others
        current.append(part)
    for part in moved:
        report.lose(part.at, "order of parts", f"{NAME} wants tool results before anything else", "content")
    return msgspec.structs.replace(message, parts=(*results, *others)) if moved else message


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The body of this request in this dialect."""
    same = request.dialect == NAME
    messages = request.messages
    if not same:
        _lose_identity(messages, report)
        if Opaque in map(type, parts_of(messages)):
            messages = tuple(message for message in messages if not is_mirrored(message))
    messages = with_policy(messages, target.system, report)
    if not same:
        messages = with_turns(messages, report)
    body: JsonObject = {"model": request.model} if request.model else {}
    _write_messages(messages, body, target, report, same=same)
    write_tools(request, body, report, same=same)
    write_choice(request, body, report, same=same)
    write_settings(request.options, target, body, report, same=same)
    if request.dialect and not same and target.cache == "auto":
        mark_for_cache(body, request, target.facts, report)
    return merge(body, request.extras) if same else body


def _lose_identity(messages: tuple[Message, ...], report: Report) -> None:
    """Report what a message of this API has no field for, before messages are joined."""
    for message in messages:
        if message.role == "developer" and not is_mirrored(message):
            report.lose(message.at, "role developer", f"{NAME} calls it system", "identity")
        if message.id is not None:
            report.lose(message.at, "id of the message", f"{NAME} has no such field", "identity")
        if message.name is not None:
            report.lose(f"{message.at}/name", "name of the speaker", f"{NAME} has no such field", "option")


def _write_messages(
    messages: tuple[Message, ...], body: JsonObject, target: Target, report: Report, *, same: bool
) -> None:
    """Fill in `system` and `messages`. In a request of this dialect, a system message among the messages stays there,
    unless the target's policy moves it."""
    writer = BlockWriter(report, same=same)
    written: list[Written] = []
    for message in messages:
        is_system = message.role in SYSTEM_ROLES
        blocks = writer.write_words(message.parts) if is_system else writer.write(message.parts)
        if blocks or same:
            written.append((message, blocks))
        else:
            # Its content is reported part by part; this is for the message itself, its role and its place.
            report.lose(message.at, "a message of which nothing is left", f"{NAME} rejects it", "identity")
    if not same:
        # If nothing is known about the model, the rules of the API apply.
        is_taken = target.facts is None or target.facts.inline_system is True
        written = place_system(written, report, is_taken=is_taken)
    spoken = tuple(message for message, _ in written)
    if not same:
        if not spoken:
            report.lose(messages[-1].at if messages else "", "every message", "nothing is left to answer", "content")
        spoken = with_user_message(spoken, report, NAME)
        if spoken and spoken[-1].role == "assistant":
            writer.trim_end()
    count = leading_count(spoken)
    if same and target.system == "in_place":
        count = next((i for i, m in enumerate(spoken[:count]) if m.at.startswith("/messages")), count)
    # Only at this point: a cache mark may have been put on a block of an earlier message.
    if count:
        joined = [block for _, blocks in written[:count] for block in blocks]
        bare = bare_text(joined) if count == 1 and spoken[0].bare else None
        body["system"] = joined if bare is None else bare
    pairs = zip(spoken[count:], written[count:], strict=True)
    body["messages"] = [_write_message(message, blocks, same=same) for message, (_, blocks) in pairs]


def _write_message(message: Message, blocks: list[Json], *, same: bool) -> JsonObject:
    bare = bare_text(blocks) if message.bare else None
    role = "system" if message.role in SYSTEM_ROLES else "assistant" if message.role == "assistant" else "user"
    written: JsonObject = {"role": role, "content": blocks if bare is None else bare}
    return merge(written, message.extras) if same else written
