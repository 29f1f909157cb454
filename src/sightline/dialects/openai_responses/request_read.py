"""Reading a Responses request: one canonical message per input item, never regrouped."""

from msgspec.structs import replace

from sightline.dialects.fields import as_object, opt_bool, opt_str, rest, str_of, unknown, wrong
from sightline.dialects.openai_responses.client_tools import BY_CALL, BY_OUTPUT, read_call, read_output
from sightline.dialects.openai_responses.content import INPUT, OUTPUT, read_content
from sightline.dialects.openai_responses.names import CALLS, NAME, OUTPUTS
from sightline.dialects.openai_responses.options import OPTION_KEYS, read_all
from sightline.dialects.openai_responses.reasoning import read_reasoning
from sightline.dialects.openai_responses.tools import read_tool_choice, read_tools
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message, Role
from sightline.model.parts import Opaque, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.model.tools import Tool

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}

STATE = ("previous_response_id", "conversation", "prompt")
"""Fields that bring a conversation with them, so that a request may have no input of its own."""

_REQUEST = OPTION_KEYS | {"model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls"}
_MESSAGE = frozenset({"type", "id", "role", "content"})
_CALL = frozenset({"type", "id", "call_id", "name", "namespace"})
_OUTPUT = frozenset({"type", "id", "call_id", "name", "output"})


def read_request(document: Json) -> Request:
    """The request that this body asks."""
    body = as_object(document, "")
    options, spare = read_all(body)
    tools = read_tools(body.get("tools"), "/tools")
    messages = [*_read_instructions(body), *_read_input(body, tools)]
    return Request(
        model=opt_str(body, "model", "") or "",
        messages=tuple(messages),
        tools=tuple(tools),
        tool_choice=read_tool_choice(body.get("tool_choice"), tools),
        parallel_tool_calls=opt_bool(body, "parallel_tool_calls", ""),
        options=options,
        dialect=NAME,
        extras={**rest(body, _REQUEST), **spare},
    )


def _read_instructions(body: JsonObject) -> list[Message]:
    content = body.get("instructions")
    if content is None:
        return []
    parts, bare = read_content(content, "/instructions")
    return [Message("system", parts, bare=bare, at="/instructions")]


def _read_input(body: JsonObject, tools: list[Tool]) -> list[Message]:
    """The items; the tools that some of them bring are added to the list."""
    value = body.get("input")
    if type(value) is str:
        parts, _ = read_content(value, "/input")
        return [Message("user", parts, bare=True, at="/input")]
    if value is None and any(body.get(key) is not None for key in STATE):
        return []
    if type(value) is not list:
        raise wrong(value, "/input", "a string or a list of items")
    items = [as_object(item, f"/input/{index}") for index, item in enumerate(value)]
    hosted = frozenset(str(item.get("call_id")) for item in items if _is_hosted(item))
    messages = [_read_item(item, f"/input/{index}", tools, hosted) for index, item in enumerate(items)]
    return _with_calls_of_items(messages)


def _is_hosted(item: JsonObject) -> bool:
    """Whether an item is a call of a built-in tool that is not for the client: its result is opaque as it is."""
    return str(item.get("type")) in BY_CALL and read_call(item, "") is None


def _with_calls_of_items(messages: list[Message]) -> list[Message]:
    """The messages, where results of a local shell that name the item of their call name the call itself."""
    calls = {part.item: part.id for message in messages for part in message.parts if isinstance(part, ToolCall)}
    known = set(calls.values())

    def answering(message: Message) -> Message:
        match message.parts:
            case (ToolResult(kind="local_shell") as result,) if result.id not in known and result.id in calls:
                answer = replace(result, id=calls[result.id], extras={**result.extras, "id": result.id})
                return replace(message, parts=(answer,))
            case _:
                return message

    return [answering(message) for message in messages]


def _read_item(item: JsonObject, at: str, tools: list[Tool], hosted: frozenset[str]) -> Message:
    kind = opt_str(item, "type", at)
    if kind is None or kind == "message":
        return _read_message(item, at)
    if kind in CALLS:
        return Message("assistant", (_read_call(item, kind, at),), at=at)
    if kind in OUTPUTS:
        return Message("tool", (_read_output(item, kind, at),), at=at)
    if kind in BY_CALL and (call := read_call(item, at)) is not None:
        return Message("assistant", (call,), at=at)
    if kind in BY_OUTPUT and str(item.get("call_id")) not in hosted and (result := read_output(item, at)) is not None:
        if kind == "tool_search_output":
            tools.extend(read_tools(item.get("tools"), f"{at}/tools"))
        return Message("tool", (result,), at=at)
    if kind == "reasoning":
        return Message("assistant", (read_reasoning(item, at),), at=at)
    if kind == "additional_tools":
        tools.extend(read_tools(item.get("tools"), f"{at}/tools"))
        mirror = Opaque(NAME, item, mirrored=True, at=at)
        return Message("developer", (mirror,), at=at, extras=rest(item, frozenset({"type", "tools"})))
    return Message("tool" if kind.endswith("_output") else "assistant", (Opaque(NAME, item, at=at),), at=at)


def _read_message(item: JsonObject, at: str) -> Message:
    word = str_of(item, "role", at)
    role = ROLES.get(word)
    if role is None:
        raise unknown(word, f"{at}/role", "role", ROLES)
    parts, bare = read_content(item.get("content"), f"{at}/content", OUTPUT if role == "assistant" else INPUT)
    extras = rest(item, _MESSAGE)
    if item.get("type") is None:
        extras = {**extras, "type": None}  # it was absent, and is not written back
    return Message(role, parts, id=opt_str(item, "id", at), bare=bare, at=at, extras=extras)


def _read_call(item: JsonObject, kind: str, at: str) -> ToolCall:
    tool, words = CALLS[kind]
    return ToolCall(
        str_of(item, "call_id", at),
        str_of(item, "name", at),
        str_of(item, words, at),
        kind="custom" if tool == "custom" else "function",
        namespace=opt_str(item, "namespace", at),
        item=opt_str(item, "id", at),
        at=at,
        extras=rest(item, _CALL | {words}),
    )


def _read_output(item: JsonObject, kind: str, at: str) -> ToolResult:
    parts, bare = read_content(item.get("output"), f"{at}/output")
    return ToolResult(
        opt_str(item, "call_id", at) or "",
        parts,
        opt_str(item, "name", at),
        kind="custom" if OUTPUTS[kind] == "custom" else "function",
        item=opt_str(item, "id", at),
        bare=bare,
        at=at,
        extras=rest(item, _OUTPUT),
    )
