"""Delivery: turns the messages of a case into the structured messages that are sent to a target, with every role kept,
files in place, guidelines in front, and a note of everything that was moved or added; and into one text with role
markers, for logs and for agents that take a prompt. The contents of files are handed in, and nothing is dropped
silently."""

import base64
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Literal, TypeAlias, assert_never
from xml.sax.saxutils import escape

import msgspec

from sightline.dialects.conversation import SYSTEM_ROLES, with_policy
from sightline.dialects.dialect import SystemPolicy
from sightline.dialects.fields import from_url
from sightline.errors import Code, Fault
from sightline.evals.core.glob import compile_glob
from sightline.evals.core.reading.files import is_link
from sightline.evals.core.reading.messages import take_call
from sightline.evals.core.suite import (
    CallSegment,
    Case,
    CaseMessage,
    FileSegment,
    ImageSegment,
    Segment,
    SuitePlace,
    TextSegment,
)
from sightline.evals.core.target import FileForm
from sightline.model.json import Json
from sightline.model.parts import Audio, Document, Image, Inline, Part, Refusal, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Message, Role
from sightline.wire import jsontext
from sightline.wire.media_type import encoding_of, is_text, sniff

_QUOTES = {'"': "&quot;"}


def marker(path: str) -> str:
    """The placeholder for a file whose content is elsewhere."""
    return f"<Attached: {path}>"


def block(path: str, text: str, form: FileForm) -> str:
    """The text of a file under its name."""
    if form == "seed":
        return f"=== {path} ===\n{text}"
    body = text.strip("\n")
    return f'<file path="{escape(path, _QUOTES)}">\n{body}\n</file>'


def is_ambiguous(text: str, form: FileForm) -> bool:
    """Whether the text contains something that looks like the end of its block, or like the start of another."""
    return "</file>" in text if form == "xml" else any(line.startswith("=== ") for line in text.splitlines())


def file_text(data: bytes, segment: FileSegment) -> str | None:
    """The text of a file, with LF line ends; None if it is not text."""
    if not is_text(sniff(data, segment.path)):
        return None
    return data.decode(encoding_of(data)).replace("\r\n", "\n")


def file_part(data: bytes, segment: FileSegment) -> Part:
    """The part for a file that is not text, by the type of its bytes. Raises a `Fault` if no part can hold it."""
    kind = sniff(data, segment.path)
    inline = Inline(kind, base64.b64encode(data).decode())
    if kind == "application/pdf":
        return Document(inline, segment.path)
    match kind.partition("/")[0]:
        case "image":
            return Image(inline)
        case "audio":
            return Audio(inline)
        case _:
            hint = "Text, images, PDFs and audio can be sent."
            raise refusal(segment.place, f"{segment.path} is {kind}, which a message cannot contain", hint)


def picture(data: bytes, segment: ImageSegment) -> Image:
    """An image from its bytes. Raises a `Fault` if the bytes are not an image, whatever the file name suggests."""
    kind = sniff(data, segment.path)
    if not kind.startswith("image/"):
        hint = "Write type: file, or name a PNG, JPEG, GIF or WebP."
        raise refusal(segment.place, f"{segment.path} is not a picture: it is {kind}", hint)
    return Image(Inline(kind, base64.b64encode(data).decode()))


def refusal(place: SuitePlace, message: str, hint: str) -> Fault:
    return Fault(Code.USAGE, f"{place}: {message}" if place.file else message, hint=hint)


HEADING = "[[ ## Guidelines ## ]]"


def guidelines_in(
    messages: Iterable[CaseMessage | Message], files: Mapping[str, bytes], patterns: Iterable[str], form: FileForm
) -> dict[str, tuple[FileSegment, str]]:
    """The guideline files of a case with their text under their names, each once, by resolved path, in the order in
    which messages name them."""
    compiled = [compile_glob(pattern) for pattern in patterns]
    segments = (each for message in messages if isinstance(message, CaseMessage) for each in message.segments)
    found: dict[str, tuple[FileSegment, str]] = {}
    for segment in segments:
        if not isinstance(segment, FileSegment) or segment.resolved in found or segment.resolved not in files:
            continue
        if any(each.matches(path) for each in compiled for path in (segment.path, segment.resolved)):
            text = file_text(files[segment.resolved], segment)
            if text is not None:
                found[segment.resolved] = segment, block(segment.path, text, form)
    return found


UNNAMED = "tool"


