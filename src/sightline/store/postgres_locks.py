"""Who waits for whom in PostgreSQL: writers go together, and whoever prunes or changes tables goes alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sightline.store.postgres_connection import PostgresConnection

# The server knows locks by number; these are ours, and any other program's in the same database are likely not.
_TABLES = 0x5347_4854_0001
_RECORD = 0x5347_4854_0002


@asynccontextmanager
async def writing(connection: PostgresConnection) -> AsyncIterator[None]:
    """All that is done inside, or nothing; nobody prunes meanwhile."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock_shared($1)", _RECORD)
        yield


@asynccontextmanager
async def pruning(connection: PostgresConnection) -> AsyncIterator[None]:
    """All that is done inside, or nothing; nobody writes meanwhile."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _RECORD)
        yield


@asynccontextmanager
async def rebuilding(connection: PostgresConnection) -> AsyncIterator[None]:
    """All that is done inside, or nothing; nobody else changes tables meanwhile."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _TABLES)
        yield
