"""What was counted for caps, in the PostgreSQL that several replicas share: see `caps`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from sightline.store.caps import CapFullError
from sightline.store.postgres_connection import (
    TROUBLE,
    PostgresAddress,
    PostgresConnection,
    PostgresPool,
    address_of,
    failure,
    pool,
)
from sightline.tokens.caps import BucketKey, CapUse, Claim

T = TypeVar("T")

_ALL = "SELECT cap, unit, bucket, period, spent, reserved, raised FROM sightline.caps"
_ONE = "cap = $1 AND unit = $2 AND bucket = $3 AND period = $4"
_BUCKET = f"SELECT spent, reserved, raised FROM sightline.caps WHERE {_ONE}"
_FIRST = "INSERT INTO sightline.caps (cap, unit, bucket, period) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
_RESERVE = f"""
UPDATE sightline.caps SET reserved = reserved + $5::bigint
WHERE {_ONE} AND spent + reserved + $5::bigint <= greatest($6::bigint, raised)
RETURNING spent, reserved, raised
"""
_SETTLE = f"""
UPDATE sightline.caps SET reserved = greatest(0, reserved - $5::bigint), spent = spent + $6::bigint
WHERE {_ONE} RETURNING spent, reserved, raised
"""
_RAISE = f"UPDATE sightline.caps SET raised = $5::bigint WHERE {_ONE} RETURNING spent, reserved, raised"


class PostgresCounts:
    """See `CapCounts`. It connects with the first call; the record has made the table by then."""

    def __init__(self, url: str) -> None:
        self._address: PostgresAddress = address_of(url)
        self._pool: PostgresPool | None = None
        self._opening = asyncio.Lock()

    async def reserve(self, claims: Sequence[Claim]) -> list[CapUse]:
        """Reserve all claims, or none."""

        async def reserve_all(connection: PostgresConnection) -> list[CapUse]:
            # In one order everywhere, so that no two replicas wait for each other.
            ordered = sorted(claims, key=lambda claim: claim.key)
            if len(ordered) == 1:
                return [await _reserve(connection, ordered[0])]
            try:
                async with connection.transaction():
                    return [await _reserve(connection, claim) for claim in ordered]
            except CapFullError as full:  # a person can look for what is full, and raise it
                await connection.execute(_FIRST, *_place(full.claim.key))
                raise

        return await self._ask(reserve_all)

    async def settle(self, key: BucketKey, reserved: int, spent: int) -> CapUse:
        """What was reserved took so much."""
        return await self._ask(lambda connection: _change(connection, _SETTLE, key, reserved, spent))

    async def raise_limit(self, key: BucketKey, limit: int) -> CapUse:
        """Allow so much in this bucket."""
        return await self._ask(lambda connection: _change(connection, _RAISE, key, limit))

    async def uses(self) -> list[CapUse]:
        """All buckets."""
        rows = await self._ask(lambda connection: connection.fetch(_ALL))
        return [
            CapUse(BucketKey(row[0], row[1], row[2], row[3]), row["spent"], row["reserved"], row["raised"])
            for row in rows
        ]

    async def close(self) -> None:
        """End the connections."""
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def _ask(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        async with self._opening:
            opened = self._pool = self._pool or await pool(self._address)
        try:
            async with opened.acquire() as connection:
                return await work(connection)
        except TROUBLE as error:
            raise failure(error, self._address) from None


async def _reserve(connection: PostgresConnection, claim: Claim) -> CapUse:
    place = _place(claim.key)
    row = await connection.fetchrow(_RESERVE, *place, claim.amount, claim.limit)
    if row is None:  # it is full, or not there yet
        await connection.execute(_FIRST, *place)
        row = await connection.fetchrow(_RESERVE, *place, claim.amount, claim.limit)
    if row is None:
        found = await connection.fetchrow(_BUCKET, *place)
        assert found is not None
        raise CapFullError(claim, CapUse(claim.key, found[0], found[1], found[2]))
    return CapUse(claim.key, row[0], row[1], row[2])


async def _change(connection: PostgresConnection, statement: str, key: BucketKey, *values: int) -> CapUse:
    await connection.execute(_FIRST, *_place(key))
    row = await connection.fetchrow(statement, *_place(key), *values)
    assert row is not None
    return CapUse(key, row[0], row[1], row[2])


def _place(key: BucketKey) -> tuple[str, str, str, str]:
    return key.cap, key.unit, key.bucket, key.period
