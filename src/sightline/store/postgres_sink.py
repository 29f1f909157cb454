"""The writing side of a PostgreSQL record: entries in batches, each a transaction that may be repeated without harm.

It has a connection and an event loop of its own, and belongs to one thread. A server that went away is
reached again with the next batch; until then the journal has what was recorded. Requests and replies are read in
transactions of their own; `todo` marks what is left.
"""

import asyncio
import hashlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from sightline.dialects.stored import exchange_in
from sightline.errors import Fault
from sightline.model.exchange import Fact, FrameArrived, Received
from sightline.store.digest import REPLY, REQUEST, Digest, DigestReader, read_reply, reply_dialect, to_read
from sightline.store.entries import (
    CANDIDATES,
    BodyEntry,
    Codec,
    Coded,
    Entry,
    FactEntry,
    KeptEntry,
    Recent,
    pack_frames,
    plain_entries,
    raw_bytes,
)
from sightline.store.postgres_connection import (
    TROUBLE,
    UNFIT,
    PostgresAddress,
    PostgresConnection,
    Row,
    connect,
    failure,
    writing,
)
from sightline.store.summary import FOLDED, OPEN_STATES, PriceList, Unfinished, bodies_of, row_of, storable, summary_of

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
    """Puts bodies into the record; inside the caller's transaction, for one writer."""

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


LEFT_BEHIND = 600.0
"""After so many seconds, what a replica has not read is read by others: it may never come back."""

_AT_ONCE = 16
_LOG = logging.getLogger(__name__)
_BEGINNINGS = 256
_DECODER: msgspec.msgpack.Decoder[Fact] = msgspec.msgpack.Decoder(Fact)

_OWN = """
SELECT id, todo, session FROM sightline.exchanges
WHERE todo > 0 AND replica = $1 ORDER BY id LIMIT 1 FOR UPDATE
"""
_LEFT = """
SELECT id, todo, session FROM sightline.exchanges
WHERE todo > 0 AND at < $1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
"""
_FACTS = "SELECT data FROM sightline.facts WHERE exchange = $1 ORDER BY n"
_FRAMES = "SELECT data FROM sightline.frames WHERE exchange = $1 ORDER BY n"
_DONE = "UPDATE sightline.exchanges SET todo = 0 WHERE id = $1"
_TITLE = """
UPDATE sightline.exchanges SET title = $2, is_side = $3, thread = $4, previous = $5, continues = $6 WHERE id = $1
"""
_NAMED = """
SELECT id FROM sightline.exchanges WHERE (reply_id = $1 AND reply_id <> '' OR id = $3) AND id < $2
ORDER BY id DESC LIMIT 1
"""
_CALLED = "UPDATE sightline.exchanges SET reply_id = $2 WHERE id = $1"
_LINKED = """
UPDATE sightline.exchanges SET previous = $1 WHERE continues = $2 AND continues <> '' AND previous = '' AND id > $1
"""
_CONTINUED = """
SELECT thread, id FROM sightline.exchanges WHERE thread = ANY($1::bytea[]) AND session = $2 AND id < $3
"""
_INSTRUCT = """
INSERT INTO sightline.instructions (hash, exchange) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true
"""
_WORDS = "INSERT INTO sightline.texts (exchange, part, words) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"