class CallLedger:
    """The tool calls of one conversation. Ids from the suite are kept; generated ids differ from all of them."""

    def __init__(self, messages: Iterable[CaseMessage | Message]) -> None:
        self._taken: set[str] = set()
        for message in messages:
            if isinstance(message, CaseMessage):
                calls = (segment for segment in message.segments if isinstance(segment, CallSegment))
                self._taken.update(call.id for call in calls)
                self._taken.add(message.call_id)
            else:
                self._taken.update(part.id for part in message.parts if isinstance(part, ToolCall | ToolResult))
        self._numbers = count(1)
        self._waiting: list[CallSegment] = []

    def add_call(self, segment: CallSegment) -> ToolCall:
        """Return the call as a part, and expect its result from now on."""
        call = msgspec.structs.replace(segment, id=segment.id or self.fresh())
        self._waiting.append(call)
        return ToolCall(call.id, call.name, argument_text(call.arguments))

    def add_reply(self, message: Message) -> None:
        """Add a reply of the model, whose calls also wait for results."""
        calls = (part for part in message.parts if isinstance(part, ToolCall))
        self._waiting += [CallSegment(call.name, call.arguments, call.id) for call in calls]

    def take_answered(self, message: CaseMessage) -> tuple[str, str] | None:
        """The id and name of the call that a tool message answers; None if no waiting call matches."""
        call = take_call(message, self._waiting)
        return None if call is None else (call.id, call.name)

    def fresh(self) -> str:
        """An id that no other call has."""
        made = next(name for number in self._numbers if (name := f"call_{number}") not in self._taken)
        self._taken.add(made)
        return made


def argument_text(arguments: Json) -> str:
    """Arguments as a model writes them: a string stays as it is, anything else becomes JSON."""
    return arguments if isinstance(arguments, str) else jsontext.encode({} if arguments is None else arguments).decode()


_LIKE_A_MARKER = re.compile(r"^([ \t]*)(\\*@\[[^\]\n]*\]:)", re.MULTILINE)


def flat_question(
    messages: Sequence[CaseMessage | Message],
    files: Mapping[str, bytes],
    *,
    system_prompt: str = "",
    file_form: FileForm = "xml",
) -> str:
    """The messages as one text with role markers. A single user message has no marker, unless its text looks like one.

    Text files are included under their names; other files are only named. Guidelines stay where the case has them.
    """
    texts: list[tuple[Role, str]] = [("system", system_prompt)] if system_prompt.strip() else []
    texts += [
        (message.role, "\n".join(words))
        for message in messages
        if (words := [each for each in _words(message, files, file_form) if each.strip()])
    ]
    if len(texts) == 1 and texts[0][0] == "user" and not _LIKE_A_MARKER.search(texts[0][1]):
        return texts[0][1]
    return "\n\n".join(f"@[{role.title()}]:\n{escape_markers(text)}" for role, text in texts)


def escape_markers(text: str) -> str:
    """The text, with every line that looks like a role marker escaped."""
    return _LIKE_A_MARKER.sub(r"\1\\\2", text)


def _words(message: CaseMessage | Message, files: Mapping[str, bytes], form: FileForm) -> Iterator[str]:
    if isinstance(message, CaseMessage):
        for segment in message.segments:
            yield _segment(segment, files, form)
        return
    for part in message.parts:
        match part:
            case Text() | Refusal():
                yield part.text
            case ToolCall():
                yield _call(part.name, part.arguments)
            case ToolResult():
                yield "\n".join(each.text for each in part.parts if isinstance(each, Text))
            case _:
                yield marker(type(part).__name__.lower())


def _segment(segment: Segment, files: Mapping[str, bytes], form: FileForm) -> str:
    match segment:
        case TextSegment():
            return segment.text
        case ImageSegment():
            return marker(segment.path)
        case FileSegment():
            data = files.get(segment.resolved)
            text = None if data is None else file_text(data, segment)
            return marker(segment.path) if text is None else block(segment.path, text, form)
        case CallSegment():
            return _call(segment.name, argument_text(segment.arguments))
        case unreachable:
            assert_never(unreachable)


def _call(name: str, arguments: str) -> str:
    return f"<call: {name} {arguments}>"


NoteKind: TypeAlias = Literal["extracted", "inlined", "attached", "moved", "merged", "skipped", "added", "unclear"]
"""`extracted`: a guideline was moved to the front. `inlined`: a file was inserted as text. `attached`: it was added as
a part. `unclear`: a reader could take it for something else."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change that was made, what it applies to, why, and the place in the suite."""

    kind: NoteKind
    what: str
    why: str
    place: SuitePlace = SuitePlace()


_APART = "\n\n"


