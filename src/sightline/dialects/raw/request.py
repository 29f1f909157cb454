"""Reads and writes a raw request: a bare list of messages, or an object that also has a model and options.

Results are messages of their own, calls are beside the content, everything else is within it. Options and tools are in
`requestOptions` in the form of Chat Completions: that dialect's own functions read and write only the inner object, and
the pointers are then shifted, so that there is one table of options and not two.
"""

from collections.abc import Callable, Iterator

import msgspec

from sightline.dialects.conversation import as_turns, with_answers, with_ids, with_policy
from sightline.dialects.dialect import Problem, Target
from sightline.dialects.fields import (
    as_list,
    as_object,
    compact,
    merge,
    nest_extras,
    opt_object,
    opt_str,
    rest,
    str_of,
    unknown,
    whole_number,
    wrong,
)
from sightline.dialects.openai_chat.names import NAME as CHAT
from sightline.dialects.openai_chat.request_read import read_request as read_chat
from sightline.dialects.openai_chat.request_write import write_request as write_chat
from sightline.dialects.raw.content import ContentWriter, carry_result, read_calls, read_carried_result, read_content
from sightline.dialects.raw.names import NAME, OPTIONS, ROLE_NUMBERS, ROLES
from sightline.dialects.tool_names import CALLS_AND_RESULTS, as_function_arguments, flat_name, free_text
from sightline.dialects.validity import no_messages, pairing_problems
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import CacheBreakpoint, Opaque, Part, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import CustomTool, Message, Request, Role, Tool, change_parts

_AT = f"/{OPTIONS}"
_ELSEWHERE = frozenset({"model", "messages"})


def read_settings(holder: JsonObject) -> Request:
    """Read everything except model and messages, which a raw request has elsewhere; here those are unknown fields."""
    try:
        read = read_chat({**rest(holder, _ELSEWHERE), "messages": []})
    except Fault as fault:  # the place in it is one of the inner object
        pointer = fault.pointer or ""
        message = _AT + fault.message if pointer and fault.message.startswith(pointer) else fault.message
        raise Fault(fault.code, message, hint=fault.hint, pointer=_AT + pointer) from None
    if read.parallel_tool_calls is not None:
        read.options.places["parallel_tool_calls"] = read.parallel_at
    aside = {key: value for key, value in holder.items() if key in _ELSEWHERE}
    return _shift_pointers(read, lambda at: _AT + at, NAME, {**read.extras, **aside})


def write_settings(request: Request, report: Report, *, same: bool) -> JsonObject:
    """The inner object of these options and tools, empty if there are none."""
    inner = Report()
    kept = request.extras.get(OPTIONS) if same else None
    extras = kept if isinstance(kept, dict) else {}
    options = request.options
    if same:
        known = rest(extras, _ELSEWHERE)
        source = _shift_pointers(request, lambda at: at.removeprefix(_AT), CHAT, known)
    else:  # no server reads this format: none refuses top_k or a fifth stop sequence, none must be asked for counts
        unlimited = msgspec.structs.replace(options, top_k=None, stop=None, stream=None)
        source = msgspec.structs.replace(_shift_pointers(request, str, "", {}), options=unlimited)
    source = msgspec.structs.replace(source, model="", messages=())
    document = as_object(write_chat(source, Target(), inner), "")
    del document["messages"]
    document |= compact({"top_k": options.top_k, "stream": options.stream})
    if options.stop is not None:
        document["stop"] = list(options.stop)
    for loss in inner.losses:
        report.lose(loss.pointer, loss.what, loss.why.replace(CHAT, NAME), loss.severity)
    for addition in inner.additions:
        report.add(_AT + addition.pointer, addition.what, addition.why.replace(CHAT, NAME), addition.severity)
    return document | {key: value for key, value in extras.items() if key in _ELSEWHERE}


def _shift_pointers(request: Request, move: Callable[[str], str], dialect: str, extras: JsonObject) -> Request:
    """The same settings with every pointer moved."""
    choice = request.tool_choice
    form, reasoning = request.options.format, request.options.reasoning
    if form is not None:
        form = msgspec.structs.replace(form, at=move(form.at))
    if reasoning is not None:
        places = {name: move(at) for name, at in reasoning.places.items()}
        reasoning = msgspec.structs.replace(reasoning, at=move(reasoning.at), places=places)
    places = {name: move(at) for name, at in request.options.places.items()}
    return msgspec.structs.replace(
        request,
        tools=tuple(msgspec.structs.replace(tool, at=move(tool.at)) for tool in request.tools),
        tool_choice=None if choice is None else msgspec.structs.replace(choice, at=move(choice.at)),
        options=msgspec.structs.replace(request.options, format=form, reasoning=reasoning, places=places),
        dialect=dialect,
        extras=extras,
    )


_REQUEST = frozenset({"model", "messages", OPTIONS})
_MESSAGE = frozenset({"role", "content", "name"})
_ROLES = ("0 (system)", "1 (user)", "2 (assistant)", "3 (tool)")


