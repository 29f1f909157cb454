"""The whole document under edit: everything that was ever there and was not removed for good, under stable ids.

What is soft-deleted is still in it. All places here are places of this document, not of the one on screen.
"""

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

from sightline.editing.body import Body
from sightline.editing.deletions import Deletions
from sightline.editing.names import Names
from sightline.editing.outline import outline_of
from sightline.editing.places import (
    Shift,
    inserted,
    moved,
    parent_of,
    positioned,
    removed,
    replaced,
    with_change,
    with_entry,
    without_entries,
)
from sightline.editing.reading import Reading
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.wire import jsontext
from sightline.wire.document import WireDocument
from sightline.wire.pointer import resolve, split


class Whole(NamedTuple):
    """The bytes, what is read in them, what of it is deleted, and the ids of the rest."""

    body: Body
    reading: Reading
    deletions: Deletions
    names: Names

    @classmethod
    def of(cls, data: bytes, dialect: str) -> "Whole":
        """The document of these bytes; it need not even be JSON."""
        try:
            reading = Reading.of(dialect, jsontext.decode(data))
        except Fault as fault:
            reading = Reading(dialect, None, None, fault)
        return cls(Body(data), reading, Deletions(), Names().completed(outline_of(reading)))

    def written(self, data: bytes) -> "Whole":
        """Another document in the place of this one; what is alike in both keeps its id."""
        reading = Reading.of(self.reading.name, jsontext.decode(data))
        return self._with(Body(data), reading, Deletions(), self._matched(reading))

    def set(self, pointer: str, value: Json) -> "Whole":
        """Another value in the place of one that is there."""
        text = jsontext.encode(value)
        if not pointer:
            return self.written(text)
        body = self.body.replaced(pointer, text)
        _check(body, value)
        document = with_change(self.reading.document, split(pointer), lambda _: value)
        reading = self.reading.reread(document, pointer)
        deletions = self.deletions.shifted(replaced(pointer), document)
        if pointer == self.reading.container:
            return self._with(body, reading, deletions, self._matched(reading))
        return self._with(body, reading, deletions, self.names)

    def insert(self, pointer: str, value: Json, text: bytes | None = None) -> "Whole":
        """A new entry, spelled as `text` if that is given."""
        spelled = jsontext.encode(value) if text is None else text
        pointer = positioned(self.reading.document, pointer)
        body = Body(WireDocument(self.body.data).insert_text(pointer, spelled).data)
        _check(body, value)
        *above, token = split(pointer)
        document = with_change(self.reading.document, above, lambda holder: with_entry(holder, token, value))
        shift: Shift = inserted(pointer) if self._is_in_array(pointer) else lambda place: place
        return self._shifted(body, document, shift)

    def remove(self, pointer: str) -> "Whole":
        """Without an entry."""
        body = Body(WireDocument(self.body.data).remove(pointer).data)
        return self._shifted(body, self._without(pointer), removed(pointer, in_array=self._is_in_array(pointer)))

    def move(self, source: str, pointer: str) -> "Whole":
        """With an entry elsewhere; `pointer` is read on screen, after the entry is gone."""
        value, text = resolve(self.reading.document, source), self.body.text_of(source)
        gone = removed(source, in_array=self._is_in_array(source))
        without = self._without(source)
        target = positioned(without, self.deletions.shifted(gone, without).to_whole(pointer))
        body = Body(WireDocument(self.body.data).remove(source).insert_text(target, text).data)
        *above, token = split(target)
        is_array = isinstance(resolve(without, parent_of(target)), list)
        document = with_change(without, above, lambda holder: with_entry(holder, token, value))
        come: Shift = inserted(target) if is_array else lambda place: place
        return self._shifted(body, document, moved(source, target, gone, come))

    def with_deletions(self, deletions: Deletions) -> "Whole":
        """The same document with other things deleted."""
        return self._replace(deletions=deletions)

    def _matched(self, reading: Reading) -> Names:
        """The ids in another document; one that cannot be read keeps them for the next one that can."""
        if reading.request is None:
            return self.names
        after = [message.at for message in reading.request.messages]
        return self.names.matched(_items(self.reading, self.names.sections), _items(reading, after))

    def _is_in_array(self, pointer: str) -> bool:
        return isinstance(resolve(self.reading.document, parent_of(pointer)), list)

    def _without(self, pointer: str) -> Json:
        *above, token = split(pointer)
        return with_change(self.reading.document, above, lambda holder: without_entries(holder, {token}))

    def _shifted(self, body: Body, document: Json, shift: Shift) -> "Whole":
        reading = Reading.of(self.reading.name, document)
        return self._with(body, reading, self.deletions.shifted(shift, document), self.names.shifted(shift))

    def _with(self, body: Body, reading: Reading, deletions: Deletions, names: Names) -> "Whole":
        outline = outline_of(reading, reading.changed)
        # What cannot be read now may be readable again after the next edit, and is then known by its old ids.
        is_all = not reading.changed and reading.request is not None
        return Whole(body, reading, deletions, names.completed(outline, is_all=is_all))


def _items(reading: Reading, places: Iterable[str]) -> dict[str, Json]:
    """What stands at these places, without those that are keys of other sections or of nothing."""
    found: dict[str, Json] = {}
    for place in places:
        if place.startswith("/"):
            with contextlib.suppress(Fault):
                found[place] = resolve(reading.document, place)
    return found


def _check(body: Body, value: Json) -> None:
    """A value that holds others may make the document deeper than anybody can read."""
    if isinstance(value, (dict, list)):
        jsontext.decode(body.data)
