"""A Messages request body to a canonical request, one message for one message."""

from sightline.dialects.anthropic.blocks_read import read_content
from sightline.dialects.anthropic.names import NAME, ROLES
from sightline.dialects.anthropic.options import MODELLED, read_settings
from sightline.dialects.anthropic.tools import read_choice, read_tools
from sightline.dialects.fields import as_list, as_object, opt_str, rest, str_of, unknown
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.request import Request

_REQUEST = MODELLED | {"model", "system", "messages", "tools", "tool_choice"}
_MESSAGE = frozenset({"role", "content"})


def read_request(document: Json) -> Request:
    """The request that this body asks."""
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
    role = str_of(message, "role", at)
    if role not in ROLES:
        raise unknown(role, f"{at}/role", "role", ROLES)
    parts, bare = read_content(message.get("content"), f"{at}/content")
    return Message(ROLES[role], parts, bare=bare, at=at, extras=rest(message, _MESSAGE))