class PostgresDigests:
    """Does what is left to do for the exchanges of a replica, a few at a time."""

    def __init__(self, codec: Codec, bodies: PostgresBodies, replica: str) -> None:
        self._codec = codec
        self._bodies = bodies
        self._replica = replica
        self._requests = DigestReader()

    async def advance(self, connection: PostgresConnection, now: float) -> bool:
        """Read some; False where none was left."""
        for _ in range(_AT_ONCE):
            row: Row | None = None
            try:
                # One at a time, so that replicas that note the same instructions wait for each other, never both ways.
                async with writing(connection):
                    row = await connection.fetchrow(_OWN, self._replica)
                    if row is None:
                        row = await connection.fetchrow(_LEFT, now - LEFT_BEHIND)
                    if row is None:
                        return False
                    await self._read(connection, row["id"], row["todo"], row["session"])
            except (UnicodeError, ValueError, OverflowError, RecursionError, *UNFIT):
                if row is None:
                    raise
                _LOG.exception("an exchange could not be read for search; it is on record all the same")
                await connection.execute(_DONE, row["id"])
        return True

    async def _read(self, connection: PostgresConnection, exchange: str, todo: int, session: str) -> None:
        facts = [_DECODER.decode(row["data"]) for row in await connection.fetch(_FACTS, exchange)]
        if todo & REQUEST:
            await self._read_request(connection, exchange, session, facts)
        if todo & REPLY:
            frames = await connection.fetch(_FRAMES, exchange)
            raw = b"".join(raw_bytes(self._codec, row["data"]) for row in frames)
            if raw:
                words, name = read_reply(reply_dialect(facts), raw)
                await self._note_words(connection, exchange, 1, words)
                await self._note_id(connection, exchange, storable(name))
        await connection.execute(_DONE, exchange)

    async def _read_request(
        self, connection: PostgresConnection, exchange: str, session: str, facts: Sequence[Fact]
    ) -> None:
        received = next((fact for fact in facts if isinstance(fact, Received)), None)
        if received is None or not received.sha256:
            return
        body = await self._bodies.body(connection, received.sha256)
        if body is None:
            return
        digest = self._requests.read(received.dialect, body)
        thread = digest.thread[-1] if digest.thread and not digest.is_side else None
        continues = storable(digest.continues)
        named = continues, exchange, exchange_in(continues)
        previous = str(await connection.fetchval(_NAMED, *named) or "") if continues else ""
        previous = previous or await self._find_predecessor(connection, exchange, session, digest)
        title = storable(digest.title)
        await connection.execute(_TITLE, exchange, title, digest.is_side, thread, previous, continues)
        new = await self._new_instructions(connection, exchange, digest)
        await self._note_words(connection, exchange, 0, "\n".join([*new, digest.new_text]))

    async def _note_id(self, connection: PostgresConnection, exchange: str, name: str) -> None:
        """What the reply is called; those that name it may have been read before it, by another replica."""
        if name:
            await connection.execute(_CALLED, exchange, name)
            await connection.execute(_LINKED, exchange, name)

    async def _find_predecessor(
        self, connection: PostgresConnection, exchange: str, session: str, digest: Digest
    ) -> str:
        """The latest exchange of the session that asked the longest beginning of this conversation."""
        beginnings = digest.thread[-_BEGINNINGS:-1]
        if not beginnings or digest.is_side:
            return ""
        rows = await connection.fetch(_CONTINUED, list(beginnings), session, exchange)
        length = {beginning: index for index, beginning in enumerate(beginnings)}
        found = [(length[row["thread"]], str(row["id"])) for row in rows]
        return max(found)[1] if found else ""

    async def _new_instructions(self, connection: PostgresConnection, exchange: str, digest: Digest) -> list[str]:
        named = {
            hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest(): text for text in digest.system
        }
        new = {named[name] for name in sorted(named) if await connection.fetchval(_INSTRUCT, name, exchange)}
        return [text for text in dict.fromkeys(digest.system) if text in new]

    async def _note_words(self, connection: PostgresConnection, exchange: str, part: int, words: str) -> None:
        words = storable(words.encode("utf-8", "replace").decode())
        if words:
            await connection.execute(_WORDS, exchange, part, words)


T = TypeVar("T")

_LARGEST = (1 << 63) - 1
_ENCODER = msgspec.msgpack.Encoder()

_BEGIN = """
INSERT INTO sightline.exchanges (id, replica, slot)
SELECT id, $2, $3 FROM unnest($1::text[]) AS new (id) ORDER BY id
ON CONFLICT DO NOTHING
"""
_HOLD = "SELECT id, next_n FROM sightline.exchanges WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE"
_FACTS_OF_MANY = (
    "SELECT exchange, n, at, data FROM sightline.facts WHERE exchange = ANY($1::text[]) ORDER BY exchange, n"
)
_NOTE = "INSERT INTO sightline.facts (exchange, n, at, data) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
_NOTE_FRAMES = "INSERT INTO sightline.frames (exchange, n, data) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_USE = "INSERT INTO sightline.uses (exchange, sha256) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_SUMMARISE = f"""
UPDATE sightline.exchanges SET next_n = $2, todo = todo | $3,
    {", ".join(f"{name} = ${number}" for number, name in enumerate(FOLDED, 4))}
WHERE id = $1
"""
_UNFINISHED = """
SELECT id, next_n, state FROM sightline.exchanges
WHERE replica = $1 AND slot <> ALL($2::integer[]) AND state = ANY($3::text[]) ORDER BY id
"""


