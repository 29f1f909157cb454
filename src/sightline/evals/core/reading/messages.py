"""Messages as a suite writes them: in full, as parts, or in one of the short forms."""

from collections.abc import Iterable, Mapping

import msgspec

from sightline.catalog.problem import nearest, quote_word
from sightline.evals.core.reading.document import Node, SuiteFindings
from sightline.evals.core.reading.files import display_path, is_link, refusal_of
from sightline.evals.core.suite import (
    CallSegment,
    Case,
    CaseMessage,
    FileSegment,
    ImageSegment,
    Segment,
    SuitePlace,
    SuiteProblem,
    TextSegment,
)
from sightline.model.json import Json
from sightline.model.message import Role
from sightline.wire import jsontext

_KEYS = ("name", "tool", "arguments", "input", "args", "output", "id", "type", "function", "status", "duration_ms")
_FUNCTION_KEYS = ("name", "arguments")
_TYPES = ("function", "tool_call")
_EXAMPLE = "Write {name: …, arguments: {…}}."


def read_calls(message: Node, findings: SuiteFindings) -> tuple[tuple[CallSegment, ...], tuple[CaseMessage, ...]]:
    """The calls, and a tool message for each of them whose output stands with it."""
    node = message.get("tool_calls")
    calls: list[CallSegment] = []
    results: list[CaseMessage] = []
    for each in [] if node is None else findings.items(node, "tool_calls", _EXAMPLE):
        call = _read_call(each, findings)
        if call is None:
            continue
        output = each.get("output")
        if output is not None:
            text = output.text if output.text is not None else jsontext.encode(output.json).decode()
            said = TextSegment(text, output.place)
            results.append(
                CaseMessage(role="tool", segments=(said,), name=call.name, call_id=call.id, place=output.place)
            )
        calls.append(call)
    return tuple(calls), tuple(results)


def _read_call(node: Node, findings: SuiteFindings) -> CallSegment | None:
    if not findings.is_mapping(node, "a call", _EXAMPLE):
        return None
    findings.check_keys(node, _KEYS, "a call")
    kind = findings.text(node, "type")
    if kind and kind not in _TYPES:
        findings.wrong(node, f"there is no call of type {quote_word(kind)}", "Leave the type out.")
    for key in ("status", "duration_ms"):
        if node.get(key) is not None:
            findings.odd(node, f"{key} of a call is not sent: no provider takes it", "Leave it out.")
    inner = node.get("function")
    if inner is not None:
        if not findings.is_mapping(inner, "function", _EXAMPLE):
            return None
        findings.check_keys(inner, _FUNCTION_KEYS, "function")
    holder = inner or node
    name = findings.text(holder, "name") or findings.text(holder, "tool")
    if not name:
        findings.wrong(node, "the call names no tool", _EXAMPLE)
        return None
    given = [key for key in ("arguments", "input", "args") if holder.get(key) is not None]
    if len(given) > 1:
        findings.wrong(node, f"the call has {' and '.join(given)}", "Keep arguments, and leave the others out.")
    return CallSegment(name, _arguments(holder, given, findings), findings.text(node, "id"), node.place)


def _arguments(holder: Node, given: list[str], findings: SuiteFindings) -> Json:
    node = holder.get(given[0]) if given else None
    if node is None:
        return {}
    if not isinstance(node.value, str | dict):
        findings.wrong(node, f"arguments have to be a mapping or text, and this is {node.kind}", _EXAMPLE)
    return node.json


ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_ROLES_ELSEWHERE = {"function": "tool", "human": "user", "ai": "assistant", "model": "assistant", "bot": "assistant"}
_MESSAGE_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id")
_HINTS = {
    "text": 'Did you mean "content"?',
    "value": 'Did you mean "content"?',
    "call_id": 'Did you mean "tool_call_id"?',
    "images": "Write a part {type: image, value: path} in content.",
    "files": "Write a part {type: file, value: path} in content.",
}
_PARTS = ("text", "file", "image", "tool_call")
_PART_KEYS = {
    "text": ("type", "value", "text"),
    "file": ("type", "value"),
    "image": ("type", "value"),
    "image_url": ("type", "image_url"),
}
_PARTS_ELSEWHERE = {
    "input_text": "text",
    "output_text": "text",
    "input_image": "image",
    "input_file": "file",
    "document": "file",
    "tool_use": "tool_call",
    "function_call": "tool_call",
}
_MESSAGE_EXAMPLE = "Write {role: user, content: …}."


