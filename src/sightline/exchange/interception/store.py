"""What is intercepted, kept over restarts: mode, rules and masks, in one small file of the data folder."""

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
    """How often a mask was applied and how often it was not, and to which exchange it was applied last. `misses` are
    those since then."""

    applied: int = 0
    missed: int = 0
    last_exchange: str = ""
    misses: int = 0


class _Kept(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    interception: Json
    masks: tuple[Mask, ...] = ()
    counts: dict[str, MaskCount] = {}


class KeptInterception:
    """The file of one data folder. One that `is_borrowed` is read by a command that sends without a server: its rules
    and masks apply, but the file is the server's, which also counts, so that nothing is written."""

    def __init__(self, folder: Path, *, is_borrowed: bool = False) -> None:
        self._path = folder / FILE_NAME
        self._is_borrowed = is_borrowed

    def read(self) -> tuple[Interception, tuple[Mask, ...]]:
        """What was kept last. A file that cannot be read is a fault: nothing may pass by a rule that is only lost."""
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
        """Keep this, whole or not at all, for its owner alone."""
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
