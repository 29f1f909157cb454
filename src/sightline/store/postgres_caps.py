"""The counts for caps in a PostgreSQL database that several replicas share; see `caps`."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import astuple

from sightline.store.caps import CapFullError
from sightline.store.postgres_connection import (
    TROUBLE,
    PostgresAddress,
    PostgresConnection,
    PostgresPool,
    address_of,
    connect,
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
WITH taken AS (
    UPDATE sightline.caps SET reserved = reserved + $5::bigint
    WHERE {_ONE} AND spent + reserved + $5::bigint <= greatest($6::bigint, raised)
    RETURNING spent, reserved, raised
), held AS (
    INSERT INTO sightline.cap_reservations AS own (holder, cap, unit, bucket, period, amount)
    SELECT $7::bigint, $1, $2, $3, $4, $5::bigint FROM taken
    ON CONFLICT (holder, cap, unit, bucket, period) DO UPDATE SET amount = own.amount + excluded.amount
)
SELECT spent, reserved, raised FROM taken
"""
# The row of the cap is locked first, as by a reservation, so that the two cannot deadlock.
_SETTLE = f"""
WITH locked AS (
    SELECT cap FROM sightline.caps WHERE {_ONE} FOR UPDATE
), freed AS (
    UPDATE sightline.cap_reservations AS own SET amount = own.amount - $5::bigint
    FROM locked
    WHERE own.cap = $1 AND own.unit = $2 AND own.bucket = $3 AND own.period = $4
        AND own.holder = $7::bigint AND own.amount >= $5::bigint
    RETURNING 1
)
UPDATE sightline.caps
SET reserved = greatest(0, reserved - (SELECT count(*) FROM freed) * $5::bigint), spent = spent + $6::bigint
WHERE {_ONE} RETURNING spent, reserved, raised
"""
_HOLDERS = "SELECT DISTINCT holder FROM sightline.cap_reservations WHERE holder <> $1"
_LET_GO = """
UPDATE sightline.caps AS counted SET reserved = greatest(0, counted.reserved - gone.amount)
FROM sightline.cap_reservations AS gone
WHERE gone.holder = $1 AND (counted.cap, counted.unit, counted.bucket, counted.period)
    = (gone.cap, gone.unit, gone.bucket, gone.period)
"""
_FORGET = "DELETE FROM sightline.cap_reservations WHERE holder = $1 RETURNING amount"
_RAISE = f"UPDATE sightline.caps SET raised = $5::bigint WHERE {_ONE} RETURNING spent, reserved, raised"


class PostgresCounts:
    """See `CapCounts`. It connects with the first call; the record has created the tables by then.

    A separate connection holds a lock as long as this process lives. If another process can take that lock, this one is
    gone, and its reservations are freed.
    """

    def __init__(self, url: str) -> None:
        self._address: PostgresAddress = address_of(url)
        self._pool: PostgresPool | None = None
        self._opening = asyncio.Lock()
        self._holder = secrets.randbits(62)
        self._presence: PostgresConnection | None = None

    async def reserve(self, claims: Sequence[Claim]) -> list[CapUse]:
        await self._hold_liveness_lock()

        async def reserve_all(connection: PostgresConnection) -> list[CapUse]:
            # The same order everywhere, so that no two replicas deadlock.
            ordered = sorted(claims, key=lambda claim: claim.key)
            if len(ordered) == 1:
                return [await self._reserve(connection, ordered[0])]
            try:
                async with connection.transaction():
                    return [await self._reserve(connection, claim) for claim in ordered]
            except CapFullError as full:  # so that the user can find the full bucket and raise its limit
                await connection.execute(_FIRST, *astuple(full.claim.key))
                raise

        try:
            return await self._ask(reserve_all)
        except CapFullError:
            if not await self._ask(self._take_back):
                raise
        return await self._ask(reserve_all)

    async def _hold_liveness_lock(self) -> None:
        """Hold the lock that shows that this process is alive."""
        if self._presence is not None and not self._presence.is_closed():
            return
        async with self._opening:
            if self._presence is None or self._presence.is_closed():
                presence = await connect(self._address)
                try:
                    await presence.execute("SELECT pg_advisory_lock($1)", self._holder)
                except TROUBLE as error:
                    raise failure(error, self._address) from None
                self._presence = presence

    async def _take_back(self, connection: PostgresConnection) -> bool:
        """Free the reservations of processes that ended without settling them; returns whether there were any."""
        found = False
        for row in await connection.fetch(_HOLDERS, self._holder):
            async with connection.transaction():
                if await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", row[0]):
                    await connection.execute(_LET_GO, row[0])
                    gone = await connection.fetch(_FORGET, row[0])
                    found = found or any(each["amount"] for each in gone)
        return found

    async def _reserve(self, connection: PostgresConnection, claim: Claim) -> CapUse:
        place = astuple(claim.key)
        row = await connection.fetchrow(_RESERVE, *place, claim.amount, claim.limit, self._holder)
        if row is None:  # the bucket is full, or does not exist yet
            await connection.execute(_FIRST, *place)
            row = await connection.fetchrow(_RESERVE, *place, claim.amount, claim.limit, self._holder)
        if row is None:
            found = await connection.fetchrow(_BUCKET, *place)
            assert found is not None
            raise CapFullError(claim, CapUse(claim.key, *found[:]))
        return CapUse(claim.key, *row[:])

    async def settle(self, key: BucketKey, reserved: int, spent: int) -> CapUse:
        return await self._ask(lambda connection: _change(connection, _SETTLE, key, reserved, spent, self._holder))

    async def raise_limit(self, key: BucketKey, limit: int) -> CapUse:
        return await self._ask(lambda connection: _change(connection, _RAISE, key, limit))

    async def uses(self) -> list[CapUse]:
        await self._ask(self._take_back)
        rows = await self._ask(lambda connection: connection.fetch(_ALL))
        return [CapUse(BucketKey(*row[:4]), *row[4:]) for row in rows]

    async def close(self) -> None:
        if self._presence is not None:
            await self._presence.close()
            self._presence = None
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


async def _change(connection: PostgresConnection, statement: str, key: BucketKey, *values: int) -> CapUse:
    await connection.execute(_FIRST, *astuple(key))
    row = await connection.fetchrow(statement, *astuple(key), *values)
    assert row is not None
    return CapUse(key, *row[:])
