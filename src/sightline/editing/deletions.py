"""Soft deletions and pointers: what is still in the whole document and cut out of the one on screen.

Each deletion remembers what it took, so that restoring brings back exactly that. Between the whole document and the one
on screen pointers differ by the positions of what was cut; this is the one module that translates them.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.wire import spans
from sightline.wire.document import cuts
from sightline.wire.pointer import covers, join, parse_pointer, resolve
from sightline.wire.spans import Layout, Span


def without_entries_in(data: bytes, entries: Mapping[str, Iterable[str]]) -> bytes:
    """The bytes of a JSON text without some entries, named by the place of their container and their tokens in it."""
    # Each container is scanned once, so that many deletions do not scan the text as often.
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
    view, pieces, kept = memoryview(data), list[memoryview](), 0
    for start, stop in sorted(gone):
        pieces.append(view[kept:start])
        kept = stop
    return b"".join((*pieces, view[kept:]))


Shift: TypeAlias = Callable[[str], str | None]
"""A place before a change as it is called after it; None for a place that is gone."""


def edit_refusal(message: str, hint: str, *, pointer: str | None = None) -> Fault:
    """The fault of an operation that cannot be done to this document."""
    return Fault(Code.INVALID_REQUEST, message, hint=hint, pointer=pointer, status=422)


def parent_of(pointer: str) -> str:
    """The place that holds this one."""
    return pointer[: pointer.rfind("/")]


def nearest_of(pointer: str, places: Container[str]) -> str:
    """The place itself, or the nearest around it, that is one of these; empty if none is."""
    while pointer and pointer not in places:
        pointer = parent_of(pointer)
    return pointer


def shift_by_insertion(pointer: str) -> Shift:
    """What an insertion before this position does to places; the position is a number."""
    parent, at = parent_of(pointer), int(parse_pointer(pointer)[-1])
    return lambda place: _step_position(place, parent, at, 1)


def shift_by_removal(pointer: str, *, in_array: bool) -> Shift:
    """What the removal of this place does to places."""
    if not in_array:
        return lambda place: None if covers(pointer, place) else place
    parent, at = parent_of(pointer), int(parse_pointer(pointer)[-1])
    return lambda place: None if covers(pointer, place) else _step_position(place, parent, at, -1)


def shift_by_move(source: str, pointer: str, gone: Shift, come: Shift) -> Shift:
    """What a move does: `gone` is what the removal does, `come` what the insertion does."""

    def shift(place: str) -> str | None:
        if covers(source, place):
            return pointer + place[len(source) :]
        left = gone(place)
        return None if left is None else come(left)

    return shift


def shift_by_replacement(pointer: str) -> Shift:
    """What another value at this place does: nothing within it is what it was."""
    return lambda place: None if covers(pointer, place) and place != pointer else place


def _step_position(place: str, parent: str, at: int, step: int) -> str:
    """A place with its position in `parent` moved by a step, if that is `at` or later."""
    if len(place) <= len(parent) or not covers(parent, place):
        return place
    token, slash, inner = place[len(parent) + 1 :].partition("/")
    if not token.isdecimal():  # a place from when this was an object, kept for when it is one again
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
    """The container with an entry more."""
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
    """Groups of places of the whole document, each taken by one deletion; `arrays` are those of their holders."""

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
        """Every place that was taken."""
        return frozenset().union(*self.groups)

    def holds(self, pointer: str) -> bool:
        """Whether a place of the whole document is not on screen."""
        return bool(self.groups) and nearest_of(pointer, self.places) != ""

    def restore(self, pointer: str) -> "Deletions":
        """Without the deletions that took this place, or that took something within it if none did."""
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
        """A place of the whole document as it is called on screen; the place is there."""
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
        """A place on screen as it is called in the whole document.

        A position behind the last one on screen is one behind everything.
        """
        tokens = parse_pointer(pointer)
        if not self.groups:
            return pointer
        holder = ""
        for token in tokens:
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
        # The deepest first: what is shared of the others does not change under them.
        for holder in sorted(self._entries, key=len, reverse=True):
            names = self._entries[holder]
            document = with_change(document, parse_pointer(holder), partial(without_entries, tokens=names))
        return document

    @cached_property
    def _entries(self) -> dict[str, set[str]]:
        """What is cut, as the tokens in each container."""
        entries: dict[str, set[str]] = defaultdict(set)
        for place in self.places:
            if not self.holds(parent_of(place)):  # nor is anything within it cut by itself
                entries[parent_of(place)].add(parse_pointer(place)[-1])
        return dict(entries)

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        """The positions that are cut from each array, in order; objects have none to count."""
        return {holder: sorted(map(int, tokens)) for holder, tokens in self._entries.items() if holder in self.arrays}
