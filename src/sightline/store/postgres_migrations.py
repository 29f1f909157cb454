"""The tables in PostgreSQL, brought up to date by whoever comes first.

All steps that are missing are one transaction under a lock of the whole database: of several replicas that start at
once, one does the work, and the others find it done.
"""

import re
from dataclasses import dataclass
from importlib.resources import files

from sightline.errors import Code, Fault
from sightline.store.postgres_connection import REFUSAL, PostgresConnection
from sightline.store.postgres_locks import rebuilding

# It may have been there before, in another place.
_TRIGRAMS = """
SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_trgm'
"""
_NAME = re.compile(r"(\d{3})_\w+\.sql")


@dataclass(frozen=True, slots=True)
class PostgresMigration:
    """Step number `version`."""

    version: int
    sql: str


def load_migrations() -> list[PostgresMigration]:
    """All steps, first to last."""
    folder = files("sightline.store") / "migrations" / "postgres"
    numbered = [(name, each) for each in folder.iterdir() if (name := _NAME.fullmatch(each.name))]
    return sorted(
        (PostgresMigration(int(name[1]), each.read_text("utf-8")) for name, each in numbered),
        key=lambda step: step.version,
    )


async def migrate(connection: PostgresConnection, steps: list[PostgresMigration]) -> int:
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


async def index_texts(connection: PostgresConnection) -> bool:
    """Make the search for words fast where the server can; whether it can. Without that, it reads them all."""
    async with rebuilding(connection):
        if await connection.fetchval("SELECT to_regclass('sightline.texts_by_trigram')") is not None:
            return True
        try:
            async with connection.transaction():
                await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA sightline")
                words = f'lower(words COLLATE "C") {await connection.fetchval(_TRIGRAMS)}.gin_trgm_ops'
                await connection.execute(f"CREATE INDEX texts_by_trigram ON sightline.texts USING gin ({words})")
        except REFUSAL:
            return False
    return True
