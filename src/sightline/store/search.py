"""Runs a filter as database queries: columns decide first, then the words are scanned, then the remaining exchanges are
checked one by one.

A search is a generator that yields queries, each a statement with its parameters, and is sent the rows, so that it
works the same for a local file and a remote server. A query may name the most likely next one, whose rows can be
fetched while those of the first are scanned. All queries of one search must see the same state of the record.
"""

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from sightline.filters.expression import (
    And,
    ContentTerm,
    Expression,
    FlagTerm,
    Latest,
    NumberTerm,
    Or,
    SetTerm,
    TextTerm,
    set_terms,
    terms_of,
)
from sightline.filters.fields import ADDED
from sightline.filters.predicate import alone, fold_case, literals, matches, occurs, plain
from sightline.filters.sql import Column, Columns, Condition, condition
from sightline.platform.files import contains
from sightline.store.entries import Codec
from sightline.store.summary import FIELDS, NAMES, ExchangeSubject, Summary, SummedExchanges, summary_in
from sightline.store.words import END, Name, find_blocks, read_names, split_block, unpack_words

_MOST_IDS = 10_000
"""How many exchanges are listed at once for an export: each query about words scans all of them again."""
_PAGE, _MOST_PAGE = 1000, 4000
"""How many exchanges the first page of a search has, and the largest one. Each page is twice as large as the one before
it."""
_FEW = 8
"""If fewer than one in so many exchanges of a page contain the words, only those are queried; otherwise the whole
page."""
_ROWS = 200
"""How many exchanges are checked together."""
_BLOCKS, _MOST_BLOCKS = 8, 64
"""How many blocks of words the first query fetches, and the most that one fetches, which is up to two megabytes. The
number doubles with each query."""
_KINDS = ("state", "provider", "model", "path", "is_estimated")
"""The columns that sums of exchanges are always grouped by."""
_COUNTS = ("input_tokens", "output_tokens", "cached_tokens")
_MONEY = ("cost", "saved")
_PARTS = 10**10
"""Money is summed in whole numbers of this fraction of a dollar: summing a million fractions in SQLite accumulates an
error."""
_EXACT = "DOUBLE PRECISION"
"""Sums of whole numbers in this type are exact up to 2**53, or 900,000 dollars, and nearly so beyond. Sums of integers
fail from 2**63 on, so that absurd counts in a few exchanges would make the sum of all others fail."""
_LAST = "\U0010ffff"
"""Sorts after every id."""

T = TypeVar("T")


class FoundRow(Protocol):
    """A row of a query's result."""

    def __getitem__(self, column: Any, /) -> Any:
        """The value of a column by its index, or several by a slice."""


class SearchQuery(NamedTuple):
    """A statement and its parameters. `following` is the most likely next query; the search may also end, or ask
    something else first."""

    statement: str
    parameters: tuple[object, ...] = ()
    following: "SearchQuery | None" = None


Search: TypeAlias = Generator[SearchQuery, Sequence[FoundRow], T]


@dataclass(frozen=True, slots=True)
class SearchTables(Generic[Name]):
    """The tables of a database: `exchanges` and `words` are their names, `name` is the column by which blocks of words
    identify an exchange, and `among` is a condition that a column is in the list that `pack` turns into a parameter."""

    columns: Columns
    exchanges: str
    words: str
    name: str
    among: str
    pack: Callable[[Sequence[Name] | Sequence[int]], object]


def record_columns(exchanges: str, tools: str) -> Columns:
    """The columns of the table `exchanges` as filters see them. `tools` is SQL that turns the tools of an exchange into
    rows with a `value`."""
    columns = {name: Column("NULLIF(e.status, 0)" if name == "status" else f"e.{of}") for name, of in FIELDS.items()}
    columns["tool"] = Column("tool.value", f"EXISTS (SELECT 1 FROM {tools} tool WHERE {{}})")
    latest = f"e.id IN (SELECT id FROM {exchanges} ORDER BY id DESC LIMIT {{}})"
    return Columns(columns, latest)


