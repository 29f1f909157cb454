"""What a dialect reads in a document under edit, and reads again after an edit without reading everything."""

from functools import cached_property
from typing import TypeVar

import msgspec

from sightline.dialects.registry import dialect
from sightline.editing.pairs import Pairs, halves_of, pairs_of
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.request import Request
from sightline.model.value import Value
from sightline.wire.pointer import parse_pointer

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
        return "" if isinstance(self.document, list) else f"/{dialect(self.name).editing.container}"

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
        editing = dialect(self.name).editing
        key = editing.container
        items = document.get(key) if isinstance(document, dict) else None
        if not editing.reads_items_alone or len(tokens) < 2 or tokens[0] != key or not isinstance(items, list):
            return None
        position = int(tokens[1])
        try:
            read = dialect(self.name).read_request({key: [items[position]]})
        except Fault:
            return None
        new = _move_pointers(read.messages[0], len(f"/{key}/0"), f"/{key}/{tokens[1]}")
        index = position + len(request.messages) - len(items)
        if editing.is_linked(new) or editing.is_linked(request.messages[index]):
            return None
        return index, new


def _move_pointers(value: T, cut: int, place: str) -> T:
    """A value with its pointers, and those of what it holds, at another place."""
    changes: dict[str, object] = {"at": place + value.at[cut:]}
    for name in value.__struct_fields__:
        held = getattr(value, name)
        if isinstance(held, tuple) and held and isinstance(held[0], Value):
            changes[name] = tuple(_move_pointers(each, cut, place) for each in held)
    return msgspec.structs.replace(value, **changes)
