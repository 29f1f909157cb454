"""Connections to a PostgreSQL server: its URL, errors as faults, locks and migrations.

A URL contains a password. Messages show only its harmless parts, and a URL that cannot be parsed with certainty is not
shown at all. Writers share a lock; pruning takes it exclusively. All missing migrations run in one transaction under a
lock of their own: of several replicas that start at once, one does the work.
"""

import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg  # type: ignore[import-untyped]

from sightline.errors import Code, Fault
from sightline.store.search import FoundRow
from sightline.store.store import Migration

OLDEST = 130_000
"""The oldest supported server version, in PostgreSQL's own numbering: 13."""

SCHEMES = ("postgresql", "postgres")
TROUBLE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
"""The exceptions of the server, the network and the driver."""
UNFIT = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.ProgramLimitExceededError)
"""The exceptions that are caused by the values of a statement, and would occur again with the same values."""
CROSSED: type[Exception] = asyncpg.DeadlockDetectedError
"""The exception for a deadlock."""

_EXAMPLE = "postgresql://user:password@host:5432/database?sslmode=verify-full"
_ESCAPES = "In user and password, write @ as %40, / as %2F, ? as %3F, # as %23 and : as %3A."
_TIMEOUTS = {"timeout": 10.0, "command_timeout": 120.0}
_MOST_READERS = 8