class RecordSearch(Generic[Name]):
    """Finds the exchanges that match a filter."""

    def __init__(self, tables: SearchTables[Name], wanted: Expression, now: float) -> None:
        self._tables: SearchTables[Name] = tables
        self._wanted = wanted
        self._now = now
        self._decided: Condition = condition(wanted, tables.columns, now=now)
        self._words: WordSearch[Name] = WordSearch(tables, wanted)
        self._since: dict[SetTerm, str] = {}
        self._names = f"SELECT {tables.name} AS name, e.id AS id FROM {tables.exchanges} e"
        self._select = f"SELECT {tables.name}, {', '.join(f'e.{name}' for name in NAMES)} FROM {tables.exchanges} e"

    def newest(self, before: str, limit: int) -> Search[list[Summary]]:
        """At most `limit` exchanges, newest first, starting after `before`."""
        rows = yield from self._rows("<", "e.id DESC", before or _LAST, limit)
        return [summary_in(row[1:]) for row in rows]

    def oldest(self, after: str) -> Search[list[str]]:
        """The ids of some exchanges, oldest first, starting after `after`."""
        rows = yield from self._rows(">", "e.id", after, _MOST_IDS)
        return [str(row[1]) for row in rows]

    def sums(self, by: Iterable[str]) -> Search[list[SummedExchanges] | None]:
        """The sums of all exchanges that match the filter, grouped by these columns and by those that their costs
        depend on. None if columns are not enough to decide which exchanges match."""
        decided: Condition = self._decided
        if not decided.is_complete:
            return None
        kinds = tuple(dict.fromkeys((*_KINDS, *by)))
        rows = yield SearchQuery(_sum_statement(self._tables.exchanges, kinds, decided.sql), decided.parameters)
        return [_read_sums(kinds, row) for row in rows]

    def _rows(self, side: str, order: str, place: str, limit: int) -> Search[list[FoundRow]]:
        decided: Condition = self._decided
        mark, count = self._tables.columns.placeholder, len(decided.parameters)
        where = f"WHERE {decided.sql} AND e.id {side} {mark(count + 1)} ORDER BY {order} LIMIT {mark(count + 2)}"
        if decided.is_complete:
            return list((yield SearchQuery(f"{self._select} {where}", (*decided.parameters, place, limit))))
        yield from self._resolve_latest_terms()
        found: list[FoundRow] = []
        size = _PAGE
        while True:
            page = SearchQuery(f"{self._names} {where}", (*decided.parameters, place, size))
            count, place, left = yield from self._search_page(page, is_down=side == "<")
            for at in range(0, len(left), _ROWS):
                found += yield from self._filter(left[at : at + _ROWS], order)
                if len(found) >= limit:
                    return found[:limit]
            if count < size:
                return found
            size = min(2 * size, _MOST_PAGE)

    def _search_page(self, page: SearchQuery, *, is_down: bool) -> Search[tuple[int, str, Sequence[Name]]]:
        """How many exchanges a page has, the id of the last one, and those that may match the filter according to
        columns and words, in the order of the page."""
        if self._words.candidates() is None:
            rows = yield page
            yield from self._words.scan(min((row[0] for row in rows), default=None))
            return len(rows), rows[-1][1] if rows else "", [row[0] for row in rows]
        # Most pages do not contain a rare word: their bounds are enough.
        ends = "count(*), min(name), max(name), min(id), max(id)"
        rows = yield SearchQuery(f"SELECT {ends} FROM ({page.statement}) AS page", page.parameters)
        count, first, last, lowest, highest = (rows[0][at] for at in range(5))
        yield from self._words.scan(first)
        names = [name for name in self._words.candidates() or () if first <= name <= last]
        if len(names) > count // _FEW:
            some = set(names)
            left = [row[0] for row in (yield page) if row[0] in some]
        else:
            # Names may be ordered differently from ids, so a name between the bounds can belong to another page.
            rows = (yield self._among(names)) if names else ()
            ids = {row[1]: row[0] for row in rows if lowest <= row[1] <= highest}
            left = [ids[id_] for id_ in sorted(ids, reverse=is_down)]
        return count, lowest if is_down else highest, left

    def _among(self, names: Sequence[Name]) -> SearchQuery:
        """The query for those of these exchanges that may match the filter according to columns."""
        tables = self._tables
        decided: Condition = self._decided
        among = tables.among.replace("{}", tables.columns.placeholder(len(decided.parameters) + 1))
        where = f"WHERE {decided.sql} AND {tables.name} {among}"
        return SearchQuery(f"{self._names} {where}", (*decided.parameters, tables.pack(names)))

    def _resolve_latest_terms(self) -> Search[None]:
        """Find the oldest id among the latest so many exchanges, for each such term; empty, which includes all, if
        there are fewer."""
        tables = self._tables
        nth = f"SELECT id FROM {tables.exchanges} ORDER BY id DESC LIMIT 1 OFFSET {tables.columns.placeholder(1)}"
        for term in set_terms(self._wanted):
            if isinstance(term, Latest) and term.count > 0:
                rows = yield SearchQuery(nth, (term.count - 1,))
                self._since[term] = rows[0][0] if rows else ""

    def _filter(self, exchanges: Sequence[Name], order: str) -> Search[list[FoundRow]]:
        """The rows of those of these exchanges that match the filter."""
        tables = self._tables
        among = tables.among.replace("{}", tables.columns.placeholder(1))
        yield from self._words.read(exchanges)
        named = f"{self._select} WHERE {tables.name} {among} ORDER BY {order}"
        rows = yield SearchQuery(named, (tables.pack(exchanges),))
        return [row for row in rows if self._matches(row[0], summary_in(row[1:]))]

    def _matches(self, exchange: Name, summary: Summary) -> bool:
        def belongs(term: SetTerm) -> bool:
            if not isinstance(term, Latest):
                return alone(term)
            return term in self._since and summary.id >= self._since[term]

        subject = ExchangeSubject(summary, lambda pattern: self._words.says(exchange, pattern))
        return matches(self._wanted, subject, now=self._now, belongs=belongs)


