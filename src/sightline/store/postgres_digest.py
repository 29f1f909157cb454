"""Reads the requests and replies of a PostgreSQL record for search, after they were imported, in separate transactions.

`todo` marks what is still to be read, so that a process that ends in between, or never comes back, leaves nothing
unread.
"""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from math import isnan
from typing import NamedTuple, TypeAlias

import msgspec

from sightline.dialects.stored import exchange_in
from sightline.model.exchange import Fact, Received
from sightline.store.digest import (
    DIGEST_COLUMNS,
    REPLY,
    REQUEST,
    Digest,
    columns_of_digest,
    read_history,
    read_reply,
    reply_dialect,
    storable,
)
from sightline.store.digest_reader import DigestReader
from sightline.store.entries import Codec, raw_bytes
from sightline.store.postgres_connection import CROSSED, UNFIT, PostgresConnection, arrays, send_rows, writing
from sightline.store.postgres_words import append_words
from sightline.store.search import FoundRow
from sightline.store.words import searchable

BodyReader: TypeAlias = Callable[[PostgresConnection, str], Awaitable[bytes | None]]
"""Returns the body with a hash; None if there is none."""

LEFT_BEHIND = 600.0
"""After so many seconds, other replicas read what a replica has not read: it may never come back."""

_AT_ONCE = 128
_LOG = logging.getLogger(__name__)
_BEGINNINGS = 256
_DECODER: msgspec.msgpack.Decoder[Fact] = msgspec.msgpack.Decoder(Fact)
_UNREADABLE_ERRORS = (UnicodeError, ValueError, OverflowError, RecursionError, *UNFIT)

_OWN = """
SELECT id, todo, session FROM sightline.exchanges
WHERE todo > 0 AND replica = $1 ORDER BY id LIMIT $2 FOR UPDATE
"""
_LEFT = """
SELECT id, todo, session FROM sightline.exchanges
WHERE todo > 0 AND at < $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
"""
_FACTS = "SELECT exchange, data FROM sightline.facts WHERE exchange = ANY($1::text[]) ORDER BY exchange, n"
_FRAMES = "SELECT exchange, data FROM sightline.frames WHERE exchange = ANY($1::text[]) ORDER BY exchange, n"
_FOUND = {"reply_id": "text", "previous": "text", **DIGEST_COLUMNS}
"""The columns that are written once an exchange is read, and their types."""
_DONE = f"""
UPDATE sightline.exchanges AS e SET todo = 0, {", ".join(f"{name} = coalesce(new.{name}, e.{name})" for name in _FOUND)}
FROM {arrays("text", *_FOUND.values())} AS new (id, {", ".join(_FOUND)})
WHERE e.id = new.id
"""
_UNREADABLE = "UPDATE sightline.exchanges SET todo = 0 WHERE id = $1"
_NAMED = """
SELECT id, reply_id FROM sightline.exchanges
WHERE reply_id = ANY($1::text[]) AND reply_id <> '' OR id = ANY($2::text[])
"""
_LINKED = f"""
UPDATE sightline.exchanges AS e SET previous = new.id FROM {arrays("text", "text")} AS new (id, reply_id)
WHERE e.continues = new.reply_id AND e.continues <> '' AND e.previous = '' AND e.id > new.id
"""
_CONTINUED = """
SELECT thread, session, id FROM sightline.exchanges WHERE thread = ANY($1::bytea[]) AND session = ANY($2::text[])
"""
_INSTRUCT = f"""
INSERT INTO sightline.instructions (hash, exchange) SELECT * FROM {arrays("bytea", "text")} ORDER BY 1
ON CONFLICT DO NOTHING RETURNING hash
"""


class Recorded(NamedTuple):
    """What is recorded of an exchange: its facts without the frames, and the raw reply."""

    facts: Sequence[Fact]
    raw: bytes


