"""What was done to a case's messages on their way, and why."""

from typing import Literal, TypeAlias

import msgspec

from sightline.evals.core.place import SuitePlace

NoteKind: TypeAlias = Literal["extracted", "inlined", "attached", "moved", "merged", "skipped", "added", "unclear"]
"""`extracted`: a guideline went to the front. `inlined`: a file stands as text. `attached`: it stands as a part.
`unclear`: a reader could take it for something else."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was done, of what, why, and where that stands in the suite."""

    kind: NoteKind
    what: str
    why: str
    place: SuitePlace = SuitePlace()