def read_messages(node: Node, role: Role, findings: SuiteFindings) -> tuple[CaseMessage, ...]:
    """The messages of a value: a list of them, one alone, or a text or object that `role` says."""
    match node.value:
        case list() as items:
            return tuple(message for each in items for message in _read_message(each, findings))
        case dict() as members if "role" in members:
            return _read_message(node, findings)
        case dict():
            return (CaseMessage(role=role, segments=(_as_json(node),), place=node.place),)
        case str() as text:
            if not text.strip():
                findings.wrong(node, "the text is empty", "Write what is to be said, or leave the key out.")
            return (CaseMessage(role=role, segments=(TextSegment(text, node.place),), place=node.place),)
        case _:
            findings.wrong(
                node, f"text or a list of messages has to stand here, and this is {node.kind}", _MESSAGE_EXAMPLE
            )
            return ()


def read_files(nodes: list[Node], findings: SuiteFindings) -> tuple[Segment, ...]:
    """A list of paths as segments."""
    segments: list[Segment] = []
    for node in nodes:
        if node.text is None:
            findings.wrong(node, f"a path has to stand here, and this is {node.kind}", "Write the path of a file.")
        else:
            segments += _file(node, node.text, findings)
    return tuple(segments)


def _read_message(node: Node, findings: SuiteFindings) -> tuple[CaseMessage, ...]:
    """A message, and behind it the results that its calls bring with them."""
    if not findings.is_mapping(node, "a message", _MESSAGE_EXAMPLE):
        return ()
    findings.check_keys(node, _MESSAGE_KEYS, "a message", _HINTS)
    role = _role(node, findings)
    if role is None:
        return ()
    content = node.get("content")
    segments = () if content is None else _content(content, findings)
    calls, results = read_calls(node, findings)
    if calls and role != "assistant":
        findings.wrong(node, f"tool_calls stand in a {role} message", "Only an assistant calls tools.")
    call_id = findings.text(node, "tool_call_id")
    if call_id and role != "tool":
        findings.wrong(node, f"tool_call_id stands in a {role} message", "Only a tool message answers a call.")
    message = CaseMessage(
        role=role,
        segments=(*segments, *calls),
        name=findings.text(node, "name"),
        call_id=call_id,
        place=node.place,
    )
    if role != "tool" and not any(_is_visible(segment) for segment in message.segments):
        findings.odd(node, f"the {role} message is empty: it is not sent", "Give it content, or remove it.")
    return (message, *results)


def _role(node: Node, findings: SuiteFindings) -> Role | None:
    written = node.get("role")
    if written is None:
        findings.wrong(node, "the message has no role", _MESSAGE_EXAMPLE)
        return None
    text = written.text or ""
    if text in ROLES:
        return ROLES[text]
    other = _ROLES_ELSEWHERE.get(text.lower())
    hint = f'Did you mean "{other}"?' if other else nearest(text, ROLES)
    findings.wrong(written, f"there is no role {quote_word(str(written.json))}", hint)
    return None


def _is_visible(segment: Segment) -> bool:
    return not isinstance(segment, TextSegment) or bool(segment.text.strip())


def _content(node: Node, findings: SuiteFindings) -> tuple[Segment, ...]:
    match node.value:
        case str() as text:
            return (TextSegment(text, node.place),)
        case dict() as members if members.get("type") is not None and members["type"].text in _PARTS:
            hint = "Write a list of parts: put it behind a dash."
            findings.wrong(node, "a part stands where the content is one", hint)
            return ()
        case dict():
            return (_as_json(node),)
        case list() as items:
            return tuple(segment for each in items for segment in _part(each, findings))
        case _:
            findings.wrong(node, f"content has to be text or parts, and this is {node.kind}", "Put it in quotes.")
            return ()


def _as_json(node: Node) -> TextSegment:
    """An object in place of words is told as JSON."""
    return TextSegment(msgspec.json.format(jsontext.encode(node.json)).decode(), node.place)


