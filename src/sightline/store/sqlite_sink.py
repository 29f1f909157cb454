"""The writing side of an SQLite record: facts, bodies, and what is read in requests and replies, all in one transaction
for a batch."""

import hashlib
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from sightline.dialects.stored import exchange_in
from sightline.model.exchange import ExchangeFailed, ExchangeFinished, FrameArrived, Received
from sightline.store.digest import REPLY, REQUEST, Digest, read_history, read_reply, reply_dialect
from sightline.store.digest_reader import DigestReader
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
from sightline.store.summary import FOLDED, OPEN_STATES, PriceList, Unfinished, bodies_of, fold_facts, row_of, storable

_AT_ONCE = 500
"""Values of one question."""
UNREADABLE = (UnicodeError, ValueError, OverflowError, RecursionError)
"""What may go wrong with one exchange and must not keep others from being read."""
_LOG = logging.getLogger(__name__)
_row = itemgetter(0)
_BEGINNINGS, _LIKELY = 256, 4
_MOST_REMEMBERED = 4096
"""Beginnings and texts that are known to be noted."""


@lru_cache(maxsize=32)
def _hash_text(text: str) -> bytes:
    """The name of a text; the same long instructions come with request after request."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


class DigestColumns(NamedTuple):
    """What a request tells, as columns of its exchange."""

    title: str = ""
    is_side: bool = False
    thread: bytes | None = None
    previous: str = ""
    continues: str = ""


class _Asked(NamedTuple):
    """A request that was read: its row, its exchange, where it was asked, and what it tells."""

    row: int
    exchange: str
    session: str
    dialect: str
    body: bytes
    digest: Digest


class SqliteDigests:
    """Takes the requests and replies of a transaction one by one, and finds out at its end what they have to do with
    each other and with those on record."""

    def __init__(self, connection: sqlite3.Connection, codec: Codec) -> None:
        self._connection = connection
        self._codec = codec
        self._reader = DigestReader()
        self._asked: list[_Asked] = []
        self._named: list[tuple[str, int, str]] = []
        self._words: list[Said] = []
        self._noted: set[bytes] = set()
        """Hashes of texts that some exchange on record has."""
        self._begun: set[bytes] = set()
        """Beginnings of conversations whose words are noted."""

    def forget(self) -> None:
        """Know nothing of what is on record: others have changed it."""
        self._noted.clear()
        self._begun.clear()

    def begin(self) -> None:
        """Another transaction begins."""
        self._asked, self._named, self._words = [], [], []
        if len(self._noted) + len(self._begun) > _MOST_REMEMBERED:
            self.forget()

    def add_request(self, row: int, exchange: str, session: str, dialect: str, body: bytes) -> None:
        """Read a request; one that cannot be read tells nothing."""
        try:
            digest = self._reader.read(dialect, body)
        except UNREADABLE:
            _LOG.exception("a request could not be read for search; it is on record all the same")
        else:
            self._asked.append(_Asked(row, exchange, session, dialect, body, digest))

    def add_reply(self, row: int, exchange: str, dialect: str, raw: bytes) -> None:
        """Read a reply."""
        words, name = read_reply(dialect, raw)
        if words:
            self._words.append((row, searchable(words)))
        if name:
            self._named.append((storable(name), row, exchange))

    def link(self) -> dict[int, DigestColumns]:
        """The columns of each request that was added, by its row. The rows of this transaction need not be there."""
        previous = self._find_previous()
        texts = [(each.row, [*each.digest.system, *self._read_history(each, previous)]) for each in self._asked]
        new = self._note_texts(texts)
        found: dict[int, DigestColumns] = {}
        for row, _, _, _, _, digest in self._asked:
            words = "\n".join([*new[row], digest.new_text]) if row in new else digest.new_text
            if words:
                self._words.append((row, searchable(words)))
            thread = digest.thread[-1] if digest.thread and not digest.is_side else None
            title, continues = storable(digest.title), storable(digest.continues)
            found[row] = DigestColumns(title, digest.is_side, thread, previous.get(row, ""), continues)
        return found

    def end(self) -> None:
        """Write the words, and what replies are called, once the rows are there."""
        append_words(self._connection, self._codec, sorted(self._words, key=_row))
        self._connection.executemany(
            "UPDATE exchanges SET reply_id = ? WHERE seq = ?", [(name, row) for name, row, _ in self._named]
        )
        # Those that name a reply may have been read before it.
        self._connection.executemany(
            "UPDATE exchanges SET previous = ?3"
            " WHERE continues = ?1 AND continues <> '' AND previous = '' AND seq > ?2",
            self._named,
        )

    def _find_previous(self) -> dict[int, str]:
        """For each request the latest exchange whose reply it names as its last; else the latest one of its session
        that asked the longest beginning of its conversation."""
        called = self._find_called()
        beginnings = {
            each.row: each.digest.thread[-_BEGINNINGS:-1]
            for each in self._asked
            if len(each.digest.thread) > 1 and not each.digest.is_side
        }
        # As a rule the last turn of the model, and what led to it, is all that is new.
        latest = self._find_threads({name for each in beginnings.values() for name in each[-_LIKELY:]})
        others = [
            beginnings[each.row][:-_LIKELY]
            for each in self._asked
            if len(beginnings.get(each.row, ())) > _LIKELY
            and not any((each.session, name) in latest for name in beginnings[each.row][-_LIKELY:])
        ]
        latest |= self._find_threads({name for each in others for name in each})
        known = {name for _, name in latest}
        previous: dict[int, str] = {}
        for row, exchange, session, _, _, digest in self._asked:
            earlier = [each for each in called.get(digest.continues, ()) if each[0] < row] if digest.continues else ()
            if earlier:
                previous[row] = max(earlier)[1]
            elif not known.isdisjoint(own := beginnings.get(row, ())):  # most continue nothing, and some are long
                longest = (latest.get((session, name)) for name in reversed(own))
                previous[row] = next(filter(None, longest), "")
            if digest.thread and not digest.is_side:
                latest[session, digest.thread[-1]] = exchange
                known.add(digest.thread[-1])
        return previous

    def _find_called(self) -> Mapping[str, list[tuple[int, str]]]:
        """The rows and names of the exchanges whose replies are named as the last ones, by these names."""
        found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        spellings = {storable(name): name for each in self._asked if (name := each.digest.continues)}
        if not spellings:
            return found
        for name, row, exchange in self._named:
            if name in spellings:
                found[spellings[name]].append((row, exchange))
        by_name = "SELECT reply_id, seq, id FROM exchanges WHERE reply_id <> '' AND reply_id IN ({})"
        for name, row, exchange in self._select(by_name, spellings):
            found[spellings[name]].append((row, exchange))
        own = {exchange_in(name): name for name in spellings.values()}
        for row, exchange in self._select("SELECT seq, id FROM exchanges WHERE id IN ({})", own):
            found[own[exchange]].append((row, exchange))
        for each in self._asked:
            if each.exchange in own:
                found[own[each.exchange]].append((each.row, each.exchange))
        return found

    def _find_threads(self, names: Collection[bytes]) -> dict[tuple[str, bytes], str]:
        """The latest exchange of each session that asked one of these, by the session and the name."""
        # SQLite takes the other columns from the row with the highest number.
        latest = "SELECT session, thread, id, max(seq) FROM exchanges WHERE thread IN ({}) GROUP BY session, thread"
        return {(session, name): exchange for session, name, exchange, _ in self._select(latest, names)}

    def _select(self, question: str, values: Collection[str] | Collection[bytes]) -> Iterator[tuple[Any, ...]]:
        wanted = list(values)
        for at in range(0, len(wanted), _AT_ONCE):
            some = wanted[at : at + _AT_ONCE]
            yield from self._connection.execute(question.format(",".join("?" * len(some))), some).fetchall()

    def _read_history(self, asked: _Asked, previous: Mapping[int, str]) -> list[str]:
        """What was said before, in a conversation that goes on from none on record. Requests that share a beginning, as
        those of a batch of examples do, have it read once: their bodies may be large."""
        thread = asked.digest.thread
        if previous.get(asked.row) or not asked.digest.has_history or thread[-2] in self._begun:
            return []
        self._begun.add(thread[-2])
        return read_history(asked.dialect, asked.body)

    def _note_texts(self, texts: Sequence[tuple[int, Sequence[str]]]) -> dict[int, list[str]]:
        """For each row those of its texts that no exchange had before: instructions and examples come with many
        requests."""
        first: dict[bytes, tuple[int, str]] = {}
        for row, own in texts:
            for text in own:
                if (name := _hash_text(text)) not in self._noted:
                    first.setdefault(name, (row, text))
        known = {name for (name,) in self._select("SELECT hash FROM instructions WHERE hash IN ({})", first)}
        new = {name: each for name, each in first.items() if name not in known}
        self._connection.executemany(
            "INSERT INTO instructions VALUES (?,?)", [(name, row) for name, (row, _) in new.items()]
        )
        self._noted |= first.keys()
        found: defaultdict[int, list[str]] = defaultdict(list)
        for row, text in new.values():
            found[row].append(text)
        return found


_ENDS = {ExchangeFinished, ExchangeFailed}
_number = attrgetter("n")
_NO_DIGEST = DigestColumns()
_OPEN = ", ".join(f"'{state}'" for state in OPEN_STATES)
_INSERT = (
    f"INSERT INTO exchanges (seq, id, slot, next_n, blocks, {', '.join((*FOLDED, *DigestColumns._fields))})"
    f" VALUES ({','.join('?' * (5 + len(FOLDED) + len(DigestColumns._fields)))})"
)
_UPDATE = f"UPDATE exchanges SET next_n = ?, blocks = ?, {', '.join(f'{name} = ?' for name in FOLDED)} WHERE seq = ?"
_UPDATE_DIGEST = f"UPDATE exchanges SET {', '.join(f'{name} = ?' for name in DigestColumns._fields)} WHERE seq = ?"


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
        self._digests = SqliteDigests(connection, self._codec)
        self._known: dict[str, _Known] = {}
        self._last_seq = 0
        self._state = 0, 0
        """What the database was like after the last transaction; see `_begin`."""
        # Rows of this transaction, for statements that take many at once.
        self._added: list[tuple[Any, ...]] = []
        self._changed: list[tuple[object, ...]] = []
        self._uses: list[tuple[int, int]] = []
        self._small: dict[str, BodyEntry] = {}
        """Bodies of this batch that are stored with the facts of the exchanges that name them."""
        self._unnamed: set[str] = set()
        self._read_left()

    def apply(self, batch: Sequence[KeptEntry], slot: int = 0) -> None:
        """Bring all of these in, or none; what is there already changes nothing."""
        self._slot = slot
        exchanges: dict[str, list[FactEntry | FramesEntry]] = {}
        large: list[BodyEntry] = []
        self._small.clear()
        for entry in batch:
            if type(entry) is not BodyEntry:
                exchanges.setdefault(entry.exchange, []).append(entry)  # type: ignore[union-attr, arg-type]
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
            self._digests.forget()
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
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if self._state != (version, self._connection.total_changes):
            self._digests.forget()  # others have changed something, or this connection has, but not here
        self._bodies.begin()
        self._blocks.begin()
        self._digests.begin()
        for rows in (self._added, self._changed, self._uses):
            rows.clear()
        (latest,) = self._connection.execute("SELECT max(seq) FROM exchanges").fetchone()
        self._last_seq = latest or 0

    def _end(self) -> None:
        digests = self._digests.link()
        self._connection.executemany(_INSERT, [(*row, *digests.get(row[0], _NO_DIGEST)) for row in self._added])
        self._connection.executemany(_UPDATE, self._changed)
        self._connection.executemany("INSERT OR IGNORE INTO uses VALUES (?,?)", self._uses)
        self._blocks.end()
        self._digests.end()
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        self._state = version, self._connection.total_changes

    def _load_known(self, exchanges: Mapping[str, Sequence[FactEntry | FramesEntry]]) -> None:
        """What the database has of these: of most nothing, because they are new. What they are is read only of those to
        which something is added."""
        names, reader = list(exchanges), BlockReader(self._connection, self._codec)
        for at in range(0, len(names), _AT_ONCE):
            some = names[at : at + _AT_ONCE]
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
            self._read_request(known.seq, exchange, others)
        if not _ENDS.isdisjoint([type(entry.fact) for entry in others]):
            frames: Sequence[KeptEntry] = fresh
            if known.has_frames:
                frames = [*BlockReader(self._connection, self._codec).pieces(known.seq, known.blocks), *fresh]
            self._read_reply(known, exchange, frames)
        known.has_frames = known.has_frames or len(fresh) > len(others)
        number = str(self._blocks.add(known.seq, [*self._bodies_named(known, others), *fresh]))
        if not known.blocks:
            known.blocks = number
        elif known.blocks.rpartition(" ")[2] != number:
            known.blocks = f"{known.blocks} {number}"
        columns = fold_facts(known.facts, self._prices)
        if is_new:
            self._added.append((known.seq, exchange, self._slot, known.next_n, known.blocks, *row_of(columns)))
        else:
            self._changed.append((known.next_n, known.blocks, *row_of(columns), known.seq))
        if columns["state"] in OPEN_STATES:
            self._known[exchange] = known

    def _fresh(
        self, known: _Known, entries: Sequence[FactEntry | FramesEntry]
    ) -> tuple[list[FactEntry | FramesEntry], list[FactEntry]]:
        """Those of these entries that are not stored, in their order, and the facts among them without frames."""
        fresh: list[FactEntry | FramesEntry] = []
        others: list[FactEntry] = []
        next_n = known.next_n
        for entry in sorted(entries, key=_number):
            left = entry if entry.n >= next_n else since(entry, next_n)
            if left is None:
                if type(entry) is FactEntry:
                    self._unnamed.difference_update(bodies_of(entry.fact))
                continue
            fresh.append(left)
            if type(left) is FramesEntry:
                next_n = next_number(left)
                continue
            next_n = left.n + 1
            if type(left.fact) is not FrameArrived:  # type: ignore[union-attr]
                others.append(left)  # type: ignore[arg-type]
        known.next_n = next_n
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

    def _read_request(self, seq: int, exchange: str, facts: Sequence[FactEntry]) -> None:
        received = next((entry.fact for entry in facts if type(entry.fact) is Received), None)
        if received is not None and received.sha256 and (body := self._body(received.sha256)) is not None:
            self._digests.add_request(seq, exchange, received.session, received.dialect, body)

    def _body(self, sha256: str) -> bytes | None:
        small = self._small.get(sha256)
        return self._bodies.body(sha256) if small is None else small.data

    def _read_reply(self, known: _Known, exchange: str, entries: Sequence[KeptEntry]) -> None:
        if raw := raw_reply(entries):
            self._digests.add_reply(known.seq, exchange, reply_dialect([entry.fact for entry in known.facts]), raw)

    def _read_left(self) -> None:
        """Read the requests and replies that an earlier version stored, and had left for later."""
        left = "SELECT seq, id, blocks, todo FROM exchanges WHERE todo > 0 ORDER BY seq"
        rows = self._connection.execute(left).fetchall()
        for some in (rows[at : at + _AT_ONCE] for at in range(0, len(rows), _AT_ONCE)):
            with changing(self._connection):
                self._begin()
                reader = BlockReader(self._connection, self._codec)
                for seq, exchange, blocks, todo in some:
                    known = _Known(seq, 0, blocks)
                    entries = self._recall(known, reader)
                    self._small = {each.sha256: each for each in entries if type(each) is BodyEntry}
                    if todo & REQUEST:
                        self._read_request(seq, exchange, known.facts)
                    if todo & REPLY:
                        self._read_reply(known, exchange, entries)
                columns = [(*digest, seq) for seq, digest in self._digests.link().items()]
                self._connection.executemany(_UPDATE_DIGEST, columns)
                self._connection.executemany("UPDATE exchanges SET todo = 0 WHERE seq = ?", [row[:1] for row in some])
                self._digests.end()
