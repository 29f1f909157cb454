"""Reading requests and replies after they are in PostgreSQL: words to search, titles, and conversations.

It takes longer than storing them, and nobody waits for it, so it is done when nothing else is to do. What is not done
yet is marked in the database.
"""

import hashlib
import logging
from collections.abc import Sequence

import msgspec

from sightline.model.exchange import Fact, Received
from sightline.store.columns import storable
from sightline.store.delta import Codec
from sightline.store.digest import Digest, digest_of, reply_words
from sightline.store.frames import raw_bytes
from sightline.store.pending_reading import REPLY, REQUEST, reply_dialect
from sightline.store.postgres_bodies import PostgresBodies
from sightline.store.postgres_connection import UNFIT, PostgresConnection, Row
from sightline.store.postgres_locks import writing
from sightline.store.threads import reply_id

LEFT_BEHIND = 600.0
"""After so many seconds, what a replica has not read is read by others: it may never come back."""

_AT_ONCE = 16
_LOG = logging.getLogger(__name__)
_BEGINNINGS = 256
_DECODER: msgspec.msgpack.Decoder[Fact] = msgspec.msgpack.Decoder(Fact)

_OWN = """
SELECT id, todo, session FROM sightline.exchanges
WHERE todo > 0 AND replica = $1 AND slot = $2 ORDER BY id LIMIT 1 FOR UPDATE
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
SELECT id FROM sightline.exchanges WHERE reply_id = $1 AND reply_id <> '' AND id < $2 ORDER BY id DESC LIMIT 1
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
    """Does what is left to do for the exchanges of one slot of a replica, a few at a time."""

    def __init__(self, codec: Codec, bodies: PostgresBodies, replica: str, slot: int) -> None:
        self._codec = codec
        self._bodies = bodies
        self._replica = replica
        self._slot = slot

    async def advance(self, connection: PostgresConnection, now: float) -> bool:
        """Read some; False where none was left."""
        for _ in range(_AT_ONCE):
            row: Row | None = None
            try:
                # One at a time, so that replicas that note the same instructions wait for each other, never both ways.
                async with writing(connection):
                    row = await connection.fetchrow(_OWN, self._replica, self._slot)
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
                await self._note_words(connection, exchange, 1, reply_words(reply_dialect(facts), raw))
                await self._note_id(connection, exchange, storable(reply_id(reply_dialect(facts), raw)))
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
        digest = digest_of(received.dialect, body)
        thread = digest.thread[-1] if digest.thread and not digest.is_side else None
        continues = storable(digest.continues)
        previous = str(await connection.fetchval(_NAMED, continues, exchange) or "") if continues else ""
        previous = previous or await self._find_predecessor(connection, exchange, session, digest)
        title = storable(digest.title)
        await connection.execute(_TITLE, exchange, title, digest.is_side, thread, previous, continues)
        new = await self._new_instructions(connection, exchange, digest)
        await self._note_words(connection, exchange, 0, "\n".join([*new, digest.asked]))

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
