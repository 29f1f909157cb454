"""The file of an SQLite record: opened, brought up to date, and its errors told in our words."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from sightline.errors import Code, Fault

FILE_NAME = "record.sqlite3"
_NAME = re.compile(r"(\d{3})_\w+\.sql")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SETTINGS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16000",
    "PRAGMA secure_delete = FAST",
    "PRAGMA journal_size_limit = 16777216",
)


@dataclass(frozen=True, slots=True)
class SqliteMigration:
    """Step number `version`."""

    version: int
    sql: str


def migrations() -> list[SqliteMigration]:
    """All steps, first to last."""
    folder = files("sightline.store") / "migrations" / "sqlite"
    named = [(name, each) for each in folder.iterdir() if (name := _NAME.fullmatch(each.name))]
    return sorted(
        (SqliteMigration(int(name[1]), each.read_text("utf-8")) for name, each in named), key=lambda step: step.version
    )


def open_database(folder: Path) -> sqlite3.Connection:
    """The record of a data folder, made if there is none, in the form that this version knows."""
    path = folder / FILE_NAME
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite would make it readable for others, and gives its companions the same rights.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        hint = "Name another folder with --data."
        raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None
    try:
        connection = connect_database(path)
    except sqlite3.Error as error:
        raise _opening_fault(path, error) from None
    try:
        _migrate(connection, migrations())
    except sqlite3.Error as error:
        connection.close()
        raise _opening_fault(path, error) from None
    except Fault:
        connection.close()
        raise
    return connection


def connect_database(path: Path) -> sqlite3.Connection:
    """A connection to a record, for whichever thread has it at the moment."""
    connection = sqlite3.connect(
        path, timeout=10.0, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        # Before anything is in the file; later it says nothing.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        for setting in _SETTINGS:
            connection.execute(setting)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def changing(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is done inside, or nothing. What the database refuses is a Fault."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except (sqlite3.DataError, sqlite3.IntegrityError):
        raise  # it is about what was written, and would be the same at any other time
    except sqlite3.Error as error:
        raise database_fault(error) from None


@contextmanager
def asking() -> Iterator[None]:
    """What the database refuses to tell is a Fault."""
    try:
        yield
    except sqlite3.Error as error:
        raise database_fault(error) from None


def database_fault(error: sqlite3.Error) -> Fault:
    """An error of the database as one of ours."""
    if _is_damage(error):
        hint = "Start Sightline again: what is damaged is moved aside, and kept."
        return Fault(Code.CONFIG, f"the record is damaged: {error}", hint=hint)
    hint = "Check the space and the rights of the data folder; what is recorded meanwhile is kept in its journal."
    return Fault(Code.CONFIG, f"the record cannot be used: {error}", hint=hint)


def _is_damage(error: sqlite3.Error) -> bool:
    # The upper bytes of a code say more closely where.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


def _opening_fault(path: Path, error: sqlite3.Error) -> Fault:
    if not _is_damage(error):
        return database_fault(error)
    aside = _move_aside(path)
    hint = "Start Sightline again for a new record. What can be saved of the old one is in that file."
    return Fault(Code.CONFIG, f"{path} is damaged ({error}) and was moved to {aside.name}", hint=hint)


def _move_aside(path: Path) -> Path:
    """Where the file stands now, with its companions, which hold its latest pages."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for ending in ("", "-wal", "-shm"):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.rename(aside.with_name(aside.name + ending))
    return aside


def _migrate(connection: sqlite3.Connection, steps: list[SqliteMigration]) -> None:
    """Take the steps that are missing, all or none."""
    latest = steps[-1].version
    if _version(connection) == latest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        at = _version(connection)
        if at > latest:
            message = f"the record was made by a newer Sightline (its version is {at}, and {latest} is known)"
            raise Fault(Code.CONFIG, message, hint="Use that Sightline, or another folder with --data.")
        for step in steps:
            if step.version > at:
                for statement in _statements(step.sql):
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {latest}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _statements(sql: str) -> Iterator[str]:
    """One by one, because a script would end the transaction that it is in."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
