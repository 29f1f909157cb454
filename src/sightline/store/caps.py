"""What was counted for caps, in a small database of the data folder that all processes of the folder share.

A reservation is one statement that adds to a bucket only where that still fits, so that any number of processes can
reserve at once and never exceed a cap. It lasts beyond the end of a process: what is reserved and never settled stays
counted.
"""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from sightline.errors import Code, Fault
from sightline.tokens.caps import BucketKey, CapUse, Claim

FILE_NAME = "caps.sqlite3"
_PATIENCE = 10.0
_TABLE = """
CREATE TABLE IF NOT EXISTS caps (
    cap TEXT NOT NULL, unit TEXT NOT NULL, bucket TEXT NOT NULL, period TEXT NOT NULL,
    spent INTEGER NOT NULL DEFAULT 0, reserved INTEGER NOT NULL DEFAULT 0, raised INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (cap, unit, bucket, period)
) WITHOUT ROWID
"""
_ALL = "SELECT cap, unit, bucket, period, spent, reserved, raised FROM caps"
_ONE = "cap = ?1 AND unit = ?2 AND bucket = ?3 AND period = ?4"
_BUCKET = f"SELECT spent, reserved, raised FROM caps WHERE {_ONE}"
_FIRST = "INSERT INTO caps (cap, unit, bucket, period) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING"
_RESERVE = f"""
UPDATE caps SET reserved = reserved + ?5
WHERE {_ONE} AND spent + reserved + ?5 <= max(?6, raised)
RETURNING spent, reserved, raised
"""
_SETTLE = f"""
UPDATE caps SET reserved = max(0, reserved - ?5), spent = spent + ?6 WHERE {_ONE} RETURNING spent, reserved, raised
"""
_RAISE = f"UPDATE caps SET raised = ?5 WHERE {_ONE} RETURNING spent, reserved, raised"


class CapFullError(Exception):
    """A claim does not fit; `use` is what is in its bucket."""

    def __init__(self, claim: Claim, use: CapUse) -> None:
        super().__init__()
        self.claim, self.use = claim, use


class CapCounts(Protocol):
    """The counts of all caps. Each call raises a Fault where they cannot be read or written."""

    async def reserve(self, claims: Sequence[Claim]) -> list[CapUse]:
        """Reserve all claims, or none: then a `CapFullError` is raised for the first that does not fit. Returns what is
        in their buckets now."""
        ...

    async def settle(self, key: BucketKey, reserved: int, spent: int) -> CapUse:
        """What was reserved took so much."""
        ...

    async def raise_limit(self, key: BucketKey, limit: int) -> CapUse:
        """Allow so much in this bucket, for as long as its window lasts."""
        ...

    async def uses(self) -> list[CapUse]:
        """All buckets."""
        ...

    async def close(self) -> None:
        """End what was opened."""
        ...


class FolderCounts:
    """See `CapCounts`. Each statement takes tens of microseconds, so that it need not leave the event loop."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._connection: sqlite3.Connection | None = None

    async def reserve(self, claims: Sequence[Claim]) -> list[CapUse]:
        """Reserve all claims, or none."""
        try:
            database = self._open()
            database.execute("BEGIN IMMEDIATE")
            try:
                uses = [self._reserve(database, claim) for claim in claims]
            except BaseException as error:
                database.execute("ROLLBACK")
                if isinstance(error, CapFullError):  # a person can look for what is full, and raise it
                    database.execute(_FIRST, _place(error.claim.key))
                raise
            database.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._fault(error) from None
        return uses

    @staticmethod
    def _reserve(database: sqlite3.Connection, claim: Claim) -> CapUse:
        place = _place(claim.key)
        database.execute(_FIRST, place)
        row = database.execute(_RESERVE, (*place, claim.amount, claim.limit)).fetchone()
        if row is None:
            raise CapFullError(claim, CapUse(claim.key, *database.execute(_BUCKET, place).fetchone()))
        return CapUse(claim.key, *row)

    async def settle(self, key: BucketKey, reserved: int, spent: int) -> CapUse:
        """What was reserved took so much."""
        return self._change(_SETTLE, key, reserved, spent)

    async def raise_limit(self, key: BucketKey, limit: int) -> CapUse:
        """Allow so much in this bucket."""
        return self._change(_RAISE, key, limit)

    def _change(self, statement: str, key: BucketKey, *values: int) -> CapUse:
        try:
            database = self._open()
            database.execute(_FIRST, _place(key))
            return CapUse(key, *database.execute(statement, (*_place(key), *values)).fetchone())
        except sqlite3.Error as error:
            raise self._fault(error) from None

    async def uses(self) -> list[CapUse]:
        """All buckets."""
        try:
            return [CapUse(BucketKey(*row[:4]), *row[4:]) for row in self._open().execute(_ALL)]
        except sqlite3.Error as error:
            raise self._fault(error) from None

    async def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite would let others read it
            except OSError as error:
                raise self._fault(error) from None
            connection = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)
            # What a process has written survives its end; to survive that of the machine, each request would wait for
            # the disk.
            for setting in ("journal_mode = WAL", "synchronous = OFF", "journal_size_limit = 1048576"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute(_TABLE)
            self._connection = connection
        return self._connection

    def _fault(self, error: sqlite3.Error | OSError) -> Fault:
        why = error.strerror if isinstance(error, OSError) else str(error)
        hint = "Make the file writable, or remove it to count all caps from nothing."
        return Fault(Code.CONFIG, f"caps cannot be counted: {self._path}: {why}", hint=hint)


def _place(key: BucketKey) -> tuple[str, str, str, str]:
    return key.cap, key.unit, key.bucket, key.period
