"""An answer while it comes: what there is of it so far, and what each event adds to which block of it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from sightline.chat.core.pair import ChatAnswer, answer_of
from sightline.chat.service.blocks import blocks_of, is_shown
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
)
from sightline.model.fold import Fold
from sightline.model.json import JsonObject
from sightline.model.message import Message

EVERY = 1 / 30
"""Seconds between two tellings of one block."""

BlockType: TypeAlias = Literal["text", "thinking", "call", "refusal"]


@dataclass(slots=True)
class _Growing:
    kind: BlockType
    name: str = ""
    offset: int = 0
    fragments: list[str] = field(default_factory=list)
    is_told: bool = False


class Deltas:
    """What was added to the blocks of one pair's answer. `tell` gets it while `is_watched`;
    otherwise characters are only counted.

    The first words are sent at once. Offsets count units of UTF-16, as pages do.
    """

    def __init__(self, pair: str, tell: Callable[[JsonObject], None], is_watched: Callable[[], bool]) -> None:
        self._pair = pair
        self._tell = tell
        self._is_watched = is_watched
        self._blocks: dict[int, _Growing] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, block: int, kind: BlockType, text: str, name: str = "") -> None:
        """So much more of this block."""
        growing = self._blocks.get(block)
        if growing is None:
            growing = self._blocks[block] = _Growing(kind, name)
        growing.fragments.append(text)
        if self._timer is None:
            self._flush()
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._again)

    def restart(self) -> None:
        """Another attempt, which begins with nothing."""
        self.close()
        self._blocks.clear()

    def close(self) -> None:
        """Tell what is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flush()

    def _again(self) -> None:
        self._timer = None
        if self._flush():
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._again)

    def _flush(self) -> bool:
        """Whether there was anything."""
        is_watched, had_any = self._is_watched(), False
        for number, growing in self._blocks.items():
            if not growing.fragments:
                continue
            had_any = True
            text = "".join(growing.fragments)
            growing.fragments.clear()
            if is_watched:
                self._tell(self._delta_message(number, growing, text))
                growing.is_told = True
            growing.offset += _units(text)
        return had_any

    def _delta_message(self, number: int, growing: _Growing, text: str) -> JsonObject:
        message: JsonObject = {
            "kind": "delta",
            "pair": self._pair,
            "block": number,
            "type": growing.kind,
            "offset": growing.offset,
            "text": text,
        }
        if growing.name and not growing.is_told:
            message["name"] = growing.name
        return message


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


_BETWEEN = "\n\n"
"""What stands between two pieces of a reasoning."""


class LiveAnswer:
    """Takes the events of one attempt; those of a run with tools come one reply after the other."""

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

    def add_event(self, event: StreamEvent) -> None:
        """One more event."""
        if self._has_ended:
            self._end_round()
        self._fold.add(event)
        if getattr(event, "choice", 0):
            return  # only the first of several answers is the chat's
        match event:
            case TextReceived(part=part, text=text):
                self._deltas.add(self._block(part), "text", text)
            case ThinkingReceived(part=part):
                self._deltas.add(self._block(part), "thinking", self._thought(event))
            case RefusalReceived(part=part, text=text):
                self._deltas.add(self._block(part), "refusal", text)
            case ToolCallBegun(part=part, name=name):
                self._deltas.add(self._block(part), "call", "", name)
            case ArgumentsReceived(part=part, fragment=fragment):
                self._deltas.add(self._block(part), "call", fragment)
            case PartReceived(part=part, value=value) if is_shown(value):
                self._block(part)
            case SignatureReceived(part=part) | CitationReceived(part=part):
                self._block(part)  # an encrypted reasoning has nothing else
            case Ended():
                self._has_ended = True
            case _:
                pass

    def went(self, messages: tuple[Message, ...]) -> None:
        """Replace the rounds so far, with the results of tools; another reply follows."""
        self._rounds = list(messages)
        self._before = len(blocks_of(ChatAnswer(messages=messages)))
        self._begin()

    @property
    def answer(self) -> ChatAnswer:
        """What has come so far."""
        return answer_of(self._fold.reply, rounds=tuple(self._rounds))

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come that could be shown."""
        return not self._rounds and not self._parts

    def _end_round(self) -> None:
        """Another reply begins; the results of tools come with `went`."""
        self._rounds = list(self.answer.messages)
        self._before += len(self._parts)
        self._begin()

    def _block(self, part: int) -> int:
        """The number of the block that a part is; one that begins late stands where its number says."""
        if part not in self._parts:
            self._parts.append(part)
            self._parts.sort()
        return self._before + self._parts.index(part)

    def _thought(self, event: ThinkingReceived) -> str:
        piece = event.summary, event.piece
        before = self._pieces.get(event.part, piece)
        self._pieces[event.part] = piece
        return event.text if before == piece else _BETWEEN + event.text


def partial_of(answer: ChatAnswer, finish: str, exchange: str, at: float) -> ChatAnswer | None:
    """The part of an aborted answer that had come; None if nothing had."""
    if not answer.messages:
        return None
    return msgspec.structs.replace(answer, finish=finish, exchange=exchange, at=at)
