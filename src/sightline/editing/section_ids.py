"""The ids of sections and parts: given out once, tied to places of the whole document, carried over every change."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from sightline.editing.places import Shift
from sightline.model.json import Json
from sightline.wire.jsontext import encode

Outline = Sequence[tuple[str, Sequence[str]]]
"""The sections of a document by their keys, each with the keys of its parts.

The key of an item is its place; `tools` and `options` are keys too. A part's key is its type, a colon and its place,
without what it shares with its section's place.
"""


class PartIds(msgspec.Struct, frozen=True):
    """The id of a section, the ids of its parts by their keys, and how many were given out."""

    id: str
    parts: Mapping[str, str] = {}
    count: int = 0


class SectionIds(msgspec.Struct, frozen=True):
    """Every id by its key, and how many sections were given one."""

    sections: Mapping[str, PartIds] = {}
    count: int = 0

    def key_of(self, section: str) -> str | None:
        """The key of the section of this id."""
        return next((key for key, named in self.sections.items() if named.id == section), None)

    def with_count(self, count: int) -> "SectionIds":
        """The same ids; the next one is behind so many."""
        return SectionIds(self.sections, max(count, self.count))

    def complete(self, outline: Outline, *, is_all: bool = True) -> "SectionIds":
        """With an id for everything that has none, and without those of sections that are no more.

        Without `is_all` the outline is a part of the whole one.
        """
        sections: dict[str, PartIds] = {} if is_all else dict(self.sections)
        count = self.count
        for key, parts in outline:
            named = self.sections.get(key)
            if named is None:
                count += 1
                named = PartIds(f"s{count}")
            sections[key] = _complete_parts(named, parts)
        return SectionIds(sections, count)

    def apply_shift(self, shift: Shift) -> "SectionIds":
        """The same ids in a document whose places have moved."""
        sections: dict[str, PartIds] = {}
        for key, named in self.sections.items():
            if not key.startswith("/"):
                sections[key] = _shift_parts(named, "", "", shift)
            elif (place := shift(key)) is not None:
                sections[place] = _shift_parts(named, key, place, shift)
        return SectionIds(sections, self.count)

    def match_content(self, before: Mapping[str, Json], after: Mapping[str, Json]) -> "SectionIds":
        """The ids in another document, by content: an equal item keeps its id, the others theirs in order."""
        waiting: dict[bytes, list[str]] = {}
        for key, value in before.items():
            waiting.setdefault(encode(value), []).append(key)
        pairs: dict[str, str] = {}
        for key, value in after.items():
            same = waiting.get(encode(value))
            if same:
                # An item that stayed where it was is not taken for its twin.
                pairs[key] = same.pop(same.index(key) if key in same else 0)
        taken = set(pairs.values())
        left = iter([key for key in before if key not in taken])
        pairs |= dict(zip([key for key in after if key not in pairs], left, strict=False))
        sections = {key: self.sections[old] for key, old in pairs.items()}
        return SectionIds(sections | {key: each for key, each in self.sections.items() if key[:1] != "/"}, self.count)


def part_key(kind: str, at: str, section: str) -> str:
    """The key of a part of this type at this place of a section."""
    return f"{kind}:{at[len(section) :] if section.startswith('/') else at}"


def _complete_parts(named: PartIds, keys: Iterable[str]) -> PartIds:
    parts, count = named.parts, named.count
    if all(key in parts for key in keys):
        return named
    parts = dict(parts)
    for key in keys:
        if key not in parts:
            count += 1
            parts[key] = f"{named.id}.p{count}"
    return PartIds(named.id, parts, count)


def _shift_parts(named: PartIds, section: str, place: str, shift: Callable[[str], str | None]) -> PartIds:
    parts: dict[str, str] = {}
    for key, part in named.parts.items():
        kind, _, at = key.partition(":")
        moved = shift(section + at)
        if moved is not None:
            parts[f"{kind}:{moved[len(place) :]}"] = part
    return named if parts == named.parts else PartIds(named.id, parts, named.count)
