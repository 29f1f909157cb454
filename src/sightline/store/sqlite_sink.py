"""The writing side of an SQLite record: facts, bodies, and what is read in requests and replies, all in one transaction
for a batch."""

import hashlib
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from sightline.dialects.stored import exchange_in
from sightline.model.exchange import ExchangeFailed, ExchangeFinished, FrameArrived, Received
from sightline.store.digest import Digest, DigestReader, read_history, read_reply, reply_dialect
from sightline.store.entries import (
    LEAST_SIZE,
    BodyEntry,
    Codec,
    FactEntry,
    FramesEntry,
    KeptEntry,
    next_number,
    raw_reply,
    since,
)
from sightline.store.sqlite_blocks import BlockReader, RecordBlockWriter
from sightline.store.sqlite_database import SqliteBodies, asking, changing
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
    f"INSERT INTO exchanges (seq, id, slot, next_n, blocks, {', '.join((*FOLDED, *DigestColumns._fields))})"
    f" VALUES ({','.join('?' * (5 + len(FOLDED) + len(DigestColumns._fields)))})"
)
_UPDATE = f"UPDATE exchanges SET next_n = ?, blocks = ?, {', '.join(f'{name} = ?' for name in FOLDED)} WHERE seq = ?"


@dataclass(slots=True)
class _Known:
    """An exchange that is still under way: its row, the number of its next fact, the blocks with its facts, whether
    frames are among them, its other facts, and the hashes of the bodies that it has."""

    seq: int = 0
    next_n: int = 0
    blocks: str = ""
    has_frames: bool = False
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
        self._blocks = RecordBlockWriter(connection, self._codec)
        self._requests = DigestReader()
        self._known: dict[str, _Known] = {}
        self._last_seq = 0
        # Rows of this transaction, for statements that take many at once. Asking for exchanges adds them first.
        self._added: list[tuple[object, ...]] = []
        self._changed: list[tuple[object, ...]] = []
        self._uses: list[tuple[int, int]] = []
        self._words: list[Said] = []
        self._instructed: set[bytes] = set()
        """Instructions that are known to be noted in this transaction; others may forget them between two."""
        self._begun: set[bytes] = set()
        """Beginnings of conversations whose words are noted in this transaction."""
        self._small: dict[str, BodyEntry] = {}
        """Bodies of this batch that are stored with the facts of the exchanges that name them."""
        self._unnamed: set[str] = set()
        self._read_left()

    def apply(self, batch: Sequence[KeptEntry], slot: int = 0) -> None:
        """Bring all of these in, or none; what is there already changes nothing."""
        self._slot = slot
        exchanges: defaultdict[str, list[FactEntry | FramesEntry]] = defaultdict(list)
        large: list[BodyEntry] = []
        self._small.clear()
        for entry in batch:
            if not isinstance(entry, BodyEntry):
                exchanges[entry.exchange].append(entry)
            elif len(entry.data) < LEAST_SIZE:
                self._small[entry.sha256] = entry
            else:
                large.append(entry)
        self._unnamed = set(self._small)
        try:
            with changing(self._connection):
                self._begin()
                self._bodies.keep(large)
                self._load_known({name: entries for name, entries in exchanges.items() if name not in self._known})
                for exchange, entries in exchanges.items():
                    self._add(exchange, entries)
                if self._unnamed:
                    # The facts that name them come later, as a rule in the next record.
                    self._bodies.keep([self._small[name] for name in sorted(self._unnamed)])
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

    def rest(self) -> None:
        """Let go of the latest bodies, which are in the file."""
        self._bodies.forget_recent()
        with asking():
            self._connection.execute("PRAGMA shrink_memory")

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()

    def _begin(self) -> None:
        self._bodies.begin()
        self._blocks.begin()
        self._instructed.clear()
        self._begun.clear()
        for rows in (self._added, self._changed, self._uses, self._words):
            rows.clear()
        (latest,) = self._connection.execute("SELECT max(seq) FROM exchanges").fetchone()
        self._last_seq = latest or 0

    def _insert_added(self) -> None:
        if self._added:
            self._connection.executemany(_INSERT, self._added)
            self._added.clear()

    def _end(self) -> None:
        self._insert_added()
        self._connection.executemany(_UPDATE, self._changed)
        self._connection.executemany("INSERT OR IGNORE INTO uses VALUES (?,?)", self._uses)
        self._blocks.end()
        append_words(self._connection, self._codec, self._words)

    def _load_known(self, exchanges: Mapping[str, Sequence[FactEntry | FramesEntry]]) -> None:
        """What the database has of these: of most nothing, because they are new. What they are is read only of those to
        which something is added."""
        names, reader = list(exchanges), BlockReader(self._connection, self._codec)
        for at in range(0, len(names), 500):
            some = names[at : at + 500]
            rows = self._connection.execute(
                f"SELECT id, seq, next_n, blocks FROM exchanges WHERE id IN ({','.join('?' * len(some))})", some
            ).fetchall()
            for exchange, seq, next_n, blocks in rows:
                known = self._known[exchange] = _Known(seq, next_n, blocks)
                if any(next_number(entry) > next_n for entry in exchanges[exchange]):
                    self._recall(known, reader)

    def _recall(self, known: _Known, reader: BlockReader) -> list[KeptEntry]:
        """Read what is stored of an exchange."""
        entries = reader.pieces(known.seq, known.blocks)
        known.facts = [each for each in entries if type(each) is FactEntry and type(each.fact) is not FrameArrived]
        known.bodies = {each.sha256 for each in entries if type(each) is BodyEntry}
        known.has_frames = len(entries) > len(known.facts) + len(known.bodies)
        return entries

    def _add(self, exchange: str, entries: Sequence[FactEntry | FramesEntry]) -> None:
        known = self._known.pop(exchange, None) or _Known()
        fresh, others = self._fresh(known, entries)
        if not fresh:
            return
        known.facts += others
        is_new = not known.seq
        if is_new:
            self._last_seq = known.seq = self._last_seq + 1
        is_over = any(type(entry.fact) in _ENDS for entry in others)
        frames: Sequence[KeptEntry] = fresh
        if is_over and known.has_frames:
            frames = [*BlockReader(self._connection, self._codec).pieces(known.seq, known.blocks), *fresh]
        known.has_frames = known.has_frames or len(fresh) > len(others)
        number = str(self._blocks.add(known.seq, [*self._bodies_named(known, others), *fresh]))
        if known.blocks.rpartition(" ")[2] != number:
            known.blocks = f"{known.blocks} {number}".lstrip()
        summary = summary_of(exchange, known.facts, self._prices)
        row = row_of(summary)
        if is_new:
            digest = self._read_request(known.seq, others)
            self._added.append((known.seq, exchange, self._slot, known.next_n, known.blocks, *row, *digest))
        else:
            self._changed.append((known.next_n, known.blocks, *row, known.seq))
        if is_over:
            self._read_reply(known, frames)
        if summary.state in OPEN_STATES:
            self._known[exchange] = known

    def _fresh(
        self, known: _Known, entries: Sequence[FactEntry | FramesEntry]
    ) -> tuple[list[FactEntry | FramesEntry], list[FactEntry]]:
        """Those of these entries that are not stored, in their order, and the facts among them without frames."""
        fresh: list[FactEntry | FramesEntry] = []
        others: list[FactEntry] = []
        for entry in sorted(entries, key=_number):
            if (left := since(entry, known.next_n)) is None:
                if type(entry) is FactEntry:
                    self._unnamed.difference_update(bodies_of(entry.fact))
                continue
            known.next_n = next_number(left)
            fresh.append(left)
            if type(left) is FactEntry and type(left.fact) is not FrameArrived:
                others.append(left)
        return fresh, others

    def _bodies_named(self, known: _Known, facts: list[FactEntry]) -> list[BodyEntry]:
        """The small bodies that these facts are the first of the exchange to name; of others a use is noted."""
        found: list[BodyEntry] = []
        for entry in facts:
            for name in bodies_of(entry.fact):
                if name in known.bodies:
                    continue
                if (small := self._small.get(name)) is not None:
                    found.append(small)
                    self._unnamed.discard(name)
                elif (number := self._bodies.number(name)) is not None:
                    self._uses.append((known.seq, number))
                else:
                    continue  # what is stored of a body that has not come is its hash
                known.bodies.add(name)
        return found

    # --- reading what was said ---

    def _read_request(self, seq: int, facts: Sequence[FactEntry]) -> DigestColumns:
        """What the request tells; its words are noted. One that cannot be read tells nothing."""
        received = next((entry.fact for entry in facts if isinstance(entry.fact, Received)), None)
        body = self._body(received.sha256) if received is not None and received.sha256 else None
        if received is None or body is None:
            return _NO_DIGEST
        try:
            digest = self._requests.read(received.dialect, body)
            previous = self._find_by_reply_id(seq, digest) or self._find_predecessor(seq, received.session, digest)
            history = [] if previous else self._read_history(received.dialect, body, digest)
            new = self._new_texts(seq, [*digest.system, *history])
            self._note_words(seq, "\n".join([*new, digest.new_text]))
            return DigestColumns(
                storable(digest.title),
                digest.is_side,
                digest.thread[-1] if digest.thread and not digest.is_side else None,
                previous,
                storable(digest.continues),
            )
        except UNREADABLE:
            _LOG.exception("a request could not be read for search; it is on record all the same")
            return _NO_DIGEST

    def _read_history(self, dialect: str, body: bytes, digest: Digest) -> list[str]:
        """What was said before, of a conversation that goes on from none on record. Requests that share a beginning, as
        those of a batch of examples do, have it read once in a transaction: their bodies may be large."""
        if len(digest.thread) <= 1 or digest.thread[-2] in self._begun:
            return []
        self._begun.add(digest.thread[-2])
        return read_history(dialect, body)

    def _body(self, sha256: str) -> bytes | None:
        small = self._small.get(sha256)
        return self._bodies.body(sha256) if small is None else small.data

    def _read_reply(self, known: _Known, entries: Sequence[KeptEntry]) -> None:
        """Note what a reply says, and what it is called; those that name it may have been read before it."""
        raw = raw_reply(entries)
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

    def _new_texts(self, seq: int, texts: Iterable[str]) -> list[str]:
        """Those that no exchange had before: instructions and examples come with many requests."""
        new = []
        for text in texts:
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
            "SELECT id FROM exchanges WHERE (reply_id = ? AND reply_id <> '' OR id = ?) AND seq < ?"
            " ORDER BY seq DESC LIMIT 1",
            (storable(digest.continues), exchange_in(digest.continues), seq),
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
        left = "SELECT seq, blocks, todo FROM exchanges WHERE todo > 0 ORDER BY seq"
        rows = self._connection.execute(left).fetchall()
        for at in range(0, len(rows), 500):
            with changing(self._connection):
                self._begin()
                for seq, blocks, todo in rows[at : at + 500]:
                    known = _Known(seq, 0, blocks)
                    entries = self._recall(known, BlockReader(self._connection, self._codec))
                    self._small = {each.sha256: each for each in entries if type(each) is BodyEntry}
                    if todo & 1:
                        title = "UPDATE exchanges SET title = ?, is_side = ?, thread = ?, previous = ?, continues = ?"
                        digest = self._read_request(seq, known.facts)
                        self._connection.execute(f"{title} WHERE seq = ?", (*digest, seq))
                    if todo & 2:
                        self._read_reply(known, entries)
                    self._connection.execute("UPDATE exchanges SET todo = 0 WHERE seq = ?", (seq,))
                self._end()
