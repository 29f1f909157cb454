"""Messages, tool calls and values as words for a judge to read. What is long is shortened, and says so."""

import json
from collections.abc import Iterable, Sequence
from typing import assert_never

from sightline.evals.core.observation import ToolUse
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
from sightline.wire.jsontext import encode

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
