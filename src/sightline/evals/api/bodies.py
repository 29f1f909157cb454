"""What the calls about suites take: one struct for each body."""

from typing import Annotated, TypeAlias

import msgspec

from sightline.model.json import Json

_MOST = 10_000

Names: TypeAlias = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=_MOST)]


class RerunWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run these again, on one target or on all; without names everything that did not pass."""

    cases: Names | None = None
    target: str = ""


class MakeWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Make a case of these exchanges. From this turn on the conversation is held live."""

    exchanges: Names
    from_turn: Annotated[int, msgspec.Meta(ge=1)] | None = None
    name: str = ""


class SaveWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Append the cases of this text to a suite below the configured folder. `exchanges` and what stands with them are
    as they were when it was made: the files that it names are of them."""

    file: str
    yaml: str
    exchanges: Annotated[tuple[str, ...], msgspec.Meta(max_length=_MOST)] = ()
    from_turn: Annotated[int, msgspec.Meta(ge=1)] | None = None
    name: str = ""


class CaseSaveWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Write this value at this path of a case. `sha256` is the file that was looked at; without it, the one that the
    run was begun with. With `dry` it is only told what would change."""

    case: str
    path: tuple[str | int, ...]
    value: Json
    sha256: str = ""
    dry: bool = False


class AdoptWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Write what a person changed in the request of a try into its case."""

    case: str
    target: str
    trial: Annotated[int, msgspec.Meta(ge=0)] = 0
    sha256: str = ""
    dry: bool = False


class CaseUndoWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Take the change back that made the file the one of this hash."""

    case: str
    sha256: str
