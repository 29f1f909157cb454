"""The bodies in a PostgreSQL record: stored as changes of each other, read back whole."""

from collections.abc import Iterator, Sequence

from sightline.store.columns import storable
from sightline.store.delta import Codec, Coded
from sightline.store.entries import BodyEntry
from sightline.store.postgres_connection import PostgresConnection
from sightline.store.recent_bodies import CANDIDATES, Recent

_CHAIN = """
WITH RECURSIVE chain (base, prefix, suffix, data, step) AS (
    SELECT base, prefix, suffix, data, 0 FROM sightline.bodies WHERE sha256 = $1
    UNION ALL
    SELECT b.base, b.prefix, b.suffix, b.data, step + 1
    FROM sightline.bodies b JOIN chain ON b.sha256 = chain.base
)
SELECT base, prefix, suffix, data FROM chain ORDER BY step DESC
"""
_LATEST = "SELECT sha256 FROM sightline.bodies WHERE near = $1 AND near <> '' ORDER BY number DESC LIMIT $2"
_DEPTHS = "SELECT sha256, depth FROM sightline.bodies WHERE sha256 = ANY($1::bytea[])"
_KEEP = """
INSERT INTO sightline.bodies (sha256, near, base, prefix, suffix, depth, data) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT DO NOTHING
"""


async def body_of(connection: PostgresConnection, codec: Codec, sha256: str) -> bytes | None:
    """The body with this hash."""
    try:
        name = bytes.fromhex(sha256)
    except ValueError:
        return None
    body: bytes | None = None
    for row in await connection.fetch(_CHAIN, name):
        coded = Coded("" if row["base"] is None else "base", row["prefix"], row["suffix"], row["data"])
        body = codec.restore(coded, body or b"")
    return body


class PostgresBodies:
    """Puts bodies into the record; inside somebody else's transaction, for one writer."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._recent = Recent()

    async def keep(self, connection: PostgresConnection, bodies: Sequence[BodyEntry]) -> None:
        """Store those that are not there."""
        for near in {each.near for each in bodies if each.near and not self._recent.near(each.near)}:
            await self._recall(connection, near)
        # Another replica may have pruned what is remembered here: what is built upon is asked for each time.
        names = {each.sha256 for each in bodies}
        names |= {sha256 for each in bodies if each.near for sha256, _ in self._recent.near(each.near)}
        found = await connection.fetch(_DEPTHS, [bytes.fromhex(name) for name in names])
        depths: dict[str, int] = {row["sha256"].hex(): row["depth"] for row in found}
        rows: list[tuple[object, ...]] = []
        for each in bodies:
            if each.sha256 not in depths:
                coded = self._codec.best(each.data, self._bases(each.near, depths))
                depths[each.sha256] = coded.depth
                base = bytes.fromhex(coded.base) if coded.base else None
                named = (bytes.fromhex(each.sha256), storable(each.near))
                rows.append((*named, base, coded.prefix, coded.suffix, coded.depth, coded.data))
            self._recent.note(each.sha256, each.near, each.data)
        # In one order everywhere: writers who store the same bodies at once then wait for each other, never both ways.
        await connection.executemany(_KEEP, sorted(rows, key=lambda row: bytes(row[0])))  # type: ignore[call-overload]

    async def body(self, connection: PostgresConnection, sha256: str) -> bytes | None:
        """The body with this hash."""
        known = self._recent.body(sha256)
        return await body_of(connection, self._codec, sha256) if known is None else known

    def _bases(self, near: str, depths: dict[str, int]) -> Iterator[tuple[str, bytes, int]]:
        if near:
            for sha256, body in self._recent.near(near):
                if sha256 in depths:
                    yield sha256, body, depths[sha256]

    async def _recall(self, connection: PostgresConnection, near: str) -> None:
        """What was stored last of this kind, after a start or by others."""
        for row in reversed(await connection.fetch(_LATEST, storable(near), CANDIDATES)):
            sha256 = row["sha256"].hex()
            if (body := await body_of(connection, self._codec, sha256)) is not None:
                self._recent.note(sha256, near, body)