def _sum_statement(exchanges: str, kinds: Sequence[str], condition: str) -> str:
    """The statement for the sums. The exchanges of a group either all have a count or none has it. Exchanges of an
    older record that lacks their savings stay separate, because savings cannot be computed from sums."""
    alike = [f"e.{name}" for name in kinds]
    counts = [f"sum(CAST(e.{name} AS {_EXACT}))" for name in _COUNTS]
    sums = [*counts, *(f"sum(round(e.{name} * {_PARTS}))" for name in _MONEY)]
    known = [f"e.{name} IS NULL" for name in (*_COUNTS, *_MONEY)]
    apart = "CASE WHEN e.saved IS NULL AND e.cached_tokens > 0 THEN e.id END"
    selected, groups = ", ".join(["count(*)", *alike, *sums]), ", ".join([*alike, *known, apart])
    return f"SELECT {selected} FROM {exchanges} e WHERE {condition} GROUP BY {groups}"


def _read_sums(kinds: Sequence[str], row: FoundRow) -> SummedExchanges:
    counts, money = row[-len(_COUNTS + _MONEY) : -len(_MONEY)], row[-len(_MONEY) :]
    values = (
        *("", 0.0, *row[1 : 1 + len(kinds)]),
        *(None if each is None else int(each) for each in counts),
        *(None if each is None else each / _PARTS for each in money),
    )
    line = dict(zip(("id", "at", *kinds, *_COUNTS, *_MONEY), values, strict=True))
    return SummedExchanges(row[0], msgspec.convert(line, Summary, strict=False))


