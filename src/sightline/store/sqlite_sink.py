"""The writing side of an SQLite record; all of it runs on the writer's thread.

A short exchange whose reply the recorder has read is indexed while it is stored. The others are indexed when the writer
is idle, because that takes longer than storing them and no caller waits for it; `todo` marks what is left.
"""

import hashlib
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import msgspec

from sightline.model.exchange import Fact, FrameArrived, Received
from sightline.store.digest import (
    LONGEST,
    REPLY,
    REQUEST,
    Digest,
    ReplyText,
    ReplyTexts,
    digest_of,
    names_replies,
    reply_dialect,
    reply_id,
    reply_words,
    to_read,
)
from sightline.store.entries import BodyEntry, Codec, Entry, FactEntry, pack_frames, raw_bytes
from sightline.store.sqlite_database import SqliteBodies, changing
from sightline.store.summary import (
    FOLDED,
    OPEN_STATES,
    PriceList,
    Summary,
    Unfinished,
    bodies_of,
    row_of,
    storable,
    summary_of,
)

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
        columns = self.request(seq, session, received.dialect, body, is_noted=is_noted)
        self._connection.execute(
            "UPDATE exchanges SET title = ?, is_side = ?, thread = ?, previous = ?, continues = ? WHERE seq = ?",
            (*columns, seq),
        )

    def request(self, seq: int, session: str, dialect: str, body: bytes, *, is_noted: bool = False) -> DigestColumns:
        """What this request tells; its words are noted, unless that is done already."""
        digest = digest_of(dialect, body)
        new = self._new_instructions(seq, digest)
        if not is_noted:
            self._note_words(2 * seq, "\n".join([*new, digest.new_text]) if new else digest.new_text)
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
    """Take the words of an exchange out of the index. FTS5 without content needs the old words for that."""
    for number in (2 * seq, 2 * seq + 1):
        row = connection.execute("SELECT words FROM texts WHERE id = ?", (number,)).fetchone()
        if row is not None:
            words = codec.unpack(row[0]).decode()
            connection.execute("INSERT INTO search (search, rowid, words) VALUES ('delete', ?, ?)", (number, words))
            connection.execute("DELETE FROM texts WHERE id = ?", (number,))
    connection.execute("DELETE FROM instructions WHERE exchange = ?", (seq,))


_ENCODER = msgspec.msgpack.Encoder()
_NO_DIGEST = DigestColumns()
_number = attrgetter("n")
_OPEN = ", ".join(f"'{state}'" for state in OPEN_STATES)
_INSERT = (
    f"INSERT INTO exchanges (seq, id, slot, next_n, todo, {', '.join((*FOLDED, *DigestColumns._fields))})"
    f" VALUES ({','.join('?' * (5 + len(FOLDED) + len(DigestColumns._fields)))}) ON CONFLICT (id) DO NOTHING"
)
_UPDATE = (
    f"UPDATE exchanges SET next_n = ?, todo = todo | ?, {', '.join(f'{name} = ?' for name in FOLDED)} WHERE seq = ?"
)


@dataclass(slots=True)
class _Known:
    """An exchange that is still under way: its row, the number of its next fact, its facts without frames, and the
    bodies of which it is noted that it has them."""

    seq: int = 0
    next_n: int = 0
    facts: list[FactEntry] = field(default_factory=list)
    bodies: set[str] = field(default_factory=set)


