"""An answer as it is shown: a sequence of blocks, with the results of tools inside their calls.

While an answer arrives, each event adds to one of its blocks.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, assert_never

import msgspec

from sightline.agent.core.rounds import DENIED
from sightline.chat.core.pair import ChatAnswer, answer_of
from sightline.model import events
from sightline.model.fold import Fold
from sightline.model.json import JsonObject
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
from sightline.model.request import Message
from sightline.wire.jsontext import encode

Media: TypeAlias = Image | Audio | Document


class TextBlock(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Text of the answer."""

    text: str


class ThinkingBlock(msgspec.Struct, frozen=True, tag_field="type", tag="thinking"):
    """The readable part of the reasoning."""

    text: str


class RefusalBlock(msgspec.Struct, frozen=True, tag_field="type", tag="refusal"):
    """The model's text when it declines."""

    text: str


class ResultShown(msgspec.Struct, frozen=True):
    """The result of a tool. `media` is the number of images, audio and files in it; `first` is the index of the first
    of them among those of the whole answer. If `is_denied`, the call was not allowed, and the text explains it."""

    text: str
    is_error: bool = False
    media: int = 0
    first: int = 0
    is_denied: bool = False


class CallBlock(msgspec.Struct, frozen=True, tag_field="type", tag="call"):
    """A tool was called; `arguments` is what the model wrote."""

    id: str
    name: str
    arguments: str
    result: ResultShown | None = None


class MediaBlock(msgspec.Struct, frozen=True, tag_field="type", tag="media"):
    """An image, audio or file: number `n` of those in the answer."""

    n: int
    media_type: str


Block: TypeAlias = TextBlock | ThinkingBlock | RefusalBlock | CallBlock | MediaBlock


def blocks_of(answer: ChatAnswer) -> tuple[Block, ...]:
    """The blocks of an answer, including all its rounds."""
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
    """All images, audio and files of an answer and of its tools' results, in order."""
    return tuple(each for message in answer.messages for part in message.parts for each in _media(part))


def is_shown(part: Part) -> bool:
    """Whether a part of an answer is shown as a block."""
    return not isinstance(part, ToolResult | CacheBreakpoint | Opaque)


def _media(part: Part) -> Iterator[Media]:
    if isinstance(part, Image | Audio | Document):
        yield part
    elif isinstance(part, ToolResult):
        for each in part.parts:
            yield from _media(each)


def _results(messages: tuple[Message, ...]) -> dict[int, dict[str, ToolResult]]:
    """For each message that calls tools, the results in the messages after it, by call id. Ids are unique only within a
    message."""
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
    is_denied = bool(result.is_error) and words.startswith(tuple(DENIED.values()))
    return ResultShown(words, bool(result.is_error), len(media), first, is_denied)


EVERY = 1 / 30
"""Seconds between two messages about one block."""

BlockType: TypeAlias = Literal["text", "thinking", "call", "refusal"]


@dataclass(slots=True)
class _Growing:
    kind: BlockType
    name: str = ""
    offset: int = 0
    fragments: list[str] = field(default_factory=list)
    is_announced: bool = False


