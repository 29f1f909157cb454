"""Kept edits: the masks that the edits of one hold have made, step by step (undo removes a mask, and redo restores it),
and the body that is sent after masks. Only `final_body` computes that body; everything that shows, hashes or sends it
calls this function.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import msgspec

from sightline.editing.draft import Draft
from sightline.editing.mask_making import is_same
from sightline.editing.masks import Mask, MaskOutcome, apply_masks, meant_for, project_of
from sightline.errors import Code, Fault


class KeptMask(msgspec.Struct, frozen=True):
    """A mask, and the section on which it was made."""

    mask: Mask
    section: str


Kept = Mapping[str, KeptMask]
"""Kept masks by their ids."""


class KeptEdits:
    """The masks kept at each step of a hold. `start` is the draft with which the hold began, after the masks of earlier
    requests; `applied` are these masks.

    A step of the history is identified by its draft: undo and redo return to the same object.
    """

    def __init__(self, start: Draft, applied: tuple[Mask, ...] = ()) -> None:
        self.start = start
        self.applied = applied
        self._at: WeakKeyDictionary[Draft, Kept] = WeakKeyDictionary()
        self._before: dict[str, Mask | None] = {}

    def at(self, draft: Draft) -> Kept:
        """The masks that were kept at this draft."""
        return self._at.get(draft, {})

    def beneath(self, draft: Draft) -> tuple[Mask, ...]:
        """The masks that are part of this draft: those of earlier requests, and those of the steps up to it."""
        own = self.at(draft)
        return (*(mask for mask in self.applied if mask.id not in own), *(each.mask for each in own.values()))

    def note(self, draft: Draft, kept: Kept) -> None:
        """Store the masks kept at this draft."""
        self._at[draft] = kept

    def standing(self, kept: Kept, draft: Draft) -> Kept:
        """Those of these masks whose sections still differ from the original; a mask of a restored section is not
        kept."""
        came = {section.id: section for section in self.start.sections}
        now = {section.id: section for section in draft.sections}
        return {
            name: each
            for name, each in kept.items()
            if each.section in now and each.section in came and not is_same(came[each.section], now[each.section])
        }

    def masks_after(self, masks: Sequence[Mask], old: Kept, new: Kept) -> tuple[Mask, ...]:
        """The active masks after a step from `old` to `new`. A mask that one of ours had replaced is restored when ours
        is removed; a mask that a user has deleted meanwhile stays deleted."""
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
                active.pop(name, None)  # of equal masks, the last one counts
                active[name] = each.mask
        return tuple(active.values())


def masks_by_id(made: Iterable[tuple[str, Mask]], now: float) -> Kept:
    """Masks made at the time `now`, by their ids; each is given with its section."""
    dated = ((section, msgspec.structs.replace(mask, created=now)) for section, mask in made)
    return {mask.id: KeptMask(mask, section) for section, mask in dated}


@dataclass(frozen=True)
class FinalBody:
    """`data` is what is sent unless a user edits it while it is held. `draft` is set if masks were applied, and
    `outcomes` then contain the outcome of each."""

    data: bytes
    draft: Draft | None = None
    outcomes: tuple[MaskOutcome, ...] = ()
    digest: str = ""
    """The hash of `data`, if it is known already."""

    @cached_property
    def sha256(self) -> str:
        """The hash of `data`, in hex."""
        if self.digest:
            return self.digest
        return hashlib.sha256(self.data).hexdigest() if self.draft is None else self.draft.sha256


def final_body(body: bytes, dialect: str, model: str, masks: Sequence[Mask], *, session: str) -> FinalBody:
    """The body that is sent in place of this one, which is in the provider's dialect: after the masks for its
    session."""
    project = project_of(session)
    if not masks or not meant_for(masks, session=session, project=project):
        return FinalBody(body)
    after, outcomes = apply_masks(Draft.of(body, dialect, model), masks, session=session, project=project)
    return FinalBody(after.data, after, outcomes)


def refuse_other(expected: str, sha256: str) -> None:
    """Raise a fault if the body that would be sent is not the one that was looked at."""
    if expected and expected != sha256:
        raise Fault(
            Code.USAGE,
            "what would be sent is not what was looked at",
            hint="Look at it again.",
            status=409,
            details={"code": "preview_outdated"},
        )
