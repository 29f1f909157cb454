"""The whole document under edit: everything that was ever in it and was not removed permanently, under stable ids.

Soft-deleted values are still in it. All places here are places in this document, not in the one on screen.
"""

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

from sightline.editing.deletions import (
    Deletions,
    Shift,
    parent_of,
    resolve_position,
    shift_by_insertion,
    shift_by_move,
    shift_by_removal,
    shift_by_replacement,
    with_change,
    with_entry,
    without_entries,
)
from sightline.editing.reading import DocumentReading, SectionIds, outline_of
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.wire import jsontext, spans
from sightline.wire.document import WireDocument
from sightline.wire.pointer import parse_pointer, resolve


class WholeDocument(NamedTuple):
    """The bytes, what was read from them, what is deleted, and the ids of the sections."""

    data: bytes
    reading: DocumentReading
    deletions: Deletions
    names: SectionIds

    @classmethod
    def of(cls, data: bytes, dialect: str) -> "WholeDocument":
        """The document of these bytes, which need not even be JSON."""
        try:
            reading = DocumentReading.of(dialect, jsontext.decode(data))
        except Fault as fault:
            reading = DocumentReading(dialect, None, None, fault)
        return cls(data, reading, Deletions(), SectionIds().complete(outline_of(reading)))

    def replace_document(self, data: bytes) -> "WholeDocument":
        """Replace the whole document; what is equal in both keeps its id."""
        reading = DocumentReading.of(self.reading.name, jsontext.decode(data))
        return self._with(data, reading, Deletions(), self._match_names(reading))

    def set(self, pointer: str, value: Json) -> "WholeDocument":
        """Replace an existing value."""
        text = jsontext.encode(value)
        if not pointer:
            return self.replace_document(text)
        start, stop = spans.find(self.data, pointer)
        data = b"".join((self.data[:start], text, self.data[stop:]))
        _check(data, value)
        document = with_change(self.reading.document, parse_pointer(pointer), lambda _: value)
        reading = DocumentReading.of(self.reading.name, document)
        deletions = self.deletions.apply_shift(shift_by_replacement(pointer), document)
        if pointer == self.reading.container:
            return self._with(data, reading, deletions, self._match_names(reading))
        return self._with(data, reading, deletions, self.names)

    def insert(self, pointer: str, value: Json, text: bytes | None = None) -> "WholeDocument":
        """Insert an entry, written as `text` if that is given."""
        spelled = jsontext.encode(value) if text is None else text
        pointer = resolve_position(self.reading.document, pointer)
        data = WireDocument(self.data).insert_text(pointer, spelled).data
        _check(data, value)
        *above, token = parse_pointer(pointer)
        document = with_change(self.reading.document, above, lambda holder: with_entry(holder, token, value))
        shift: Shift = shift_by_insertion(pointer) if self._is_in_array(pointer) else lambda place: place
        return self._with_shift(data, document, shift)

    def remove(self, pointer: str) -> "WholeDocument":
        """Remove an entry."""
        data = WireDocument(self.data).remove(pointer).data
        return self._with_shift(
            data, self._without(pointer), shift_by_removal(pointer, in_array=self._is_in_array(pointer))
        )

    def move(self, source: str, pointer: str) -> "WholeDocument":
        """Move an entry; `pointer` is a place on screen, resolved after the entry has been removed."""
        value, text = resolve(self.reading.document, source), WireDocument(self.data).text_of(source)
        gone = shift_by_removal(source, in_array=self._is_in_array(source))
        without = self._without(source)
        target = resolve_position(without, self.deletions.apply_shift(gone, without).to_whole(pointer))
        data = WireDocument(self.data).remove(source).insert_text(target, text).data
        *above, token = parse_pointer(target)
        is_array = isinstance(resolve(without, parent_of(target)), list)
        document = with_change(without, above, lambda holder: with_entry(holder, token, value))
        come: Shift = shift_by_insertion(target) if is_array else lambda place: place
        return self._with_shift(data, document, shift_by_move(source, target, gone, come))

    def with_deletions(self, deletions: Deletions) -> "WholeDocument":
        """The same document with these deletions."""
        return self._replace(deletions=deletions)

    def _match_names(self, reading: DocumentReading) -> SectionIds:
        """The ids for another document. If it cannot be read, the ids are kept for the next one that can."""
        if reading.request is None:
            return self.names
        after = [message.at for message in reading.request.messages]
        return self.names.match_content(_items(self.reading, self.names.sections), _items(reading, after))

    def _is_in_array(self, pointer: str) -> bool:
        return isinstance(resolve(self.reading.document, parent_of(pointer)), list)

    def _without(self, pointer: str) -> Json:
        *above, token = parse_pointer(pointer)
        return with_change(self.reading.document, above, lambda holder: without_entries(holder, {token}))

    def _with_shift(self, data: bytes, document: Json, shift: Shift) -> "WholeDocument":
        reading = DocumentReading.of(self.reading.name, document)
        return self._with(data, reading, self.deletions.apply_shift(shift, document), self.names.apply_shift(shift))

    def _with(self, data: bytes, reading: DocumentReading, deletions: Deletions, names: SectionIds) -> "WholeDocument":
        # What cannot be read now may be readable after the next edit, and then has its old ids.
        is_all = reading.request is not None
        return WholeDocument(data, reading, deletions, names.complete(outline_of(reading), is_all=is_all))


def _items(reading: DocumentReading, places: Iterable[str]) -> dict[str, Json]:
    """The values at these places, without places that are keys of other sections or do not exist."""
    found: dict[str, Json] = {}
    for place in places:
        if place.startswith("/"):
            with contextlib.suppress(Fault):
                found[place] = resolve(reading.document, place)
    return found


def _check(data: bytes, value: Json) -> None:
    """Raise a Fault if a container makes the document deeper than the parser reads."""
    if isinstance(value, (dict, list)):
        jsontext.decode(data)
