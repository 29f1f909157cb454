"""Soft deletions and pointers: what is still in the whole document but cut from the one on screen.

Each deletion remembers what it removed, so that restoring it brings back exactly that. Pointers into the whole document
and into the one on screen differ by the positions of what was cut; only this module translates between them.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.wire import spans
from sightline.wire.document import cuts, splice
from sightline.wire.pointer import covers, join, parse_pointer, resolve
from sightline.wire.spans import Layout, Span


def without_entries_in(data: bytes, entries: Mapping[str, Iterable[str]]) -> bytes:
    """The bytes of a JSON text without some entries, given as the pointer of each container and the tokens in it."""
    # Each container is scanned once, however many deletions it has.
    known: dict[str, Layout] = {"": spans.parent(data, "/-")[0]}

    def layout_at(pointer: str) -> Layout:
        if pointer not in known:
            above = layout_at(parent_of(pointer))
            at = above.entry(parse_pointer(pointer)[-1], pointer)
            known[pointer] = spans.layout_of(data, Span(above.starts[at], above.stops[at]), pointer)
        return known[pointer]

    gone: list[tuple[int, int]] = []
    for holder, tokens in entries.items():
        layout, names = layout_at(holder), set(tokens)
        keys = layout.keys if layout.keys is not None else map(str, range(len(layout.heads)))
        gone += cuts(layout, [at for at, key in enumerate(keys) if key in names])
    return splice(data, [(start, stop, b"") for start, stop in sorted(gone)])


Shift: TypeAlias = Callable[[str], str | None]
"""Maps a place before a change to the place after it; None if it is gone."""


def edit_refusal(message: str, hint: str, *, pointer: str | None = None) -> Fault:
    """The fault for an operation that cannot be applied to this document."""
    return Fault(Code.INVALID_REQUEST, message, hint=hint, pointer=pointer, status=422)


def parent_of(pointer: str) -> str:
    """The pointer of the container of a place."""
    return pointer[: pointer.rfind("/")]


def nearest_of(pointer: str, places: Container[str]) -> str:
    """The place itself, or its nearest ancestor, that is among these; empty if none is."""
    while pointer and pointer not in places:
        pointer = pointer[: pointer.rfind("/")]
    return pointer


def shift_by_insertion(pointer: str) -> Shift:
    """How an insertion before this position moves places. The position must be a number."""
    parent, at = parent_of(pointer), int(parse_pointer(pointer)[-1])
    return lambda place: _step_position(place, parent, at, 1)


def shift_by_removal(pointer: str, *, in_array: bool) -> Shift:
    """How the removal of this place moves places."""
    if not in_array:
        return lambda place: None if covers(pointer, place) else place
    parent, at = parent_of(pointer), int(parse_pointer(pointer)[-1])
    return lambda place: None if covers(pointer, place) else _step_position(place, parent, at, -1)


def shift_by_move(source: str, pointer: str, gone: Shift, come: Shift) -> Shift:
    """How a move affects places: `gone` is the effect of the removal, `come` that of the insertion."""

    def shift(place: str) -> str | None:
        if covers(source, place):
            return pointer + place[len(source) :]
        left = gone(place)
        return None if left is None else come(left)

    return shift


def shift_by_replacement(pointer: str) -> Shift:
    """How a new value at this place affects places: nothing within it remains."""
    return lambda place: None if covers(pointer, place) and place != pointer else place


def _step_position(place: str, parent: str, at: int, step: int) -> str:
    """A place with its position in `parent` moved by `step` if it is `at` or later."""
    if len(place) <= len(parent) or not covers(parent, place):
        return place
    token, slash, inner = place[len(parent) + 1 :].partition("/")
    if not token.isdecimal():  # a place from when this was an object, kept in case it becomes one again
        return place
    position = int(token)
    return f"{parent}/{position + step}{slash}{inner}" if position >= at else place


def with_change(value: Json, tokens: Sequence[str], change: Callable[[Json], Json]) -> Json:
    """The value with a change at a place; everything off the path to it is shared."""
    if not tokens:
        return change(value)
    token, *rest = tokens
    if isinstance(value, list):
        position = int(token)
        return [*value[:position], with_change(value[position], rest, change), *value[position + 1 :]]
    assert isinstance(value, dict)
    return {**value, token: with_change(value[token], rest, change)}


def with_entry(container: Json, token: str, value: Json) -> Json:
    """The container with one more entry."""
    if isinstance(container, list):
        position = int(token)
        return [*container[:position], value, *container[position:]]
    assert isinstance(container, dict)
    return {**container, token: value}


def without_entries(container: Json, tokens: set[str]) -> Json:
    """The container without some of its entries."""
    if isinstance(container, list):
        gone = {int(token) for token in tokens}
        return [value for position, value in enumerate(container) if position not in gone]
    assert isinstance(container, dict)
    return {key: value for key, value in container.items() if key not in tokens}


def resolve_position(document: Json, pointer: str) -> str:
    """The pointer with a `-` at its end replaced by the position after the last entry."""
    tokens = parse_pointer(pointer)
    if not tokens or tokens[-1] != "-":
        return pointer
    try:
        holder = resolve(document, parent_of(pointer))
    except Fault:
        return pointer
    return join(parent_of(pointer), len(holder)) if isinstance(holder, list) else pointer


class Deletions(msgspec.Struct, frozen=True, dict=True):
    """Groups of places in the whole document, one group per deletion; `arrays` are the containers of the places that
    are arrays."""

    groups: tuple[frozenset[str], ...] = ()
    arrays: frozenset[str] = frozenset()

    @classmethod
    def of(cls, groups: Iterable[frozenset[str]], document: Json) -> "Deletions":
        kept = tuple(group for group in groups if group)
        holders = {parent_of(place) for group in kept for place in group}
        return cls(kept, frozenset(holder for holder in holders if isinstance(resolve(document, holder), list)))

    def __bool__(self) -> bool:
        return bool(self.groups)

    @cached_property
    def places(self) -> frozenset[str]:
        """Every deleted place."""
        return frozenset().union(*self.groups)

    def holds(self, pointer: str) -> bool:
        """Whether a place of the whole document is deleted, and so not on screen."""
        return bool(self.groups) and nearest_of(pointer, self.places) != ""

    def restore(self, pointer: str) -> "Deletions":
        """Undo the deletions that removed this place; if none did, those that removed something within it."""
        groups = tuple(group for group in self.groups if not any(covers(place, pointer) for place in group))
        if groups == self.groups:
            groups = tuple(group for group in self.groups if not any(covers(pointer, place) for place in group))
        return self if groups == self.groups else Deletions(groups, self.arrays)

    def apply_shift(self, shift: Shift, document: Json) -> "Deletions":
        """The same deletions in a document whose places have moved."""
        if not self.groups:
            return self
        moved = Deletions.of((frozenset(filter(None, map(shift, group))) for group in self.groups), document)
        return self if moved == self else moved

    def to_screen(self, pointer: str) -> str:
        """A place of the whole document as a place on screen. The place must be on screen."""
        if not self.groups:
            return pointer
        holder, shown = "", ""
        for part in pointer.split("/")[1:]:
            positions = self._positions.get(holder)
            if positions:
                position = int(part)
                shown = f"{shown}/{position - sum(gone < position for gone in positions)}"
            else:
                shown = f"{shown}/{part}"
            holder = f"{holder}/{part}"
        return shown

    def to_whole(self, pointer: str) -> str:
        """A place on screen as a place of the whole document.

        A position after the last one on screen is after everything.
        """
        if not self.groups:
            return pointer
        holder = ""
        for token in parse_pointer(pointer):
            positions = self._positions.get(holder)
            if positions and token.isdecimal():
                position = int(token)
                for gone in positions:
                    position += gone <= position
                token = str(position)
            holder = join(holder, token)
        return holder

    def apply_to_bytes(self, data: bytes) -> bytes:
        """The bytes on screen."""
        return without_entries_in(data, self._entries) if self.groups else data

    def apply_to_value(self, document: Json) -> Json:
        """The value on screen."""
        # Deepest first, so that the pointers of the others stay valid.
        for holder in sorted(self._entries, key=len, reverse=True):
            names = self._entries[holder]
            document = with_change(document, parse_pointer(holder), partial(without_entries, tokens=names))
        return document

    @cached_property
    def _entries(self) -> dict[str, set[str]]:
        """What is cut, as the tokens in each container."""
        entries: dict[str, set[str]] = defaultdict(set)
        for place in self.places:
            if not self.holds(parent_of(place)):  # otherwise it is cut with its container
                entries[parent_of(place)].add(parse_pointer(place)[-1])
        return dict(entries)

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        """The positions that are cut from each array, in order; objects have no positions."""
        return {holder: sorted(map(int, tokens)) for holder, tokens in self._entries.items() if holder in self.arrays}
