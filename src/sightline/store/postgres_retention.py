"""Forgetting in PostgreSQL: exchanges that are too old or too many, and the bodies that nobody needs any more."""

from sightline.store.delta import Codec
from sightline.store.interruption import OPEN_STATES
from sightline.store.postgres_bodies import body_of
from sightline.store.postgres_connection import PostgresConnection
from sightline.store.postgres_locks import pruning
from sightline.store.store import Pruned

_AT_ONCE = 64
_VACUUM_SECONDS = 3600.0
_TABLES = ("exchanges", "facts", "frames", "bodies", "uses", "texts", "instructions")
_SIZED = {"facts": "data", "frames": "data", "bodies": "data", "texts": "words"}

_USED = " + ".join(
    f"(SELECT coalesce(sum(octet_length({column})), 0) FROM sightline.{table})" for table, column in _SIZED.items()
)
_OLDEST = """
SELECT id FROM sightline.exchanges
WHERE state <> ALL($1::text[]) AND ($2::double precision IS NULL OR at < $2) ORDER BY id LIMIT $3
"""
_TOUCHED = "SELECT DISTINCT sha256 FROM sightline.uses WHERE exchange = ANY($1::text[])"
_UNUSED = """
SELECT sha256 FROM unnest($1::bytea[]) AS touched (sha256)
WHERE NOT EXISTS (SELECT 1 FROM sightline.uses WHERE uses.sha256 = touched.sha256)
"""
_HEIRS = """
SELECT sha256, base FROM sightline.bodies
WHERE base = ANY($1::bytea[]) AND sha256 <> ALL($1::bytea[]) ORDER BY number
"""
_REBASE = """
UPDATE sightline.bodies SET base = $2, prefix = $3, suffix = $4, depth = $5, data = $6 WHERE sha256 = $1
"""


async def prune(connection: PostgresConnection, *, older_than: float | None, larger_than: int | None) -> Pruned:
    """Forget what ended before a time of day, and the oldest until the record has at most that many bytes."""
    codec = Codec()
    before = used = await record_size(connection)
    gone = 0
    while older_than is not None and (count := await _forget_some(connection, codec, older_than)):
        gone += count
    while larger_than is not None and (used := await record_size(connection)) > larger_than:
        # Counting takes a look at everything, so that half of what is too much goes before it is counted again.
        total = await connection.fetchval("SELECT count(*) FROM sightline.exchanges")
        wanted, count = int(total * (1 - larger_than / used) / 2) + 1, 0
        while count < wanted and (more := await _forget_some(connection, codec, None, wanted - count)):
            count += more
        gone += count
        if not count:
            break
    if gone:
        # The server uses the room again for what comes next, and gives back what stands free at the end of its files.
        # Two that clean up at once would wait for each other for seconds; what one has in hand, the other leaves.
        tables = ", ".join(f"sightline.{table}" for table in _TABLES)
        await connection.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {tables}", timeout=_VACUUM_SECONDS)
        used = await record_size(connection)
    return Pruned(gone, max(0, before - used), used)


async def record_size(connection: PostgresConnection) -> int:
    """How much is recorded, without what the server needs to find it again."""
    return int(await connection.fetchval(f"SELECT {_USED}"))


async def _forget_some(
    connection: PostgresConnection, codec: Codec, older_than: float | None, most: int = _AT_ONCE
) -> int:
    """Forget a few of the oldest; the answer is how many."""
    async with pruning(connection):
        rows = await connection.fetch(_OLDEST, list(OPEN_STATES), older_than, min(most, _AT_ONCE))
        ids = [row["id"] for row in rows]
        touched = [row["sha256"] for row in await connection.fetch(_TOUCHED, ids)]
        for table in ("uses", "frames", "facts", "texts", "instructions"):
            await connection.execute(f"DELETE FROM sightline.{table} WHERE exchange = ANY($1::text[])", ids)
        await connection.execute("DELETE FROM sightline.exchanges WHERE id = ANY($1::text[])", ids)
        await _forget_bodies(connection, codec, touched)
    return len(ids)


async def _forget_bodies(connection: PostgresConnection, codec: Codec, touched: list[bytes]) -> None:
    """Forget those of these bodies that no exchange has any more; what was built on them is built anew first."""
    unused = [row["sha256"] for row in await connection.fetch(_UNUSED, touched)]
    heirs: dict[bytes, list[bytes]] = {}
    for row in await connection.fetch(_HEIRS, unused):
        heirs.setdefault(row["base"], []).append(row["sha256"])
    for built in heirs.values():
        await _rebase(connection, codec, built)
    await connection.execute("DELETE FROM sightline.bodies WHERE sha256 = ANY($1::bytea[])", unused)


async def _rebase(connection: PostgresConnection, codec: Codec, heirs: list[bytes]) -> None:
    """The first of these bodies stands alone from now on, and the others build on it."""
    first, base = heirs[0], b""
    for heir in heirs:
        body = await body_of(connection, codec, heir.hex()) or b""
        base = base or body
        coded = codec.whole(body) if heir == first else codec.against(body, base, "first", 0)
        parent = first if coded.base else None
        await connection.execute(_REBASE, heir, parent, coded.prefix, coded.suffix, coded.depth, coded.data)
