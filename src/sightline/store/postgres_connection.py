"""Connections to a PostgreSQL server: its URL, errors as faults, locks and migrations.

A URL holds a password. What is shown of it is made from its harmless parts, and a URL that cannot be parsed with
certainty is not shown at all. Writers share a lock; pruning and migrations take it alone. All missing migrations are
one transaction under that lock: of several replicas that start at once, one does the work.
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
"""What a server, the way to it, or the driver in between raises."""
UNFIT = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.ProgramLimitExceededError)
"""What is raised because of the values that were sent, and would be at any other time."""
CROSSED: type[Exception] = asyncpg.DeadlockDetectedError
"""What is raised where two wait for each other."""

_EXAMPLE = "postgresql://user:password@host:5432/database?sslmode=verify-full"
_ESCAPES = "In user and password, write @ as %40, / as %2F, ? as %3F, # as %23 and : as %3A."
_PATIENCE = {"timeout": 10.0, "command_timeout": 120.0}
_MOST_READERS = 8


class PostgresConnection(Protocol):
    """What is used of the driver's connection."""

    async def execute(
        self,
        query: str,
        *arguments: object,
        timeout: float | None = None,  # noqa: ASYNC109 # so the driver calls it
    ) -> str:
        """Run it, for so many seconds at most; the answer is the server's tag."""

    async def executemany(self, command: str, rows: Iterable[Sequence[object]]) -> None:
        """Run it for each row, all or none."""

    async def fetch(self, query: str, *arguments: object) -> list[FoundRow]:
        """All rows."""

    async def fetchrow(self, query: str, *arguments: object) -> FoundRow | None:
        """The first row."""

    async def fetchval(self, query: str, *arguments: object) -> Any:
        """The first value of the first row."""

    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False
    ) -> AbstractAsyncContextManager[object]:
        """All or nothing of what is done in it."""

    def is_closed(self) -> bool:
        """Whether it has ended."""

    async def close(self) -> None:
        """End it in order."""

    def terminate(self) -> None:
        """End it at once."""


class PostgresPool(Protocol):
    """Connections for those who ask, some at once. One that has died is replaced."""

    def acquire(self) -> AbstractAsyncContextManager[PostgresConnection]:
        """One of them."""

    async def close(self) -> None:
        """Wait for those in use, and end all."""


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a database is. `place` is for people, `url` for the driver alone."""

    url: str = field(repr=False)
    place: str


def address_of(url: str) -> PostgresAddress:
    """The address, refused without a word of it where it is no URL of a database."""
    try:
        parts = urlsplit(url)
        login, _, hosts = parts.netloc.rpartition("@")
        # What is no number there may be half of a password that should have been escaped.
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
    """A connection to a server that is new enough."""
    try:
        connection: PostgresConnection = await asyncpg.connect(address.url, **_PATIENCE)
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
    """Connections for reading, made as they are needed."""
    try:
        made: PostgresPool = await asyncpg.create_pool(address.url, min_size=0, max_size=_MOST_READERS, **_PATIENCE)
    except (*TROUBLE, ValueError) as error:
        raise failure(error, address) from None
    return made


def failure(error: Exception, address: PostgresAddress) -> Fault:
    """What went wrong, for a person: never with more of the URL than its place."""
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
            # The driver's own words for what it cannot parse quote what they are about.
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
    """The first line of the other side's words."""
    return str(error).partition("\n")[0]


def arrays(*kinds: str) -> str:
    """The parameters of a statement as rows of these types. One statement for all rows costs the server a fraction of
    one for each."""
    return f"unnest({', '.join(f'${number}::{kind}[]' for number, kind in enumerate(kinds, 1))})"


async def send_rows(connection: PostgresConnection, statement: str, rows: Sequence[Sequence[object]]) -> None:
    """Run a statement whose parameters are the columns of these rows."""
    if rows:
        await connection.execute(statement, *map(list, zip(*rows, strict=True)))


# The server knows locks by number; these are ours, and any other program's in the same database are likely not.
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
    """Take the steps that are missing; the answer is how many those were."""
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
    """The step that was taken last; 0, and a place to note it, where there is nothing yet."""
    # Asked for first, because making what exists takes a right that the user may lack once all is there.
    if await connection.fetchval("SELECT to_regclass('sightline.version')") is None:
        if await connection.fetchval("SELECT to_regnamespace('sightline')") is None:
            await connection.execute("CREATE SCHEMA sightline")
        await connection.execute("CREATE TABLE sightline.version (number integer NOT NULL)")
        await connection.execute("INSERT INTO sightline.version VALUES (0)")
    number: int = await connection.fetchval("SELECT number FROM sightline.version")
    return number
