"""The writing side of an SQLite record; all of it runs on the thread of its writer."""

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import msgspec

from sightline.model.exchange import Fact, FrameArrived, Received
from sightline.store.columns import FOLDED, row_of
from sightline.store.delta import Codec
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.folding import PriceList, bodies_of, summary_of
from sightline.store.frames import pack_frames
from sightline.store.interruption import OPEN_STATES, Unfinished
from sightline.store.pending_reading import REPLY, REQUEST, reply_dialect, to_read
from sightline.store.reply_texts import LONGEST, Overhearing, ReplyText
from sightline.store.sqlite_bodies import SqliteBodies
from sightline.store.sqlite_database import changing
from sightline.store.sqlite_digests import UNREADABLE, DigestColumns, SqliteDigests
from sightline.store.summary import Summary
from sightline.store.threads import names_replies

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Fact] = msgspec.msgpack.Decoder(Fact)
_UNTOLD = DigestColumns()
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
    """Brings entries into the database. `slot` marks the exchanges of this process while they are under way; `said` is
    where whoever has read a reply says so."""

    def __init__(self, connection: sqlite3.Connection, slot: int, prices: PriceList) -> None:
        self.said = Overhearing()
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
        fresh = sorted((noted for noted in facts if noted.n >= known.next_n), key=_number)
        if not fresh:
            return
        frames = [(noted, noted.fact) for noted in fresh if isinstance(noted.fact, FrameArrived)]
        others = [noted for noted in fresh if not isinstance(noted.fact, FrameArrived)]
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
        self._facts += [(seq, noted.n, noted.at, _ENCODER.encode(noted.fact)) for noted in others]
        if frames:
            self._frames.append((seq, frames[0][0].n, pack_frames(self._codec, frames)))
        self._note_uses(known, others)
        if summary.state in OPEN_STATES:
            self._known[exchange] = known
        else:
            self._known.pop(exchange, None)

    def _insert_row(self, known: _Known, summary: Summary) -> bool:
        """Make its row; False where there is one."""
        seq, todo, told = self._last_seq + 1, to_read(known.facts), _UNTOLD
        said = self.said.take(summary.id) if todo & REPLY else None
        if said is not None:
            todo, told = self._read_short_request(known, seq, todo & ~REPLY)
        row = seq, summary.id, self._slot, known.next_n, todo, *row_of(summary), *told
        if not self._connection.execute(_INSERT, row).rowcount:
            if said is not None:
                self._digests.forget(seq)
            return False
        self._last_seq = known.seq = seq
        if said is not None:
            self._store_reply(known, said)
        return True

    def _update_row(self, known: _Known, summary: Summary, todo: int) -> None:
        """Bring its row up to date because of facts that want these chores."""
        said = self.said.take(summary.id) if todo & REPLY else None
        if said is not None:
            todo &= ~REPLY
            self._store_reply(known, said)
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
                    return todo, _UNTOLD  # who tries it again later says what is wrong with it
        return todo, _UNTOLD

    def _store_reply(self, known: _Known, said: ReplyText) -> None:
        name = said.reply_id if names_replies(reply_dialect([noted.fact for noted in known.facts])) else ""
        self._digests.reply(known.seq, said.words, name)

    def _note_uses(self, known: _Known, facts: list[FactEntry]) -> None:
        names = {name for noted in facts for name in bodies_of(noted.fact)} - known.bodies
        numbers = {name: number for name in names if (number := self._bodies.number(name)) is not None}
        known.bodies |= numbers.keys()
        self._uses += [(known.seq, number) for number in numbers.values()]

    def _load_known(self, exchange: str) -> _Known:
        row = self._connection.execute("SELECT seq, next_n FROM exchanges WHERE id = ?", (exchange,)).fetchone()
        if row is None:
            return _Known()
        facts = self._connection.execute("SELECT n, at, data FROM facts WHERE exchange = ? ORDER BY n", (row[0],))
        return _Known(row[0], row[1], [FactEntry(exchange, n, at, _DECODER.decode(data)) for n, at, data in facts])
