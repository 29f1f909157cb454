"""Messages as written in a suite: in full, as parts, or in one of the short forms."""

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias, cast

import msgspec

from sightline.catalog.problem import Path, quote_word
from sightline.catalog.reading import REST, key
from sightline.evals.core.reading.document import Node, SuiteFindings
from sightline.evals.core.reading.files import display_path, is_link, is_usable
from sightline.evals.core.suite import CallSegment, Case, CaseMessage, FileSegment, ImageSegment, Segment, TextSegment
from sightline.model.json import Json
from sightline.model.request import Role
from sightline.wire import jsontext

_EXAMPLE = "Write {name: …, arguments: {…}}."


Arguments: TypeAlias = Annotated[dict[str, Json] | str | None, key(aliases=("input", "args"), hint=_EXAMPLE)]


class FunctionKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The function of a call, as in OpenAI's API."""

    TITLE: ClassVar[str] = "function"
    EXAMPLE: ClassVar[str] = _EXAMPLE

    name: str = ""
    arguments: Annotated[dict[str, Json] | str | None, key(hint=_EXAMPLE)] = None


class CallKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A call as written in a suite, in any of the common forms. `output` is its result."""

    TITLE: ClassVar[str] = "a call"
    EXAMPLE: ClassVar[str] = _EXAMPLE

    name: str = ""
    tool: str = ""
    arguments: Arguments = None
    id: str = ""
    type: Annotated[Literal["function", "tool_call"] | None, key(hint="Leave the type out.")] = None
    function: FunctionKeys | None = None
    output: Json = None
    status: Json = None
    duration_ms: Json = None


def read_calls(message: Node, findings: SuiteFindings) -> tuple[tuple[CallSegment, ...], tuple[CaseMessage, ...]]:
    """The calls of a message, and a tool message for each call that is written with its output."""
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
            segment = TextSegment(text, output.place)
            results.append(
                CaseMessage(role="tool", segments=(segment,), name=call.name, call_id=call.id, place=output.place)
            )
        calls.append(call)
    return tuple(calls), tuple(results)


def _read_call(node: Node, findings: SuiteFindings) -> CallSegment | None:
    call = findings.read(node, CallKeys)
    if call is None:
        return None
    for name, value in (("status", call.status), ("duration_ms", call.duration_ms)):
        if value is not None:
            findings.odd(node, f"{name} of a call is not sent: no provider takes it", "Leave it out.")
    named = call.function or call
    tool = named.name or (named.tool if isinstance(named, CallKeys) else "")
    if not tool:
        findings.wrong(node, "the call names no tool", _EXAMPLE)
        return None
    arguments = {} if named.arguments is None else named.arguments
    return CallSegment(tool, arguments, call.id, node.place)


_OTHER_ROLES = {"function": "tool", "human": "user", "ai": "assistant", "model": "assistant", "bot": "assistant"}
_PARTS = ("text", "file", "image", "tool_call")
_OTHER_PARTS = {
    "input_text": "text",
    "output_text": "text",
    "input_image": "image",
    "input_file": "file",
    "document": "file",
    "tool_use": "tool_call",
    "function_call": "tool_call",
}
_MESSAGE_EXAMPLE = "Write {role: user, content: …}."


class MessageKeys(msgspec.Struct, frozen=True, kw_only=True):
    TITLE: ClassVar[str] = "a message"
    EXAMPLE: ClassVar[str] = _MESSAGE_EXAMPLE
    KEY_HINTS: ClassVar[Mapping[str, str]] = {
        "text": 'Did you mean "content"?',
        "value": 'Did you mean "content"?',
        "call_id": 'Did you mean "tool_call_id"?',
        "images": "Write a part {type: image, value: path} in content.",
        "files": "Write a part {type: file, value: path} in content.",
    }

    role: Annotated[Role, key(hint=_MESSAGE_EXAMPLE, instead=_OTHER_ROLES)]
    content: Node | None = None
    name: str = ""
    tool_calls: Json = None
    tool_call_id: str = ""


class TextPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    TITLE: ClassVar[str] = "a part of type text"

    value: Annotated[Node, key(aliases=("text",), hint="Write value: ….")]


class FilePart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="file"):
    TITLE: ClassVar[str] = "a part of type file"
    KEY_HINTS: ClassVar[Mapping[str, str]] = {"path": 'Did you mean "value"?'}

    value: Annotated[Node, key(hint="Write value: ….")]


class ImagePart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """The path or the URL of an image."""

    TITLE: ClassVar[str] = "a part of type image"
    KEY_HINTS: ClassVar[Mapping[str, str]] = {"path": 'Did you mean "value"?'}

    value: Annotated[Node, key(hint="Write value: ….")]


class ImageUrl(msgspec.Struct, frozen=True, kw_only=True):
    TITLE: ClassVar[str] = "image_url"

    url: Annotated[Node, key(hint="Write {type: image, value: path or URL}.")]


class ImageUrlPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="image_url"):
    """An image as in OpenAI's API: a URL, or an object with one."""

    TITLE: ClassVar[str] = "a part of type image_url"

    image_url: Annotated[Node, key(hint="Write {type: image, value: path or URL}.")]


class CallPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_call"):
    """A tool call, with the keys of `CallKeys`."""

    others: Annotated[dict[str, Json], REST] = {}


Part: TypeAlias = TextPart | FilePart | ImagePart | ImageUrlPart | CallPart
# The reader accepts a union of structs, which is not a `type` for mypy: it is cast where it is used.
_AnyPart = Annotated[Part, key(hint="Write text, or {type: text, value: …}.", instead=_OTHER_PARTS)]