class PostgresConnection(Protocol):
    """The part of the driver's connection that is used."""

    async def execute(
        self,
        query: str,
        *arguments: object,
        timeout: float | None = None,  # noqa: ASYNC109 # the driver's name for it
    ) -> str:
        """Run a statement, for at most `timeout` seconds; returns the server's status tag."""

    async def executemany(self, command: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each row; all succeed or none."""

    async def fetch(self, query: str, *arguments: object) -> list[FoundRow]:
        """All rows."""

    async def fetchrow(self, query: str, *arguments: object) -> FoundRow | None:
        """The first row; None if there is none."""

    async def fetchval(self, query: str, *arguments: object) -> Any:
        """The first value of the first row; None if there is no row."""

    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False
    ) -> AbstractAsyncContextManager[object]:
        """A transaction: everything inside it happens, or nothing."""

    def is_closed(self) -> bool:
        """Whether the connection has ended."""

    async def close(self) -> None:
        """Close the connection gracefully."""

    def terminate(self) -> None:
        """Close the connection at once."""


class PostgresPool(Protocol):
    """A pool of connections. One that has died is replaced."""

    def acquire(self) -> AbstractAsyncContextManager[PostgresConnection]:
        """Borrow a connection."""

    async def close(self) -> None:
        """Wait for the connections in use, and close all."""


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The address of a database. `place` may be shown to people, `url` is only for the driver."""

    url: str = field(repr=False)
    place: str


def address_of(url: str) -> PostgresAddress:
    """Parse the URL of a database. Raises a Fault that does not quote it if it is not valid."""
    try:
        parts = urlsplit(url)
        login, _, hosts = parts.netloc.rpartition("@")
        # If the port is not a number, it may be half of a password that should have been escaped.
        ports = [urlsplit(f"//{host}").port for host in hosts.split(",")]
    except ValueError:
        raise _unreadable() from None
    if parts.scheme not in SCHEMES:
        raise Fault(Code.CONFIG, "the store's URL does not begin with postgresql://", hint=f"It looks like {_EXAMPLE}.")
    if any("@" in part for part in (login, parts.path, parts.query)) or parts.fragment or 0 in ports:
        raise _unreadable()
    where = hosts or ",".join(parse_qs(parts.query).get("host", [])) or "this machine"
    return PostgresAddress(url, where + unquote(parts.path))


def _unreadable() -> Fault:
    return Fault(Code.CONFIG, "the store's URL cannot be read", hint=f"It looks like {_EXAMPLE}. {_ESCAPES}")


async def connect(address: PostgresAddress, *, oldest: int = OLDEST) -> PostgresConnection:
    """Connect to the server. Raises a Fault if it cannot be reached, is too old, or does not use UTF-8."""
    try:
        connection: PostgresConnection = await asyncpg.connect(address.url, **_TIMEOUTS)
    except (*TROUBLE, ValueError) as error:
        raise failure(error, address) from None
    try:
        await _check(connection, address, oldest)
    except TROUBLE as error:
        connection.terminate()
        raise failure(error, address) from None
    except Fault:
        await connection.close()
        raise
    return connection


async def _check(connection: PostgresConnection, address: PostgresAddress, oldest: int) -> None:
    number = int(await connection.fetchval("SHOW server_version_num"))
    if number < oldest:
        version, needed = number // 10_000, oldest // 10_000
        message = f"PostgreSQL at {address.place} is version {version}; {needed} is the oldest that will do"
        raise Fault(Code.CONFIG, message, hint="Upgrade the server, or leave --store out to use SQLite.")
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        message = f"the database at {address.place} keeps text as {encoding}, which cannot hold every language"
        raise Fault(Code.CONFIG, message, hint="Create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.")


async def pool(address: PostgresAddress) -> PostgresPool:
    """A pool of connections for reading, which are opened as needed."""
    try:
        made: PostgresPool = await asyncpg.create_pool(address.url, min_size=0, max_size=_MOST_READERS, **_TIMEOUTS)
    except (*TROUBLE, ValueError) as error:
        raise failure(error, address) from None
    return made


def failure(error: Exception, address: PostgresAddress) -> Fault:
    """The fault for an error, as a message for people; it never shows more of the URL than its place."""
    where = f"PostgreSQL at {address.place}"
    match error:
        case asyncpg.InvalidAuthorizationSpecificationError():
            hint = f"Check user and password in the store's URL. {_ESCAPES}"
            return Fault(Code.AUTH, f"{where} refused the login: {_first_line(error)}", hint=hint)
        case asyncpg.InvalidCatalogNameError():
            hint = "Create it (CREATE DATABASE …), or check the name at the end of the store's URL."
            return Fault(Code.CONFIG, f"{where}: {_first_line(error)}", hint=hint)
        case asyncpg.InsufficientPrivilegeError():
            hint = "Make the schema for this user (CREATE SCHEMA sightline AUTHORIZATION …), or GRANT CREATE to it."
            return Fault(Code.PERMISSION, f"{where}: {_first_line(error)}", hint=hint)
        case asyncpg.ClientConfigurationError() | asyncpg.UndefinedObjectError():
            return Fault(
                Code.CONFIG,
                f"the store's URL: {_first_line(error)}",
                hint="Check the part after its question mark.",
            )
        case asyncpg.DiskFullError():
            hint = "Make room on the server's disk. What is recorded meanwhile waits in the journal of the data folder."
            return Fault(Code.NETWORK, f"{where}: {_first_line(error)}", hint=hint)
        case asyncpg.PostgresError() | asyncpg.InterfaceError():
            return Fault(Code.NETWORK, f"{where}: {_first_line(error)}", hint="See the server's own log.")
        case OSError():
            return _unreachable_fault(error, where)
        case _:
            # The driver's messages about a URL that it cannot parse quote parts of it.
            return _unreadable()


def _unreachable_fault(error: OSError, where: str) -> Fault:
    match error:
        case socket.gaierror():
            hint = "Check the host in the store's URL, and that this machine can look names up."
            return Fault(Code.NETWORK, f"{where}: there is no such host", hint=hint)
        case ssl.SSLCertVerificationError():
            hint = "Name the authority's certificate: sslrootcert=FILE behind the question mark of the store's URL."
            return Fault(Code.NETWORK, f"{where}: its certificate is not trusted: {error.verify_message}", hint=hint)
        case ssl.SSLError():
            return Fault(
                Code.NETWORK, f"{where}: no TLS with it: {error.reason}", hint="Check sslmode in the store's URL."
            )
        case TimeoutError():
            return Fault(
                Code.NETWORK, f"{where} does not answer", hint="Check host and port, and firewalls in between."
            )
        case FileNotFoundError():
            hint = "Check sslrootcert, sslcert and sslkey, or the folder of the socket, in the store's URL."
            return Fault(Code.CONFIG, f"{where}: a file that it takes is not there", hint=hint)
        case ConnectionError() if "SSL" in str(error):
            hint = "Turn TLS on in the server, or say sslmode=disable on a network that you trust."
            return Fault(Code.NETWORK, f"{where} offers no TLS", hint=hint)
        case _:
            reason = error.strerror or type(error).__name__
            return Fault(Code.NETWORK, f"{where}: {reason}", hint="Check that it is running and listens there.")


def _first_line(error: asyncpg.PostgresError | asyncpg.InterfaceError) -> str:
    """The first line of an error message."""
    return str(error).partition("\n")[0]


def arrays(*kinds: str) -> str:
    """SQL that turns array parameters into rows of these types. One statement for all rows costs the server a fraction
    of one for each row."""
    return f"unnest({', '.join(f'${number}::{kind}[]' for number, kind in enumerate(kinds, 1))})"


async def send_rows(connection: PostgresConnection, statement: str, rows: Sequence[Sequence[object]]) -> None:
    """Run a statement whose parameters are the columns of these rows."""
    if rows:
        await connection.execute(statement, *map(list, zip(*rows, strict=True)))


# The server identifies advisory locks by number; other programs in the same database are unlikely to use these.
_TABLES = 0x5347_4854_0001
_RECORD = 0x5347_4854_0002


@asynccontextmanager
async def _locking(connection: PostgresConnection, number: int, kind: str = "") -> AsyncIterator[None]:
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock{kind}($1)", number)
        yield


def writing(connection: PostgresConnection) -> AbstractAsyncContextManager[None]:
    """A transaction during which no process prunes."""
    return _locking(connection, _RECORD, "_shared")


def pruning(connection: PostgresConnection) -> AbstractAsyncContextManager[None]:
    """A transaction during which no process writes."""
    return _locking(connection, _RECORD)


def rebuilding(connection: PostgresConnection) -> AbstractAsyncContextManager[None]:
    """A transaction during which no other process changes tables."""
    return _locking(connection, _TABLES)


async def migrate(connection: PostgresConnection, steps: list[Migration]) -> int:
    """Run the missing migrations; returns how many there were."""
    async with rebuilding(connection):
        at = await _version(connection)
        if at > steps[-1].version:
            message = f"the store was made by a newer Sightline (its version is {at}, and {steps[-1].version} is known)"
            raise Fault(Code.CONFIG, message, hint="Use that Sightline, or another database.")
        missing = [step for step in steps if step.version > at]
        for step in missing:
            await connection.execute(step.sql)
        if missing:
            await connection.execute("UPDATE sightline.version SET number = $1", missing[-1].version)
    return len(missing)


async def _version(connection: PostgresConnection) -> int:
    """The latest migration that was run; 0 for a new database, in which a table for this number is created."""
    # Check first: creating something that exists requires a privilege that the user may lack once everything is set up.
    if await connection.fetchval("SELECT to_regclass('sightline.version')") is None:
        if await connection.fetchval("SELECT to_regnamespace('sightline')") is None:
            await connection.execute("CREATE SCHEMA sightline")
        await connection.execute("CREATE TABLE sightline.version (number integer NOT NULL)")
        await connection.execute("INSERT INTO sightline.version VALUES (0)")
    number: int = await connection.fetchval("SELECT number FROM sightline.version")
    return number
