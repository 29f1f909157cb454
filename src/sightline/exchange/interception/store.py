"""Stores the mode, rules and masks of interception across restarts, in one small file of the data folder."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from sightline.editing.masks import Mask
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.rules import Interception
from sightline.model.json import Json
from sightline.platform.files import replacing
from sightline.wire.jsontext import MISFIT, decode, encode

FILE_NAME = "interception.json"


class MaskCount(msgspec.Struct, frozen=True):
    """How many times a mask was applied and how many times it was not, and the exchange to which it was applied last.
    `misses` counts those since then."""

    applied: int = 0
    missed: int = 0
    last_exchange: str = ""
    misses: int = 0


class _Kept(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    interception: Json
    masks: tuple[Mask, ...] = ()
    counts: dict[str, MaskCount] = {}


class KeptInterception:
    """The file of one data folder. With `is_borrowed`, it is read by a command that sends without a server: its rules
    and masks apply, but nothing is written, because the server owns the file and its counts."""

    def __init__(self, folder: Path, *, is_borrowed: bool = False) -> None:
        self._path = folder / FILE_NAME
        self._is_borrowed = is_borrowed

    def read(self) -> tuple[Interception, tuple[Mask, ...]]:
        """What was written last. Raises a fault if the file cannot be read: nothing may pass because a rule was
        lost."""
        interception, masks, _ = self.read_all()
        return interception, masks

    def read_all(self) -> tuple[Interception, tuple[Mask, ...], dict[str, MaskCount]]:
        """The same, with the counts of each mask by its id."""
        try:
            kept = msgspec.convert(decode(self._path.read_bytes()), _Kept)
            return Interception.of(kept.interception), kept.masks, {} if self._is_borrowed else kept.counts
        except (FileNotFoundError, NotADirectoryError):
            return Interception(), (), {}
        except (OSError, *MISFIT, Fault) as error:
            hint = "Correct the file, or take it away to begin without rules and masks."
            raise Fault(Code.CONFIG, f"{self._path} cannot be read: {error}", hint=hint) from None

    def write(
        self, interception: Interception, masks: tuple[Mask, ...], counts: Mapping[str, MaskCount] | None = None
    ) -> None:
        """Write the file atomically, readable only by its owner. Raises a fault if that fails."""
        if self._is_borrowed:
            return
        data = encode(msgspec.to_builtins(_Kept(interception.plain(), masks, dict(counts or {}))))
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(self._path, is_forced=True) as file:
                file.write(data)
        except OSError as error:
            hint = "Check the folder's permissions and the space on the disk; until then it is as it was."
            raise Fault(Code.CONFIG, f"{self._path}: {error.strerror}", hint=hint) from None
