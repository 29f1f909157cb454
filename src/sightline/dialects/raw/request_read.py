"""Reading a raw request: a bare list of messages, or an object that names a model and options beside them."""

import msgspec

from sightline.dialects.dialect import Problem
from sightline.dialects.fields import (
    as_list,
    as_object,
    opt_object,
    opt_str,
    rest,
    str_of,
    unknown,
    whole_number,
    wrong,
)
from sightline.dialects.raw.carrier import read_carried_result
from sightline.dialects.raw.content import nest_extras, read_calls, read_content
from sightline.dialects.raw.names import NAME, OPTIONS, ROLES
from sightline.dialects.raw.options import read_settings
from sightline.dialects.tool_names import as_function_arguments, flat_name, free_text
from sightline.dialects.validity import no_messages, pairing_problems
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import Part, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.model.tools import CustomTool, Tool

_REQUEST = frozenset({"model", "messages", OPTIONS})
_MESSAGE = frozenset({"role", "content", "name"})
_ROLES = ("0 (system)", "1 (user)", "2 (assistant)", "3 (tool)")


def read_request(document: Json) -> Request:
    """The request that this body asks."""
    if isinstance(document, list):
        return Request(messages=_read_messages(document, ""), dialect=NAME)
    body = as_object(document, "")
    messages = _read_messages(as_list(body.get("messages"), "/messages"), "/messages")
    extras = rest(body, _REQUEST)
    settings = opt_object(body, OPTIONS, "")
    read = Request(dialect=NAME) if settings is None else read_settings(settings)
    if settings == {}:  # it is kept, although it says nothing
        extras = {**extras, OPTIONS: {}}
    return msgspec.structs.replace(
        read,
        model=opt_str(body, "model", "") or "",
        messages=_with_kinds(messages, read.tools),
        extras=nest_extras(extras, OPTIONS, read.extras),
    )


def _read_messages(values: list[Json], at: str) -> tuple[Message, ...]:
    return tuple(_read_message(value, f"{at}/{index}") for index, value in enumerate(values))


def _read_message(value: Json, at: str) -> Message:
    holder = as_object(value, at)
    number = whole_number(holder.get("role"))
    if number is None:
        raise wrong(holder.get("role"), f"{at}/role", "a number from 0 to 3")
    if not 0 <= number < len(ROLES):
        raise unknown(str(number), f"{at}/role", "role", _ROLES)
    role = ROLES[number]
    content = holder.get("content")
    name = opt_str(holder, "name", at)
    bare = isinstance(content, str)
    if role == "tool":
        result = _read_result(holder, content, name, at)
        return Message(role, (result,), at=at, extras=rest(holder, _MESSAGE | {"toolCallId"}))
    parts = read_content(content, role, f"{at}/content")
    if role == "assistant":
        parts = (*parts, *read_calls(holder, at))
        return Message(role, parts, name, bare=bare, at=at, extras=rest(holder, _MESSAGE | {"toolCalls"}))
    return Message(role, parts, name, bare=bare, at=at, extras=rest(holder, _MESSAGE))


def _read_result(holder: JsonObject, content: Json, name: str | None, at: str) -> ToolResult:
    call_id = str_of(holder, "toolCallId", at)
    beyond = None
    if isinstance(content, list) and content:
        beyond = read_carried_result(content[-1], call_id)
        if beyond is not None:
            content = content[:-1]
    parts = read_content(content, "tool", f"{at}/content")
    result = beyond or ToolResult(call_id)
    return msgspec.structs.replace(result, parts=parts, name=name, bare=isinstance(content, str), at=at)


def _with_kinds(messages: tuple[Message, ...], tools: tuple[Tool, ...]) -> tuple[Message, ...]:
    """The schema knows functions only: a call of a tool that is declared as custom gets its free text back."""
    custom = {flat_name(tool.name, tool.namespace) for tool in tools if isinstance(tool, CustomTool)}
    if not custom:
        return messages
    answered: set[str] = set()

    def restore_kind(part: Part) -> Part:
        if isinstance(part, ToolCall) and part.name in custom:
            call = msgspec.structs.replace(part, kind="custom", arguments=free_text(part.arguments))
            if as_function_arguments(call) == part.arguments:
                answered.add(part.id)
                return call
        elif isinstance(part, ToolResult) and part.id in answered:
            return msgspec.structs.replace(part, kind="custom")
        return part

    return tuple(
        msgspec.structs.replace(message, parts=tuple(restore_kind(part) for part in message.parts))
        for message in messages
    )


def problems(request: Request) -> list[Problem]:
    """Everything in this request that would be refused."""
    in_object = bool(request.messages) and request.messages[0].at.startswith("/messages/")
    return [
        *no_messages(request, "/messages" if in_object else ""),
        *pairing_problems(request, adjacent=True),
    ]