def _part(node: Node, findings: SuiteFindings) -> tuple[Segment, ...]:
    if node.text is not None:
        return (TextSegment(node.text, node.place),)
    if not findings.is_mapping(node, "a part", "Write text, or {type: text, value: …}."):
        return ()
    kind = findings.text(node, "type")
    if kind == "tool_call":
        calls, _ = read_calls(Node({"tool_calls": Node([node], node.place, node.path)}, node.place), findings)
        return calls
    if kind not in _PART_KEYS:
        other = _PARTS_ELSEWHERE.get(kind)
        hint = f'Did you mean "{other}"?' if other else nearest(kind, _PARTS)
        message = f"there is no part of type {quote_word(kind)}" if kind else "the part has no type"
        findings.wrong(node.get("type") or node, message, hint)
        return ()
    findings.check_keys(node, _PART_KEYS[kind], f"a part of type {kind}", {"path": 'Did you mean "value"?'})
    if kind == "image_url":
        return _read_image_url(node, findings)
    if kind == "text" and node.get("text") is not None and node.get("value") is not None:
        findings.wrong(node, "the part has both value and text", "Leave one of them out.")
    value = node.get("value") or (node.get("text") if kind == "text" else None)
    if value is None or value.text is None:
        findings.wrong(value or node, f"a part of type {kind} needs text as its value", "Write value: ….")
        return ()
    if kind == "text":
        return (TextSegment(value.text, value.place),)
    return _image(value, value.text, findings) if kind == "image" else _file(value, value.text, findings)


def _read_image_url(node: Node, findings: SuiteFindings) -> tuple[Segment, ...]:
    """A picture in the words of another interface: a URL, or an object with one."""
    link = node.get("image_url")
    url = link.get("url") if link is not None and link.members else link
    if link is not None and link.members:
        findings.check_keys(link, ("url",), "image_url")
    if url is None or url.text is None:
        findings.wrong(node, "the image has no URL", "Write {type: image, value: path or URL}.")
        return ()
    return _image(url, url.text, findings)


def _image(node: Node, path: str, findings: SuiteFindings) -> tuple[Segment, ...]:
    if is_link(path):
        return (ImageSegment(path, "", node.place),)
    return (ImageSegment(display_path(path), "", node.place),) if _is_usable(node, path, findings) else ()


def _file(node: Node, path: str, findings: SuiteFindings) -> tuple[Segment, ...]:
    return (FileSegment(display_path(path), "", node.place),) if _is_usable(node, path, findings) else ()


def _is_usable(node: Node, path: str, findings: SuiteFindings) -> bool:
    refusal = refusal_of(path, from_top=True)
    if refusal is not None:
        findings.wrong(node, *refusal)
    return refusal is None


def check_pairing(case: Case) -> tuple[SuiteProblem, ...]:
    """Calls that nobody answers are errors, for no provider takes them; so are results that name a call that is not
    there. A result without any call before it is told: a call is put in front of it."""
    problems: list[SuiteProblem] = []
    waiting: list[CallSegment] = []
    messages: Iterable[CaseMessage] = (*case.messages, *(each for turn in case.turns for each in turn.messages))
    for message in messages:
        if message.role == "tool":
            problems += _check_result(message, waiting)
            continue
        if message.role in ("user", "assistant") and waiting:
            problems += [_problem_of_call(call) for call in waiting]
            waiting = []
        waiting += [segment for segment in message.segments if isinstance(segment, CallSegment)]
    return (*problems, *(_problem_of_call(call) for call in waiting))


def find_call(message: CaseMessage, waiting: Iterable[CallSegment]) -> CallSegment | None:
    """The call that a tool message answers: by id, else by name, else the oldest."""
    calls = list(waiting)
    if message.call_id:
        return next((call for call in calls if call.id == message.call_id), None)
    named = [call for call in calls if message.name and call.name == message.name]
    return next(iter(named or calls), None)


def _check_result(message: CaseMessage, waiting: list[CallSegment]) -> list[SuiteProblem]:
    call = find_call(message, waiting)
    if call is not None:
        waiting[:] = [each for each in waiting if each is not call]
        return []
    if message.call_id:
        known = ", ".join(each.id for each in waiting if each.id)
        hint = f"Calls that wait: {known}." if known else "Write the call into tool_calls of the message before."
        return [_problem(message.place, f"no call before it has the id {quote_word(message.call_id)}", hint)]
    text = "no call stands before this result: one without arguments is put there"
    hint = "Write tool_calls: [{name: …, arguments: {…}}] into the assistant message before."
    return [_problem(message.place, text, hint, is_error=False)]


def _problem_of_call(call: CallSegment) -> SuiteProblem:
    hint = "Add a message with role: tool behind it."
    return _problem(call.place, f"the call of {quote_word(call.name)} has no result", hint)


def _problem(place: SuitePlace, message: str, suggestion: str, *, is_error: bool = True) -> SuiteProblem:
    return SuiteProblem(
        place=place,
        path="",
        message=message,
        suggestion=suggestion,
        severity="error" if is_error else "warning",
    )