class WordSearch(Generic[Name]):
    """Searches blocks for the patterns of a filter, in only as many blocks as are needed."""

    def __init__(self, tables: SearchTables[Name], wanted: Expression) -> None:
        mark, among = tables.columns.placeholder, tables.among.replace("{}", tables.columns.placeholder(1))
        self._spans_of_all = f"SELECT id, first, last FROM {tables.words} ORDER BY id"
        self._blocks_between = f"SELECT data FROM {tables.words} WHERE id BETWEEN {mark(1)} AND {mark(2)} ORDER BY id"
        self._blocks_among = f"SELECT data FROM {tables.words} WHERE id {among}"
        self._pack: Callable[[Sequence[Name] | Sequence[int]], object] = tables.pack
        self._codec = Codec()
        self._wanted = wanted
        terms = list(terms_of(wanted))
        self._found: dict[str, set[Name]] = {each.pattern: set() for each in terms if isinstance(each, ContentTerm)}
        self._needles = {
            pattern: [run.encode("utf-8", "surrogatepass") for run in literals(fold_case(pattern))]
            for pattern in self._found
        }
        # A field from outside the package (`ADDED`) may ask for any pattern.
        self._is_read = any(
            isinstance(each, TextTerm | NumberTerm | FlagTerm) and each.field in ADDED for each in terms
        )
        self._texts: dict[Name, list[str]] = {}
        self._spans: list[tuple[int, Name, Name]] | None = None
        self._left: list[tuple[int, Name]] = []
        self._at_once = _BLOCKS

    def candidates(self) -> Set[Name] | None:
        """The scanned exchanges that can match the filter; None if words exclude none."""
        return self._possible_matches(self._wanted)

    def read(self, exchanges: Sequence[Name]) -> Search[None]:
        """Read the words of these exchanges, if a field from outside the package may ask for them."""
        if not self._is_read:
            return
        yield from self._load_spans()
        self._texts = {exchange: [] for exchange in exchanges}
        numbers = find_blocks(self._spans or (), exchanges)
        for at in range(0, len(numbers), _MOST_BLOCKS):
            for row in (yield SearchQuery(self._blocks_among, (self._pack(numbers[at : at + _MOST_BLOCKS]),))):
                for name, words in unpack_words(self._codec, row[0]):
                    if name in self._texts:
                        self._texts[name].append(words.decode())

    def says(self, exchange: Name, pattern: str) -> bool:
        """Whether a pattern occurs in the words of an exchange, which must be a candidate. The patterns of the filter
        were searched in whole blocks; any other is searched in the words that were read."""
        if pattern in self._found:
            return exchange in self._found[pattern]
        return any(occurs(pattern, words) for words in self._texts[exchange])

    def _load_spans(self) -> Search[None]:
        if self._spans is None:
            rows = yield SearchQuery(self._spans_of_all)
            self._spans = [(row[0], row[1], row[2]) for row in rows]
            # Oldest first, each with the highest exchange that has words in it or in an older one. A newer block may
            # have words of much older exchanges, as a late reply is in a newer block than its request.
            highest = accumulate((last for _, _, last in self._spans), max)
            self._left = list(zip((number for number, _, _ in self._spans), highest, strict=True))

    def scan(self, exchange: Name | None) -> Search[None]:
        """Scan every block that may have words of this exchange or a newer one."""
        if exchange is None or not self._found:
            return
        yield from self._load_spans()
        while self._left and self._left[-1][1] >= exchange:
            question = self._next_blocks()
            del self._left[-self._at_once :]
            self._at_once = min(2 * self._at_once, _MOST_BLOCKS)
            for row in (yield question._replace(following=self._next_blocks() if self._left else None)):
                self._scan_block(row[0])

    def _next_blocks(self) -> SearchQuery:
        """The query for the newest blocks that are left."""
        numbers = [number for number, _ in self._left[-self._at_once :]]
        return SearchQuery(self._blocks_between, (numbers[0], numbers[-1]))

    def _scan_block(self, data: bytes) -> None:
        unpacked = self._codec.unpack(data)
        for pattern, needles in self._needles.items():
            # Most blocks end here, without splitting their names from their text.
            if all(contains(unpacked, needle) for needle in needles):
                names, text = split_block(unpacked)
                if all(needle in text for needle in needles):
                    self._found[pattern].update(_occurrences(pattern, needles, read_names(names), text))

    def _possible_matches(self, expression: Expression) -> set[Name] | None:
        """The scanned exchanges that can match the expression; None if words exclude none."""
        match expression:
            case ContentTerm(pattern=pattern):
                return self._found[pattern]
            case And(parts=parts):
                known = [each for each in map(self._possible_matches, parts) if each is not None]
                return set.intersection(*known) if known else None
            case Or(parts=parts):
                each = [self._possible_matches(part) for part in parts]
                return None if None in each else set().union(*(one for one in each if one is not None))
            case _:
                return None


def _occurrences(pattern: str, needles: Sequence[bytes], exchanges: Sequence[Name], text: bytes) -> Iterable[Name]:
    """The exchanges of a block whose words contain the pattern."""
    pieces = text.split(END)
    if plain(pattern) is None or not needles or END in needles[0]:
        return [each for each, words in zip(exchanges, pieces, strict=True) if occurs(pattern, words.decode())]
    starts = list(accumulate((len(piece) + 1 for piece in pieces), initial=0))
    found, at = list[Name](), text.find(needles[0])
    while at >= 0:
        index = bisect_right(starts, at)
        found.append(exchanges[index - 1])
        at = text.find(needles[0], starts[index])
    return found
