"""Reads and writes a Responses request. Each input item is read as one canonical message, never regrouped; messages are
written as a flat list of items, one for every message, call, result and piece of reasoning."""

import hashlib
from typing import TypeGuard

import msgspec
from msgspec.structs import replace

from sightline.dialects.conversation import plain_text, with_ids, with_policy, with_user_message
from sightline.dialects.dialect import Target
from sightline.dialects.fields import as_object, compact, merge, opt_bool, opt_str, rest, str_of, unknown, wrong
from sightline.dialects.openai_responses.client_tools import (
    BY_CALL,
    BY_KIND,
    BY_OUTPUT,
    complete_call,
    read_call,
    read_output,
    write_call,
    write_output,
)
from sightline.dialects.openai_responses.content import (
    INPUT,
    OUTPUT,
    ContentWriter,
    read_content,
    read_reasoning,
    reasoning_pieces,
)
from sightline.dialects.openai_responses.names import CALLS, NAME, OUTPUTS, is_item_type
from sightline.dialects.openai_responses.settings import (
    OPTION_KEYS,
    Spaces,
    read_all,
    read_tool_choice,
    read_tools,
    write_all,
    write_tool_choice,
    write_tools,
)
from sightline.dialects.signatures import NEXT
from sightline.dialects.tool_names import flat_name
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Opaque, Part, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import CustomTool, FunctionTool, Message, OpaqueTool, Request, Role, Tool
from sightline.wire.jsontext import encode

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "developer"}

STATE = ("previous_response_id", "conversation", "prompt")
"""Fields that refer to a conversation, so that a request may have no input of its own."""

_REQUEST = OPTION_KEYS | {"model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls"}
_MESSAGE = frozenset({"type", "id", "role", "content"})
_CALL_FIELDS = {
    kind: frozenset({"type", "id", "call_id", "name", "namespace", words}) for kind, (_, words) in CALLS.items()
}
_OUTPUT = frozenset({"type", "id", "call_id", "name", "output"})


def read_request(document: Json) -> Request:
    """Read a request body."""
    body = as_object(document, "")
    options, spare = read_all(body)
    tools = read_tools(body.get("tools"), "/tools")
    messages: list[Message] = []
    if body.get("instructions") is not None:
        parts, bare = read_content(body["instructions"], "/instructions")
        messages.append(Message("system", parts, bare=bare, at="/instructions"))
    messages += _read_input(body, tools)
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


def _read_input(body: JsonObject, tools: list[Tool]) -> list[Message]:
    """Read the items; the tools that some of them contain are added to the list."""
    value = body.get("input")
    if type(value) is str:
        parts, _ = read_content(value, "/input")
        return [Message("user", parts, bare=True, at="/input")]
    if value is None and any(body.get(key) is not None for key in STATE):
        return []
    if type(value) is not list:
        raise wrong(value, "/input", "a string or a list of items")
    places = [f"/input/{index}" for index in range(len(value))]
    items = list(map(as_object, value, places))
    # Only a request with calls of built-in tools needs another pass over its items.
    kinds = {kind for item in items if type(kind := item.get("type")) is str}
    hosted = frozenset() if kinds.isdisjoint(BY_CALL) else _find_hosted_calls(items)
    messages = [_read_item(item, at, tools, hosted) for item, at in zip(items, places, strict=True)]
    return _with_call_ids(messages) if BY_KIND["local_shell"].output in kinds else messages


def _find_hosted_calls(items: list[JsonObject]) -> frozenset[str]:
    """The ids of calls of built-in tools that the client does not run: their results stay opaque."""
    calls = [item for item in items if str(item.get("type")) in BY_CALL]
    return frozenset(str(item.get("call_id")) for item in calls if read_call(item, "") is None)


