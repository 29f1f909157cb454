"""Memory that the main process shares with one worker, for what the worker must know at once, and what it has counted.

The main process sets a flag while it has to see every request itself. A worker checks the flag before each request, so
that no request bypasses a rule that the main process has confirmed. A worker writes each change of its ledger to a ring
before the request is sent, and the main process reads the ring before it checks a limit: one ledger counts for all
processes.
"""

import mmap
import os
import struct
import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from sightline.tokens.ledger import Ledger, SentRequest

RING: Final = 4 << 20
_NUMBER: Final = struct.Struct("<Q")
_LENGTH: Final = struct.Struct("<I")
_ALL, _WRITTEN, _READ, _START = 0, 64, 128, 4096
"""Offsets: the flag, how many bytes have been written to the ring and read from it so far, and the ring itself. Each
place has one writer, and each that another process reads has its own cache line."""
_END_OF_RING: Final = 0xFFFF_FFFF
_MOST_LATE, _MOST_UNSETTLED = 100_000, 10_000


class Sent(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """A request is about to be sent. It has a number, by which the next two changes name it."""

    number: int
    provider: str
    model: str
    tokens: int


class LedgerSettled(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The request used so many tokens."""

    number: int
    tokens: int


class Unsent(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The request was never sent."""

    number: int


class Refused(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The headers of an answer that may ask for a pause."""

    provider: str
    model: str
    headers: dict[str, str]


class Accepted(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The headers of an answer. Only the last ones of a model are ever decoded."""

    provider: str
    model: str
    headers: msgspec.Raw


Change: TypeAlias = Sent | LedgerSettled | Unsent | Refused | Accepted
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Change] = msgspec.msgpack.Decoder(Change)
_HEADERS = msgspec.msgpack.Decoder(tuple[tuple[bytes, ...], tuple[bytes, ...]])
"""Names and values."""


class WorkerMemory:
    """The shared memory, in either of the two processes. `file` is its descriptor, which a worker inherits."""

    def __init__(self, file: int) -> None:
        self.file = file
        self._map = mmap.mmap(file, _START + RING)
        self._late: deque[bytes] = deque()
        """Changes for which the ring had no room."""

    @classmethod
    def create(cls, folder: Path) -> "WorkerMemory":
        """Create shared memory. It has no file name; `folder` is used on systems where shared memory needs a file."""
        if hasattr(os, "memfd_create"):
            file = os.memfd_create("sightline-worker")
        else:
            with tempfile.TemporaryFile(dir=folder) as made:
                file = os.dup(made.fileno())
        os.ftruncate(file, _START + RING)
        return cls(file)

    def close(self) -> None:
        self._map.close()
        os.close(self.file)

    # --- the flag ---

    @property
    def wants_all(self) -> bool:
        """Whether the main process has to see every request."""
        return self._map[_ALL] != 0

    def set_wants_all(self, *, wants_all: bool) -> None:
        """Set the flag; the worker observes it from its next request on."""
        self._map[_ALL] = int(wants_all)

    # --- the ring ---

    def add(self, change: Change) -> None:
        """Write a change to the ring, for the other process."""
        data = _ENCODER.encode(change)
        if self._late or not self._write(data):
            self.add_late()
            if len(self._late) < _MOST_LATE:
                self._late.append(data)

    def add_late(self) -> None:
        while self._late and self._write(self._late[0]):
            self._late.popleft()

    def _write(self, data: bytes) -> bool:
        written, read = self._number(_WRITTEN), self._number(_READ)
        size = _LENGTH.size + len(data)
        at = written % RING
        skipped = RING - at if at + size > RING else 0  # a change is never split
        if written + skipped + size - read > RING:
            return False
        if skipped:
            if skipped >= _LENGTH.size:
                _LENGTH.pack_into(self._map, _START + at, _END_OF_RING)
            written, at = written + skipped, 0
        start = _START + at
        self._map[start + _LENGTH.size : start + size] = data
        _LENGTH.pack_into(self._map, start, len(data))
        _NUMBER.pack_into(self._map, _WRITTEN, written + size)  # last: this makes the change visible
        return True

    def take(self) -> list[Change]:
        """All changes that were written since the last call."""
        written, read = self._number(_WRITTEN), self._number(_READ)
        if read == written:
            return []
        shared, length_at, decode = self._map, _LENGTH.unpack_from, _DECODER.decode
        changes: list[Change] = []
        while read < written:
            at = read % RING
            length = length_at(shared, _START + at)[0] if at + _LENGTH.size <= RING else _END_OF_RING
            if length == _END_OF_RING:
                read += RING - at
                continue
            start = _START + at + _LENGTH.size
            changes.append(decode(shared[start : start + length]))
            read += _LENGTH.size + length
        _NUMBER.pack_into(shared, _READ, read)
        return changes

    def _number(self, at: int) -> int:
        number: int = _NUMBER.unpack_from(self._map, at)[0]
        return number


class WorkerLedger(Ledger):
    """A worker's ledger. The main process has the real one, and can see every change before it has an effect. Here, the
    `at` of a request is its number instead of a time."""

    def __init__(self, memory: WorkerMemory) -> None:
        super().__init__()
        self._memory = memory
        self._count = 0

    def add_request(self, provider: str, model: str, tokens: int, _at: float) -> SentRequest:
        """Add a request that is about to be sent."""
        self._count += 1
        self._memory.add(Sent(self._count, provider, model, tokens))
        return SentRequest(provider, model, tokens, self._count)

    def settle(self, sent: SentRequest, tokens: int, _at: float) -> SentRequest:
        """Set how many tokens a request used."""
        self._memory.add(LedgerSettled(int(sent.at), tokens))
        return sent

    def unsent(self, sent: SentRequest, _at: float) -> None:
        self._memory.add(Unsent(int(sent.at)))

    def observe_headers(self, provider: str, model: str, headers: Mapping[str, str], _at: float) -> None:
        """Add the headers of an answer that is a refusal."""
        self._memory.add(Refused(provider, model, dict(headers)))

    def keep_headers(self, sent: SentRequest, names: tuple[bytes, ...], values: tuple[bytes, ...], _at: float) -> None:
        self._memory.add(Accepted(sent.provider, sent.model, msgspec.Raw(_ENCODER.encode((names, values)))))


class WorkerCounts:
    """Adds what one worker has counted to the ledger of the main process."""

    def __init__(self, memory: WorkerMemory, ledger: Ledger, now: Callable[[], float]) -> None:
        self._memory = memory
        self._ledger = ledger
        self._now = now
        self._sent: dict[int, SentRequest] = {}

    def count_in(self) -> None:
        """Apply the changes that the worker has made since the last call. They get the current time: the times of
        several processes would not be in order, and to an account that looks like a clock that was set back."""
        changes = self._memory.take()
        if not changes:
            return
        ledger, sent, at = self._ledger, self._sent, self._now()
        latest = {(each.provider, each.model): each for each in changes if isinstance(each, Accepted)}
        for change in changes:
            if isinstance(change, Sent):
                sent[change.number] = ledger.add_request(change.provider, change.model, change.tokens, at)
            elif isinstance(change, LedgerSettled):
                if (known := sent.get(change.number)) is not None:
                    sent[change.number] = ledger.settle(known, change.tokens, at)
            elif isinstance(change, Accepted):
                if latest[change.provider, change.model] is change:
                    answered = SentRequest(change.provider, change.model, 0, at)
                    ledger.keep_headers(answered, *_HEADERS.decode(change.headers), at)
            elif isinstance(change, Refused):
                ledger.observe_headers(change.provider, change.model, change.headers, at)
            elif (known := sent.pop(change.number, None)) is not None:
                ledger.unsent(known, at)
        if len(sent) > 2 * _MOST_UNSETTLED:
            for number in list(sent)[:-_MOST_UNSETTLED]:
                del sent[number]
