"""The words of an answer told as they come: not each for itself, and all of them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sightline.model.json import JsonObject

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
    """What was added to the blocks of one pair's answer. `tell` gets it while `is_watched` says that somebody listens;
    where nobody does, nothing is put together, and only counted.

    The first words are told at once. Places are counted as pages count them, in units of UTF-16.
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
        told: JsonObject = {
            "kind": "delta",
            "pair": self._pair,
            "block": number,
            "type": growing.kind,
            "offset": growing.offset,
            "text": text,
        }
        if growing.name and not growing.is_told:
            told["name"] = growing.name
        return told


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
