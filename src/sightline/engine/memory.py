"""What one run learns for the next: how far estimates were off, and what of a provider's limits is used.

It is one small file in the data folder, and nothing is lost with it but time. Several runs may end at once: each adds
what it saw to what the file holds by then, under a lock, and puts the new file in the old one's place in one step.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from sightline.budget.calibration import Calibration, Ratio
from sightline.budget.estimate import Estimate
from sightline.budget.ledger import Ledger
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.model.usage import Usage

FILE_NAME = "learned.json"


class _Learned(msgspec.Struct, forbid_unknown_fields=True):
    calibration: msgspec.Raw
    ledger: Json


class Memory:
    """The learned state of a data folder. `trouble` says why something could not be read or kept."""

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self._folder = folder
        self._now = now
        self._fresh = Calibration()
        self.trouble = ""
        self.calibration, self.ledger = self._read()

    def ratio(self, provider: str, model: str, *, tools: bool) -> Ratio | None:
        """How this model's counts relate to our estimates, as far as is known."""
        return self.calibration.ratio(Calibration.key(provider, model, tools=tools))

    def learn(self, provider: str, model: str, raw: Estimate, usage: Usage, *, tools: bool) -> None:
        """The provider has counted what was estimated."""
        if usage.input_tokens is not None:
            key = Calibration.key(provider, model, tools=tools)
            for calibration in (self.calibration, self._fresh):
                calibration.observe(key, raw, usage.input_tokens, cached=bool(usage.cached_tokens))

    def save(self) -> None:
        """Add what this run saw since it last saved; a folder that cannot be written is a trouble and no failure."""
        if not self._fresh.has_seen and not self.ledger.has_news:
            return
        try:
            writable(self._folder)
            with _locked(self._folder):
                calibration, ledger = self._read()
                calibration.merge(self._fresh)
                ledger.merge(self.ledger, self._now())
                learned = _Learned(msgspec.Raw(calibration.to_json()), ledger.snapshot())
                fresh = self._folder / f"{FILE_NAME}.new"
                with _private(fresh, "wb") as file:
                    file.write(msgspec.json.encode(learned))
                fresh.replace(self._folder / FILE_NAME)
        except OSError as error:
            self.trouble = f"{self._folder}: {error.strerror}"
        else:
            self._fresh = Calibration()
            self.ledger.kept()

    def _read(self) -> tuple[Calibration, Ledger]:
        """What the file holds; one that cannot be read is begun anew."""
        path = self._folder / FILE_NAME
        try:
            learned = msgspec.json.decode(path.read_bytes(), type=_Learned)
            return Calibration.from_json(bytes(learned.calibration)), Ledger.restored(learned.ledger, self._now())
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError, Fault) as error:
            self.trouble = f"{path} cannot be read and is begun anew: {error}"
        return Calibration(), Ledger()


def writable(folder: Path) -> None:
    """Make sure that the folder is there, the owner's alone, and can be written."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    probe = folder / ".writable"
    probe.touch(mode=0o600)
    probe.unlink(missing_ok=True)


def _private(path: Path, mode: str) -> IO[bytes]:
    """A file that is the owner's alone from its first moment, or from now on."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path.open(mode)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time, where the system can tell; the lock ends with the process, whatever happens."""
    with _private(folder / f"{FILE_NAME}.lock", "ab") as file:
        if os.name == "posix":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