def _with_call_ids(messages: list[Message]) -> list[Message]:
    """The messages, with results of a local shell that name the item of their call changed to name the call itself."""
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
        word = str_of(item, "role", at)
        role = ROLES.get(word)
        if role is None:
            raise unknown(word, f"{at}/role", "role", ROLES)
        parts, bare = read_content(item.get("content"), f"{at}/content", OUTPUT if role == "assistant" else INPUT)
        extras = rest(item, _MESSAGE)
        if item.get("type") is None:
            extras = {**extras, "type": None}  # it was absent, and is not written back
        return Message(role, parts, id=opt_str(item, "id", at), bare=bare, at=at, extras=extras)
    if kind in CALLS:
        return Message("assistant", (_read_call(item, kind, at),), at=at)
    if kind in OUTPUTS:
        return Message("tool", (_read_output(item, kind, at),), at=at)
    if kind == "reasoning":
        return Message("assistant", (read_reasoning(item, at),), at=at)
    if kind in BY_CALL and (call := read_call(item, at)) is not None:
        return Message("assistant", (call,), at=at)
    if kind in BY_OUTPUT and str(item.get("call_id")) not in hosted and (result := read_output(item, at)) is not None:
        if kind == "tool_search_output":
            tools.extend(read_tools(item.get("tools"), f"{at}/tools"))
        return Message("tool", (result,), at=at)
    if kind == "additional_tools":
        # Codex 0.166 sends gpt-6 no `tools`: they are in the first item, in a namespace (observed 2026-11).
        tools.extend(read_tools(item.get("tools"), f"{at}/tools"))
        mirror = Opaque(NAME, item, mirrored=True, at=at)
        return Message("developer", (mirror,), at=at, extras=rest(item, frozenset({"type", "tools"})))
    return Message("tool" if kind.endswith("_output") else "assistant", (Opaque(NAME, item, at=at),), at=at)


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
        extras=rest(item, _CALL_FIELDS[kind]),
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


class ItemTools:
    """The tools that are in the items of these messages."""

    def __init__(self, messages: tuple[Message, ...]) -> None:
        self._tools: list[Tool] = []
        for message in messages:
            for part in message.parts:
                item = part.value if isinstance(part, Opaque) and part.dialect == NAME else None
                if isinstance(item, dict) and item.get("type") == "additional_tools":
                    self._tools += read_tools(item.get("tools"), f"{part.at}/tools")
        self.spaces: Spaces = {
            flat_name(tool.name, tool.namespace): (tool.name, tool.namespace)
            for tool in self._tools
            if not isinstance(tool, OpaqueTool)
        }

    def others(self, tools: tuple[Tool, ...], report: Report) -> list[Tool]:
        """The tools that are in no item; one that differs from the tool in its item is a loss."""
        waiting = list(self._tools)
        left: list[Tool] = []
        for tool in reversed(tools):  # the tools of items were read after the others
            same = next((other for other in waiting if _identity_of(other) == _identity_of(tool)), None)
            if same is None:
                left.append(tool)
                continue
            waiting.remove(same)
            if _content(same) != _content(tool):
                why = "an additional_tools item brings it, and says something else"
                report.lose(tool.at, "definition of a tool", why, "option")
        return left[::-1]


def _identity_of(tool: Tool) -> Json:
    """The identity of a tool in an API without namespaces."""
    return tool.value if isinstance(tool, OpaqueTool) else flat_name(tool.name, tool.namespace)


def _content(tool: Tool) -> tuple[object, ...]:
    match tool:
        case FunctionTool():
            return tool.description, tool.schema, tool.strict
        case CustomTool():
            return tool.description, tool.grammar
        case _:
            return ()


_NO_CALL_ID = frozenset({"call_id"})

