"""The reading side of a PostgreSQL record: questions about exchanges, answered as far as possible by the server."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from sightline.filters.expression import Expression, Latest, SetTerm, set_terms
from sightline.filters.predicate import alone, like, matches, occurs
from sightline.filters.sql import POSTGRESQL_FOLDED, Column, Columns, Condition, TextSearch, condition, dollar
from sightline.store.entries import BodyEntry, Codec, Entry, FactEntry, fact_of, unpack_frames
from sightline.store.postgres_connection import PostgresConnection, Row
from sightline.store.postgres_sink import body_of
from sightline.store.summary import FIELDS, NAMES, ExchangeSubject, Summary, bodies_of, summary_in

Judge: TypeAlias = Callable[[Summary, Sequence[str]], bool]
"""Whether the filter takes an exchange with these words, all things considered."""

_PAGE = 200

_SELECT = f"SELECT {', '.join(f'e.{name}' for name in NAMES)} FROM sightline.exchanges e"
_FACTS = "SELECT n, at, data FROM sightline.facts WHERE exchange = $1"
_FRAMES = "SELECT data FROM sightline.frames WHERE exchange = $1"
_NEAR = "SELECT near FROM sightline.bodies WHERE sha256 = $1"
_WORDS = "SELECT exchange, words FROM sightline.texts WHERE exchange = ANY($1::text[])"
_NTH = "SELECT id FROM sightline.exchanges ORDER BY id DESC OFFSET $1 LIMIT 1"
_SEARCH = (
    "e.id IN (SELECT t.exchange FROM sightline.texts t WHERE "
    + POSTGRESQL_FOLDED.replace("{}", "t.words")
    + " LIKE {} ESCAPE '!')"
)


def _columns(wanted: Expression) -> Columns:
    # Databases fold the case of ASCII alike and of nothing else: with other letters the predicate decides.
    is_exact = msgspec.json.encode(wanted).isascii()
    return Columns(
        fields={
            name: Column("tool.value", "EXISTS (SELECT 1 FROM json_array_elements_text(e.tools::json) tool WHERE {})")
            if name == "tool"
            else Column("NULLIF(e.status, 0)" if name == "status" else f"e.{column}")
            for name, column in FIELDS.items()
        },
        text=TextSearch(_SEARCH, lambda pattern: f"%{like(pattern)[0]}%", is_exact=is_exact),
        latest="e.id IN (SELECT id FROM sightline.exchanges ORDER BY id DESC LIMIT {})",
        folded=POSTGRESQL_FOLDED,
        placeholder=dollar,
    )


async def facts_of(connection: PostgresConnection, exchange: str) -> list[FactEntry]:
    """The facts of an exchange in their order."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        return await _facts(connection, exchange)


async def newest(
    connection: PostgresConnection, wanted: Expression, *, now: float, before: str, limit: int
) -> list[Summary]:
    """Exchanges that the filter takes, newest first."""
    selected, judge = await _question(connection, wanted, now)
    found: list[Summary] = []
    while len(found) < limit:
        size = limit if judge is None else _PAGE
        place = "e.id < $1" if before else "$1 = ''"
        query = f"{_SELECT} WHERE ({selected.sql}) AND {place} ORDER BY e.id DESC LIMIT $2"
        rows = await connection.fetch(query, before, size, *selected.parameters)
        found += await _filter_rows(connection, rows, judge)
        if len(rows) < size:
            break
        before = rows[-1]["id"]
    return found[:limit]


async def oldest(connection: PostgresConnection, wanted: Expression, *, now: float, after: str) -> list[str]:
    """The ids of some exchanges that the filter takes, oldest first, from behind one."""
    selected, judge = await _question(connection, wanted, now)
    query = f"{_SELECT} WHERE ({selected.sql}) AND e.id > $1 ORDER BY e.id LIMIT $2"
    while True:
        rows = await connection.fetch(query, after, _PAGE, *selected.parameters)
        found = [summary.id for summary in await _filter_rows(connection, rows, judge)]
        if found or len(rows) < _PAGE:
            return found
        after = rows[-1]["id"]


async def entries_of(connection: PostgresConnection, exchange: str) -> list[Entry]:
    """All of one exchange, each body before the fact that names it."""
    codec = Codec()
    entries: list[Entry] = []
    names: set[str] = set()
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        for entry in await _facts(connection, exchange):
            for name in bodies_of(entry.fact):
                if name not in names and (body := await body_of(connection, codec, name)) is not None:
                    entries.append(BodyEntry(name, body, await connection.fetchval(_NEAR, bytes.fromhex(name))))
                names.add(name)
            entries.append(entry)
    return entries


async def _facts(connection: PostgresConnection, exchange: str) -> list[FactEntry]:
    codec = Codec()
    plain = await connection.fetch(_FACTS, exchange)
    entries = [FactEntry(exchange, row["n"], row["at"], fact_of(row["data"])) for row in plain]
    for row in await connection.fetch(_FRAMES, exchange):
        entries += unpack_frames(codec, exchange, row["data"])
    return sorted(entries, key=lambda each: each.n)


async def _question(connection: PostgresConnection, wanted: Expression, now: float) -> tuple[Condition, Judge | None]:
    """What the server is asked, and who decides about what it finds, where it cannot decide alone."""
    selected = condition(wanted, _columns(wanted), now=now, first=3)
    if selected.is_complete:
        return selected, None
    # Since when an exchange is among the newest so many; everything is, where there are fewer.
    since: dict[SetTerm, str] = {}
    for term in set_terms(wanted):
        if isinstance(term, Latest) and term.count > 0:
            since[term] = await connection.fetchval(_NTH, term.count - 1) or ""

    def judge(summary: Summary, words: Sequence[str]) -> bool:
        def belongs(term: SetTerm) -> bool:
            if not isinstance(term, Latest):
                return alone(term)
            return term in since and summary.id >= since[term]

        subject = ExchangeSubject(summary, lambda pattern: any(occurs(pattern, each) for each in words))
        return matches(wanted, subject, now=now, belongs=belongs)

    return selected, judge


async def _filter_rows(connection: PostgresConnection, rows: Sequence[Row], judge: Judge | None) -> list[Summary]:
    """Those of these exchanges that the filter takes."""
    summaries = [summary_in([row[name] for name in NAMES]) for row in rows]
    if judge is None:
        return summaries
    words: dict[str, list[str]] = {summary.id: [] for summary in summaries}
    for row in await connection.fetch(_WORDS, list(words)):
        words[row["exchange"]].append(row["words"])
    return [summary for summary in summaries if judge(summary, words[summary.id])]
