"""The writing side of an SQLite record: stores facts, bodies and digests of a batch in one transaction."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias

from sightline.model.exchange import ExchangeFailed, ExchangeFinished, FrameArrived, Received
from sightline.store.digest import (
    DIGEST_COLUMNS,
    OWN_DIGEST_COLUMNS,
    REPLY,
    REQUEST,
    SHARED_DIGEST_COLUMNS,
    DigestValues,
    read_reply,
    reply_dialect,
)
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
from sightline.store.sqlite_database import MOST_VALUES, SqliteBodies, asking, changing, select_among
from sightline.store.sqlite_digest import TELLS_NOTHING, SqliteDigests
from sightline.store.summary import (
    FOLDED,
    HEAD_COLUMNS,
    OPEN_STATES,
    OWN_COLUMNS,
    SHARED_COLUMNS,
    WHOLE_VALUES,
    PriceList,
    Unfinished,
    bodies_of,
    columns_of_head,
    fold_facts,
    row_of,
    row_of_whole,
)
from sightline.store.whole import RecordedEntry, WholeExchange, decode_entries, decode_record

_ENDS = {ExchangeFinished, ExchangeFailed}
_number = attrgetter("n")
_EXCHANGES_A_TURN, _ROWS_A_TURN = 4, 16
"""How many exchanges are read, and rows written, between two calls of `give_way`: about as much work as one request to
the gateway."""
_OPEN = " OR ".join(f"state = '{state}'" for state in OPEN_STATES)
"""The condition of the index of open exchanges. Without it, SQLite scans all exchanges in the order of their ids."""
_OWN_OTHERS = ("seq", "id", "blocks", *OWN_DIGEST_COLUMNS)
_SHARED_OTHERS = (*SHARED_DIGEST_COLUMNS, "slot", "next_n")
"""The columns that are not folded from facts: those of each exchange, and those that several whole exchanges share."""


def _place_of(column: str, number: int | str = "") -> str:
    # An empty text is bound for missing bytes; see `columns_of_digest`.
    return f"nullif(?{number}, '')" if DIGEST_COLUMNS.get(column) == "bytea" else f"?{number}"


def _insert_rows(count: int, shared: Sequence[str], own: Sequence[str], fixed: Mapping[str, str]) -> str:
    """A statement that inserts this many rows. Its parameters are the columns that the rows share, followed by those of
    each row. Binding values is half of the cost of a row: sixteen rows in one statement take three quarters of the
    time."""
    first = len(shared) + 1
    rows = [
        [_place_of(name, at) for at, name in enumerate(shared, 1)]
        + [_place_of(name, at) for at, name in enumerate(own, first + row * len(own))]
        + [*fixed.values()]
        for row in range(count)
    ]
    values = ", ".join(f"({', '.join(row)})" for row in rows)
    return f"INSERT INTO exchanges ({', '.join((*shared, *own, *fixed))}) VALUES {values}"


_INSERT = _insert_rows(1, (), (*FOLDED, *_OWN_OTHERS, *_SHARED_OTHERS, "previous"), {})
_SHARED = (*HEAD_COLUMNS, *SHARED_COLUMNS, *_SHARED_OTHERS)
_OWN = (*OWN_COLUMNS, *_OWN_OTHERS, "previous")
_INSERT_WHOLE, _INSERT_WHOLES = (_insert_rows(count, _SHARED, _OWN, WHOLE_VALUES) for count in (1, _ROWS_A_TURN))
_UPDATE = f"UPDATE exchanges SET next_n = ?, blocks = ?, {', '.join(f'{name} = ?' for name in FOLDED)} WHERE seq = ?"
_SET_DIGEST = ", ".join(f"{name} = {_place_of(name)}" for name in (*DIGEST_COLUMNS, "previous"))
_UPDATE_DIGEST = f"UPDATE exchanges SET {_SET_DIGEST} WHERE seq = ?"


@dataclass(slots=True)
class _Known:
    """An exchange under way: its row, the number of its next fact, the blocks of its facts, whether frames are among
    them, its other facts, and the hashes of its bodies."""

    seq: int = 0
    next_n: int = 0
    blocks: str = ""
    has_frames: bool = False
    facts: list[FactEntry] = field(default_factory=list)
    bodies: set[str] = field(default_factory=set)


_Entries: TypeAlias = list[FactEntry | FramesEntry]


def _facts_in(whole: WholeExchange) -> _Entries:
    return [entry for entry in decode_entries(whole.data) if type(entry) is not BodyEntry]  # type: ignore[misc]


class SqliteSink:
    """Stores entries in the database; see `Sink`. `give_way` is called between the steps of a batch, because a batch
    takes longer than a client should wait for the core."""

    decode = staticmethod(decode_record)

    def __init__(
        self, connection: sqlite3.Connection, prices: PriceList, give_way: Callable[[], None] = lambda: None
    ) -> None:
        self._connection = connection
        self._slot = 0
        self._prices = prices
        self._give_way = give_way
        self._codec = Codec()
        self._bodies = SqliteBodies(connection, self._codec)
        self._blocks = RecordBlockWriter(connection, self._codec)
        self._digests = SqliteDigests(connection, self._codec)
        self._known: dict[str, _Known] = {}
        self._last_seq = 0
        self._state = 0, 0
        """The data version and the number of changes after the last transaction; see `_begin`."""
        # Rows of this transaction, for statements that take many rows.
        self._added: list[list[Any]] = []
        self._added_whole: defaultdict[tuple[Any, ...], list[list[Any]]] = defaultdict(list)
        """By the values that the rows share."""
        self._changed: list[tuple[object, ...]] = []
        self._uses: list[tuple[int, int]] = []
        self._small: dict[str, BodyEntry] = {}
        """Bodies of this batch that are stored in the blocks of the exchanges that name them."""
        self._unnamed: set[str] = set()
        self._read_left()

    def apply(self, batch: Sequence[RecordedEntry], slot: int = 0) -> None:
        """Store all of these entries, or none. Entries that are stored already change nothing."""
        self._slot = slot
        large: list[BodyEntry] = []
        exchanges = self._sort(batch, large)
        try:
            with changing(self._connection):
                self._begin()
                self._bodies.keep(large)
                self._load_known(exchanges)
                for count, (exchange, entries) in enumerate(exchanges.items()):
                    if not count % _EXCHANGES_A_TURN:
                        self._give_way()
                    if type(entries) is WholeExchange:
                        self._add_whole(exchange, entries)
                    else:
                        self._add(exchange, entries)  # type: ignore[arg-type]
                if self._unnamed:
                    # The facts that name them come later, usually in the next record.
                    self._bodies.keep([self._small[name] for name in sorted(self._unnamed)])
                self._end()
        except BaseException:
            # What is remembered of exchanges may be ahead of the database.
            self._known.clear()
            self._digests.forget()
            raise

    def open_exchanges(self, living: Sequence[int]) -> list[Unfinished]:
        """The exchanges that have not ended, except those of the processes with these slots."""
        marks = ",".join("?" * len(living))
        with asking():
            rows = self._connection.execute(
                f"SELECT id, next_n, state FROM exchanges INDEXED BY exchanges_open"
                f" WHERE ({_OPEN}) AND slot NOT IN ({marks}) ORDER BY id",
                living,
            ).fetchall()
        return [Unfinished(*row) for row in rows]

    def tidy(self) -> bool:
        """There is nothing to tidy."""
        return False

    def refresh(self) -> None:
        """Forget the exchanges under way."""
        self._known.clear()

    def rest(self) -> None:
        """Free the memory of the latest bodies, which are in the file, and of what was read of them."""
        self._bodies.forget_recent()
        self._digests.rest()
        with asking():
            self._connection.execute("PRAGMA shrink_memory")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _begin(self) -> None:
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if self._state != (version, self._connection.total_changes):
            self._digests.forget()  # another process changed the database, or this one did in another place
        self._bodies.begin()
        self._blocks.begin()
        self._digests.begin()
        self._added, self._changed, self._uses = [], [], []
        self._added_whole.clear()
        (latest,) = self._connection.execute("SELECT max(seq) FROM exchanges").fetchone()
        self._last_seq = latest or 0

    def _end(self) -> None:
        previous = self._digests.link()
        for row in self._added:
            row.append(previous.get(row[len(FOLDED)], ""))
        for some in self._turns(self._added):
            self._connection.executemany(_INSERT, some)
        for (head, values, digested, *others), rows in self._added_whole.items():
            self._insert_wholes((*columns_of_head(head), *values, *digested, *others), rows, previous)
        self._connection.executemany(_UPDATE, self._changed)
        self._connection.executemany("INSERT OR IGNORE INTO uses VALUES (?,?)", self._uses)
        self._blocks.end()
        self._digests.end()
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        self._state = version, self._connection.total_changes

    def _insert_wholes(self, shared: Sequence[str | int], rows: list[list[Any]], previous: Mapping[int, str]) -> None:
        for row in rows:
            row.append(previous.get(row[len(OWN_COLUMNS)], ""))
        for some in self._turns(rows):
            if len(some) == _ROWS_A_TURN:
                self._connection.execute(_INSERT_WHOLES, [*shared, *chain.from_iterable(some)])
            else:
                self._connection.executemany(_INSERT_WHOLE, [(*shared, *row) for row in some])

    def _turns(self, rows: list[list[Any]]) -> Iterator[list[list[Any]]]:
        for at in range(0, len(rows), _ROWS_A_TURN):
            self._give_way()
            yield rows[at : at + _ROWS_A_TURN]

    def _sort(self, batch: Sequence[RecordedEntry], large: list[BodyEntry]) -> dict[str, _Entries | WholeExchange]:
        """Group the entries of a batch by exchange, and put bodies into `_small` and `large`. An exchange remains whole
        if nothing else belongs to it."""
        exchanges: dict[str, _Entries | WholeExchange] = {}
        self._small.clear()
        self._unnamed.clear()
        if {*map(type, batch)} == {WholeExchange}:  # the usual case
            wholes: Sequence[WholeExchange] = batch  # type: ignore[assignment]
            exchanges = {whole.received.exchange: whole for whole in wholes}
            if len(exchanges) == len(wholes):
                large += [whole.body for whole in wholes if len(whole.body.data) >= LEAST_SIZE]
                return exchanges
            exchanges.clear()
        for entry in batch:
            if type(entry) is WholeExchange:
                name, body = entry.received.exchange, entry.body
                if name in exchanges:
                    self._facts_of(exchanges, name).extend(_facts_in(entry))
                else:
                    exchanges[name] = entry
            elif type(entry) is BodyEntry:
                body = entry
                self._unnamed.add(body.sha256)
            else:
                self._facts_of(exchanges, entry.exchange).append(entry)  # type: ignore[union-attr, arg-type]
                continue
            if len(body.data) < LEAST_SIZE:
                self._small[body.sha256] = body
            else:
                large.append(body)
        self._unnamed &= self._small.keys()
        return exchanges

    def _facts_of(self, exchanges: "dict[str, _Entries | WholeExchange]", name: str) -> "_Entries":
        entries = exchanges.setdefault(name, [])
        if type(entries) is WholeExchange:
            if len(entries.body.data) < LEAST_SIZE:
                self._small[entries.body.sha256] = entries.body
            entries = exchanges[name] = _facts_in(entries)
        return entries  # type: ignore[return-value]

    def _load_known(self, exchanges: "dict[str, _Entries | WholeExchange]") -> None:
        """Look up which of these exchanges the database has; most are new. The facts are read only of those that get
        new entries."""
        names = [name for name in exchanges if name not in self._known] if self._known else list(exchanges)
        reader = BlockReader(self._connection, self._codec)
        by_name = "SELECT id, seq, next_n, blocks FROM exchanges WHERE id IN ({})"
        for exchange, seq, next_n, blocks in select_among(self._connection, by_name, names):
            known = self._known[exchange] = _Known(seq, next_n, blocks)
            if any(next_number(entry) > next_n for entry in self._facts_of(exchanges, exchange)):
                self._recall(known, reader)
        for name in self._known.keys() & exchanges.keys():
            self._facts_of(exchanges, name)

    def _recall(self, known: _Known, reader: BlockReader) -> list[KeptEntry]:
        """Read the stored facts of an exchange."""
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
        own, shared = TELLS_NOTHING
        if is_new := not known.seq:
            self._last_seq = known.seq = self._last_seq + 1
            own, shared = self._read_request(known.seq, exchange, others)
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
            row = row_of(columns)
            self._added.append([*row, known.seq, exchange, known.blocks, *own, *shared, self._slot, known.next_n])
        else:
            self._changed.append((known.next_n, known.blocks, *row_of(columns), known.seq))
        if columns["state"] in OPEN_STATES:
            self._known[exchange] = known

    def _add_whole(self, exchange: str, whole: WholeExchange) -> None:
        """Do what `_add` does, for an exchange of which nothing is stored."""
        self._last_seq = seq = self._last_seq + 1
        body, head, beginning = whole.body, whole.head, None
        if len(body.data) < LEAST_SIZE:
            block = self._blocks.add_written(seq, *whole.entries())
        else:
            number = self._bodies.number(body.sha256)
            assert number is not None
            self._uses.append((seq, number))
            beginning = self._bodies.beginning(body.sha256)
            block = self._blocks.add_written(seq, b"", whole.without_body())
        if whole.words:
            self._digests.add_reply(seq, exchange, whole.words)
        elif raw := b"".join(whole.frames.data):
            self._digests.add_reply(seq, exchange, *read_reply(head.reply_dialect, raw))
        received = head.received
        own, digested = self._digests.add_request(
            seq, exchange, received.session, received.dialect, body.data, beginning
        )
        shared, row = row_of_whole(whole, self._prices)
        row += seq, exchange, str(block)
        row += own
        self._added_whole[head, shared, digested, self._slot, whole.finished.n + 1].append(row)

    def _fresh(
        self, known: _Known, entries: Sequence[FactEntry | FramesEntry]
    ) -> tuple[list[FactEntry | FramesEntry], list[FactEntry]]:
        """The entries that are not stored yet, in order, and the facts among them that are not frames."""
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
        """The small bodies that these facts are the first to name. For large bodies, a use is noted."""
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
                    continue  # of a body that has not arrived, only the hash is stored
                known.bodies.add(name)
        return found

    # --- reading what was said ---

    def _read_request(self, seq: int, exchange: str, facts: Sequence[FactEntry]) -> DigestValues:
        received = next((entry.fact for entry in facts if type(entry.fact) is Received), None)
        if received is None or not received.sha256 or (body := self._body(received.sha256)) is None:
            return TELLS_NOTHING
        return self._digests.add_request(seq, exchange, received.session, received.dialect, body)

    def _body(self, sha256: str) -> bytes | None:
        small = self._small.get(sha256)
        return self._bodies.body(sha256) if small is None else small.data

    def _read_reply(self, known: _Known, exchange: str, entries: Sequence[KeptEntry]) -> None:
        if raw := raw_reply(entries):
            dialect = reply_dialect([entry.fact for entry in known.facts])
            self._digests.add_reply(known.seq, exchange, *read_reply(dialect, raw))

    def _read_left(self) -> None:
        """Read the requests and replies that an earlier version stored without reading them."""
        left = "SELECT seq, id, blocks, todo FROM exchanges WHERE todo > 0 ORDER BY seq"
        rows = self._connection.execute(left).fetchall()
        for some in (rows[at : at + MOST_VALUES] for at in range(0, len(rows), MOST_VALUES)):
            with changing(self._connection):
                self._begin()
                reader = BlockReader(self._connection, self._codec)
                digests: dict[int, DigestValues] = {}
                for seq, exchange, blocks, todo in some:
                    known = _Known(seq, 0, blocks)
                    entries = self._recall(known, reader)
                    self._small = {each.sha256: each for each in entries if type(each) is BodyEntry}
                    if todo & REQUEST:
                        digests[seq] = self._read_request(seq, exchange, known.facts)
                    if todo & REPLY:
                        self._read_reply(known, exchange, entries)
                previous = self._digests.link()
                columns = [(*own, *shared, previous.get(seq, ""), seq) for seq, (own, shared) in digests.items()]
                self._connection.executemany(_UPDATE_DIGEST, columns)
                self._connection.executemany("UPDATE exchanges SET todo = 0 WHERE seq = ?", [row[:1] for row in some])
                self._digests.end()
