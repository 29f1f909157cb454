"""What is soft-deleted: still in the whole document, cut out of the one on screen.

Each deletion remembers what it took, so that restoring brings back exactly that. Between the whole document and the one
on screen pointers differ by the positions of what was cut; this is the one place that translates.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property, partial

import msgspec

from sightline.editing.body import DocumentBytes
from sightline.editing.places import Shift, parent_of, with_change, without_entries
from sightline.model.json import Json
from sightline.wire.pointer import covers, join, parse_pointer, resolve


class Deletions(msgspec.Struct, frozen=True, dict=True):
    """Groups of places of the whole document, each taken by one deletion; `arrays` are those of their holders."""

    groups: tuple[frozenset[str], ...] = ()
    arrays: frozenset[str] = frozenset()

    @classmethod
    def of(cls, groups: Iterable[frozenset[str]], document: Json) -> "Deletions":
        """The deletions in this document."""
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
        places = self.places
        if not places:
            return False
        while pointer:
            if pointer in places:
                return True
            pointer = parent_of(pointer)
        return False

    def within(self, pointer: str) -> frozenset[str]:
        """The places that were taken at or below this one."""
        return frozenset(place for place in self.places if covers(pointer, place))

    def with_group(self, taken: frozenset[str], document: Json) -> "Deletions":
        """One more deletion."""
        return Deletions.of((*self.groups, taken), document)

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

    def apply_to_bytes(self, body: DocumentBytes) -> bytes:
        """The bytes on screen."""
        return body.without(self._entries) if self.groups else body.data

    def apply_to_value(self, document: Json) -> Json:
        """The value on screen."""
        # The deepest first: what is shared of the others does not change under them.
        for holder in sorted(self._entries, key=len, reverse=True):
            names = self._entries[holder]
            document = with_change(document, parse_pointer(holder), partial(without_entries, tokens=names))
        return document

    @cached_property
    def _outer(self) -> frozenset[str]:
        """The places that no other one covers."""
        return frozenset(place for place in self.places if not self.holds(parent_of(place)))

    @cached_property
    def _entries(self) -> dict[str, set[str]]:
        """What is cut, as the tokens in each container."""
        entries: dict[str, set[str]] = defaultdict(set)
        for place in self._outer:
            entries[parent_of(place)].add(parse_pointer(place)[-1])
        return dict(entries)

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        """The positions that are cut from each array, in order; objects have none to count."""
        return {holder: sorted(map(int, tokens)) for holder, tokens in self._entries.items() if holder in self.arrays}
