"""The wire document: the exact bytes of a request body, and edits that change nothing else in it.

An edit replaces the bytes of one value and returns a new document. Everything outside the edited place stays as the
client wrote it: key order, spacing, number formats, escapes, unknown fields.
"""

from functools import cached_property

import msgspec

from sightline.errors import Fault
from sightline.model.json import Json
from sightline.wire import jsontext, spans
from sightline.wire.pointer import covers, index, refusal, resolve


class WireDocument(msgspec.Struct, frozen=True, dict=True):
    """A JSON text. Documents are equal if their bytes are."""

    data: bytes

    @cached_property
    def document(self) -> Json:
        """The parsed value; it is shared and must not be changed."""
        return jsontext.decode(self.data)

    def get(self, pointer: str) -> Json:
        """The value at a pointer."""
        return resolve(self.document, pointer)

    def text_of(self, pointer: str) -> bytes:
        """The exact bytes of the value at a pointer."""
        start, stop = spans.find(self.data, pointer)
        return self.data[start:stop]

    def set(self, pointer: str, value: Json) -> "WireDocument":
        """Replace the value at a pointer. Returns the same document if the new value equals the old one.

        A different order of keys counts as a change, because it changes the bytes that are sent.
        """
        text = jsontext.encode(value)
        # The whole body is replaced without being parsed, so that a broken one can be repaired.
        start, stop = spans.find(self.data, pointer) if pointer else (0, len(self.data))
        if spells(self.data[start:stop], text):
            return self
        return WireDocument(splice(self.data, [(start, stop, text)]))

    def insert(self, pointer: str, value: Json) -> "WireDocument":
        """Insert a value: before a position of an array, at its end (`-`), or under a new key of an object."""
        return self.insert_text(pointer, jsontext.encode(value))

    def remove(self, pointer: str) -> "WireDocument":
        """Remove an element, or a member with every repetition of its key."""
        if not pointer:
            raise refusal(pointer, "the whole document cannot be removed", hint="Set it to another value.")
        layout, token = spans.parent(self.data, pointer)
        chosen = layout.entry(token, pointer)
        gone = [chosen] if layout.keys is None else [i for i, key in enumerate(layout.keys) if key == token]
        return WireDocument(splice(self.data, [(start, stop, b"") for start, stop in cuts(layout, gone)]))

    def move(self, source: str, pointer: str) -> "WireDocument":
        """Remove a value and insert its exact bytes at `pointer`, which is resolved after the removal."""
        text = self.text_of(source)
        if source == pointer:
            return self
        if covers(source, pointer):
            raise refusal(pointer, f"{source!r} cannot be moved into itself")
        return self.remove(source).insert_text(pointer, text)

    def insert_text(self, pointer: str, text: bytes) -> "WireDocument":
        """Insert a value with exactly this text, which must be one JSON value."""
        if not pointer:
            raise refusal(pointer, "the document is there already", hint="Use set to replace it.")
        layout, token = spans.parent(self.data, pointer)
        at = count = len(layout.heads)
        if layout.keys is None:
            at = count if token == "-" else index(token, count + 1, pointer)
        elif token in layout.keys:
            raise refusal(pointer, f"the key {token!r} is there already", hint="Use set to replace its value.")
        else:
            # Space the colon like the last member of the object.
            last = self.data[layout.heads[-1] : layout.starts[-1]].rpartition(b":")[2] if count else b""
            text = jsontext.encode(token) + b":" + last + text
        if not count:
            place = layout.span.start + 1
        elif at < count:
            place = layout.heads[at]
            text = text + b"," + _gap(self.data, layout, max(at, min(1, count - 1)))
        else:
            place = layout.stops[-1]
            text = b"," + _gap(self.data, layout, count - 1) + text
        return WireDocument(splice(self.data, [(place, place, text)]))


def spells(old: bytes, text: bytes) -> bool:
    """Whether the old text has the same value as the new, compact text."""
    try:
        return old == text or jsontext.encode(jsontext.decode(old)) == text
    except Fault:
        return False


def splice(data: bytes, patches: list[tuple[int, int, bytes]]) -> bytes:
    """The bytes with these ranges replaced, which are in order."""
    view, pieces, kept = memoryview(data), list[bytes | memoryview](), 0
    for start, stop, text in patches:
        pieces += (view[kept:start], text)
        kept = stop
    return b"".join((*pieces, view[kept:]))


def cuts(layout: spans.Layout, gone: list[int]) -> list[tuple[int, int]]:
    """The byte ranges to cut in order to remove these entries, in order, each with one comma."""
    leading = next((rank for rank, at in enumerate(gone) if at != rank), len(gone))
    cuts = [(layout.stops[at - 1], layout.stops[at]) for at in gone[leading:]]
    if leading == len(layout.heads):
        return [(layout.span.start + 1, layout.stops[-1])]
    # The first entries have nothing before them, so they take the comma that follows.
    return [(layout.heads[0], layout.heads[leading]), *cuts] if leading else cuts


def _gap(data: bytes, layout: spans.Layout, at: int) -> bytes:
    """The white space before an entry, so that an addition is spaced like its neighbour."""
    if at == 0:
        return data[layout.span.start + 1 : layout.heads[0]]
    return data[layout.stops[at - 1] : layout.heads[at]].partition(b",")[2]
