"""What one run learns for the next: how far estimates were off, and what of a provider's limits is used.

It is one small file in the data folder, and nothing is lost with it but time. Several runs may end at once: each adds
what it saw to what the file holds by then, under a lock, and puts the new file in the old one's place in one step.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from sightline.budget.calibration import Calibration, Ratio
from sightline.budget.estimate import Estimate
from sightline.budget.ledger import Ledger, LedgerState
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
        self._seen: list[tuple[str, Estimate, int, bool]] = []
        self.trouble = ""
        self.calibration, self.ledger = self._read()

    def ratio(self, provider: str, model: str, *, tools: bool) -> Ratio | None:
        """How this model's counts relate to our estimates, as far as is known."""
        return self.calibration.ratio(Calibration.key(provider, model, tools=tools))

    def learn(self, provider: str, model: str, raw: Estimate, usage: Usage, *, tools: bool) -> None:
        """The provider has counted what was estimated."""
        if usage.input_tokens is not None:
            seen = (Calibration.key(provider, model, tools=tools), raw, usage.input_tokens, bool(usage.cached_tokens))
            self._seen.append(seen)
            _observe(self.calibration, seen)

    def save(self) -> None:
        """Add what this run saw to the file; a folder that cannot be written is a trouble and no failure."""
        ledger = self.ledger.snapshot()
        try:
            writable(self._folder)
            with _locked(self._folder):
                calibration, others = self._read()
                for seen in self._seen:
                    _observe(calibration, seen)
                learned = _Learned(msgspec.Raw(calibration.to_json()), _merged(others.snapshot(), ledger))
                fresh = self._folder / f"{FILE_NAME}.new"
                fresh.write_bytes(msgspec.json.encode(learned))
                fresh.replace(self._folder / FILE_NAME)
        except OSError as error:
            self.trouble = f"{self._folder}: {error.strerror}"

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
    probe.touch()
    probe.unlink(missing_ok=True)


def _observe(calibration: Calibration, seen: tuple[str, Estimate, int, bool]) -> None:
    key, raw, reported, cached = seen
    calibration.observe(key, raw, reported, cached=cached)


def _merged(others: Json, own: Json) -> Json:
    """Both ledgers' accounts; of one that both have, the state that was used last."""
    accounts = {
        (state.provider, state.model): state
        for snapshot in (others, own)
        for state in sorted(msgspec.convert(snapshot, LedgerState).accounts, key=lambda state: state.latest)
    }
    kept: Json = msgspec.to_builtins(LedgerState(1, sorted(accounts.values(), key=lambda state: state.latest)))
    return kept


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time, where the system can tell; the lock ends with the process, whatever happens."""
    with (folder / f"{FILE_NAME}.lock").open("ab") as file:
        if os.name == "posix":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
