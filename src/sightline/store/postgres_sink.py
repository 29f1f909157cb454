"""The writing side of a PostgreSQL record: entries in batches, each in a transaction that can be repeated without harm.

It has its own connection and event loop, and belongs to one thread. After a lost connection, the next batch connects
again; until then the records stay in the journal. Requests and replies are read afterwards (`postgres_digest`).
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, get_type_hints

import msgspec

from sightline.errors import Fault
from sightline.model.exchange import FrameArrived
from sightline.store.digest import storable, to_read
from sightline.store.entries import (
    CANDIDATES,
    BodyEntry,
    Codec,
    EncodedBody,
    FactEntry,
    FramesEntry,
    KeptEntry,
    PackedFrame,
    Recent,
    fact_of,
    next_number,
    pack_frames,
    since,
)
from sightline.store.postgres_connection import (
    TROUBLE,
    UNFIT,
    PostgresAddress,
    PostgresConnection,
    arrays,
    connect,
    failure,
    send_rows,
    writing,
)
from sightline.store.postgres_digest import PostgresDigests, Recorded
from sightline.store.summary import (
    FOLDED,
    OPEN_STATES,
    PriceList,
    Summary,
    Unfinished,
    bodies_of,
    fold_facts,
    row_of,
)
from sightline.store.whole import RecordedEntry, decode_entries, unfold

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
# The same order everywhere, so that writers that store the same bodies at once cannot deadlock.
_KEEP = f"""
INSERT INTO sightline.bodies (sha256, near, base, prefix, suffix, depth, data)
SELECT * FROM {arrays("bytea", "text", "bytea", "bigint", "bigint", "integer", "bytea")} ORDER BY 1
ON CONFLICT DO NOTHING
"""


async def body_of(connection: PostgresConnection, codec: Codec, sha256: str) -> bytes | None:
    """The body with this hash; None if there is none."""
    try:
        name = bytes.fromhex(sha256)
    except ValueError:
        return None
    body: bytes | None = None
    for row in await connection.fetch(_CHAIN, name):
        coded = EncodedBody("" if row["base"] is None else "base", row["prefix"], row["suffix"], row["data"])
        body = codec.restore(coded, body or b"")
    return body


class PostgresBodies:
    """Stores bodies, inside the caller's transaction, for one writer."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._recent = Recent()

    async def keep(self, connection: PostgresConnection, bodies: Sequence[BodyEntry]) -> None:
        """Store the bodies that the record does not have."""
        if not bodies:
            return
        for near in {each.near for each in bodies if each.near and not self._recent.near(each.near)}:
            await self._recall(connection, near)
        # Another replica may have pruned a remembered body, so possible bases are looked up each time.
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
        await send_rows(connection, _KEEP, rows)

    async def body(self, connection: PostgresConnection, sha256: str) -> bytes | None:
        """The body with this hash; None if there is none."""
        known = self._recent.body(sha256)
        return await body_of(connection, self._codec, sha256) if known is None else known

    def _bases(self, near: str, depths: dict[str, int]) -> Iterator[tuple[str, bytes, int]]:
        if near:
            for sha256, body in self._recent.near(near):
                if sha256 in depths:
                    yield sha256, body, depths[sha256]

    async def _recall(self, connection: PostgresConnection, near: str) -> None:
        """Remember the latest stored bodies with this `near`, after a start or if other processes stored them."""
        for row in reversed(await connection.fetch(_LATEST, storable(near), CANDIDATES)):
            sha256 = row["sha256"].hex()
            if (body := await body_of(connection, self._codec, sha256)) is not None:
                self._recent.note(sha256, near, body)


T = TypeVar("T")

_ENCODER = msgspec.msgpack.Encoder()
_KINDS = {int: "bigint", float: "double precision", bool: "boolean"}
_TYPES = get_type_hints(Summary)
_SUMMARY = (
    *("text", "bigint", "bigint"),
    *(next((sql for kind, sql in _KINDS.items() if _TYPES[name] in (kind, kind | None)), "text") for name in FOLDED),
)
_SUMMARY_NAMES = ", ".join(("id", "next_n", "todo", *FOLDED))