class SqliteSink:
    """Brings entries into the database. `slot` marks the exchanges of this process while they are under way;
    `reply_texts` is where the recorder puts the texts of replies that it has read."""

    def __init__(self, connection: sqlite3.Connection, slot: int, prices: PriceList) -> None:
        self.reply_texts = ReplyTexts()
        self._connection = connection
        self._slot = slot
        self._prices = prices
        self._codec = Codec()
        self._bodies = SqliteBodies(connection, self._codec)
        self._digests = SqliteDigests(connection, self._codec, self._bodies, slot)
        self._known: dict[str, _Known] = {}
        self._last_seq = 0
        # Rows of this transaction, for statements that take many at once.
        self._facts: list[tuple[int, int, float, bytes]] = []
        self._frames: list[tuple[int, int, bytes]] = []
        self._uses: list[tuple[int, int]] = []

    def apply(self, batch: Sequence[Entry]) -> None:
        """Bring all of these in, or none; what is there already changes nothing."""
        exchanges: defaultdict[str, list[FactEntry]] = defaultdict(list)
        try:
            with changing(self._connection):
                self._begin()
                for entry in batch:
                    if isinstance(entry, BodyEntry):
                        self._bodies.keep(entry)
                    else:
                        exchanges[entry.exchange].append(entry)
                for exchange, facts in exchanges.items():
                    self._add(exchange, facts)
                self._end()
        except BaseException:
            # What is known of exchanges may say more than the database holds.
            self._known.clear()
            raise

    def _begin(self) -> None:
        self._bodies.begin()
        self._digests.begin()
        for rows in (self._facts, self._frames, self._uses):
            rows.clear()
        (latest,) = self._connection.execute("SELECT max(seq) FROM exchanges").fetchone()
        self._last_seq = latest or 0

    def _end(self) -> None:
        self._connection.executemany("INSERT OR IGNORE INTO facts VALUES (?,?,?,?)", self._facts)
        self._connection.executemany("INSERT OR IGNORE INTO frames VALUES (?,?,?)", self._frames)
        self._connection.executemany("INSERT OR IGNORE INTO uses VALUES (?,?)", self._uses)
        self._digests.end()

    def claim_open_exchanges(self, slots: Sequence[int]) -> list[Unfinished]:
        """The exchanges of these slots that have not ended. From now on they are this process's own."""
        with changing(self._connection):
            marks = ",".join("?" * len(slots))
            mine = f"UPDATE exchanges SET slot = ? WHERE slot IN ({marks}) AND slot <> ? AND"
            for which in ("todo > 0", f"state IN ({_OPEN})"):
                self._connection.execute(f"{mine} {which}", (self._slot, *slots, self._slot))
            rows = self._connection.execute(
                f"SELECT id, next_n, state FROM exchanges WHERE slot = ? AND state IN ({_OPEN}) ORDER BY id",
                (self._slot,),
            ).fetchall()
        return [Unfinished(*row) for row in rows]

    def tidy(self) -> bool:
        """Read some of the requests and replies that came in; False where none is left."""
        return self._digests.advance()

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()

    def _add(self, exchange: str, facts: list[FactEntry]) -> None:
        known = self._known.get(exchange) or (_Known() if facts[0].n == 0 else self._load_known(exchange))
        fresh = sorted((entry for entry in facts if entry.n >= known.next_n), key=_number)
        if not fresh:
            return
        frames = [(entry, entry.fact) for entry in fresh if isinstance(entry.fact, FrameArrived)]
        others = [entry for entry in fresh if not isinstance(entry.fact, FrameArrived)]
        known.facts += others
        known.next_n = fresh[-1].n + 1
        summary = summary_of(exchange, known.facts, self._prices)
        if known.seq:
            self._update_row(known, summary, to_read(others))
        elif not self._insert_row(known, summary):  # it was brought in before
            self._known[exchange] = self._load_known(exchange)
            self._add(exchange, facts)
            return
        seq = known.seq
        self._facts += [(seq, entry.n, entry.at, _ENCODER.encode(entry.fact)) for entry in others]
        if frames:
            self._frames.append((seq, frames[0][0].n, pack_frames(self._codec, frames)))
        self._note_uses(known, others)
        if summary.state in OPEN_STATES:
            self._known[exchange] = known
        else:
            self._known.pop(exchange, None)

    def _insert_row(self, known: _Known, summary: Summary) -> bool:
        """Make its row; False where there is one."""
        seq, todo, columns = self._last_seq + 1, to_read(known.facts), _NO_DIGEST
        reply = self.reply_texts.take(summary.id) if todo & REPLY else None
        if reply is not None:
            todo, columns = self._read_short_request(known, seq, todo & ~REPLY)
        row = seq, summary.id, self._slot, known.next_n, todo, *row_of(summary), *columns
        if not self._connection.execute(_INSERT, row).rowcount:
            if reply is not None:
                self._digests.forget(seq)
            return False
        self._last_seq = known.seq = seq
        if reply is not None:
            self._store_reply(known, reply)
        return True

    def _update_row(self, known: _Known, summary: Summary, todo: int) -> None:
        """Bring its row up to date because of facts that want these chores."""
        reply = self.reply_texts.take(summary.id) if todo & REPLY else None
        if reply is not None:
            todo &= ~REPLY
            self._store_reply(known, reply)
        self._connection.execute(_UPDATE, (known.next_n, todo, *row_of(summary), known.seq))

    def _read_short_request(self, known: _Known, seq: int, todo: int) -> tuple[int, DigestColumns]:
        """What is still to be read of an exchange, and what its request tells, if it is short enough to look now."""
        received = known.facts[0].fact
        if isinstance(received, Received):
            body = self._bodies.recent(received.sha256)
            if body is not None and len(body) <= LONGEST:
                try:
                    return todo & ~REQUEST, self._digests.request(seq, received.session, received.dialect, body)
                except UNREADABLE:
                    return todo, _NO_DIGEST  # who tries it again later says what is wrong with it
        return todo, _NO_DIGEST

    def _store_reply(self, known: _Known, reply: ReplyText) -> None:
        name = reply.reply_id if names_replies(reply_dialect([entry.fact for entry in known.facts])) else ""
        self._digests.reply(known.seq, reply.words, name)

    def _note_uses(self, known: _Known, facts: list[FactEntry]) -> None:
        names = {name for entry in facts for name in bodies_of(entry.fact)} - known.bodies
        numbers = {name: number for name in names if (number := self._bodies.number(name)) is not None}
        known.bodies |= numbers.keys()
        self._uses += [(known.seq, number) for number in numbers.values()]

    def _load_known(self, exchange: str) -> _Known:
        row = self._connection.execute("SELECT seq, next_n FROM exchanges WHERE id = ?", (exchange,)).fetchone()
        if row is None:
            return _Known()
        facts = self._connection.execute("SELECT n, at, data FROM facts WHERE exchange = ? ORDER BY n", (row[0],))
        return _Known(row[0], row[1], [FactEntry(exchange, n, at, _DECODER.decode(data)) for n, at, data in facts])
