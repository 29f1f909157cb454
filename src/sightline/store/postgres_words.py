"""The words of a PostgreSQL record: where their blocks are stored; see `words`.

A writer fills the last block, unless another writer has locked it: then it begins a new one, so that no replica waits.
"""

from collections.abc import AsyncIterator, Collection, Sequence

from sightline.store.entries import Codec
from sightline.store.postgres_connection import PostgresConnection, arrays, rebuilding, send_rows
from sightline.store.words import FILLED, Said, drop_words, fill_blocks, find_blocks, measure_words, searchable

_AT_ONCE = 32
"""How many blocks are fetched together: less than a megabyte."""
_CARRIED = 1000
"""How many texts of an earlier version are moved into blocks together."""
_LATEST = """
SELECT id, data FROM sightline.words
WHERE id = (SELECT max(id) FROM sightline.words) AND size < $1 FOR UPDATE SKIP LOCKED
"""
_ADD = f"""
INSERT INTO sightline.words (first, last, size, data) SELECT * FROM {arrays("text", "text", "integer", "bytea")}
"""
_REPLACE = "UPDATE sightline.words SET first = $2, last = $3, size = $4, data = $5 WHERE id = $1"
_SPANS = "SELECT id, first, last FROM sightline.words WHERE first <= $1 AND last >= $2"
_BLOCKS = "SELECT id, data FROM sightline.words WHERE id = ANY($1::bigint[]) ORDER BY id"
_HAS_TEXTS = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'sightline' AND tablename = 'texts')"
_CARRY = """
DELETE FROM sightline.texts WHERE (exchange, part) IN (
    SELECT exchange, part FROM sightline.texts WHERE exchange >= $1 ORDER BY exchange, part LIMIT $2
) RETURNING exchange, words
"""


async def append_words(connection: PostgresConnection, codec: Codec, said: Sequence[Said[str]]) -> None:
    """Store these words, inside the caller's transaction."""
    if not said:
        return
    latest = await connection.fetchrow(_LATEST, FILLED)
    blocks = fill_blocks(codec, None if latest is None else latest["data"], said)
    if latest is not None:
        await connection.execute(_REPLACE, latest["id"], *blocks.pop(0))
    await send_rows(connection, _ADD, blocks)


async def forget_words(connection: PostgresConnection, codec: Codec, exchanges: Collection[str]) -> None:
    """Remove the words of these exchanges from their blocks, inside a transaction during which no process writes."""
    async for blocks in _blocks_of(connection, exchanges):
        emptied, changed = drop_words(codec, blocks, exchanges)
        await connection.execute("DELETE FROM sightline.words WHERE id = ANY($1::bigint[])", emptied)
        await connection.executemany(_REPLACE, [(number, *left) for number, left in changed])


async def measure_blocks(connection: PostgresConnection, codec: Codec, exchanges: Collection[str]) -> int:
    """How many compressed bytes are words of these exchanges."""
    found = 0
    async for blocks in _blocks_of(connection, exchanges):
        found += sum(measure_words(codec, data, exchanges) for _, data in blocks)
    return found


async def _blocks_of(
    connection: PostgresConnection, exchanges: Collection[str]
) -> AsyncIterator[list[tuple[int, bytes]]]:
    """The blocks that may contain words of these exchanges, some at a time."""
    if not exchanges:
        return
    spans = [(row[0], row[1], row[2]) for row in await connection.fetch(_SPANS, max(exchanges), min(exchanges))]
    numbers = find_blocks(spans, exchanges)
    for at in range(0, len(numbers), _AT_ONCE):
        yield [(row[0], row[1]) for row in await connection.fetch(_BLOCKS, numbers[at : at + _AT_ONCE])]


async def carry_words(connection: PostgresConnection) -> None:
    """Move the words that an earlier version stored one by one into blocks. Each step is a transaction, so that the
    next process continues where one was interrupted; processes that start at once take turns."""
    codec, place = Codec(), ""
    while await _has_texts(connection):
        async with rebuilding(connection):
            if not await _has_texts(connection):  # another process took the last step in the meantime
                return
            # From `place` on, because otherwise the server would scan all deleted rows before it in every step.
            rows = sorted(await connection.fetch(_CARRY, place, _CARRIED), key=lambda row: str(row["exchange"]))
            await append_words(connection, codec, [(row["exchange"], searchable(row["words"])) for row in rows])
            place = rows[-1]["exchange"] if len(rows) == _CARRIED else ""
            if not place:
                # A replica of an earlier version may have added some.
                await connection.execute("LOCK TABLE sightline.texts IN ACCESS EXCLUSIVE MODE")
                if not await connection.fetchval("SELECT EXISTS (SELECT FROM sightline.texts)"):
                    await connection.execute("DROP TABLE sightline.texts")


async def _has_texts(connection: PostgresConnection) -> bool:
    # `to_regclass` may answer from before the lock was taken, while another process has dropped the table since.
    found: bool = await connection.fetchval(_HAS_TEXTS)
    return found