def read_request(document: Json) -> Request:
    """Read a request body."""
    if isinstance(document, list):
        return Request(messages=_read_messages(document, ""), dialect=NAME)
    body = as_object(document, "")
    messages = _read_messages(as_list(body.get("messages"), "/messages"), "/messages")
    extras = rest(body, _REQUEST)
    settings = opt_object(body, OPTIONS, "")
    read = Request(dialect=NAME) if settings is None else read_settings(settings)
    if settings == {}:  # it is kept, although it is empty
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
    """Give calls of tools that are declared as custom their free text back: the schema has only functions."""
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

    return change_parts(messages, CALLS_AND_RESULTS, restore_kind)


def problems(request: Request) -> list[Problem]:
    """Everything in this request that would be refused."""
    in_object = bool(request.messages) and request.messages[0].at.startswith("/messages/")
    return [*no_messages(request, "/messages" if in_object else ""), *pairing_problems(request, adjacent=True)]


def write_request(request: Request, target: Target, report: Report) -> Json:
    """The body of this request in this dialect; a bare list of messages stays one if there is nothing else to write."""
    same = request.dialect == NAME
    for message in request.messages:  # reported before items are joined into turns
        if message.id is not None:
            report.lose(message.at, "id of an item", f"{NAME} messages have no ids", "identity")
    messages = with_policy(request.messages, target.system, report)
    if not same:
        messages = with_answers(_turns(with_ids(messages, report)), report, NAME)
    written = _MessageWriter(report, same=same).write(messages)
    document: JsonObject = {"model": request.model} if request.model else {}
    document["messages"] = written
    settings = write_settings(request, report, same=same)
    if settings:
        document[OPTIONS] = settings
    if same:
        merge(document, request.extras)
        # Whether the messages were at the root, where a pointer begins with a number.
        if document.keys() == {"messages"} and (bool(request.messages) and request.messages[0].at[1:2].isdigit()):
            return written
    return document


def _turns(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages as turns; an item that only its dialect knows stays a message, and so can become an item again."""
    turns: list[Message] = []
    joining: list[Message] = []
    for message in messages:
        if len(message.parts) == 1 and isinstance(part := message.parts[0], Opaque) and part.at == message.at:
            turns += [*as_turns(tuple(joining)), message]
            joining = []
        else:
            joining.append(message)
    return (*turns, *as_turns(tuple(joining)))


class _MessageWriter:
    def __init__(self, report: Report, *, same: bool) -> None:
        self._report = report
        self._same = same
        self._content = ContentWriter(report, same=same)

    def write(self, messages: tuple[Message, ...]) -> list[Json]:
        return [document for message in messages for document in self._message(message)]

    def _message(self, message: Message) -> Iterator[JsonObject]:
        """A message, or several if it holds results: the schema has one message for each."""
        if message.role == "developer":
            why = f"{NAME} has one role for instructions, system"
            self._report.lose(message.at, "developer role", why, "identity")
        if message.role == "assistant":
            yield self._assistant(message)
            return
        results, others = self._split_results(message.parts)
        yield from (self._result(result, message) for result in results)
        if others or not results:
            yield self._plain(message, tuple(others))

    def _split_results(self, parts: tuple[Part, ...]) -> tuple[list[ToolResult], list[Part]]:
        """The results, each with the cache mark after it, and the other parts: results come first."""
        results: list[ToolResult] = []
        others: list[Part] = []
        is_behind_result = False
        for part in parts:
            if isinstance(part, ToolResult):
                if others:
                    self._report.lose(
                        part.at, "place of a tool result", f"{NAME} holds results before other words", "content"
                    )
                results.append(part)
            elif is_behind_result and isinstance(part, CacheBreakpoint):
                marked = results[-1]
                results[-1] = msgspec.structs.replace(marked, parts=(*marked.parts, part), bare=False)
            else:
                others.append(part)
            is_behind_result = bool(results) and not others
        return results, others

    def _plain(self, message: Message, parts: tuple[Part, ...]) -> JsonObject:
        role: Role = "user" if message.role == "tool" else message.role
        document: JsonObject = {"role": ROLE_NUMBERS[role], "content": self._write_content(parts, bare=message.bare)}
        return self._finish(document, message.name, message)

    def _assistant(self, message: Message) -> JsonObject:
        content, calls = self._content.split_calls(message.parts, lambda call, _number: call.id)
        document: JsonObject = {"role": ROLE_NUMBERS["assistant"]}
        document["content"] = self._write_content(content, bare=message.bare)
        if calls:
            document["toolCalls"] = calls
        return self._finish(document, message.name, message)

    def _result(self, result: ToolResult, message: Message) -> JsonObject:
        beyond = carry_result(result)
        if beyond is None:
            content = self._write_content(result.parts, bare=result.bare)
        else:
            content = [*self._content.parts(result.parts), beyond]
        document: JsonObject = {"role": ROLE_NUMBERS["tool"], "toolCallId": result.id, "content": content}
        return self._finish(document, result.name, message)

    def _write_content(self, parts: tuple[Part, ...], *, bare: bool) -> Json:
        if self._same and bare and len(parts) == 1 and isinstance(parts[0], Text):
            return parts[0].text
        return self._content.parts(parts)

    def _finish(self, document: JsonObject, name: str | None, message: Message) -> JsonObject:
        if name is not None:
            document["name"] = name
        return merge(document, message.extras) if self._same else document
