"""The writing side of an SQLite record: facts, bodies, and what is read in requests and replies, all in one transaction
for a batch."""

import hashlib
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from sightline.model.exchange import ExchangeFailed, ExchangeFinished, FrameArrived, Received
from sightline.store.digest import Digest, DigestReader, read_reply, reply_dialect
from sightline.store.entries import BodyEntry, Codec, Entry, FactEntry, pack_run
from sightline.store.sqlite_database import SqliteBodies, asking, changing, run_id, runs_of
from sightline.store.sqlite_words import Said, append_words, searchable
from sightline.store.summary import (
    FOLDED,
    OPEN_STATES,
    PriceList,
    Unfinished,
    bodies_of,
    row_of,
    storable,
    summary_of,
)

UNREADABLE = (UnicodeError, ValueError, OverflowError, RecursionError)
"""What may go wrong with one exchange and must not keep others from being read."""
_LOG = logging.getLogger(__name__)
_BEGINNINGS, _LIKELY = 256, 4
_ENDS = (ExchangeFinished, ExchangeFailed)
_number = attrgetter("n")


class DigestColumns(NamedTuple):
    """What a request tells, as columns of its exchange."""

    title: str = ""
    is_side: bool = False
    thread: bytes | None = None
    previous: str = ""
    continues: str = ""


_NO_DIGEST = DigestColumns()
_OPEN = ", ".join(f"'{state}'" for state in OPEN_STATES)
_INSERT = (
    f"INSERT INTO exchanges (seq, id, slot, next_n, {', '.join((*FOLDED, *DigestColumns._fields))})"
    f" VALUES ({','.join('?' * (4 + len(FOLDED) + len(DigestColumns._fields)))})"
)
_UPDATE = f"UPDATE exchanges SET next_n = ?, {', '.join(f'{name} = ?' for name in FOLDED)} WHERE seq = ?"


@dataclass(slots=True)
class _Known:
    """An exchange that is still under way: its row, the number of its next fact, its facts without frames, and the
    bodies of which it is noted that it has them."""

    seq: int = 0
    next_n: int = 0
    facts: list[FactEntry] = field(default_factory=list)
    bodies: set[str] = field(default_factory=set)


