"""What messages carry: files as text, picture, document, sound or guidelines; and a conversation as one text with role
markers, for logs and for agents that take a prompt."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import assert_never
from xml.sax.saxutils import escape

from sightline.errors import Code, Fault
from sightline.evals.core.glob import compile_glob
from sightline.evals.core.reading.messages import find_call
from sightline.evals.core.suite import (
    CallSegment,
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
from sightline.model.request import Message, Role
from sightline.wire import jsontext
from sightline.wire.media_type import encoding_of, is_text, sniff

_QUOTES = {'"': "&quot;"}


def marker(path: str) -> str:
    """The text in place of a file whose content is elsewhere."""
    return f"<Attached: {path}>"


def block(path: str, text: str, form: FileForm) -> str:
    """The words of a file under its name."""
    if form == "seed":
        return f"=== {path} ===\n{text}"
    body = text.strip("\n")
    return f'<file path="{escape(path, _QUOTES)}">\n{body}\n</file>'


def is_ambiguous(text: str, form: FileForm) -> bool:
    """Whether the words could be taken for the end of the block around them, or for the head of another."""
    return "</file>" in text if form == "xml" else any(line.startswith("=== ") for line in text.splitlines())


def file_text(data: bytes, segment: FileSegment) -> str | None:
    """The words of a file, with plain line ends; None if it is no text."""
    if not is_text(sniff(data, segment.path)):
        return None
    return data.decode(encoding_of(data)).replace("\r\n", "\n")


def file_part(data: bytes, segment: FileSegment) -> Part:
    """A file that is no text, by what its bytes say it is."""
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
    """A picture from its bytes. Whatever the name says, bytes that are no picture are refused."""
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
    """The guideline files of a case with their words under their names, each once, by where it was found, in the order
    in which messages name them."""
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
    """The calls of one conversation. Ids that the suite gives are kept; those that are made differ from all of them."""

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
        self._ids: dict[int, str] = {}

    def add_call(self, segment: CallSegment) -> ToolCall:
        """The call as a part; it waits for its result from now on."""
        call_id = segment.id or self.fresh()
        self._waiting.append(segment)
        self._ids[id(segment)] = call_id
        return ToolCall(call_id, segment.name, argument_text(segment.arguments))

    def add_reply(self, message: Message) -> None:
        """A reply has been given: its calls wait as well."""
        for part in message.parts:
            if isinstance(part, ToolCall):
                segment = CallSegment(part.name, part.arguments, part.id)
                self._waiting.append(segment)
                self._ids[id(segment)] = part.id

    def take_answered(self, message: CaseMessage) -> tuple[str, str] | None:
        """Id and name of the call that a tool message answers; None where there is none that waits."""
        call = find_call(message, self._waiting)
        if call is None:
            return None
        self._waiting = [each for each in self._waiting if each is not call]
        return self._ids[id(call)], call.name

    def fresh(self) -> str:
        """An id that no call has."""
        made = next(name for number in self._numbers if (name := f"call_{number}") not in self._taken)
        self._taken.add(made)
        return made


def argument_text(arguments: Json) -> str:
    """Arguments as a model writes them: text stays as it is, anything else is JSON."""
    return arguments if isinstance(arguments, str) else jsontext.encode({} if arguments is None else arguments).decode()


_LIKE_A_MARKER = re.compile(r"^([ \t]*)(\\*@\[[^\]\n]*\]:)", re.MULTILINE)


def flat_question(
    messages: Sequence[CaseMessage | Message],
    files: Mapping[str, bytes],
    *,
    system_prompt: str = "",
    file_form: FileForm = "xml",
) -> str:
    """The text. One user message alone stands without a marker, unless its words look like one.

    Files that are text are in it, under their names; others are named. Guidelines are where the case has them.
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
    """The text, with every line that looks like a marker escaped."""
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