def read_messages(node: Node, role: Role, findings: SuiteFindings) -> tuple[CaseMessage, ...]:
    """The messages of a value: a list of messages, a single one, or a text or object as a message of `role`."""
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
            findings.wrong(node, f"text or a list of messages is expected, not {node.kind}", _MESSAGE_EXAMPLE)
            return ()


def read_files(nodes: list[Node], findings: SuiteFindings) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    for node in nodes:
        if node.text is None:
            findings.wrong(node, f"a path is expected, not {node.kind}", "Write the path of a file.")
        else:
            segments += _file(node, node.text, findings)
    return tuple(segments)


def _read_message(node: Node, findings: SuiteFindings) -> tuple[CaseMessage, ...]:
    """A message, followed by the results that are written with its calls."""
    keys = findings.read(node, MessageKeys)
    if keys is None:
        return ()
    role = keys.role
    segments = () if keys.content is None else _content(keys.content, findings)
    calls, results = read_calls(node, findings)
    if calls and role != "assistant":
        findings.wrong(node, f"a {role} message has tool_calls", "Only an assistant calls tools.")
    if keys.tool_call_id and role != "tool":
        findings.wrong(node, f"a {role} message has a tool_call_id", "Only a tool message answers a call.")
    message = CaseMessage(
        role=role,
        segments=(*segments, *calls),
        name=keys.name,
        call_id=keys.tool_call_id,
        place=node.place,
    )
    is_blank = all(isinstance(segment, TextSegment) and not segment.text.strip() for segment in message.segments)
    if role != "tool" and is_blank:
        findings.odd(node, f"the {role} message is empty: it is not sent", "Give it content, or remove it.")
    return (message, *results)


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
            findings.wrong(node, f"content must be text or parts, not {node.kind}", "Put it in quotes.")
            return ()


def _as_json(node: Node) -> TextSegment:
    """An object in place of text, as JSON."""
    return TextSegment(msgspec.json.format(jsontext.encode(node.json)).decode(), node.place)


def _part(node: Node, findings: SuiteFindings) -> tuple[Segment, ...]:
    if node.text is not None:
        return (TextSegment(node.text, node.place),)
    part: Part | None = findings.read(node, cast(type[Part], _AnyPart))
    match part:
        case None:
            return ()
        case CallPart():
            calls, _ = read_calls(Node({"tool_calls": Node([node], node.place, node.path)}, node.place), findings)
            return calls
        case ImageUrlPart(image_url=link):
            holder = findings.read(link, ImageUrl) if link.members else None
            value = link if holder is None else holder.url
        case _:
            value = part.value
    if value.text is None:
        findings.wrong(value, f"{part.TITLE} needs text as its value", "Write value: ….")
        return ()
    if isinstance(part, TextPart):
        return (TextSegment(value.text, value.place),)
    return _file(value, value.text, findings) if isinstance(part, FilePart) else _image(value, value.text, findings)


def _image(node: Node, path: str, findings: SuiteFindings) -> tuple[Segment, ...]:
    if is_link(path):
        return (ImageSegment(path, "", node.place),)
    return (ImageSegment(display_path(path), "", node.place),) if is_usable(node, path, findings, from_top=True) else ()


def _file(node: Node, path: str, findings: SuiteFindings) -> tuple[Segment, ...]:
    return (FileSegment(display_path(path), "", node.place),) if is_usable(node, path, findings, from_top=True) else ()


def check_pairing(case: Case, path: Path, findings: SuiteFindings) -> None:
    """Report calls without a result as errors, because no provider accepts them, and results that name a missing call.
    A result without any call before it is a warning: a call is inserted before it."""
    waiting: list[CallSegment] = []
    for message in case.all_messages:
        if message.role == "tool":
            _check_result(message, waiting, path, findings)
            continue
        if message.role in ("user", "assistant"):
            _report_unanswered(waiting, path, findings)
            waiting = []
        waiting += [segment for segment in message.segments if isinstance(segment, CallSegment)]
    _report_unanswered(waiting, path, findings)


def take_call(message: CaseMessage, waiting: list[CallSegment]) -> CallSegment | None:
    """Take the call that a tool message answers from those that wait: by id, otherwise by name, otherwise the oldest.
    None if there is none."""
    if message.call_id:
        places = [place for place, call in enumerate(waiting) if call.id == message.call_id]
    else:
        named = [place for place, call in enumerate(waiting) if message.name and call.name == message.name]
        places = named or [*range(len(waiting))]
    return waiting.pop(places[0]) if places else None


def _check_result(message: CaseMessage, waiting: list[CallSegment], path: Path, findings: SuiteFindings) -> None:
    if take_call(message, waiting) is not None:
        return
    if message.call_id:
        known = ", ".join(each.id for each in waiting if each.id)
        hint = f"Calls that wait: {known}." if known else "Write the call into tool_calls of the message before."
        findings.wrong_at(message.place, path, f"no call before it has the id {quote_word(message.call_id)}", hint)
    else:
        text = "no call stands before this result: one without arguments is put there"
        hint = "Write tool_calls: [{name: …, arguments: {…}}] into the assistant message before."
        findings.wrong_at(message.place, path, text, hint, severity="warning")


def _report_unanswered(calls: Iterable[CallSegment], path: Path, findings: SuiteFindings) -> None:
    for call in calls:
        hint = "Add a message with role: tool behind it."
        findings.wrong_at(call.place, path, f"the call of {quote_word(call.name)} has no result", hint)