class PostgresSink:
    """See `Sink`. `replica` names the data folder among those of all replicas."""

    def __init__(self, address: PostgresAddress, *, replica: str, prices: PriceList, now: Callable[[], float]) -> None:
        self._address = address
        self._replica = replica
        self._prices = prices
        self._now = now
        self._codec = Codec()
        self._bodies = PostgresBodies(self._codec)
        self._digests = PostgresDigests(self._codec, self._bodies, replica)
        self._runner: asyncio.Runner | None = None
        self._connection: PostgresConnection | None = None

    def apply(self, batch: Sequence[KeptEntry], slot: int = 0) -> None:
        """Bring all of these in, or none; what is there already changes nothing."""
        if batch:
            self._do(lambda connection: self._apply(connection, plain_entries(batch), slot))

    def open_exchanges(self, living: Sequence[int]) -> list[Unfinished]:
        """The exchanges of this replica that have not ended, without those of processes with these slots."""
        rows = self._do(
            lambda connection: connection.fetch(_UNFINISHED, self._replica, list(living), list(OPEN_STATES))
        )
        return [Unfinished(row["id"], row["next_n"], row["state"]) for row in rows]

    def tidy(self) -> bool:
        """Read some of the requests and replies that came in; False where none is left."""
        return self._do(lambda connection: self._digests.advance(connection, self._now()))

    def refresh(self) -> None:
        """Nothing is remembered that another process may change."""

    def rest(self) -> None:
        """What is remembered stays: asking for it again takes many steps there."""

    def close(self) -> None:
        """End the connection and the loop."""
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
            # A connection that ended while nothing was recorded is not worth a word, if a new one does.
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

    async def _apply(self, connection: PostgresConnection, batch: Sequence[Entry], slot: int) -> None:
        exchanges: defaultdict[str, list[FactEntry]] = defaultdict(list)
        for entry in batch:
            if isinstance(entry, FactEntry):
                exchanges[entry.exchange].append(entry)
        async with writing(connection):
            await self._bodies.keep(connection, [entry for entry in batch if isinstance(entry, BodyEntry)])
            if exchanges:
                names = sorted(exchanges)
                await connection.execute(_BEGIN, names, self._replica, slot)
                next_n = {row["id"]: row["next_n"] for row in await connection.fetch(_HOLD, names)}
                fresh = {
                    name: facts
                    for name in names
                    if (facts := sorted((n for n in exchanges[name] if n.n >= next_n[name]), key=lambda each: each.n))
                }
                await self._add(connection, fresh)

    async def _add(self, connection: PostgresConnection, fresh: dict[str, list[FactEntry]]) -> None:
        """Note facts that are new, and fold those exchanges again."""
        frames: list[tuple[object, ...]] = []
        others: dict[str, list[FactEntry]] = {}
        for name, facts in fresh.items():
            others[name] = [each for each in facts if not isinstance(each.fact, FrameArrived)]
            run = [(each, each.fact) for each in facts if isinstance(each.fact, FrameArrived)]
            if run:
                frames.append((name, run[0][0].n, pack_frames(self._codec, run)))
        known: dict[str, list[FactEntry]] = {name: [] for name in fresh}
        for row in await connection.fetch(_FACTS_OF_MANY, list(fresh)):
            entry = FactEntry(row["exchange"], row["n"], row["at"], _DECODER.decode(row["data"]))
            known[entry.exchange].append(entry)
        added = [each for facts in others.values() for each in facts]
        uses = {(each.exchange, sha256) for each in added for sha256 in bodies_of(each.fact)}
        await connection.executemany(
            _NOTE, [(each.exchange, each.n, each.at, _ENCODER.encode(each.fact)) for each in added]
        )
        await connection.executemany(_NOTE_FRAMES, frames)
        await connection.executemany(_USE, [(name, bytes.fromhex(sha256)) for name, sha256 in sorted(uses)])
        await connection.executemany(
            _SUMMARISE,
            [
                (
                    name, facts[-1].n + 1, to_read(others[name]),
                    *_row(name, [*known[name], *others[name]], self._prices),
                )
                for name, facts in fresh.items()
            ],
        )  # fmt: skip


async def _close_connection(connection: PostgresConnection) -> None:
    try:
        await connection.close()
    except TROUBLE:
        # Whatever was wrong with it, nothing waits for it any more.
        connection.terminate()


def _row(exchange: str, facts: Iterable[FactEntry], prices: PriceList) -> list[str | int | float | None]:
    """The columns, with what no column of PostgreSQL takes made into what one does."""
    return [_fitting(value) for value in row_of(summary_of(exchange, facts, prices))]


def _fitting(value: str | int | float | None) -> str | int | float | None:
    if isinstance(value, str):
        # In a list of tools, the sign that ends texts elsewhere is written as an escape.
        return value.replace("\\u0000", "\\ufffd")
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-_LARGEST, min(value, _LARGEST))
    return value