def with_system(
    messages: tuple[Message, ...], policy: SystemPolicy, system_prompt: str, guidelines: str
) -> tuple[tuple[Message, ...], tuple[Note, ...]]:
    """The messages with the system prompt, and then the guidelines, before the text of the case's own system messages.

    `in_place` moves nothing: the system prompt and guidelines are added to the first message if it is a system message,
    and become a message of their own if not. The other policies merge the leading system messages, or all, into one.
    """
    texts = tuple(Text(text) for text in (system_prompt, guidelines) if text.strip())
    notes: list[Note] = []
    arranged = messages
    if policy != "in_place":
        report = Report()
        arranged = with_policy(messages, policy, report)
        notes += [Note("moved", loss.what, loss.why) for loss in report.losses]
        before, after = _systems(messages), _systems(arranged)
        if after < before:
            notes.append(Note("merged", f"{before} system messages into {after}", f"the policy is {policy}"))
    if texts and arranged and arranged[0].role in SYSTEM_ROLES:
        first = arranged[0]
        notes.append(Note("merged", f"the first {first.role} message", "the system prompt and guidelines go before it"))
        arranged = (Message(first.role, (*texts, *first.parts), first.name), *arranged[1:])
    elif texts:
        arranged = (Message("system", texts), *arranged)
    is_merged = bool(texts) or policy != "in_place"
    return _with_front_joined(arranged) if is_merged else arranged, tuple(notes)


def _systems(messages: tuple[Message, ...]) -> int:
    return sum(message.role in SYSTEM_ROLES for message in messages)


