"""What a dialect reads in a document under edit, and reads again after an edit without reading everything."""

from collections.abc import Mapping
from functools import cached_property
from typing import TypeVar

import msgspec

from sightline.dialects.registry import dialect
from sightline.dialects.tool_names import BUILT_IN
from sightline.editing.pairs import Pairs, halves_of, pairs_of
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Opaque, Thinking
from sightline.model.request import Request
from sightline.model.value import Value
from sightline.wire.pointer import parse_pointer

CONTAINERS: Mapping[str, str] = {
    "openai-chat": "messages",
    "anthropic": "messages",
    "openai-responses": "input",
    "gemini": "contents",
    "raw": "messages",
}
"""Where each dialect keeps the conversation."""

_LINKED = frozenset({"raw"})
"""Dialects that read an item by what stands in others."""

T = TypeVar("T", bound=Value)


class DocumentReading:
    """A document and the request that it asks; `request` is None where the dialect cannot read it, `fault` says why."""

    def __init__(self, name: str, document: Json, request: Request | None, fault: Fault | None = None) -> None:
        self.name = name
        self.document = document
        self.request = request
        self.fault = fault
        self.changed = ""
        """The place of the only message that differs from the reading before, if that is known."""
        self._pairs: Pairs | None = None

    @classmethod
    def of(cls, name: str, document: Json) -> "DocumentReading":
        """Read a whole document."""
        try:
            return cls(name, document, dialect(name).read_request(document))
        except Fault as fault:
            return cls(name, document, None, fault)

    @property
    def pairs(self) -> Pairs:
        """Which result answers which call."""
        if self._pairs is None:
            self._pairs = pairs_of(self.request.messages if self.request else ())
        return self._pairs

    @cached_property
    def container(self) -> str:
        """The place of the list that holds the conversation; a list without an object around it is that list."""
        return "" if isinstance(self.document, list) else f"/{CONTAINERS[self.name]}"

    def reread(self, document: Json, pointer: str) -> "DocumentReading":
        """The reading of a document that differs from this one in the value at a place, and nowhere else."""
        message = None if self.request is None else self._item(self.request, document, parse_pointer(pointer))
        if self.request is None or message is None:
            return DocumentReading.of(self.name, document)
        index, new = message
        old = self.request.messages[index]
        messages = (*self.request.messages[:index], new, *self.request.messages[index + 1 :])
        reading = DocumentReading(self.name, document, msgspec.structs.replace(self.request, messages=messages))
        reading.changed = new.at
        if halves_of(old) == halves_of(new):
            reading._pairs = self._pairs
        return reading

    def _item(self, request: Request, document: Json, tokens: tuple[str, ...]) -> tuple[int, Message] | None:
        """The one message that has changed, with its number; None if more than that must be read again."""
        key = CONTAINERS[self.name]
        items = document.get(key) if isinstance(document, dict) else None
        if self.name in _LINKED or len(tokens) < 2 or tokens[0] != key or not isinstance(items, list):
            return None
        position = int(tokens[1])
        try:
            read = dialect(self.name).read_request({key: [items[position]]})
        except Fault:
            return None
        new = _move_pointers(read.messages[0], len(f"/{key}/0"), f"/{key}/{tokens[1]}")
        index = position + len(request.messages) - len(items)
        if any(_is_linked(each, self.name) for each in (new, request.messages[index])):
            return None
        return index, new


def _is_linked(message: Message, name: str) -> bool:
    """Whether other items are read by what this one holds: tools that it brings, pieces of a thought, or a call of a
    built-in tool, whose result is a result only where the client runs the call."""
    if name == "gemini":
        return not message.parts or any(isinstance(part, (Opaque, Thinking)) for part in message.parts)
    if name == "openai-responses":
        return any(isinstance(part, Opaque) or getattr(part, "kind", "") in BUILT_IN for part in message.parts)
    return any(isinstance(part, Opaque) and part.mirrored for part in message.parts)


def _move_pointers(value: T, cut: int, place: str) -> T:
    """A value with its pointers, and those of what it holds, at another place."""
    changes: dict[str, object] = {"at": place + value.at[cut:]}
    for name in value.__struct_fields__:
        held = getattr(value, name)
        if isinstance(held, tuple) and held and isinstance(held[0], Value):
            changes[name] = tuple(_move_pointers(each, cut, place) for each in held)
    return msgspec.structs.replace(value, **changes)
