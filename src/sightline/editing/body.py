"""The bytes of a document under edit, with the places in them that were looked up once.

A keystroke in a body of a megabyte must not scan the megabyte. So the outer containers are laid out once, and a change
of one value moves their offsets instead of reading the text again.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sightline.wire import spans
from sightline.wire.document import cuts
from sightline.wire.pointer import parse_pointer
from sightline.wire.spans import Layout, Span


class DocumentBytes:
    """One JSON text. Its bytes never change; what is remembered of their layout grows."""

    def __init__(self, data: bytes, layouts: Mapping[str, Layout] | None = None) -> None:
        self.data = data
        self._layouts: dict[str, Layout] = dict(layouts or {})

    def text_of(self, pointer: str) -> bytes:
        """The exact bytes of the value at a place."""
        start, stop = self.find(pointer)
        return self.data[start:stop]

    def find(self, pointer: str) -> Span:
        """The bytes of the value at a place."""
        if not pointer:
            return spans.find(self.data, "")
        layout = self.layout(pointer[: pointer.rfind("/")])
        at = layout.entry(parse_pointer(pointer)[-1], pointer)
        return Span(layout.starts[at], layout.stops[at])

    def layout(self, pointer: str) -> Layout:
        """The entries of the container at a place."""
        known = self._layouts.get(pointer)
        if known is None:
            if pointer:
                known = spans.layout_of(self.data, self.find(pointer), pointer)
            else:
                known, _ = spans.parent(self.data, "/-")
            self._layouts[pointer] = known
        return known

    def replace(self, pointer: str, text: bytes) -> "DocumentBytes":
        """The body with another spelling of a value in the place of one that is there."""
        start, stop = self.find(pointer)
        data = b"".join((self.data[:start], text, self.data[stop:]))
        change = _Change(start, stop, len(text) - (stop - start))
        outer = {
            place: change.of(layout)
            for place, layout in self._layouts.items()
            # The inner ones are laid out again where they are needed; there would be no end of them.
            if place.count("/") <= 1 and not (layout.span.start >= start and layout.span.stop <= stop)
        }
        return DocumentBytes(data, outer)

    def without(self, places: Mapping[str, Iterable[str]]) -> bytes:
        """The bytes without some entries, named by the place of their container and their tokens in it."""
        gone: list[tuple[int, int]] = []
        for holder, tokens in places.items():
            layout, names = self.layout(holder), set(tokens)
            keys = layout.keys if layout.keys is not None else map(str, range(len(layout.heads)))
            gone += cuts(layout, [at for at, key in enumerate(keys) if key in names])
        view, pieces, kept = memoryview(self.data), list[memoryview](), 0
        for start, stop in sorted(gone):
            pieces.append(view[kept:start])
            kept = stop
        return b"".join((*pieces, view[kept:]))


class _Change(NamedTuple):
    """The bytes from `start` to `stop` have become so many more."""

    start: int
    stop: int
    more: int

    def of(self, layout: Layout) -> Layout:
        if layout.span.stop <= self.start:
            return layout
        span = Span(self._shift_offset(layout.span.start), self._shift_offset(layout.span.stop))
        heads = self._all(layout.heads)
        # An array's entries begin with their values, and its two columns are one list.
        starts = heads if layout.starts is layout.heads else self._all(layout.starts)
        return Layout(span, layout.keys, heads, starts, self._all(layout.stops))

    def _shift_offset(self, offset: int) -> int:
        return offset if offset < self.stop else offset + self.more

    def _all(self, offsets: list[int]) -> list[int]:
        stop, more = self.stop, self.more
        return [offset if offset < stop else offset + more for offset in offsets]