class PostgresDigests:
    """Reads the exchanges of a replica, many at a time. `fresh` are those that were imported last, which need not be
    fetched."""

    def __init__(self, codec: Codec, read_body: BodyReader, replica: str) -> None:
        self.fresh: dict[str, Recorded] = {}
        self._codec = codec
        self._read_body = read_body
        self._replica = replica
        self._requests = DigestReader()

    async def advance(self, connection: PostgresConnection, now: float) -> bool:
        """Read some exchanges; returns False if none are left."""
        try:
            return await self._read_many(connection, now)
        except (*_UNREADABLE_ERRORS, CROSSED):
            # An exchange that cannot be read must not block others. And if replicas deadlock because they add the same
            # instructions, or their exchanges name each other's, reading one at a time leaves only one waiting for the
            # other.
            return await self._read_one_by_one(connection, now)

    async def _read_many(self, connection: PostgresConnection, now: float) -> bool:
        for whose in ((_OWN, self._replica), (_LEFT, now - LEFT_BEHIND)):
            async with writing(connection):
                rows = await connection.fetch(*whose, _AT_ONCE)
                await self._read(connection, rows)
            if len(rows) == _AT_ONCE:
                return True
        self.fresh.clear()
        return False

    async def _read_one_by_one(self, connection: PostgresConnection, now: float) -> bool:
        for _ in range(_AT_ONCE):
            rows: list[FoundRow] = []
            try:
                async with writing(connection):
                    rows = await connection.fetch(_OWN, self._replica, 1)
                    rows = rows or await connection.fetch(_LEFT, now - LEFT_BEHIND, 1)
                    await self._read(connection, rows)
            except _UNREADABLE_ERRORS:
                if not rows:
                    raise
                _LOG.exception("an exchange could not be read for search; it is on record all the same")
                await connection.execute(_UNREADABLE, rows[0]["id"])
            if not rows:
                return False
        return True

    async def _read(self, connection: PostgresConnection, rows: Sequence[FoundRow]) -> None:
        if not rows:
            return
        sessions = {row["id"]: row["session"] for row in rows}
        recorded = await self._load(connection, list(sessions))
        digests: dict[str, Digest] = {}
        words: list[tuple[str, str]] = []
        names: dict[str, str] = {}
        for row in rows:
            exchange, (facts, raw) = row["id"], recorded[row["id"]]
            if row["todo"] & REQUEST and (digest := await self._read_request(connection, facts)) is not None:
                digests[exchange] = digest
            if row["todo"] & REPLY and raw:
                text, name = read_reply(reply_dialect(facts), raw)
                words.append((exchange, text))
                if name:
                    names[exchange] = storable(name)
        previous = await self._find_previous(connection, sessions, digests, names)
        history: dict[str, list[str]] = {}
        begun = set[bytes]()  # a beginning that several share is read once: their bodies may be large
        for exchange, digest in digests.items():
            if not previous[exchange] and len(digest.thread) > 1 and digest.thread[-2] not in begun:
                begun.add(digest.thread[-2])
                history[exchange] = await self._read_history(connection, recorded[exchange][0])
        texts = {exchange: [*each.system, *history.get(exchange, ())] for exchange, each in digests.items()}
        new = await self._note_texts(connection, texts)
        words += [(exchange, "\n".join([*new[exchange], each.new_text])) for exchange, each in digests.items()]
        said = sorted((exchange, searchable(text)) for exchange, text in words if text)
        await append_words(connection, self._codec, said)
        await send_rows(
            connection, _DONE,
            [(each, names.get(each), previous.get(each), *_digest_columns(digests.get(each))) for each in sessions],
        )  # fmt: skip
        # Exchanges that name a reply may have been read before it, by another replica.
        await send_rows(connection, _LINKED, list(names.items()))

    async def _load(self, connection: PostgresConnection, exchanges: Sequence[str]) -> dict[str, Recorded]:
        found = {each: self.fresh[each] for each in exchanges if each in self.fresh}
        missing = [each for each in exchanges if each not in found]
        if missing:
            facts: defaultdict[str, list[Fact]] = defaultdict(list)
            raw: defaultdict[str, bytes] = defaultdict(bytes)
            for row in await connection.fetch(_FACTS, missing):
                facts[row["exchange"]].append(_DECODER.decode(row["data"]))
            for row in await connection.fetch(_FRAMES, missing):
                raw[row["exchange"]] += raw_bytes(self._codec, row["data"])
            found |= {each: Recorded(facts[each], raw[each]) for each in missing}
        return found

    async def _read_request(self, connection: PostgresConnection, facts: Sequence[Fact]) -> Digest | None:
        dialect, body = await self._load_request(connection, facts)
        return None if body is None else self._requests.read(dialect, body)

    async def _read_history(self, connection: PostgresConnection, facts: Sequence[Fact]) -> list[str]:
        dialect, body = await self._load_request(connection, facts)
        return [] if body is None else read_history(dialect, body)

    async def _load_request(self, connection: PostgresConnection, facts: Sequence[Fact]) -> tuple[str, bytes | None]:
        received = next((fact for fact in facts if isinstance(fact, Received)), None)
        if received is None or not received.sha256:
            return "", None
        return received.dialect, await self._read_body(connection, received.sha256)

    async def _find_previous(
        self,
        connection: PostgresConnection,
        sessions: Mapping[str, str],
        digests: Mapping[str, Digest],
        names: Mapping[str, str],
    ) -> dict[str, str]:
        """For each exchange, the one whose reply it names; otherwise the latest one of its session whose conversation
        is the longest beginning of its own. Both may be in this batch. Empty if there is none."""
        called: defaultdict[str, set[str]] = defaultdict(set)
        if continues := {storable(each.continues) for each in digests.values() if each.continues}:
            own = {exchange_in(each): each for each in continues}
            for row in await connection.fetch(_NAMED, list(continues), list(own)):
                called[row["reply_id"]].add(row["id"])
                called[own.get(row["id"], "")].add(row["id"])
        for exchange, name in names.items():
            called[name].add(exchange)
        beginnings = {x: each.thread[-_BEGINNINGS:-1] for x, each in digests.items() if not each.is_side}
        asked: defaultdict[tuple[str, bytes], set[str]] = defaultdict(set)
        if wanted := {beginning for each in beginnings.values() for beginning in each}:
            for row in await connection.fetch(_CONTINUED, list(wanted), list(set(sessions.values()))):
                asked[row["session"], row["thread"]].add(row["id"])
        for exchange in beginnings:
            if thread := digests[exchange].thread:
                asked[sessions[exchange], thread[-1]].add(exchange)
        previous: dict[str, str] = {}
        for exchange, digest in digests.items():
            found = called[storable(digest.continues)] if digest.continues else set()
            longest = (asked[sessions[exchange], each] for each in reversed(beginnings.get(exchange, ())))
            earlier = ([other for other in others if other < exchange] for others in (found, *longest))
            previous[exchange] = max(next(filter(None, earlier), [""]))
        return previous

    async def _note_texts(
        self, connection: PostgresConnection, texts: Mapping[str, Sequence[str]]
    ) -> dict[str, list[str]]:
        """The instructions and examples of each exchange that no earlier exchange had."""
        first: dict[bytes, tuple[str, str]] = {}
        for exchange, own in texts.items():
            for text in own:
                name = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
                first.setdefault(name, (exchange, text))
        new: dict[str, list[str]] = {exchange: [] for exchange in texts}
        if first:
            exchanges = [exchange for exchange, _ in first.values()]
            noted = {row["hash"] for row in await connection.fetch(_INSTRUCT, list(first), exchanges)}
            for name, (exchange, text) in first.items():
                if name in noted:
                    new[exchange].append(text)
        return new


def _digest_columns(digest: Digest | None) -> list[object]:
    """The values of `DIGEST_COLUMNS`; None for each, which leaves what is stored, if the request was not read."""
    if digest is None:
        return [None] * len(DIGEST_COLUMNS)
    values = chain.from_iterable(columns_of_digest(digest))
    return [driver_value(kind, value) for kind, value in zip(DIGEST_COLUMNS.values(), values, strict=True)]


def driver_value(kind: str, value: str | float | bytearray) -> object:
    """A value from `columns_of_digest` for a column of this type, as the driver takes it: a boolean as a bool, and
    None for what is missing."""
    if kind == "boolean":
        return bool(value)
    is_missing = isnan(value) if isinstance(value, float) else value == "" and kind != "text"
    return None if is_missing else value