_HOLD = "SELECT id, next_n FROM sightline.exchanges WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE"
_BEGIN = f"""
INSERT INTO sightline.exchanges (replica, slot, {_SUMMARY_NAMES})
SELECT ${len(_SUMMARY) + 1}, ${len(_SUMMARY) + 2}, new.* FROM {arrays(*_SUMMARY)} AS new ({_SUMMARY_NAMES})
ORDER BY id ON CONFLICT DO NOTHING RETURNING id
"""
_SUMMARISE = f"""
UPDATE sightline.exchanges AS e SET next_n = new.next_n, todo = e.todo | new.todo,
    {", ".join(f"{name} = new.{name}" for name in FOLDED)}
FROM {arrays(*_SUMMARY)} AS new ({_SUMMARY_NAMES}) WHERE e.id = new.id
"""
_FACTS_OF_MANY = (
    "SELECT exchange, n, at, data FROM sightline.facts WHERE exchange = ANY($1::text[]) ORDER BY exchange, n"
)
_NOTE = f"""
INSERT INTO sightline.facts (exchange, n, at, data)
SELECT * FROM {arrays("text", "bigint", "double precision", "bytea")} ON CONFLICT DO NOTHING
"""
_NOTE_FRAMES = f"""
INSERT INTO sightline.frames (exchange, n, data) SELECT * FROM {arrays("text", "bigint", "bytea")}
ON CONFLICT DO NOTHING
"""
_USE = f"""
INSERT INTO sightline.uses (exchange, sha256) SELECT * FROM {arrays("text", "bytea")} ON CONFLICT DO NOTHING
"""
_UNFINISHED = """
SELECT id, next_n, state FROM sightline.exchanges
WHERE replica = $1 AND slot <> ALL($2::integer[]) AND state = ANY($3::text[]) ORDER BY id
"""