LONGEST_ID = 64
"""The API takes call ids of at most this many characters."""


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The body of this request in this dialect."""
    same = request.dialect == NAME
    messages = with_policy(request.messages, target.system, report)
    if not same:
        messages = with_ids(with_user_message(messages, report, NAME), report)
    document: JsonObject = {"model": request.model} if request.model else {}
    brought = ItemTools(() if same else messages)
    writer = ItemWriter(report, request.dialect, brought.spaces)
    if messages and (instructions := writer.instructions(messages[0])) is not None:
        document["instructions"] = instructions
        messages = messages[1:]
    if same and len(messages) == 1 and messages[0].at == "/input" and messages[0].bare:
        document["input"] = plain_text(messages[0].parts)
    else:
        items = [item for message in messages for item in writer.items(message)]
        if items or not (same and names_state(request)):
            document["input"] = items
    tools = write_tools(brought.others(request.tools, report), report, same=same)
    if tools:
        document["tools"] = tools
    choice = write_tool_choice(request, brought.spaces, report, same=same)
    if choice is not None:
        document["tool_choice"] = choice
    if target.states_tools and not tools and not same:
        document |= {"tools": [], "tool_choice": "auto"}
    if request.parallel_tool_calls is not None:
        document["parallel_tool_calls"] = request.parallel_tool_calls
    write_all(request.options, document, report, same=same)
    return merge(document, request.extras) if same else document


def names_state(request: Request) -> bool:
    """Whether a request has a field that refers to a conversation."""
    return request.options.previous_response_id is not None or any(request.extras.get(key) for key in STATE)


class ItemWriter:
    """Writes canonical messages as input items, in order.

    It remembers the calls so far: an id may be used again, and a result answers the last call before it with its id.
    """

    def __init__(self, report: Report, source: str, spaces: Spaces) -> None:
        self._report = report
        self._same = source == NAME
        self._content = ContentWriter(report, source)
        self._spaces = spaces
        self._calls: dict[str, ToolCall] = {}

    def instructions(self, message: Message) -> Json:
        """A first system message as `instructions`, None if it is an item like any other."""
        if self._same:
            if message.at != "/instructions":
                return None
            if message.bare:
                return plain_text(message.parts)
            is_whole = all(part.at.startswith("/instructions/") for part in message.parts)
            return self._content.parts(message.parts) if is_whole else None
        match message.parts:
            case (Text(citations=(), signature=None) as only,) if message.role == "system" and message.name is None:
                return only.text
            case _:
                return None

    def items(self, message: Message) -> list[Json]:
        """The items of one message: usually one, or more if calls, results or reasoning are between its texts."""
        items: list[Json] = []
        spoken: list[Part] = []
        has_head = False
        for part in message.parts:
            if not self._is_item(part):
                spoken.append(part)
                continue
            if spoken:
                items.extend(self._message(message, tuple(spoken), is_first=not has_head))
                has_head, spoken = True, []
            item = self._item(part)
            if item is not None:
                items.append(item)
        if spoken or not message.parts:
            items.extend(self._message(message, tuple(spoken), is_first=not has_head))
        return items

    def _is_item(self, part: Part) -> TypeGuard[ToolCall | ToolResult | Thinking | Opaque]:
        """Whether a part is an item of its own; the place of an opaque part of this dialect decides, or else its
        type."""
        if not isinstance(part, Opaque):
            return isinstance(part, (ToolCall, ToolResult, Thinking))
        if part.dialect != NAME:
            return False
        holder, _, _ = part.at.rpartition("/")
        if self._same and (holder == "/input" or holder.endswith("/content")):
            return holder == "/input"
        return isinstance(part.value, dict) and is_item_type(part.value.get("type"))

    def _message(self, message: Message, parts: tuple[Part, ...], *, is_first: bool) -> list[Json]:
        role = "user" if message.role == "tool" else message.role
        content = self._content.parts(parts, OUTPUT if role == "assistant" else INPUT)
        if message.name is not None:
            self._report.lose(message.at, "name of a speaker", f"{NAME} messages have no names", "option")
        if not content and not self._same:
            if not parts:
                self._report.lose(message.at, "an empty message", f"{NAME} has no message without content", "identity")
            return []
        if role != message.role:
            why = f"{NAME} has tool results and no tool messages"
            self._report.lose(message.at, "role of a message", why, "content")
        document: JsonObject = {"type": "message", "role": role, "content": content}
        only = parts[0] if len(parts) == 1 else None
        if message.bare and isinstance(only, Text) and not only.citations:
            document["content"] = only.text
        if not self._same:
            if message.id is not None:
                self._report.lose(message.at, "id of an item", "it names nothing at this provider", "identity")
            return [document]
        if is_first:
            extras = message.extras
            if "type" in extras and extras["type"] is None:
                del document["type"]
                extras = {key: value for key, value in extras.items() if key != "type"}
            document = merge({**document, **compact({"id": message.id})}, extras)
        return [document]

    def _item(self, part: ToolCall | ToolResult | Thinking | Opaque) -> Json:
        if isinstance(part, Opaque):
            return part.value
        if isinstance(part, ToolCall):
            document: JsonObject | None = self._call(part)
        elif isinstance(part, ToolResult):
            document = self._result(part)
        else:
            document = self._reasoning(part)
        if document is None or not self._same:
            return document
        # A null `call_id` among the extras only records that the item had none.
        return {**document, **rest(part.extras, _NO_CALL_ID)}

    def _call(self, call: ToolCall) -> JsonObject:
        self._calls[call.id] = call
        self._content.lose_signature(call)
        if (item := self._client_call(call)) is not None:
            return item
        is_custom = call.kind == "custom"
        arguments = call.arguments if is_custom or self._same else call.arguments or "{}"
        name, namespace = self._spaces.get(call.name, (call.name, call.namespace))
        return compact(
            {
                "type": "custom_tool_call" if is_custom else "function_call",
                "id": self._item_id(call),
                "call_id": self._call_id(call),
                "namespace": namespace,
                "name": name,
                "input" if is_custom else "arguments": arguments,
            }
        )

    def _client_call(self, call: ToolCall) -> JsonObject | None:
        """The item of a built-in tool's call; None for other calls, and if the item cannot hold the arguments."""
        if call.kind not in BY_KIND:
            return None
        is_own_id = (call.item or "").startswith(f"{BY_KIND[call.kind].stem}_")  # the API could have given it
        item_id = call.item if is_own_id else self._item_id(call)
        head = compact({"id": item_id, "call_id": self._call_id(call)})
        item = write_call(call.kind, call.arguments, head)
        if item is None:
            self._calls[call.id] = msgspec.structs.replace(call, kind="function")
        return item if item is None or self._same else complete_call(item, call.at, self._report)

    def _result(self, result: ToolResult) -> JsonObject:
        call = None if self._same else self._calls.get(result.id)
        kind = result.kind if call is None else call.kind
        if kind in BY_KIND:
            head = compact({"id": self._item_id(result), "call_id": self._call_id(result)})
            item = write_output(result, kind, head, self._report, same=self._same)
            if item is not None:
                return item
        parts = result.parts
        if result.structured is not None:
            parts = (Text(encode(dict(result.structured)).decode(), at=result.at), *parts)
        output: Json = self._content.parts(parts)
        if result.bare or not self._same:
            match parts:
                case (Text(text, citations=()),):
                    output = text
                case _:
                    output = output or ""
        if result.is_error:
            self._report.lose(result.at, "error flag of a tool result", f"{NAME} has none", "option")
        if result.name is not None and not self._same and (call is None or call.name != result.name):
            self._report.lose(result.at, "name of the tool in its result", "the call's id says it", "identity")
        return compact(
            {
                "type": "custom_tool_call_output" if kind == "custom" else "function_call_output",
                "id": self._item_id(result),
                "call_id": self._call_id(result) or None,
                "name": result.name if self._same else None,
                "output": output,
            }
        )

    def _reasoning(self, thinking: Thinking) -> JsonObject | None:
        is_own = thinking.signed_by == NAME and thinking.id != NEXT
        if is_own and (self._same or thinking.signature is not None or thinking.id is not None):
            pieces = reasoning_pieces(thinking, own=self._same)
            head: JsonObject = {"type": "reasoning", "id": thinking.id, "encrypted_content": thinking.signature}
            return {**compact(head), **pieces}
        self._content.lose_signature(thinking)
        if thinking.text:
            why = f"{NAME} takes reasoning back only with the signature that it gave it"
            self._report.lose(thinking.at, "reasoning", why, "content")
        return None

    def _item_id(self, part: ToolCall | ToolResult) -> str | None:
        if part.item is not None and not self._same:
            self._report.lose(part.at, "id of an item", "it names nothing at this provider", "identity")
            return None
        return part.item

    def _call_id(self, part: ToolCall | ToolResult) -> str:
        """The id itself if the API takes it, otherwise a stable one, so that call and result still match."""
        if self._same or len(part.id) <= LONGEST_ID:
            return part.id
        why = f"{NAME} takes ids of at most {LONGEST_ID} characters"
        self._report.lose(part.at, "spelling of a tool call's id", why, "identity")
        return "call_" + hashlib.sha256(part.id.encode("utf-8", "surrogatepass")).hexdigest()[:24]
