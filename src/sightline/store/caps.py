"""The counts for caps, in a small database in the data folder that all its processes share.

A reservation is one statement that adds to a bucket only if the amount still fits, so any number of processes can
reserve at once and never exceed a cap. Reservations are stored under a name for each process, and a lock shows that the
process is alive. If it was killed before settling, the next process that needs the room frees its reservations.
"""

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec.structs import astuple

from sightline.errors import Code, Fault
from sightline.platform.files import lock
from sightline.tokens.caps import BucketKey, CapUse, Claim

FILE_NAME = "caps.sqlite3"
_BUSY_TIMEOUT_S = 10.0
_TABLE = """
CREATE TABLE IF NOT EXISTS caps (
    cap TEXT NOT NULL, unit TEXT NOT NULL, bucket TEXT NOT NULL, period TEXT NOT NULL,
    spent INTEGER NOT NULL DEFAULT 0, reserved INTEGER NOT NULL DEFAULT 0, raised INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (cap, unit, bucket, period)
) WITHOUT ROWID
"""
_RESERVATIONS_TABLE = """
CREATE TABLE IF NOT EXISTS reservations (
    holder TEXT NOT NULL, cap TEXT NOT NULL, unit TEXT NOT NULL, bucket TEXT NOT NULL, period TEXT NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (holder, cap, unit, bucket, period)
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
_ADD_RESERVATION = """
INSERT INTO reservations VALUES (?6, ?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET amount = amount + excluded.amount
"""
_RELEASE_RESERVATION = f"UPDATE reservations SET amount = amount - ?5 WHERE {_ONE} AND holder = ?6 AND amount >= ?5"
_SETTLE = f"""
UPDATE caps SET reserved = max(0, reserved - ?5), spent = spent + ?6 WHERE {_ONE} RETURNING spent, reserved, raised
"""
_HOLDERS = "SELECT DISTINCT holder FROM reservations"
_OF_HOLDER = "SELECT cap, unit, bucket, period, amount FROM reservations WHERE holder = ?"
_FORGET = "DELETE FROM reservations WHERE holder = ?"
_RAISE = f"UPDATE caps SET raised = ?5 WHERE {_ONE} RETURNING spent, reserved, raised"


class CapFullError(Exception):
    """Raised if a claim does not fit; `use` is the current use of its bucket."""

    def __init__(self, claim: Claim, use: CapUse) -> None:
        super().__init__()
        self.claim, self.use = claim, use


class CapCounts(Protocol):
    """The counts of all caps. Every method raises a Fault if they cannot be read or written."""

    async def reserve(self, claims: Sequence[Claim]) -> list[CapUse]:
        """Reserve all claims or none; returns the use of their buckets afterwards. Raises a `CapFullError` for the
        first claim that does not fit."""

    async def settle(self, key: BucketKey, reserved: int, spent: int) -> CapUse:
        """Release a reservation and add what was actually spent."""

    async def raise_limit(self, key: BucketKey, limit: int) -> CapUse:
        """Raise the limit of this bucket to so much until its window ends."""

    async def uses(self) -> list[CapUse]:
        """The use of all buckets."""

    async def close(self) -> None:
        """Close the connections."""


class FolderCounts:
    """See `CapCounts`. A statement takes tens of microseconds, so it runs on the event loop."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._connection: sqlite3.Connection | None = None
        self._holder = secrets.token_hex(8)
        self._lock: int | None = None

    async def reserve(self, claims: Sequence[Claim]) -> list[CapUse]:
        try:
            return self._reserve_all(claims)
        except CapFullError:
            if not self._take_back():
                raise
        return self._reserve_all(claims)

    def _reserve_all(self, claims: Sequence[Claim]) -> list[CapUse]:
        with self._counting() as database:
            if self._lock is None:
                self._lock = self._take_lock(self._holder)
            database.execute("BEGIN IMMEDIATE")
            try:
                uses = [self._reserve(database, claim) for claim in claims]
            except BaseException as error:
                database.execute("ROLLBACK")
                if isinstance(error, CapFullError):  # so that the user can find the full bucket and raise its limit
                    database.execute(_FIRST, astuple(error.claim.key))
                raise
            database.execute("COMMIT")
        return uses

    def _reserve(self, database: sqlite3.Connection, claim: Claim) -> CapUse:
        place = astuple(claim.key)
        database.execute(_FIRST, place)
        row = database.execute(_RESERVE, (*place, claim.amount, claim.limit)).fetchone()
        if row is None:
            raise CapFullError(claim, CapUse(claim.key, *database.execute(_BUCKET, place).fetchone()))
        database.execute(_ADD_RESERVATION, (*place, claim.amount, self._holder))
        return CapUse(claim.key, *row)

    def _take_back(self) -> bool:
        """Free the reservations of processes that ended without settling them; returns whether there were any."""
        found = False
        with self._counting() as database:
            for (holder,) in database.execute(_HOLDERS).fetchall():
                locked = None if holder == self._holder else self._take_lock(holder)
                if locked is None:
                    continue
                try:
                    database.execute("BEGIN IMMEDIATE")
                    for *place, amount in database.execute(_OF_HOLDER, (holder,)).fetchall():
                        database.execute(_SETTLE, (*place, amount, 0)).fetchall()
                        found = found or amount > 0
                    database.execute(_FORGET, (holder,))
                    database.execute("COMMIT")
                except sqlite3.Error:
                    if database.in_transaction:
                        database.execute("ROLLBACK")
                    os.close(locked)  # so that another attempt can take the lock
                    raise
                self._leave(holder, locked)
        return found

    def _take_lock(self, holder: str) -> int | None:
        """Take the lock of a process and return its descriptor, which holds the lock until it is closed; None if
        another process holds it."""
        file = os.open(self._lock_path(holder), os.O_CREAT | os.O_RDWR, 0o600)
        if lock(file):
            return file
        os.close(file)
        return None

    def _leave(self, holder: str, locked: int) -> None:
        with contextlib.suppress(
            FileNotFoundError, PermissionError
        ):  # Windows cannot remove an open file: an empty one stays
            self._lock_path(holder).unlink()
        os.close(locked)

    def _lock_path(self, holder: str) -> Path:
        return self._path.with_name(f"caps-{holder}.lock")

    async def settle(self, key: BucketKey, reserved: int, spent: int) -> CapUse:
        with self._counting() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                # A reservation that another process has freed in the meantime is no longer reserved.
                is_held = database.execute(_RELEASE_RESERVATION, (*astuple(key), reserved, self._holder)).rowcount > 0
                use = _change(database, _SETTLE, key, reserved if is_held else 0, spent)
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
        return use

    async def raise_limit(self, key: BucketKey, limit: int) -> CapUse:
        with self._counting() as database:
            return _change(database, _RAISE, key, limit)

    async def uses(self) -> list[CapUse]:
        self._take_back()
        with self._counting() as database:
            return [CapUse(BucketKey(*row[:4]), *row[4:]) for row in database.execute(_ALL)]

    async def close(self) -> None:
        if self._connection is not None:
            if self._lock is not None:
                self._leave(self._holder, self._lock)
                self._lock = None
            self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def _counting(self) -> Iterator[sqlite3.Connection]:
        """The database connection. Raises a Fault if the database or a lock file cannot be used."""
        try:
            yield self._open()
        except (sqlite3.Error, OSError) as error:
            raise self._fault(error) from None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite would make it readable for others
            connection = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
            # Writes survive the end of the process, but not a crash of the machine: for that, every request would have
            # to wait for the disk.
            for setting in ("journal_mode = WAL", "synchronous = OFF", "journal_size_limit = 1048576"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute(_TABLE)
            connection.execute(_RESERVATIONS_TABLE)
            self._connection = connection
        return self._connection

    def _fault(self, error: sqlite3.Error | OSError) -> Fault:
        why = error.strerror if isinstance(error, OSError) else str(error)
        hint = "Make the file writable, or remove it to count all caps from nothing."
        return Fault(Code.CONFIG, f"caps cannot be counted: {self._path}: {why}", hint=hint)


def _change(database: sqlite3.Connection, statement: str, key: BucketKey, *values: int) -> CapUse:
    database.execute(_FIRST, astuple(key))
    return CapUse(key, *database.execute(statement, (*astuple(key), *values)).fetchone())