def _with_front_joined(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, with the texts of a leading system message joined into one, separated by blank lines."""
    if not messages or messages[0].role not in SYSTEM_ROLES:
        return messages
    first = messages[0]
    parts: list[Part] = []
    for part in first.parts:
        last = parts[-1] if parts else None
        if isinstance(part, Text) and isinstance(last, Text):
            parts[-1] = Text(f"{last.text}{_APART}{part.text}")
        else:
            parts.append(part)
    is_bare = len(parts) == 1 and isinstance(parts[0], Text)
    return (Message(first.role, tuple(parts), first.name, bare=is_bare), *messages[1:])


def turn_messages(case: Case, turn: int, replies: Sequence[Sequence[Message]]) -> tuple[CaseMessage | Message, ...]:
    """The messages to deliver for a turn, counted from 0: those before the turns, each earlier turn with the actual
    reply of the model, and those of this turn. `replies` are the replies to the earlier turns, tool rounds included."""
    messages: list[CaseMessage | Message] = [*case.messages]
    for index in range(turn):
        messages += case.turns[index].messages
        messages += replies[index]
    return (*messages, *case.turns[turn].messages)


def last_exchanges(messages: Sequence[Message], size: int | None) -> tuple[Message, ...]:
    """All system messages, and the last `size` exchanges of the others: twice that many messages, and never one more.

    The last of them is the current message, so the window usually starts with a reply of the model, as in AgentV. A
    result whose call is outside the window is left out. If the window would contain only results, it starts at their
    call.
    """
    if size is None:
        return tuple(messages)
    spoken = [index for index, message in enumerate(messages) if message.role not in SYSTEM_ROLES]
    opens = [index for index in spoken if messages[index].role != "tool"]
    inside = spoken[-2 * size :]
    first = next((index for index in opens if inside and index >= inside[0]), opens[-1] if opens else 0)
    return tuple(message for index, message in enumerate(messages) if index >= first or message.role in SYSTEM_ROLES)


class Delivery(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The messages to send, the same as one text with role markers, and notes of what was changed."""

    messages: tuple[Message, ...] = ()
    question: str = ""
    notes: tuple[Note, ...] = ()


def deliver(
    case_messages: Sequence[CaseMessage | Message],
    files: Mapping[str, bytes],
    policy: SystemPolicy = "in_place",
    *,
    system_prompt: str = "",
    guideline_patterns: Sequence[str] = (),
    file_form: FileForm = "xml",
) -> Delivery:
    """The messages for a target. `files` are the contents by resolved path.

    A `Message` (a model's reply in an earlier turn) is sent unchanged. Raises a `Fault` if a file is not in `files`, or
    if no message can hold it.
    """
    guidelines = guidelines_in(case_messages, files, guideline_patterns, file_form)
    writer = _Writer(case_messages, files, guidelines, file_form)
    for message in case_messages:
        writer.write(message)
    front = _APART.join((HEADING, *(words for _, words in guidelines.values()))) if guidelines else ""
    messages, moved = with_system(tuple(writer.messages), policy, system_prompt, front)
    why = "a guideline pattern names it: its words go into the system message"
    extracted = [Note("extracted", segment.path, why, segment.place) for segment, _ in guidelines.values()]
    return Delivery(
        messages=messages,
        question=flat_question(case_messages, files, system_prompt=system_prompt, file_form=file_form),
        notes=(*extracted, *writer.notes, *moved),
    )


class _Writer:
    def __init__(
        self,
        messages: Sequence[CaseMessage | Message],
        files: Mapping[str, bytes],
        guidelines: Container[str],
        form: FileForm,
    ) -> None:
        self._files = files
        self._guidelines = guidelines
        self._form = form
        self._calls = CallLedger(messages)
        self.messages: list[Message] = []
        self.notes: list[Note] = []

    def write(self, message: CaseMessage | Message) -> None:
        if isinstance(message, Message):
            self._calls.add_reply(message)
            self.messages.append(message)
            return
        parts = self._parts(message)
        if message.role == "tool":
            self._write_result(message, parts)
        elif parts:
            is_bare = len(parts) == 1 and isinstance(parts[0], Text)
            self.messages.append(Message(message.role, parts, message.name or None, bare=is_bare))
        else:
            self.notes.append(Note("skipped", f"a {message.role} message", "there is nothing in it", message.place))

    def _write_result(self, message: CaseMessage, parts: tuple[Part, ...]) -> None:
        """Write a tool message. An empty one is sent if a call waits for it, because a tool may return nothing."""
        answered = self._calls.take_answered(message)
        if answered is None and not parts:
            self.notes.append(Note("skipped", "a tool message", "there is nothing in it", message.place))
            return
        if answered is None:
            answered = self._insert_call(message)
        call_id, name = answered
        is_bare = len(parts) == 1 and isinstance(parts[0], Text)
        result = ToolResult(call_id, parts, message.name or name, bare=is_bare)
        self.messages.append(Message("tool", (result,)))

    def _insert_call(self, message: CaseMessage) -> tuple[str, str]:
        """Insert a call before a result that has none, and return its id and name."""
        if message.call_id:
            hint = "Write the call into tool_calls of the message before."
            raise refusal(message.place, f"no call before it has the id {message.call_id!r}", hint)
        call = ToolCall(self._calls.fresh(), message.name or UNNAMED, "{}")
        why = "no provider takes a result without its call"
        self.notes.append(Note("added", f"a call of {call.name}", why, message.place))
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == "assistant":
            self.messages[-1] = msgspec.structs.replace(last, parts=(*last.parts, call), bare=False)
        else:
            self.messages.append(Message("assistant", (call,)))
        return call.id, call.name

    def _parts(self, message: CaseMessage) -> tuple[Part, ...]:
        """The segments as parts; consecutive texts are joined into one, separated by newlines."""
        parts: list[Part] = []
        for segment in message.segments:
            written = self._part_of(segment)
            last = parts[-1] if parts else None
            if not isinstance(written, str):
                parts.append(written)
            elif not written.strip():
                continue
            elif isinstance(last, Text):
                parts[-1] = Text(f"{last.text}\n{written}")
            else:
                parts.append(Text(written))
        return tuple(parts)

    def _part_of(self, segment: Segment) -> str | Part:
        match segment:
            case TextSegment():
                return segment.text
            case CallSegment():
                return self._calls.add_call(segment)
            case FileSegment():
                return self._file(segment)
            case ImageSegment():
                if is_link(segment.path):
                    return Image(from_url(segment.path))  # a data URL is the image itself
                self.notes.append(Note("attached", segment.path, "it is sent as a picture", segment.place))
                return picture(content(segment, self._files), segment)
            case unreachable:
                assert_never(unreachable)

    def _file(self, segment: FileSegment) -> str | Part:
        if segment.resolved in self._guidelines:
            return marker(segment.path)
        data = content(segment, self._files)
        text = file_text(data, segment)
        if text is None:
            part = file_part(data, segment)
            self.notes.append(
                Note("attached", segment.path, f"it is sent as a part: {part.__struct_config__.tag}", segment.place)
            )
            return part
        self.notes.append(Note("inlined", segment.path, "its text is in the message", segment.place))
        if is_ambiguous(text, self._form):
            why = "there is a line in it that looks like the end of the file or the head of another"
            self.notes.append(Note("unclear", segment.path, why, segment.place))
        return block(segment.path, text, self._form)


def content(segment: FileSegment | ImageSegment, files: Mapping[str, bytes]) -> bytes:
    """The bytes of a file. Raises a `Fault` if the file was not handed in, so that it never becomes an empty text."""
    data = files.get(segment.resolved)
    if data is None:
        raise refusal(segment.place, f"there is no file {segment.path!r}", "Put it there, and run the suite again.")
    return data
