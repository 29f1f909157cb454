"""Reading requests and replies: words to search, titles, and which conversation they continue.

A short exchange whose reply was read on its way is read while it is stored. The others are read after that, when
nothing else is to do, because it takes longer than storing them and nobody waits for it; what is not done yet is marked
in the database.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from sightline.model.exchange import Fact, Received
from sightline.store.columns import storable
from sightline.store.delta import Codec
from sightline.store.digest import Digest, digest_of, reply_words
from sightline.store.frames import raw_bytes
from sightline.store.pending_reading import REPLY, REQUEST, reply_dialect
from sightline.store.sqlite_bodies import SqliteBodies
from sightline.store.sqlite_database import changing
from sightline.store.threads import reply_id

UNREADABLE = (UnicodeError, ValueError, OverflowError, RecursionError)
"""What may go wrong with one exchange and must not keep others from being read."""
_AT_ONCE = 64
_LOG = logging.getLogger(__name__)
_BEGINNINGS = 256
_DECODER: msgspec.msgpack.Decoder[Fact] = msgspec.msgpack.Decoder(Fact)


class DigestColumns(NamedTuple):
    """What a request tells, as columns of its exchange."""

    title: str = ""
    is_side: bool = False
    thread: bytes | None = None
    previous: str = ""
    continues: str = ""


class SqliteDigests:
    """Reads exchanges of a slot, inside transactions that `begin` and `end` here."""

    def __init__(self, connection: sqlite3.Connection, codec: Codec, bodies: SqliteBodies, slot: int) -> None:
        self._connection = connection
        self._codec = codec
        self._bodies = bodies
        self._slot = slot
        self._words: list[tuple[int, str]] = []
        self._instructed: set[bytes] = set()
        """Instructions that are known to be noted in this transaction; others may forget them between two."""

    def begin(self) -> None:
        """A transaction begins."""
        self._words.clear()
        self._instructed.clear()

    def end(self) -> None:
        """It is about to end: note the words that were read in it."""
        packed = [(number, self._codec.pack(words.encode())) for number, words in self._words]
        self._connection.executemany("INSERT OR IGNORE INTO texts VALUES (?,?)", packed)
        self._connection.executemany("INSERT INTO search (rowid, words) VALUES (?,?)", self._words)

    def advance(self) -> bool:
        """Read some of what is left; False where nothing was."""
        with changing(self._connection):
            self.begin()
            rows = self._connection.execute(
                "SELECT seq, todo, session FROM exchanges WHERE todo > 0 AND slot = ? ORDER BY seq LIMIT ?",
                (self._slot, _AT_ONCE),
            ).fetchall()
            for seq, todo, session in rows:
                try:
                    self._read(seq, todo, session)
                except UNREADABLE:
                    _LOG.exception("an exchange could not be read for search; it is on record all the same")
                self._connection.execute("UPDATE exchanges SET todo = 0 WHERE seq = ?", (seq,))
            self.end()
        return bool(rows)

    def _read(self, seq: int, todo: int, session: str) -> None:
        facts = self._facts(seq)
        if todo & REQUEST:
            self._read_request(seq, session, facts)
        if todo & REPLY:
            self._read_reply(seq, facts)

    def _facts(self, seq: int) -> list[Fact]:
        rows = self._connection.execute("SELECT data FROM facts WHERE exchange = ? ORDER BY n", (seq,))
        return [_DECODER.decode(data) for (data,) in rows]

    def _read_request(self, seq: int, session: str, facts: Sequence[Fact]) -> None:
        received = next((fact for fact in facts if isinstance(fact, Received)), None)
        body = self._bodies.body(received.sha256) if received is not None and received.sha256 else None
        if received is None or body is None:
            return
        is_noted = self._is_noted(2 * seq)
        told = self.request(seq, session, received.dialect, body, is_noted=is_noted)
        self._connection.execute(
            "UPDATE exchanges SET title = ?, is_side = ?, thread = ?, previous = ?, continues = ? WHERE seq = ?",
            (*told, seq),
        )

    def request(self, seq: int, session: str, dialect: str, body: bytes, *, is_noted: bool = False) -> DigestColumns:
        """What this request tells; its words are noted, unless that is done already."""
        digest = digest_of(dialect, body)
        new = self._new_instructions(seq, digest)
        if not is_noted:
            self._note_words(2 * seq, "\n".join([*new, digest.asked]) if new else digest.asked)
        return DigestColumns(
            storable(digest.title),
            digest.is_side,
            digest.thread[-1] if digest.thread and not digest.is_side else None,
            self._find_by_reply_id(seq, digest) or self._find_predecessor(seq, session, digest),
            storable(digest.continues),
        )

    def forget(self, seq: int) -> None:
        """What was read in this transaction for an exchange that did not get this number after all."""
        self._words = [each for each in self._words if each[0] // 2 != seq]
        self._connection.execute("DELETE FROM instructions WHERE exchange = ?", (seq,))
        self._instructed.clear()

    def _find_by_reply_id(self, seq: int, digest: Digest) -> str:
        """The latest exchange whose reply this one names as its last."""
        if not digest.continues:
            return ""
        row = self._connection.execute(
            "SELECT id FROM exchanges WHERE reply_id = ? AND reply_id <> '' AND seq < ? ORDER BY seq DESC LIMIT 1",
            (storable(digest.continues), seq),
        ).fetchone()
        return "" if row is None else str(row[0])

    def _find_predecessor(self, seq: int, session: str, digest: Digest) -> str:
        """The latest exchange of the session that asked the longest beginning of this conversation."""
        beginnings = digest.thread[-_BEGINNINGS:-1]
        if not beginnings or digest.is_side:
            return ""
        rows = self._connection.execute(
            f"SELECT thread, seq, id FROM exchanges WHERE thread IN ({','.join('?' * len(beginnings))})"
            " AND session = ? AND seq < ?",
            (*beginnings, session, seq),
        ).fetchall()
        if not rows:
            return ""
        length = {beginning: index for index, beginning in enumerate(beginnings)}
        return str(max(rows, key=lambda row: (length[row[0]], row[1]))[2])

    def _new_instructions(self, seq: int, digest: Digest) -> list[str]:
        new = []
        for text in digest.system:
            name = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
            if name in self._instructed:
                continue
            self._instructed.add(name)
            if self._connection.execute("INSERT OR IGNORE INTO instructions VALUES (?,?)", (name, seq)).rowcount:
                new.append(text)
        return new

    def _read_reply(self, seq: int, facts: Sequence[Fact]) -> None:
        rows = self._connection.execute("SELECT data FROM frames WHERE exchange = ? ORDER BY n", (seq,))
        raw = b"".join(raw_bytes(self._codec, data) for (data,) in rows)
        if raw:
            words = "" if self._is_noted(2 * seq + 1) else reply_words(reply_dialect(facts), raw)
            self.reply(seq, words, reply_id(reply_dialect(facts), raw))

    def reply(self, seq: int, words: str, name: str) -> None:
        """Note what a reply says, and what it is called; those that name it may have been read before it."""
        self._note_words(2 * seq + 1, words)
        if name := storable(name):
            self._connection.execute("UPDATE exchanges SET reply_id = ? WHERE seq = ?", (name, seq))
            self._connection.execute(
                "UPDATE exchanges SET previous = (SELECT id FROM exchanges WHERE seq = ?)"
                " WHERE continues = ? AND continues <> '' AND previous = '' AND seq > ?",
                (seq, name, seq),
            )

    def _note_words(self, number: int, words: str) -> None:
        if words := storable(words):
            self._words.append((number, words))

    def _is_noted(self, number: int) -> bool:
        return self._connection.execute("SELECT 1 FROM texts WHERE id = ?", (number,)).fetchone() is not None


def forget_words(connection: sqlite3.Connection, codec: Codec, seq: int) -> None:
    """Take the words of an exchange out of the index, which must be told what they were."""
    for number in (2 * seq, 2 * seq + 1):
        row = connection.execute("SELECT words FROM texts WHERE id = ?", (number,)).fetchone()
        if row is not None:
            words = codec.unpack(row[0]).decode()
            connection.execute("INSERT INTO search (search, rowid, words) VALUES ('delete', ?, ?)", (number, words))
            connection.execute("DELETE FROM texts WHERE id = ?", (number,))
    connection.execute("DELETE FROM instructions WHERE exchange = ?", (seq,))
