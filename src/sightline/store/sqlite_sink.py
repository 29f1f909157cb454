"""The writing side of an SQLite record; all of it runs on the thread of its writer."""

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from sightline.model.exchange import Fact, FrameArrived
from sightline.store.chores import to_read
from sightline.store.columns import FOLDED, row_of
from sightline.store.delta import Codec
from sightline.store.entries import Entry, Kept, Noted
from sightline.store.folding import PriceList, bodies_of, summary_of
from sightline.store.frames import packed
from sightline.store.interruption import OPEN_STATES, Unfinished
from sightline.store.sqlite_bodies import Bodies
from sightline.store.sqlite_database import changing
from sightline.store.sqlite_digests import Digests

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Fact] = msgspec.msgpack.Decoder(Fact)
_OPEN = ", ".join(f"'{state}'" for state in OPEN_STATES)
_INSERT = (
    f"INSERT INTO exchanges (id, slot, next_n, todo, {', '.join(FOLDED)})"
    f" VALUES (?,?,?,?,{','.join('?' * len(FOLDED))}) ON CONFLICT (id) DO NOTHING"
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
    facts: list[Noted] = field(default_factory=list)
    bodies: set[str] = field(default_factory=set)


class SqliteSink:
    """Brings entries into the database. `slot` marks the exchanges of this process while they are under way."""

    def __init__(self, connection: sqlite3.Connection, slot: int, prices: PriceList) -> None:
        self._connection = connection
        self._slot = slot
        self._prices = prices
        self._codec = Codec()
        self._bodies = Bodies(connection, self._codec)
        self._digests = Digests(connection, self._codec, self._bodies, slot)
        self._known: dict[str, _Known] = {}

    def apply(self, batch: Sequence[Entry]) -> None:
        """Bring all of these in, or none; what is there already changes nothing."""
        exchanges: defaultdict[str, list[Noted]] = defaultdict(list)
        try:
            with changing(self._connection):
                self._bodies.begin()
                for entry in batch:
                    if isinstance(entry, Kept):
                        self._bodies.keep(entry)
                    else:
                        exchanges[entry.exchange].append(entry)
                for exchange, facts in exchanges.items():
                    self._add(exchange, facts)
        except BaseException:
            # What is known of exchanges may say more than the database holds.
            self._known.clear()
            raise

    def unfinished(self, slots: Sequence[int]) -> list[Unfinished]:
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

    def _add(self, exchange: str, facts: list[Noted]) -> None:
        known = self._known.get(exchange) or (_Known() if facts[0].n == 0 else self._stored(exchange))
        fresh = sorted((noted for noted in facts if noted.n >= known.next_n), key=lambda noted: noted.n)
        if not fresh:
            return
        frames = [(noted, noted.fact) for noted in fresh if isinstance(noted.fact, FrameArrived)]
        others = [noted for noted in fresh if not isinstance(noted.fact, FrameArrived)]
        known.facts += others
        known.next_n = fresh[-1].n + 1
        summary = summary_of(exchange, known.facts, self._prices)
        todo = to_read(others)
        if known.seq:
            self._connection.execute(_UPDATE, (known.next_n, todo, *row_of(summary), known.seq))
        else:
            row = exchange, self._slot, known.next_n, todo, *row_of(summary)
            cursor = self._connection.execute(_INSERT, row)
            if not cursor.rowcount:  # it was brought in before
                self._known[exchange] = self._stored(exchange)
                self._add(exchange, facts)
                return
            known.seq = cursor.lastrowid or 0
        self._connection.executemany(
            "INSERT OR IGNORE INTO facts VALUES (?,?,?,?)",
            [(known.seq, noted.n, noted.at, _ENCODER.encode(noted.fact)) for noted in others],
        )
        if frames:
            self._connection.execute(
                "INSERT OR IGNORE INTO frames VALUES (?,?,?)", (known.seq, frames[0][0].n, packed(self._codec, frames))
            )
        self._note_uses(known, others)
        if summary.state in OPEN_STATES:
            self._known[exchange] = known
        else:
            self._known.pop(exchange, None)

    def _note_uses(self, known: _Known, facts: list[Noted]) -> None:
        names = {name for noted in facts for name in bodies_of(noted.fact)} - known.bodies
        numbers = {name: number for name in names if (number := self._bodies.number(name)) is not None}
        known.bodies |= numbers.keys()
        self._connection.executemany(
            "INSERT OR IGNORE INTO uses VALUES (?,?)", [(known.seq, number) for number in numbers.values()]
        )

    def _stored(self, exchange: str) -> _Known:
        row = self._connection.execute("SELECT seq, next_n FROM exchanges WHERE id = ?", (exchange,)).fetchone()
        if row is None:
            return _Known()
        facts = self._connection.execute("SELECT n, at, data FROM facts WHERE exchange = ? ORDER BY n", (row[0],))
        return _Known(row[0], row[1], [Noted(exchange, n, at, _DECODER.decode(data)) for n, at, data in facts])