class PostgresSink:
    """See `Sink`. `replica` is the name of the replica with this data folder."""

    decode = staticmethod(decode_entries)

    def __init__(self, address: PostgresAddress, *, replica: str, prices: PriceList, now: Callable[[], float]) -> None:
        self._address = address
        self._replica = replica
        self._prices = prices
        self._now = now
        self._codec = Codec()
        self._bodies = PostgresBodies(self._codec)
        self._digests = PostgresDigests(self._codec, self._bodies.body, replica)
        self._runner: asyncio.Runner | None = None
        self._connection: PostgresConnection | None = None

    def apply(self, batch: Sequence[RecordedEntry], slot: int = 0) -> None:
        """Import all of these entries or none. Entries that the database already has change nothing."""
        if entries := unfold(batch):
            self._do(lambda connection: self._apply(connection, entries, slot))

    def open_exchanges(self, living: Sequence[int]) -> list[Unfinished]:
        """The exchanges of this replica that have not ended, without those of processes with these slots."""
        rows = self._do(
            lambda connection: connection.fetch(_UNFINISHED, self._replica, list(living), list(OPEN_STATES))
        )
        return [Unfinished(row["id"], row["next_n"], row["state"]) for row in rows]

    def tidy(self) -> bool:
        """Read some of the imported requests and replies; returns False if none are left."""
        return self._do(lambda connection: self._digests.advance(connection, self._now()))

    def refresh(self) -> None:
        """Do nothing: no cache here can become wrong through other processes."""

    def rest(self) -> None:
        """Keep all caches: filling them again takes many round trips."""

    def close(self) -> None:
        """Close the connection and the event loop."""
        if self._runner is None:
            return
        if self._connection is not None:
            self._runner.run(_close_connection(self._connection))
        self._runner.close()

    def _do(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        if self._runner is None:
            self._runner = asyncio.Runner()
        was_connected = self._connection is not None
        try:
            return self._runner.run(self._attempt(work))
        except Fault:
            # A connection that ended while idle is not reported if a new one works.
            if not was_connected or self._connection is not None:
                raise
        return self._runner.run(self._attempt(work))

    async def _attempt(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        if self._connection is None:
            self._connection = await connect(self._address)
        try:
            return await work(self._connection)
        except UNFIT:
            raise
        except TROUBLE as error:
            if isinstance(error, OSError) or self._connection.is_closed():
                self._connection.terminate()
                self._connection = None
            raise failure(error, self._address) from None

    async def _apply(self, connection: PostgresConnection, batch: Sequence[KeptEntry], slot: int) -> None:
        left: defaultdict[str, list[FactEntry | FramesEntry]] = defaultdict(list)
        for entry in batch:
            if not isinstance(entry, BodyEntry):
                left[entry.exchange].append(entry)
        self._digests.fresh.clear()
        async with writing(connection):
            await self._bodies.keep(connection, [entry for entry in batch if isinstance(entry, BodyEntry)])
            waiting: Mapping[str, Sequence[FactEntry | FramesEntry]] = left
            while waiting:
                waiting = await self._add(connection, waiting, slot)

    async def _add(
        self, connection: PostgresConnection, exchanges: Mapping[str, Sequence[FactEntry | FramesEntry]], slot: int
    ) -> Mapping[str, Sequence[FactEntry | FramesEntry]]:
        """Add new facts, and update the summaries of their exchanges. Returns the exchanges that another process has
        begun at the same moment: they exist now, and have to be added to."""
        known = {row["id"]: row["next_n"] for row in await connection.fetch(_HOLD, sorted(exchanges))}
        fresh = {
            name: pieces
            for name in sorted(exchanges)
            if (pieces := _pieces(exchanges[name], known.get(name, 0))) is not None
        }
        before: defaultdict[str, list[FactEntry]] = defaultdict(list)
        if grown := [name for name in fresh if name in known]:
            for row in await connection.fetch(_FACTS_OF_MANY, grown):
                entry = FactEntry(row["exchange"], row["n"], row["at"], fact_of(row["data"]))
                before[entry.exchange].append(entry)
        rows = {
            name: (
                name,
                each.next_n,
                to_read(each.facts),
                *row_of(fold_facts([*before[name], *each.facts], self._prices)),
            )
            for name, each in fresh.items()
        }
        begun = set(known)
        if new := [row for name, row in rows.items() if name not in known]:
            begun |= {
                row["id"]
                for row in await connection.fetch(_BEGIN, *map(list, zip(*new, strict=True)), self._replica, slot)
            }
        await send_rows(connection, _SUMMARISE, [rows[name] for name in grown])
        added = [each for name, pieces in fresh.items() if name in begun for each in pieces.facts]
        uses = {(each.exchange, sha256) for each in added for sha256 in bodies_of(each.fact)}
        await send_rows(
            connection, _NOTE, [(each.exchange, each.n, each.at, _ENCODER.encode(each.fact)) for each in added]
        )
        runs = [(name, each.frames) for name, each in fresh.items() if name in begun and each.frames]
        packed = [(name, frames[0][0], pack_frames(self._codec, frames)) for name, frames in runs]
        await send_rows(connection, _NOTE_FRAMES, packed)
        await send_rows(connection, _USE, [(name, bytes.fromhex(sha256)) for name, sha256 in sorted(uses)])
        self._digests.fresh |= {
            name: Recorded([entry.fact for entry in each.facts], b"".join([frame[3] for frame in each.frames]))
            for name, each in fresh.items()
            if name in begun and name not in known
        }
        return {name: exchanges[name] for name in fresh if name not in begun}


class _Pieces(NamedTuple):
    """New facts of an exchange, separated from its frames, and the number after the last of them."""

    facts: list[FactEntry]
    frames: list[PackedFrame]
    next_n: int


def _pieces(entries: Sequence[FactEntry | FramesEntry], next_n: int) -> _Pieces | None:
    """The new ones of these entries, in order; None if there are none."""
    facts: list[FactEntry] = []
    frames: list[PackedFrame] = []
    end = next_n
    for entry in sorted(entries, key=lambda each: each.n):
        if (fresh := since(entry, end)) is None:
            continue
        end = next_number(fresh)
        if isinstance(fresh, FramesEntry):
            frames += zip(range(fresh.n, end), fresh.at, fresh.after, fresh.data, strict=True)
        elif isinstance(fresh.fact, FrameArrived):
            frames.append((fresh.n, fresh.at, fresh.fact.after, fresh.fact.data))
        else:
            facts.append(fresh)
    return _Pieces(facts, frames, end) if facts or frames else None


async def _close_connection(connection: PostgresConnection) -> None:
    try:
        await connection.close()
    except TROUBLE:
        # Whatever is wrong with the connection, nothing waits for it any more.
        connection.terminate()
