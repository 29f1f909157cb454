"""A conversation as one text with role markers, for logs and for agents that take a prompt.

A message begins with a line such as `@[User]:`. A line of somebody's words that looks like such a marker gets a
backslash in front, and one that has backslashes in front of it already gets one more: so no words can be taken for a
marker, and taking one backslash away from such lines gives the words back as they were. System messages stay in place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from sightline.evals.core.delivery.attachment import block, file_text, marker
from sightline.evals.core.delivery.calls import argument_text
from sightline.evals.core.suite import CallSegment, CaseMessage, FileSegment, ImageSegment, Segment, TextSegment
from sightline.evals.core.target import FileForm
from sightline.model.message import Message, Role
from sightline.model.parts import Refusal, Text, ToolCall, ToolResult

_LIKE_A_MARKER = re.compile(r"^([ \t]*)(\\*@\[[^\]\n]*\]:)", re.MULTILINE)
_ESCAPED = re.compile(r"^([ \t]*)\\(\\*@\[[^\]\n]*\]:)", re.MULTILINE)


def flat_question(
    messages: Sequence[CaseMessage | Message],
    files: Mapping[str, bytes],
    *,
    system_prompt: str = "",
    file_form: FileForm = "xml",
) -> str:
    """The text. One user message alone stands without a marker, unless its words look like one.

    Files that are text stand in it, under their names; others are named. Guidelines stand where the case has them.
    """
    said: list[tuple[Role, str]] = [("system", system_prompt)] if system_prompt.strip() else []
    said += [
        (message.role, "\n".join(words))
        for message in messages
        if (words := [each for each in _words(message, files, file_form) if each.strip()])
    ]
    if len(said) == 1 and said[0][0] == "user" and not _LIKE_A_MARKER.search(said[0][1]):
        return said[0][1]
    return "\n\n".join(f"@[{role.title()}]:\n{escape_markers(text)}" for role, text in said)


def escape_markers(text: str) -> str:
    """The words with every line that looks like a marker told apart from one."""
    return _LIKE_A_MARKER.sub(r"\1\\\2", text)


def unescape_markers(text: str) -> str:
    """The words as they were."""
    return _ESCAPED.sub(r"\1\2", text)


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
