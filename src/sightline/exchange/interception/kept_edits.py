"""The masks that the edits of one hold have made, step by step: undo takes a mask away, and redo brings it back."""

from collections.abc import Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

import msgspec

from sightline.editing.draft import Draft
from sightline.editing.mask_making import is_same
from sightline.editing.masks import Mask


class KeptMask(msgspec.Struct, frozen=True):
    """A mask, and the section that it was made on."""

    mask: Mask
    section: str


Kept = Mapping[str, KeptMask]
"""By the ids of the masks."""


class KeptEdits:
    """`start` is the draft with which the hold began, after the masks of earlier requests; `applied` are these masks.

    A step of the history is known by its draft: undo and redo come back to the very same one.
    """

    def __init__(self, start: Draft, applied: tuple[Mask, ...] = ()) -> None:
        self.start = start
        self.applied = applied
        self._at: WeakKeyDictionary[Draft, Kept] = WeakKeyDictionary()
        self._before: dict[str, Mask | None] = {}

    def at(self, draft: Draft) -> Kept:
        """What was kept at this draft."""
        return self._at.get(draft, {})

    def beneath(self, draft: Draft) -> tuple[Mask, ...]:
        """The masks that this draft shows: those of earlier requests, and those of the steps up to it."""
        own = self.at(draft)
        return (*(mask for mask in self.applied if mask.id not in own), *(each.mask for each in own.values()))

    def note(self, draft: Draft, kept: Kept) -> None:
        """Remember what is kept at this draft."""
        self._at[draft] = kept

    def standing(self, kept: Kept, draft: Draft) -> Kept:
        """Those of these masks whose sections still differ from how they came; what was restored is not kept."""
        came = {section.id: section for section in self.start.sections}
        now = {section.id: section for section in draft.sections}
        return {
            name: each
            for name, each in kept.items()
            if each.section in now and each.section in came and not is_same(came[each.section], now[each.section])
        }

    def masks_after(self, masks: Sequence[Mask], old: Kept, new: Kept) -> tuple[Mask, ...]:
        """The masks that are active after a step from `old` to `new`. A mask that one of ours had replaced comes back
        when ours goes; a mask that a user has deleted meanwhile stays deleted."""
        active = {mask.id: mask for mask in masks}
        for name, each in old.items():
            if name not in new and active.get(name) == each.mask:
                before = self._before.get(name)
                if before is None:
                    del active[name]
                else:
                    active[name] = before
        for name, each in new.items():
            if name not in old or old[name] != each:
                if name not in self._before:
                    self._before[name] = active.get(name)
                active.pop(name, None)  # of equal masks the last one counts
                active[name] = each.mask
        return tuple(active.values())


def masks_by_id(made: Iterable[tuple[str, Mask]], now: float) -> Kept:
    """Masks that were made now, by their ids; each comes with its section."""
    dated = ((section, msgspec.structs.replace(mask, created=now)) for section, mask in made)
    return {mask.id: KeptMask(mask, section) for section, mask in dated}
