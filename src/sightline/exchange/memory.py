"""What one run learns for the next: how far estimates were off, and how much of a provider's limits is used.

All of it is one small file in the data folder, which can be deleted at no other cost than time. Several runs may end at
once: each adds what it observed to the current contents of the file, under a lock, and replaces the file atomically.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.model.reply import Usage
from sightline.platform.files import hold_lock, replacing
from sightline.tokens.calibration import Calibration, CountedPrefixes, Lesson, Ratio
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Ledger
from sightline.tokens.text_count import TextKind

FILE_NAME = "learned.json"
_LOCK = "learned.json.lock"
"""One process writes at a time."""
SAVE_S = 2.0
_KINDS: tuple[TextKind, ...] = get_args(TextKind)


class _Learned(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """`counted` are prompts that were counted; `forgotten` maps each model that a user had forgotten to the time of
    that."""

    calibration: msgspec.Raw
    ledger: Json
    counted: dict[str, int] = {}
    forgotten: dict[str, float] = {}


class Memory:
    """The learned state of a data folder. `trouble` says why something could not be read or saved."""

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self._folder = folder
        self._path = str(folder / FILE_NAME)
        self._now = now
        self._fresh = Calibration()
        self._counted = CountedPrefixes()
        self._forgotten: dict[str, float] = {}
        self._file = 0
        self.revision = 0
        """Incremented whenever an estimate may change."""
        self.trouble = ""
        self.calibration, self.ledger = self._read()

    def ratio(self, provider: str, model: str, *, tools: bool, media: bool = False) -> Ratio | None:
        """How this model's token counts relate to our estimates; None if unknown. Until something is learned about
        requests with pictures or files, the ratio of those without is used."""
        self._catch_up()
        found = self.calibration.ratio(Calibration.key(provider, model, tools=tools, media=media))
        if found is None and media:
            return self.calibration.ratio(Calibration.key(provider, model, tools=tools))
        return found

    def learn(
        self,
        provider: str,
        model: str,
        raw: Estimate,
        usage: Usage,
        *,
        tools: bool,
        media: bool = False,
        window: int | None = None,
    ) -> None:
        """Learn from a provider's count of an estimated prompt. `window` is the size of the model's context."""
        if usage.input_tokens is not None:
            key = Calibration.key(provider, model, tools=tools, media=media)
            self.revision += 1
            for calibration in (self.calibration, self._fresh):
                calibration.observe(key, raw, usage.input_tokens, cached=bool(usage.cached_tokens), window=window)

    def ratios(
        self, provider: str, model: str, *, tools: bool, media: bool = False
    ) -> tuple[Ratio | None, dict[TextKind, Ratio]]:
        """The ratio of `ratio`, and one for each kind of text by which conversations grew."""
        ratio, growth = self.ratio(provider, model, tools=tools, media=media), dict[TextKind, Ratio]()
        for kind in _KINDS:
            learned = self.calibration.ratio(Calibration.growth_key(provider, model, kind))
            if learned is not None:
                growth[kind] = learned
        return ratio, growth

    def learn_growth(self, provider: str, model: str, kind: TextKind, raw: Estimate, tokens: int) -> None:
        """Learn from a provider's count of how many tokens a conversation grew by."""
        key = Calibration.growth_key(provider, model, kind)
        self.revision += 1
        for calibration in (self.calibration, self._fresh):
            calibration.observe(key, raw, tokens)

    def note_count(self, chain: list[str], tokens: int) -> None:
        """Note a provider's count of the request with this chain of digests."""
        self.revision += 1
        self._counted.note(chain, tokens)

    @property
    def has_counted(self) -> bool:
        """Whether any counted prompt is known, as of the last look at the file."""
        return self._counted.has_any

    def longest_counted(self, chain: list[str]) -> tuple[int, int] | None:
        """How many of the first messages of the request with this chain were counted, and their tokens; None if none
        were."""
        self._catch_up()
        return self._counted.longest(chain)

    def lessons(self) -> list[Lesson]:
        self._catch_up()
        return self.calibration.lessons()

    def forget(self, model: str = "") -> list[str]:
        """Forget what was learned about a model, or about all models, here and in the folder. Other programs that use
        the folder do the same the next time they look. Returns the keys of what was forgotten. Raises a fault if the
        folder cannot be written."""
        self.revision += 1
        gone = dict.fromkeys((*self.calibration.forget(model), *self._fresh.forget(model)))
        self._counted.clear()
        try:
            with self._rewriting() as (calibration, _):
                gone |= dict.fromkeys(calibration.forget(model))
                self._counted.clear()
                self._forgotten[model] = max(self._now(), self._forgotten.get(model, 0.0) + 1e-3)
        except OSError as error:
            hint = "Make the folder writable, or name another one with --data."
            raise Fault(Code.CONFIG, f"{self._folder}: {error.strerror}", hint=hint) from error
        return list(gone)

    def save(self) -> None:
        """Add what this run has learned since the last save. If the folder cannot be written, `trouble` says so and
        nothing is raised."""
        if not self._fresh.has_seen and not self.ledger.has_news:
            return
        try:
            with self._rewriting() as (calibration, ledger):
                calibration.merge(self._fresh)
                ledger.merge(self.ledger, self._now())
        except OSError as error:
            self.trouble = f"{self._folder}: {error.strerror}"
        else:
            self._fresh = Calibration()
            self.ledger.mark_saved()

    @contextmanager
    def _rewriting(self) -> Iterator[tuple[Calibration, Ledger]]:
        """The contents of the file, which is replaced atomically afterwards. Other processes wait meanwhile. Raises
        OSError."""
        writable(self._folder)
        with hold_lock(self._folder / _LOCK):
            calibration, ledger = self._read()
            yield calibration, ledger
            learned = _Learned(
                msgspec.Raw(calibration.to_json()), ledger.snapshot(), self._counted.counts, dict(self._forgotten)
            )
            with replacing(self._folder / FILE_NAME) as file:
                file.write(msgspec.json.encode(learned))
            self._file = _stamp(self._path)

    def _catch_up(self) -> None:
        """Read the file again if another program has changed it. The check takes microseconds."""
        stamp = _stamp(self._path)
        if stamp and stamp != self._file:
            self.calibration, _ = self._read()
            self.calibration.merge(self._fresh)

    def _read(self) -> tuple[Calibration, Ledger]:
        """The contents of the file, empty if it is missing or cannot be read."""
        self.revision += 1
        path = self._folder / FILE_NAME
        try:
            self._file = _stamp(self._path)
            learned = msgspec.json.decode(path.read_bytes(), type=_Learned)
            for model, at in learned.forgotten.items():
                if at > self._forgotten.get(model, 0.0):
                    self._fresh.forget(model)
                    self._counted.clear()
            self._forgotten |= learned.forgotten
            counted = CountedPrefixes(learned.counted)
            counted.merge(self._counted)
            self._counted = counted
            return Calibration.from_json(bytes(learned.calibration)), Ledger.from_snapshot(learned.ledger, self._now())
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError, Fault) as error:
            self.trouble = f"{path} cannot be read and is begun anew: {error}"
        return Calibration(), Ledger()


async def save_regularly(memory: Memory) -> None:
    """Keep the file of a long-running program up to date, so that commands beside it see, and can forget, what it has
    learned, and a crash loses only the last two seconds."""
    while True:
        await asyncio.sleep(SAVE_S)
        memory.save()


def _stamp(path: str) -> int:
    """When the file was last replaced; 0 if it does not exist."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - a path object costs more than the call
    except OSError:
        return 0


def writable(folder: Path) -> None:
    """Make sure that the folder exists, is private to its owner, and can be written. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    probe = folder / ".writable"
    probe.touch(mode=0o600)
    probe.unlink(missing_ok=True)
