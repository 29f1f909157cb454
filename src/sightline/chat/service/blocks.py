"""An answer as it is shown: one block after the other, with the results of tools inside their calls."""

from collections.abc import Iterator
from typing import TypeAlias, assert_never

import msgspec

from sightline.chat.core.pair import ChatAnswer
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
from sightline.wire.jsontext import encode

Media: TypeAlias = Image | Audio | Document


class TextBlock(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Words."""

    text: str


class ThinkingBlock(msgspec.Struct, frozen=True, tag_field="type", tag="thinking"):
    """What can be read of the reasoning."""

    text: str


class RefusalBlock(msgspec.Struct, frozen=True, tag_field="type", tag="refusal"):
    """The model's words when it declines."""

    text: str


class ResultShown(msgspec.Struct, frozen=True):
    """The result of a tool. `media` is how many pictures, sounds and files came with it, `first` the number of
    the first of them among all of the answer."""

    text: str
    is_error: bool = False
    media: int = 0
    first: int = 0


class CallBlock(msgspec.Struct, frozen=True, tag_field="type", tag="call"):
    """A tool was called; `arguments` is what the model wrote."""

    id: str
    name: str
    arguments: str
    result: ResultShown | None = None


class MediaBlock(msgspec.Struct, frozen=True, tag_field="type", tag="media"):
    """A picture, a sound or a file: number `n` of those of the answer."""

    n: int
    media_type: str


Block: TypeAlias = TextBlock | ThinkingBlock | RefusalBlock | CallBlock | MediaBlock


def blocks_of(answer: ChatAnswer) -> tuple[Block, ...]:
    """The blocks of an answer, those of all its rounds."""
    results = _results(answer.messages)
    blocks: list[Block] = []
    numbers = {id(each): number for number, each in enumerate(media_of(answer))}
    for index, message in enumerate(answer.messages):
        if message.role == "assistant":
            for part in message.parts:
                block = _block(part, results.get(index, {}), numbers)
                if block is not None:
                    blocks.append(block)
    return tuple(blocks)


def media_of(answer: ChatAnswer) -> tuple[Media, ...]:
    """All pictures, sounds and files of an answer and of its tools' results, in their order."""
    return tuple(each for message in answer.messages for part in message.parts for each in _media(part))


def is_shown(part: Part) -> bool:
    """Whether a part of an answer is a block of it."""
    return not isinstance(part, ToolResult | CacheBreakpoint | Opaque)


def _media(part: Part) -> Iterator[Media]:
    if isinstance(part, Image | Audio | Document):
        yield part
    elif isinstance(part, ToolResult):
        for each in part.parts:
            yield from _media(each)


def _results(messages: tuple[Message, ...]) -> dict[int, dict[str, ToolResult]]:
    """For each message that calls tools, what the messages behind it say they answered; ids are its own."""
    found: dict[int, dict[str, ToolResult]] = {}
    calling = -1
    for index, message in enumerate(messages):
        if message.role != "tool":
            calling = index
            continue
        for part in message.parts:
            if isinstance(part, ToolResult):
                found.setdefault(calling, {}).setdefault(part.id, part)
    return found


def _block(part: Part, results: dict[str, ToolResult], numbers: dict[int, int]) -> Block | None:
    match part:
        case Text():
            return TextBlock(part.text)
        case Thinking():
            return ThinkingBlock(part.text)
        case Refusal():
            return RefusalBlock(part.text)
        case ToolCall():
            result = results.get(part.id)
            shown = None if result is None else _show_result(result, numbers)
            return CallBlock(part.id, part.name, part.arguments, shown)
        case Image() | Audio() | Document():
            return MediaBlock(numbers[id(part)], getattr(part.source, "media_type", "") or "application/octet-stream")
        case ToolResult() | CacheBreakpoint() | Opaque():
            return None
        case unreachable:
            assert_never(unreachable)


def _show_result(result: ToolResult, numbers: dict[int, int]) -> ResultShown:
    words = "".join(part.text for part in result.parts if isinstance(part, Text))
    if not words and result.structured is not None:
        words = encode(result.structured).decode()
    media = tuple(_media(result))
    first = numbers[id(media[0])] if media else 0
    return ResultShown(words, bool(result.is_error), len(media), first)