class SqliteSink:
    """Brings entries into the database; see `Sink`."""

    def __init__(self, connection: sqlite3.Connection, prices: PriceList) -> None:
        self._connection = connection
        self._slot = 0
        self._prices = prices
        self._codec = Codec()
        self._bodies = SqliteBodies(connection, self._codec)
        self._requests = DigestReader()
        self._known: dict[str, _Known] = {}
        self._last_seq = 0
        # Rows of this transaction, for statements that take many at once. Whoever asks for exchanges adds them first.
        self._added: list[tuple[object, ...]] = []
        self._runs: list[tuple[int, bytes]] = []
        self._uses: list[tuple[int, int]] = []
        self._words: list[Said] = []
        self._instructed: set[bytes] = set()
        """Instructions that are known to be noted in this transaction; others may forget them between two."""
        self._read_left()

    def apply(self, batch: Sequence[Entry], slot: int = 0) -> None:
        """Bring all of these in, or none; what is there already changes nothing."""
        self._slot = slot
        exchanges: defaultdict[str, list[FactEntry]] = defaultdict(list)
        try:
            with changing(self._connection):
                self._begin()
                self._bodies.keep([entry for entry in batch if isinstance(entry, BodyEntry)])
                for entry in batch:
                    if not isinstance(entry, BodyEntry):
                        exchanges[entry.exchange].append(entry)
                self._load_known([name for name in exchanges if name not in self._known])
                for exchange, facts in exchanges.items():
                    self._add(exchange, facts)
                self._end()
        except BaseException:
            # What is known of exchanges may say more than the database holds.
            self._known.clear()
            raise

    def open_exchanges(self, living: Sequence[int]) -> list[Unfinished]:
        """The exchanges that have not ended, without those of processes with these slots."""
        marks = ",".join("?" * len(living))
        with asking():
            rows = self._connection.execute(
                f"SELECT id, next_n, state FROM exchanges WHERE state IN ({_OPEN}) AND slot NOT IN ({marks})"
                " ORDER BY id",
                living,
            ).fetchall()
        return [Unfinished(*row) for row in rows]

    def tidy(self) -> bool:
        """Nothing waits."""
        return False

    def refresh(self) -> None:
        """Forget what is remembered of exchanges that are under way."""
        self._known.clear()

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()

    def _begin(self) -> None:
        self._bodies.begin()
        self._instructed.clear()
        for rows in (self._added, self._runs, self._uses, self._words):
            rows.clear()
        (latest,) = self._connection.execute("SELECT max(seq) FROM exchanges").fetchone()
        self._last_seq = latest or 0

    def _insert_added(self) -> None:
        if self._added:
            self._connection.executemany(_INSERT, self._added)
            self._added.clear()

    def _end(self) -> None:
        self._insert_added()
        self._connection.executemany("INSERT INTO runs VALUES (?,?)", self._runs)
        self._connection.executemany("INSERT OR IGNORE INTO uses VALUES (?,?)", self._uses)
        append_words(self._connection, self._codec, self._words)

    def _load_known(self, exchanges: Sequence[str]) -> None:
        """What the database has of these: of most nothing, because they are new."""
        for at in range(0, len(exchanges), 500):
            some = exchanges[at : at + 500]
            rows = self._connection.execute(
                f"SELECT id, seq, next_n FROM exchanges WHERE id IN ({','.join('?' * len(some))})", some
            ).fetchall()
            for exchange, seq, next_n in rows:
                facts = runs_of(self._connection, self._codec, exchange, seq)
                self._known[exchange] = _Known(seq, next_n, [each for each in facts if not _is_frame(each)])

    def _add(self, exchange: str, facts: list[FactEntry]) -> None:
        known = self._known.pop(exchange, None) or _Known()
        fresh = sorted((entry for entry in facts if entry.n >= known.next_n), key=_number)
        if not fresh:
            return
        others = [entry for entry in fresh if type(entry.fact) is not FrameArrived]
        known.facts += others
        known.next_n = fresh[-1].n + 1
        summary = summary_of(exchange, known.facts, self._prices)
        row, is_new = row_of(summary), not known.seq
        if is_new:
            self._last_seq = known.seq = self._last_seq + 1
            digest = self._read_request(known.seq, others)
            self._added.append((known.seq, exchange, self._slot, known.next_n, *row, *digest))
        else:
            self._connection.execute(_UPDATE, (known.next_n, *row, known.seq))
        run = pack_run(self._codec, [(entry.n, entry.at, entry.fact) for entry in fresh])
        self._runs.append((run_id(known.seq, fresh[0].n), run))
        self._note_uses(known, others)
        if any(type(entry.fact) in _ENDS for entry in others):
            earlier = [] if is_new else runs_of(self._connection, self._codec, exchange, known.seq)
            self._read_reply(known, [*earlier, *fresh])
        if summary.state in OPEN_STATES:
            self._known[exchange] = known

    def _note_uses(self, known: _Known, facts: list[FactEntry]) -> None:
        for entry in facts:
            for name in bodies_of(entry.fact):
                if name not in known.bodies and (number := self._bodies.number(name)) is not None:
                    known.bodies.add(name)
                    self._uses.append((known.seq, number))

    # --- reading what was said ---

    def _read_request(self, seq: int, facts: Sequence[FactEntry]) -> DigestColumns:
        """What the request tells; its words are noted. One that cannot be read tells nothing."""
        received = next((entry.fact for entry in facts if isinstance(entry.fact, Received)), None)
        body = self._bodies.body(received.sha256) if received is not None and received.sha256 else None
        if received is None or body is None:
            return _NO_DIGEST
        try:
            digest = self._requests.read(received.dialect, body)
            self._note_words(seq, "\n".join([*self._new_instructions(seq, digest), digest.new_text]))
            return DigestColumns(
                storable(digest.title),
                digest.is_side,
                digest.thread[-1] if digest.thread and not digest.is_side else None,
                self._find_by_reply_id(seq, digest) or self._find_predecessor(seq, received.session, digest),
                storable(digest.continues),
            )
        except UNREADABLE:
            _LOG.exception("a request could not be read for search; it is on record all the same")
            return _NO_DIGEST

    def _read_reply(self, known: _Known, facts: Sequence[FactEntry]) -> None:
        """Note what a reply says, and what it is called; those that name it may have been read before it."""
        raw = b"".join([entry.fact.data for entry in facts if type(entry.fact) is FrameArrived])
        if not raw:
            return
        words, name = read_reply(reply_dialect([entry.fact for entry in known.facts]), raw)
        self._note_words(known.seq, words)
        if name := storable(name):
            self._insert_added()
            self._connection.execute("UPDATE exchanges SET reply_id = ? WHERE seq = ?", (name, known.seq))
            self._connection.execute(
                "UPDATE exchanges SET previous = (SELECT id FROM exchanges WHERE seq = ?)"
                " WHERE continues = ? AND continues <> '' AND previous = '' AND seq > ?",
                (known.seq, name, known.seq),
            )

    def _note_words(self, seq: int, words: str) -> None:
        if words:
            self._words.append((seq, searchable(words)))

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

    def _find_by_reply_id(self, seq: int, digest: Digest) -> str:
        """The latest exchange whose reply this one names as its last."""
        if not digest.continues:
            return ""
        self._insert_added()
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
        self._insert_added()
        # As a rule the last turn of the model, and what led to it, is all that is new.
        for some in (beginnings[-_LIKELY:], beginnings[:-_LIKELY]):
            rows = self._connection.execute(
                f"SELECT thread, seq, id FROM exchanges WHERE thread IN ({','.join('?' * len(some))})"
                " AND session = ? AND seq < ?",
                (*some, session, seq),
            ).fetchall()
            if rows:
                length = {beginning: index for index, beginning in enumerate(some)}
                return str(max(rows, key=lambda row: (length[row[0]], row[1]))[2])
        return ""

    def _read_left(self) -> None:
        """Read the requests and replies that an earlier version stored, and had left for later."""
        rows = self._connection.execute("SELECT id, seq, todo FROM exchanges WHERE todo > 0 ORDER BY seq").fetchall()
        for at in range(0, len(rows), 500):
            with changing(self._connection):
                self._begin()
                self._load_known([exchange for exchange, _, _ in rows[at : at + 500]])
                for exchange, seq, todo in rows[at : at + 500]:
                    known = self._known.pop(exchange)
                    if todo & 1:
                        title = "UPDATE exchanges SET title = ?, is_side = ?, thread = ?, previous = ?, continues = ?"
                        digest = self._read_request(seq, known.facts)
                        self._connection.execute(f"{title} WHERE seq = ?", (*digest, seq))
                    if todo & 2:
                        self._read_reply(known, runs_of(self._connection, self._codec, exchange, seq))
                    self._connection.execute("UPDATE exchanges SET todo = 0 WHERE seq = ?", (seq,))
                self._end()


def _is_frame(entry: FactEntry) -> bool:
    return isinstance(entry.fact, FrameArrived)