class Deltas:
    """Announces what was added to the blocks of a pair's answer. `tell` gets it while `is_watched`; otherwise
    characters are only counted.

    The first text is sent at once. Offsets are in UTF-16 code units, as in the browser.
    """

    def __init__(self, pair: str, tell: Callable[[JsonObject], None], is_watched: Callable[[], bool]) -> None:
        self._pair = pair
        self._tell = tell
        self._is_watched = is_watched
        self._blocks: dict[int, _Growing] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, block: int, kind: BlockType, text: str, name: str = "") -> None:
        """Add text to a block."""
        growing = self._blocks.get(block)
        if growing is None:
            growing = self._blocks[block] = _Growing(kind, name)
        growing.fragments.append(text)
        if self._timer is None:
            self._flush()
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._again)

    def restart(self) -> None:
        """Start over for another attempt."""
        self.close()
        self._blocks.clear()

    def close(self) -> None:
        """Send what is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flush()

    def _again(self) -> None:
        self._timer = None
        if self._flush():
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._again)

    def _flush(self) -> bool:
        """Send the collected text. Returns whether there was any."""
        is_watched, had_any = self._is_watched(), False
        for number, growing in self._blocks.items():
            if not growing.fragments:
                continue
            had_any = True
            text = "".join(growing.fragments)
            growing.fragments.clear()
            if is_watched:
                message: JsonObject = {"kind": "delta", "pair": self._pair, "block": number, "type": growing.kind}
                message |= {"offset": growing.offset, "text": text}
                if growing.name and not growing.is_announced:
                    message["name"] = growing.name
                self._tell(message)
                growing.is_announced = True
            growing.offset += _units(text)
        return had_any


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


_BETWEEN = "\n\n"
"""The separator of two pieces of reasoning."""


class LiveAnswer:
    """Collects the events of one attempt. Those of a run with tools arrive one reply after the other."""

    def __init__(self, dialect: str, deltas: Deltas) -> None:
        self._dialect = dialect
        self._deltas = deltas
        self._rounds: list[Message] = []
        self._before = 0
        self._begin()

    def _begin(self) -> None:
        self._fold = Fold(self._dialect)
        self._parts: list[int] = []
        self._pieces: dict[int, tuple[bool, int]] = {}
        self._has_ended = False

    def add_event(self, event: events.StreamEvent) -> None:
        if self._has_ended:  # another reply begins; `went` gets the results of tools
            self._rounds = list(self.answer.messages)
            self._before += len(self._parts)
            self._begin()
        self._fold.add(event)
        if getattr(event, "choice", 0):
            return  # only the first of several choices is the chat's answer
        match event:
            case events.TextReceived(part=part, text=text):
                self._deltas.add(self._block(part), "text", text)
            case events.ThinkingReceived(part=part):
                self._deltas.add(self._block(part), "thinking", self._thinking_delta(event))
            case events.RefusalReceived(part=part, text=text):
                self._deltas.add(self._block(part), "refusal", text)
            case events.ToolCallBegun(part=part, name=name):
                self._deltas.add(self._block(part), "call", "", name)
            case events.ArgumentsReceived(part=part, fragment=fragment):
                self._deltas.add(self._block(part), "call", fragment)
            case events.PartReceived(part=part, value=value) if is_shown(value):
                self._block(part)
            case events.SignatureReceived(part=part) | events.CitationReceived(part=part):
                self._block(part)  # encrypted reasoning has nothing else
            case events.Ended():
                self._has_ended = True
            case _:
                pass

    def went(self, messages: tuple[Message, ...]) -> None:
        """Replace the rounds so far, including the results of tools. Another reply follows."""
        self._rounds = list(messages)
        self._before = len(blocks_of(ChatAnswer(messages=messages)))
        self._begin()

    @property
    def answer(self) -> ChatAnswer:
        """The answer so far."""
        return answer_of(self._fold.reply, rounds=tuple(self._rounds))

    @property
    def is_empty(self) -> bool:
        """Whether nothing has arrived that could be shown."""
        return not self._rounds and not self._parts

    def _block(self, part: int) -> int:
        """The number of a part's block. A part that begins late is placed by its number."""
        if part not in self._parts:
            self._parts.append(part)
            self._parts.sort()
        return self._before + self._parts.index(part)

    def _thinking_delta(self, event: events.ThinkingReceived) -> str:
        piece = event.summary, event.piece
        before = self._pieces.get(event.part, piece)
        self._pieces[event.part] = piece
        return event.text if before == piece else _BETWEEN + event.text


def partial_of(answer: ChatAnswer, finish: str, exchange: str, at: float) -> ChatAnswer | None:
    """The part of an aborted answer that had arrived; None if nothing had."""
    if not answer.messages:
        return None
    return msgspec.structs.replace(answer, finish=finish, exchange=exchange, at=at)
