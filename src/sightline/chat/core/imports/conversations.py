"""Collects the turns of imported conversations into pairs and topics."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from sightline.chat.core.facts import ChatImported
from sightline.chat.core.pair import ChatAnswer, MessagePair
from sightline.chat.core.topics import ROOT, Topic
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation, Part, Text, ToolCall
from sightline.model.request import Message

_LATEST = 32_503_680_000.0
_MILLISECONDS = 100_000_000_000.0


def text(holder: JsonObject, key: str) -> str:
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def member(holder: JsonObject, key: str) -> JsonObject:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def members(value: Json) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def moment(value: Json) -> float:
    """Seconds since 1970, from seconds, milliseconds or an ISO time; 0 if it is not a time."""
    if isinstance(value, str):
        try:
            read = datetime.fromisoformat(value)
            return max(0.0, read.timestamp()) if read.tzinfo is not None else 0.0
        except (ValueError, OverflowError):
            return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _MILLISECONDS * 1000:
        return 0.0
    seconds = value / 1000 if value > _MILLISECONDS else float(value)
    return seconds if 0 <= seconds <= _LATEST else 0.0


def iso_time(seconds: float) -> str:
    """A time in the format of exports."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


Speaker: TypeAlias = Literal["user", "assistant", "tool"]

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class ImportedTurn:
    """What one side said in a turn. `key` identifies it in its conversation."""

    speaker: Speaker
    parts: tuple[Part, ...]
    key: str
    at: float = 0.0
    model: str = ""


@dataclass(frozen=True, slots=True)
class ChatImport:
    """The result of an import: the fact to add to a history, and notes about what was left out."""

    source: str
    fact: ChatImported
    notes: tuple[str, ...] = ()


def _place(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None


def tool_name(name: str) -> str:
    """A tool name that every provider accepts."""
    return _NOT_IN_A_NAME.sub("_", name)[:64] or "tool"


@dataclass(slots=True)
class ChatImporter:
    """Collects the conversations of one source. `pairs` has those so far."""

    source: str
    _topics: list[Topic] = field(default_factory=list)
    pairs: list[MessagePair] = field(default_factory=list)
    _lost: Counter[str] = field(default_factory=Counter)
    _names: set[tuple[str, str]] = field(default_factory=set)

    def lose(self, what: str, count: int = 1) -> None:
        """Note that this many could not be imported."""
        self._lost[what] += count

    def citations(self, sources: Iterable[tuple[JsonObject, Json, Json]]) -> tuple[Citation, ...]:
        """The citations of a text, each with its range. A source without an address is dropped and noted."""
        found: list[Citation] = []
        for source, start, end in sources:
            url = text(source, "url")
            if url:
                found.append(Citation(url, text(source, "title"), start=_place(start), end=_place(end)))
            else:
                self.lose("citations without an address were left out")
        return tuple(found)

    def topic(self, key: str, name: str, parent: str = ROOT) -> str:
        """Add a topic and return its id. If its name is taken, a number is appended."""
        title = " ".join(name.split())[:120] or "Untitled"
        fresh, number = title, 1
        while (parent, fresh.lower()) in self._names:
            number += 1
            fresh = f"{title} ({number})"
        self._names.add((parent, fresh.lower()))
        topic = Topic(id=self.id_of("topic", key), name=fresh, parent=parent)
        self._topics.append(topic)
        return topic.id

    def conversation(self, key: str, topic: str, turns: list[ImportedTurn]) -> None:
        """Add turns in order: a question and everything up to the next one form a pair."""
        group: list[ImportedTurn] = []
        for turn in turns:
            if turn.speaker == "user" and group:
                self.pairs.append(self._pair(key, topic, group))
                group = []
            group.append(turn)
        if group:
            self.pairs.append(self._pair(key, topic, group))

    def finish(self) -> ChatImport:
        notes = tuple(f"{what}: {count}" for what, count in self._lost.items())
        return ChatImport(self.source, ChatImported(tuple(self._topics), tuple(self.pairs)), notes)

    def _pair(self, key: str, topic: str, turns: list[ImportedTurn]) -> MessagePair:
        question = turns[0].parts if turns[0].speaker == "user" else ()
        replies = [turn for turn in turns if turn.speaker != "user"]
        model = next((turn.model for turn in reversed(replies) if turn.model), "")
        answer = None
        if replies:
            messages = tuple(Message(turn.speaker, turn.parts) for turn in replies)
            finish = "tool_calls" if isinstance(messages[-1].parts[-1], ToolCall) else "stop"
            answer = ChatAnswer(messages=messages, model=model, finish=finish, at=replies[-1].at)
        return MessagePair(
            id=self.id_of("pair", f"{key}\n{turns[0].key}"),
            topic=topic,
            model=model,
            user_text="\n\n".join(part.text for part in question if isinstance(part, Text)),
            attachments=tuple(part for part in question if not isinstance(part, Text)),
            answer=answer,
            state="complete" if answer else "idle",
            at=turns[0].at,
        )

    def id_of(self, kind: str, key: str) -> str:
        """The id for the object that has this key in the source."""
        digest = hashlib.sha256(f"{self.source}\n{kind}\n{key}".encode("utf-8", "replace")).hexdigest()
        return f"{self.source}-{digest[:20]}"
