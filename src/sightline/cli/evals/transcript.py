"""Messages as lines for a person."""

from collections.abc import Iterator, Sequence

from sightline.model.message import Message
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)


def message_lines(messages: Sequence[Message]) -> Iterator[str]:
    """Each message under its role."""
    for message in messages:
        yield f"  {message.role}"
        for part in message.parts:
            for line in part_text(part).split("\n"):
                yield f"    {line}"


def part_text(part: Part) -> str:
    """One part in words."""
    match part:
        case Text() | Refusal():
            return part.text
        case Thinking():
            return f"(thinking) {part.text}"
        case ToolCall():
            return f"→ {part.name}({part.arguments})"
        case ToolResult():
            return f"← {part.name or part.id}: " + "\n".join(part_text(each) for each in part.parts)
        case Image() | Audio() | Document():
            return f"<{type(part).__name__.lower()} {getattr(part.source, 'media_type', '') or 'by its address'}>"
        case CacheBreakpoint() | Opaque():
            return f"<{type(part).__name__}>"
