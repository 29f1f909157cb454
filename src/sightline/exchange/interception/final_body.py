"""The body that is sent, after masks. `final_body` alone makes it; whatever shows, hashes or sends one asks there."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sightline.editing.draft import Draft
from sightline.editing.masks import Mask, MaskOutcome, apply_masks, meant_for, project_of
from sightline.errors import Code, Fault


@dataclass(frozen=True)
class FinalBody:
    """`data` is what is sent unless a person edits it while it is held. `draft` is there where masks were looked for,
    and then `outcomes` say what became of each."""

    data: bytes
    draft: Draft | None = None
    outcomes: tuple[MaskOutcome, ...] = ()
    digest: str = ""
    """The hash of `data`, where it is known already."""

    @cached_property
    def sha256(self) -> str:
        """The hash of `data`, in hex."""
        if self.digest:
            return self.digest
        return hashlib.sha256(self.data).hexdigest() if self.draft is None else self.draft.sha256


def final_body(body: bytes, dialect: str, model: str, masks: Sequence[Mask], *, session: str) -> FinalBody:
    """What is sent in place of this body, which is in the dialect of its provider: the body after those of the masks
    that are for its session."""
    project = project_of(session)
    if not masks or not meant_for(masks, session=session, project=project):
        return FinalBody(body)
    after, outcomes = apply_masks(Draft.of(body, dialect, model), masks, session=session, project=project)
    return FinalBody(after.data, after, outcomes)


def refuse_other(expected: str, sha256: str) -> None:
    """A fault where another body was looked at than the one that would be sent now."""
    if expected and expected != sha256:
        raise Fault(
            Code.USAGE,
            "what would be sent is not what was looked at",
            hint="Look at it again.",
            status=409,
            details={"code": "preview_outdated"},
        )
