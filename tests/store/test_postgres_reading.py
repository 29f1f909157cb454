import asyncio
from collections.abc import Iterator

import pytest

from sightline.errors import Code, Fault
from sightline.filters.expression import EVERYTHING, And, ContentTerm, Expression, Latest, Not, Or, OwnModel
from sightline.filters.parsing import parse
from sightline.filters.predicate import matches
from sightline.model.exchange import ExchangeFailed
from sightline.store.columns import ExchangeSubject
from sightline.store.entries import Entry
from sightline.store.postgres import index_texts
from sightline.store.postgres_reading import entries_of, newest, oldest
from sightline.store.summary import Summary
from tests.postgres_server import execute, fetch
from tests.store.postgres_tables import connected, connection_to, sink, tables
from tests.store.traffic import NOON, answered, chat_body, chat_stream, noted, received, whole

SAID = ["100% sure", "a_b", "wow! it's 5 < 6", "Straße in ÅRHUS", "ΣΊΣΥΦΟΣ", "back\\slash", "K is kelvin", "日本語", ""]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A record of a few hundred exchanges, more than one page of them."""
    with tables() as url:
        connected(url, index_texts)
        with sink(url) as target:
            entries: list[Entry] = []
            for number in range(450):
                body = chat_body(SAID[number % len(SAID)])
                exchange, session = f"x_{number:03}", ("", "blue", "Grün")[number % 3]
                tools = (("Bash", "Ünique"), (), ("Read",))[number % 3]
                entries += received(exchange, body, at=NOON + number, session=session)
                if number % 5:
                    entries += answered(exchange, body, chat_stream(f"reply {number}"), tools=tools)
                elif number % 2:
                    entries += noted(exchange, [ExchangeFailed("network", "cut", status=502)], first=1)
            target.apply(entries)
            while target.tidy():
                pass
        yield url


def everything(url: str) -> list[ExchangeSubject]:
    summaries: list[Summary] = connected(
        url, lambda connection: newest(connection, EVERYTHING, now=NOON, before="", limit=1000)
    )
    words: dict[str, list[str]] = {}
    for row in fetch(url, "SELECT exchange, words FROM sightline.texts"):
        words.setdefault(row["exchange"], []).append(row["words"])
    return [ExchangeSubject(each, lambda each=each: words.get(each.id, [])) for each in summaries]  # type: ignore[misc]


FILTERS = [
    "text:100%", "text:'a_b'", "text:axb", "text:'wow!'", "text:STRASSE", "text:straße", "text:århus", "text:σίσυφος",
    "text:'back\\\\slash'", "text:kelvin", "text:日本", "text:日?語", "text:'reply*1'", "!text:reply", "!text:å",
    "tool:bash", "tool:ün*", "!tool:ün*", "tool:*", "!tool:*", "session:grün", "session:''", "!session:blue",
    "status:ok", "!status:ok", "status>=500", "error", "state:received", "tokens>1000 & text:'5 < 6'", "fault:net*",
    "cost>0.001 | text:sure", "time<1s", "id:x_00?", "stream", "!stream & side",
]  # fmt: skip


@pytest.mark.parametrize("wanted", FILTERS)
def test_the_server_finds_what_the_filter_means(url: str, wanted: str) -> None:
    expression = parse(wanted)
    expected = [each.summary.id for each in everything(url) if matches(expression, each, now=NOON)]
    found = connected(url, lambda connection: newest(connection, expression, now=NOON, before="", limit=1000))
    assert [each.id for each in found] == expected


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (Latest(3), 3),
        (Latest(0), 0),
        (Latest(1000), 450),
        (Not(Latest(440)), 10),
        (And((Latest(9), ContentTerm("å"))), 1),
        (Or((Latest(2), ContentTerm("å"))), 52),
        (And((Latest(0), ContentTerm("å"))), 0),
        (And((Latest(1000), ContentTerm("å"))), 50),
    ],
)
def test_a_place_in_the_list_can_be_asked_for(url: str, wanted: Expression, count: int) -> None:
    found = connected(url, lambda connection: newest(connection, wanted, now=NOON, before="", limit=1000))
    assert len(found) == count


def test_what_only_a_chat_knows_is_refused(url: str) -> None:
    with pytest.raises(Fault) as caught:
        connected(url, lambda connection: newest(connection, OwnModel(), now=NOON, before="", limit=10))
    assert caught.value.code is Code.USAGE


@pytest.mark.parametrize("wanted", [EVERYTHING, parse("text:å"), parse("tool:bash")])
def test_pages_follow_each_other_without_a_gap_both_ways(url: str, wanted: Expression) -> None:
    async def story() -> tuple[list[str], list[str], list[str]]:
        async with connection_to(url) as connection:
            at_once = [each.id for each in await newest(connection, wanted, now=NOON, before="", limit=1000)]
            down: list[str] = []
            while page := await newest(connection, wanted, now=NOON, before=down[-1] if down else "", limit=13):
                down += [each.id for each in page]
            up: list[str] = []
            while ids := await oldest(connection, wanted, now=NOON, after=up[-1] if up else ""):
                up += ids
            return at_once, down, up

    at_once, down, up = asyncio.run(story())
    assert down == at_once
    assert up == at_once[::-1]


def test_words_are_found_with_the_index_and_without(url: str) -> None:
    plan = (
        "EXPLAIN SELECT exchange FROM sightline.texts t WHERE lower(t.words COLLATE \"C\") LIKE '%reply 44%' ESCAPE '!'"
    )
    execute(url, "ANALYZE sightline.texts")

    async def explained() -> str:
        async with connection_to(url) as connection:
            await connection.execute("SET enable_seqscan = off")
            return "\n".join(row[0] for row in await connection.fetch(plan))

    assert "texts_by_trigram" in asyncio.run(explained())
    with tables() as bare, sink(bare) as target:
        target.apply(whole("x_1", chat_body("hello"), "yes"))
        assert not target.tidy()
        found = connected(
            bare, lambda connection: newest(connection, ContentTerm("ell"), now=NOON, before="", limit=10)
        )
        assert [each.id for each in found] == ["x_1"]


def test_the_entries_of_an_exchange_are_what_was_recorded() -> None:
    entries = whole("x_1", chat_body("hello"), "y", "es")
    with tables() as url, sink(url) as target:
        target.apply(entries)
        assert connected(url, lambda connection: entries_of(connection, "x_1")) == entries
        assert connected(url, lambda connection: entries_of(connection, "x_2")) == []
