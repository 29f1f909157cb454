"""What a case expects, as text for a judge and as a value to compare with; messages and values as text."""

import json
import re
from collections.abc import Generator, Iterable, Sequence
from typing import assert_never

from sightline.errors import Fault
from sightline.evals.core.graders.finding import Answer, Grading, Step, StepFailed, file_text
from sightline.evals.core.result import ToolUse
from sightline.evals.core.suite import CallSegment, CaseMessage, FileSegment, ImageSegment, Segment, TextSegment
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.wire.jsontext import decode, encode

_STEP = re.compile(r"\.|\[|\]")


class Absent:
    """What stands at a path that leads nowhere; null is something."""


ABSENT = Absent()


def alike(one: Json, other: Json) -> bool:
    """Whether two values are the same: 1 is 1.0, and true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(alike(a, b) for a, b in zip(one, other, strict=True))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def describe_json(value: Json) -> str:
    """A value in few words."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "an object"
        case list():
            return "a list" if value else "an empty list"
        case str():
            return repr(value if len(value) <= 40 else f"{value[:40]}…") if value.strip() else "an empty text"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def steps_of(path: str) -> tuple[str, ...]:
    """The steps of a path such as `lines[0].amount`."""
    return tuple(step for step in _STEP.split(path) if step)


def value_at(value: Json, path: str) -> Json | Absent:
    """What stands at a path."""
    for step in steps_of(path):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return ABSENT
    return value


LONGEST_RESULT = 8_000


def pretty(value: Json) -> str:
    """A value as JSON that is easy to read."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def compact(value: Json) -> str:
    """A value as JSON on one line."""
    return encode(value).decode()


def shorten(text: str, most: int = LONGEST_RESULT) -> str:
    """A text, or its beginning and end with the number of characters between them."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def calls_told(tools: Iterable[ToolUse]) -> str:
    """Each call of a tool with its arguments and what came of it."""
    lines = []
    for use in tools:
        arguments = use.arguments if isinstance(use.arguments, str) else compact(use.arguments)
        came = "failed" if use.is_error else "answered"
        lines.append(f"- {use.name} {shorten(arguments)}\n  {came}: {shorten(use.result)}")
    return "\n".join(lines)


def has_rounds(messages: Sequence[Message]) -> bool:
    """Whether there is more to read in these messages than the words of one answer."""
    return any(message.role != "assistant" for message in messages) or any(
        isinstance(part, ToolCall | ToolResult) for message in messages for part in message.parts
    )


def transcript(messages: Iterable[Message]) -> str:
    """A conversation, message by message, with its calls and their results."""
    blocks = [f"{message.role}: {words}" for message in messages if (words := words_of(message.parts))]
    return "\n\n".join(blocks)


def words_of(parts: Iterable[Part]) -> str:
    """What can be read of parts, one to a line."""
    return "\n".join(words for part in parts if (words := _words(part)))


def _words(part: Part) -> str:
    match part:
        case Text(text=text) | Refusal(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"[calls {name} with {shorten(arguments)}]"
        case ToolResult(parts=inner, structured=structured, is_error=is_error):
            words = compact(structured) if structured is not None else words_of(inner)
            return f"[the tool {'failed' if is_error else 'answered'}: {shorten(words)}]"
        case Image():
            return "[an image]"
        case Document(source=PlainText(text=text), title=title):
            return f"[a document {title or ''}]\n{text}"
        case Document(title=title):
            return f"[a document {title or ''}]"
        case Audio(transcript=spoken):
            return spoken or "[sound]"
        case Thinking() | CacheBreakpoint() | Opaque():
            return ""
        case unreachable:
            assert_never(unreachable)


def reference_data(grading: Grading) -> Json | Absent:
    """The value that is expected: the one of the suite, or the JSON that the last message of an assistant is."""
    if isinstance(grading.expected_value, dict | list):
        return grading.expected_value
    texts = [plain_text(message) for message in grading.expected if message.role == "assistant"]
    if isinstance(grading.expected_value, str):
        texts.append(grading.expected_value)
    for text in reversed(texts):
        try:
            return decode(text)
        except Fault:
            continue
    return ABSENT


def reference_text(grading: Grading) -> Generator[Step, Answer, str | StepFailed]:
    """The reference answer: one message's words, or several messages with their roles; files are asked for."""
    if not grading.expected:
        value = grading.expected_value
        return value if isinstance(value, str) else "" if value is None else pretty(value)
    blocks = []
    for message in grading.expected:
        texts: list[str] = []
        for segment in message.segments:
            text = yield from _expectation_words(segment)
            if isinstance(text, StepFailed):
                return text
            texts.append(text)
        blocks.append((message.role, "\n".join(texts).strip()))
    if len(blocks) == 1:
        return blocks[0][1]
    return "\n\n".join(f"{role}:\n{text}" for role, text in blocks)


def plain_text(message: CaseMessage) -> str:
    """The words of a message, without the content of files."""
    return "\n".join(segment.text for segment in message.segments if isinstance(segment, TextSegment))


def _expectation_words(segment: Segment) -> Generator[Step, Answer, str | StepFailed]:
    match segment:
        case TextSegment(text=text):
            return text
        case FileSegment(path=path, resolved=resolved):
            content = yield from file_text(resolved or path)
            return content if isinstance(content, StepFailed) else f"{path}:\n{content}"
        case ImageSegment(path=path):
            return f"[image {path}]"
        case CallSegment(name=name, arguments=arguments):
            return f"[calls {name} with {pretty(arguments)}]"
        case unreachable:
            assert_never(unreachable)
