import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from math import nan
from random import Random
from urllib.parse import urlsplit

import pytest

from sightline.errors import Code, Fault
from sightline.filters.expression import EVERYTHING, And, ContentTerm, Expression, Latest, Not, Or, OwnModel
from sightline.filters.parsing import parse
from sightline.filters.predicate import matches, occurs
from sightline.model.exchange import AttemptStarted, ExchangeFailed, ExchangeFinished, Held
from sightline.model.reply import Usage
from sightline.store.entries import DEEPEST, BodyEntry, Codec, Entry
from sightline.store.postgres import TABLES, answer, entries_of, facts_of
from sightline.store.postgres_connection import UNFIT, PostgresConnection, address_of
from sightline.store.postgres_digest import LEFT_BEHIND, driver_value
from sightline.store.postgres_sink import PostgresBodies, PostgresSink, body_of
from sightline.store.postgres_words import append_words, carry_words
from sightline.store.search import FoundRow, RecordSearch
from sightline.store.summary import ExchangeSubject, Summary, Unfinished
from sightline.store.words import unpack_words
from tests.postgres_server import execute, fetch
from tests.store.postgres_tables import connected, connection_to, sink, tables
from tests.store.traffic import NOON, answered, chat_body, chat_stream, noted, prices, received, sha256, whole

ALL = ("exchanges", "facts", "frames", "bodies", "uses", "words")


@pytest.fixture
def url() -> Iterator[str]:
    with tables() as made:
        yield made


@pytest.fixture
def target(url: str) -> Iterator[PostgresSink]:
    with sink(url) as made:
        yield made


def contents(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every row, without the numbers that the server gives."""
    found = {}
    for table in ALL:
        rows = fetch(url, f"SELECT * FROM sightline.{table}")
        found[table] = sorted(tuple(str(value) for key, value in row.items() if key != "number") for row in rows)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_what_is_brought_in_again_in_other_pieces_changes_nothing(url: str, target: PostgresSink, seed: int) -> None:
    records = [whole(f"x_{number}", chat_body(f"{number}"), "a", "b", "c") for number in range(6)]
    cuts = sorted({0, len(records), *(Random(seed).randrange(7) for _ in range(3))})
    target.apply([entry for record in records for entry in record])
    before = contents(url)
    for start, stop in pairwise(cuts):
        target.apply([entry for record in records[start:stop] for entry in record])
    target.apply([])
    assert contents(url) == before


def test_a_batch_that_fails_leaves_nothing(url: str, target: PostgresSink) -> None:
    entries = whole("x_1", chat_body("hi"), "yes")
    execute(url, "ALTER TABLE sightline.uses ADD CONSTRAINT never CHECK (exchange <> 'x_1')")
    with pytest.raises(UNFIT):
        target.apply(entries)
    assert not any(contents(url).values())
    execute(url, "ALTER TABLE sightline.uses DROP CONSTRAINT never")
    target.apply(entries)
    assert [each for each in entries if hasattr(each, "fact")] == connected(
        url, lambda connection: facts_of(connection, "x_1")
    )


def test_numbers_and_names_that_no_column_takes_do_not_stop_the_record(url: str, target: PostgresSink) -> None:
    usage = Usage(input_tokens=2**64 - 1, output_tokens=-(2**63))
    end = ExchangeFinished("stop", usage=usage, tools=("a\0b", "c"), warning="x\0y")
    target.apply([*received("x_1", chat_body("hi"), client="\0"), *noted("x_1", [end], first=1)])
    (row,) = fetch(url, "SELECT input_tokens, output_tokens, tools::json AS tools, message FROM sightline.exchanges")
    assert (row["input_tokens"], row["output_tokens"]) == (2**63 - 1, 1 - 2**63)
    assert row["message"] == "x\ufffdy"
    assert fetch(url, "SELECT 1 FROM sightline.exchanges, json_array_elements_text(tools::json)")


def test_what_dead_processes_of_this_folder_left_open_is_known_and_others_is_not(url: str) -> None:
    def begun(exchange: str, *more: object) -> list[Entry]:
        return [*received(exchange, chat_body(exchange)), *noted(exchange, more, first=1)]  # type: ignore[arg-type]

    with sink(url) as own, sink(url, "two") as elsewhere:
        own.apply([*begun("x_1"), *begun("x_2", Held()), *begun("x_3", AttemptStarted(1, "acme", ""))], 1)
        own.apply(whole("x_4", chat_body("done"), "yes"), 1)
        own.apply(begun("x_5"), 2)
        elsewhere.apply(begun("x_6"), 1)
        left = [Unfinished("x_1", 1, "received"), Unfinished("x_2", 2, "held"), Unfinished("x_3", 2, "sending")]
        assert own.open_exchanges([2, 3]) == left
        assert own.open_exchanges([1, 2]) == []
        while own.tidy():
            pass
        rows = fetch(url, "SELECT id FROM sightline.exchanges WHERE todo > 0 ORDER BY id")
        assert [row["id"] for row in rows] == ["x_6"]


def test_a_server_that_is_not_there_is_a_fault_and_closing_is_not() -> None:
    nowhere = PostgresSink(
        address_of("postgresql://a:secret@127.0.0.1:1/r"), replica="one", prices=prices, now=lambda: NOON
    )
    try:
        with pytest.raises(Fault) as caught:
            nowhere.apply(whole("x_1", chat_body("hi"), "yes"))
        assert caught.value.code is Code.NETWORK
        assert "secret" not in caught.value.message
    finally:
        nowhere.close()
    unused = PostgresSink(address_of("postgresql:///r"), replica="one", prices=prices, now=lambda: NOON)
    unused.close()


TURNS = [f"{turn} " + "".join(sha256(f"{turn} {line}".encode()) for line in range(20)) for turn in range(100)]
HISTORY = [chat_body(*TURNS[: turn + 1]) for turn in range(100)]


def kept(body: bytes, near: str = "s") -> BodyEntry:
    return BodyEntry(sha256(body), body, near)


async def test_a_growing_history_takes_little_more_than_its_end(url: str) -> None:
    async with connection_to(url) as connection:
        bodies = PostgresBodies(Codec())
        for start in range(0, 100, 7):
            await bodies.keep(connection, [kept(body) for body in HISTORY[start : start + 7]])
        for body in HISTORY:
            assert await body_of(connection, Codec(), sha256(body)) == body
        assert await connection.fetchval("SELECT max(depth) FROM sightline.bodies") <= DEEPEST
        size = await connection.fetchval("SELECT sum(octet_length(data)) FROM sightline.bodies")
    assert size < sum(map(len, HISTORY)) / 15


async def test_after_a_start_bodies_build_on_what_is_stored(url: str) -> None:
    async with connection_to(url) as connection:
        await PostgresBodies(Codec()).keep(connection, [kept(HISTORY[50])])
        later = PostgresBodies(Codec())
        assert await later.body(connection, sha256(HISTORY[50])) == HISTORY[50]
        await later.keep(connection, [kept(HISTORY[51])])
        assert await later.body(connection, sha256(HISTORY[51])) == HISTORY[51]
        rows = await connection.fetch("SELECT depth FROM sightline.bodies ORDER BY number")
    assert [row["depth"] for row in rows] == [0, 1]


async def test_nothing_is_built_on_what_another_replica_has_pruned(url: str) -> None:
    async with connection_to(url) as connection:
        bodies = PostgresBodies(Codec())
        await bodies.keep(connection, [kept(HISTORY[50])])
        await connection.execute("DELETE FROM sightline.bodies")
        await bodies.keep(connection, [kept(HISTORY[51])])
        assert await body_of(connection, Codec(), sha256(HISTORY[51])) == HISTORY[51]


async def test_replicas_that_store_the_same_bodies_at_once_both_can(url: str) -> None:
    async def write(order: list[bytes]) -> None:
        async with connection_to(url) as connection:
            bodies = PostgresBodies(Codec())
            for start in range(0, len(order), 10):
                async with connection.transaction():
                    await bodies.keep(connection, [kept(body) for body in order[start : start + 10]])

    await asyncio.gather(write(HISTORY), write(HISTORY[::-1]), write(HISTORY))
    async with connection_to(url) as connection:
        for body in HISTORY:
            assert await body_of(connection, Codec(), sha256(body)) == body
        assert await connection.fetchval("SELECT count(*) FROM sightline.bodies") == len(HISTORY)


@pytest.mark.parametrize("near", ["", "a\0b"])
async def test_any_name_of_what_is_alike_will_do(url: str, near: str) -> None:
    async with connection_to(url) as connection:
        for _ in range(2):
            await PostgresBodies(Codec()).keep(connection, [kept(HISTORY[1], near), kept(HISTORY[2], near)])
        assert await body_of(connection, Codec(), sha256(HISTORY[2])) == HISTORY[2]


TITLES = "SELECT id, title FROM sightline.exchanges ORDER BY id"
UNREAD = "SELECT id FROM sightline.exchanges WHERE todo > 0 ORDER BY id"


def values(url: str, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in fetch(url, query)]


def said(url: str) -> list[tuple[str, str]]:
    """The words on record, each with its exchange, in the order in which they were stored."""
    blocks = [row["data"] for row in fetch(url, "SELECT data FROM sightline.words ORDER BY id")]
    return [(exchange, words.decode()) for data in blocks for exchange, words in unpack_words(Codec(), data)]


def test_requests_and_replies_are_read_a_number_at_a_time(
    url: str, target: PostgresSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.store.postgres_digest._AT_ONCE", 16)
    for number in range(20):
        target.apply(whole(f"x_{number:02}", chat_body(f"question {number}"), "answer"))
    assert target.tidy()
    assert len(values(url, UNREAD)) == 4
    assert not target.tidy()
    assert values(url, UNREAD) == []
    assert values(url, TITLES) == [(f"x_{number:02}", f"question {number}") for number in range(20)]


@pytest.mark.parametrize(
    ("kind", "value", "sent"),
    [
        ("boolean", 1, True),
        ("boolean", 0, False),
        ("bytea", bytearray(b"a"), b"a"),
        ("bytea", "", None),
        ("text", "", ""),
        ("bigint", 0, 0),
        ("bigint", nan, None),
        ("double precision", nan, None),
        ("double precision", 0.5, 0.5),
    ],
)
def test_a_missing_value_of_a_digest_is_null(kind: str, value: str | float | bytearray, sent: object) -> None:
    found = driver_value(kind, value)
    assert found == sent
    assert isinstance(found, bool) == (kind == "boolean")


def test_a_request_is_read_before_its_reply_is_there(url: str, target: PostgresSink) -> None:
    entries = whole("x_1", chat_body("question"), "an", "swer")
    target.apply(entries[:2])
    assert not target.tidy()
    assert values(url, TITLES) == [("x_1", "question")]
    target.apply(entries[2:])
    assert not target.tidy()
    assert said(url) == [("x_1", "question"), ("x_1", "answer")]


def test_instructions_are_kept_in_the_first_exchange_that_has_them(url: str, target: PostgresSink) -> None:
    for exchange in ("x_1", "x_2"):
        target.apply(received(exchange, chat_body("hi", exchange, "go on", system="Be brief.")))
    assert not target.tidy()
    assert said(url) == [("x_1", "be brief.\nhi\nx_1\ngo on"), ("x_2", "x_2\ngo on")]


def test_turns_of_a_conversation_that_come_in_together_follow_each_other(url: str, target: PostgresSink) -> None:
    said = ["hi", "hello", "and then?", "this", "and now?"]
    turns = [received(f"x_{n}", chat_body(*said[: 2 * n + 1]), session="s") for n in range(3)]
    other = received("x_3", chat_body(*said), session="another")
    target.apply([entry for turn in (*turns, other) for entry in turn])
    assert not target.tidy()
    found = values(url, "SELECT id, previous FROM sightline.exchanges ORDER BY id")
    assert found == [("x_0", ""), ("x_1", "x_0"), ("x_2", "x_1"), ("x_3", "")]


def test_an_exchange_that_another_process_begins_at_the_same_moment_is_added_to(url: str, target: PostgresSink) -> None:
    entries = whole("x_1", chat_body("question"), "an", "swer")

    async def begin(connection: PostgresConnection) -> None:
        async with connection.transaction():
            await connection.execute("INSERT INTO sightline.exchanges (id, replica, slot) VALUES ('x_1', 'other', 1)")
            adding = asyncio.get_running_loop().run_in_executor(None, target.apply, entries)
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = $1"
            async with connection_to(url) as looking:
                while not await looking.fetchval(waiting, urlsplit(url).path[1:]):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        await adding

    connected(url, begin)
    facts = [each for each in entries if hasattr(each, "fact")]
    assert connected(url, lambda connection: facts_of(connection, "x_1")) == facts
    assert values(url, "SELECT replica, state, next_n FROM sightline.exchanges") == [("other", "finished", len(facts))]
    assert not target.tidy()


def test_what_a_replica_leaves_unread_is_read_by_another_after_a_while(url: str) -> None:
    with sink(url, "gone") as gone:
        gone.apply(whole("x_1", chat_body("question"), "answer"))
        with sink(url, "other", now=NOON + LEFT_BEHIND) as soon:
            assert not soon.tidy()
            assert values(url, UNREAD) == [("x_1",)]
        with sink(url, "other", now=NOON + LEFT_BEHIND + 1) as later:
            assert not later.tidy()
            assert values(url, UNREAD) == []


def test_a_request_whose_body_is_not_there_has_no_words(url: str, target: PostgresSink) -> None:
    _, fact = received("x_1", chat_body("hi"))
    target.apply([fact])
    assert not target.tidy()
    assert values(url, TITLES) == [("x_1", "")]


def test_words_that_cannot_be_stored_keep_back_no_others(url: str, target: PostgresSink) -> None:
    execute(url, "ALTER TABLE sightline.words ADD CONSTRAINT never CHECK (first <> 'x_1')")
    for exchange in ("x_1", "x_2"):
        target.apply(whole(exchange, chat_body("question"), "answer"))
    assert not target.tidy()
    assert values(url, UNREAD) == []
    assert {exchange for exchange, _ in said(url)} == {"x_2"}


def test_the_last_block_is_filled_up_unless_another_writer_is_at_it(url: str) -> None:
    async def story(url: str) -> None:
        async with connection_to(url) as one, connection_to(url) as two:
            await append_words(one, Codec(), [("x_1", b"one")])
            async with one.transaction():
                await append_words(one, Codec(), [("x_2", b"two")])
                async with two.transaction():
                    await append_words(two, Codec(), [("x_3", b"three")])
            await append_words(two, Codec(), [("x_1", b"four")])

    asyncio.run(story(url))
    assert said(url) == [("x_1", "one"), ("x_2", "two"), ("x_3", "three"), ("x_1", "four")]
    spans = values(url, "SELECT first, last FROM sightline.words ORDER BY id")
    assert spans == [("x_1", "x_2"), ("x_1", "x_3")]


def test_words_of_an_earlier_version_are_carried_over_also_after_an_interruption(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.store.postgres_words._CARRIED", 3)
    for number in range(7):
        words = f"('x_{number}', 0, 'Question {number}'), ('x_{number}', 1, 'Answer')"
        execute(url, f"INSERT INTO sightline.texts VALUES {words}")
    execute(url, "ALTER TABLE sightline.words ADD CONSTRAINT never CHECK (last <> 'x_4')")
    with pytest.raises(UNFIT):
        connected(url, carry_words)
    assert len(said(url)) == 6
    assert len(fetch(url, "SELECT * FROM sightline.texts")) == 8
    execute(url, "ALTER TABLE sightline.words DROP CONSTRAINT never")
    connected(url, carry_words)
    connected(url, carry_words)
    assert sorted(said(url)) == sorted(
        (f"x_{number}", words) for number in range(7) for words in (f"question {number}", "answer")
    )
    assert values(url, "SELECT to_regclass('sightline.texts')") == [(None,)]


def test_replicas_that_start_at_once_carry_each_word_over_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.store.postgres_words._CARRIED", 7)

    async def story(url: str) -> None:
        async with connection_to(url) as one, connection_to(url) as two:
            await asyncio.gather(carry_words(one), carry_words(two))

    execute(
        url,
        "INSERT INTO sightline.texts SELECT 'x_' || n, 0, 'word ' || n FROM generate_series(100, 199) AS made (n)",
    )
    asyncio.run(story(url))
    assert sorted(said(url)) == [(f"x_{number}", f"word {number}") for number in range(100, 200)]


SAID = ["100% sure", "a_b", "wow! it's 5 < 6", "Straße in ÅRHUS", "ΣΊΣΥΦΟΣ", "back\\slash", "K is kelvin", "日本語", ""]


@pytest.fixture(scope="module")
def filled() -> Iterator[str]:
    """A record of a few hundred exchanges, more than one page of them."""
    with tables() as url:
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


async def newest(connection: PostgresConnection, wanted: Expression, before: str, limit: int) -> list[Summary]:
    return await answer(connection, RecordSearch(TABLES, wanted, NOON).newest(before, limit))


def everything(url: str) -> list[ExchangeSubject]:
    summaries: list[Summary] = connected(url, lambda connection: newest(connection, EVERYTHING, "", 1000))
    words: dict[str, list[str]] = {}
    for exchange, text in said(url):
        words.setdefault(exchange, []).append(text)
    return [ExchangeSubject(each, partial(_says, words.get(each.id, []))) for each in summaries]


def _says(words: list[str], pattern: str) -> bool:
    return any(occurs(pattern, each) for each in words)


FILTERS = [
    "text:100%", "text:'a_b'", "text:axb", "text:'wow!'", "text:STRASSE", "text:straße", "text:århus", "text:σίσυφος",
    "text:'back\\\\slash'", "text:kelvin", "text:日本", "text:日?語", "text:'reply*1'", "!text:reply", "!text:å",
    "tool:bash", "tool:ün*", "!tool:ün*", "tool:*", "!tool:*", "session:grün", "session:''", "!session:blue",
    "status:ok", "!status:ok", "status>=500", "error", "state:received", "tokens>1000 & text:'5 < 6'", "fault:net*",
    "cost>0.001 | text:sure", "time<1s", "id:x_00?", "stream", "!stream & side",
]  # fmt: skip


@pytest.mark.parametrize("wanted", FILTERS)
def test_the_server_finds_what_the_filter_means(filled: str, wanted: str) -> None:
    expression = parse(wanted)
    expected = [each.summary.id for each in everything(filled) if matches(expression, each, now=NOON)]
    found = connected(filled, lambda connection: newest(connection, expression, "", 1000))
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
def test_exchanges_can_be_filtered_by_list_position(filled: str, wanted: Expression, count: int) -> None:
    found = connected(filled, lambda connection: newest(connection, wanted, "", 1000))
    assert len(found) == count


def test_what_only_a_chat_knows_is_refused(filled: str) -> None:
    with pytest.raises(Fault) as caught:
        connected(filled, lambda connection: newest(connection, OwnModel(), "", 10))
    assert caught.value.code is Code.USAGE


@pytest.mark.parametrize("wanted", [EVERYTHING, parse("text:å"), parse("tool:bash")])
def test_pages_follow_each_other_without_a_gap_both_ways(filled: str, wanted: Expression) -> None:
    async def story() -> tuple[list[str], list[str], list[str]]:
        async with connection_to(filled) as connection:
            at_once = [each.id for each in await newest(connection, wanted, "", 1000)]
            down: list[str] = []
            while page := await newest(connection, wanted, down[-1] if down else "", 13):
                down += [each.id for each in page]
            up: list[str] = []
            while ids := await answer(connection, RecordSearch(TABLES, wanted, NOON).oldest(up[-1] if up else "")):
                up += ids
            return at_once, down, up

    at_once, down, up = asyncio.run(story())
    assert down == at_once
    assert up == at_once[::-1]


class WatchedConnection:
    """A connection, and what was fetched by it; `is_third` is set when it is asked for the third time."""

    def __init__(self, connection: PostgresConnection) -> None:
        self.asked: list[tuple[str, tuple[object, ...]]] = []
        self.is_third = asyncio.Event()
        self._connection = connection

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    async def fetch(self, query: str, *arguments: object) -> list[FoundRow]:
        self.asked.append((query, arguments))
        if len(self.asked) == 3:
            self.is_third.set()
        return await self._connection.fetch(query, *arguments)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"words.BLOCK": 300, "postgres_words.FILLED": 300, "search._PAGE": 40}
    for place, value in {**sizes, "search._BLOCKS": 1, "search._MOST_BLOCKS": 4}.items():
        monkeypatch.setattr(f"sightline.store.{place}", value)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("word", "every"), [("rare", 90), ("often", 2), ("nowhere", 1000)])
def test_blocks_that_are_fetched_ahead_are_fetched_once(url: str, word: str, every: int) -> None:
    async def story(url: str) -> tuple[list[str], list[str], list[tuple[str, tuple[object, ...]]]]:
        async with connection_to(url) as connection:
            watched = WatchedConnection(connection)
            found = await newest(watched, parse(f"text:{word}"), "", 1000)  # type: ignore[arg-type]
            first = await newest(connection, parse(f"text:{word}"), "", 1)
            return [each.id for each in found], [each.id for each in first], watched.asked

    with sink(url) as target:
        said = (f"{word if n % every == 1 else 'else'} {n} {'filler ' * 9}" for n in range(300))
        target.apply([entry for n, text in enumerate(said) for entry in whole(f"x_{n:03}", chat_body(text), "yes")])
        while target.tidy():
            pass
    expected = [f"x_{n:03}" for n in reversed(range(300)) if n % every == 1]
    found, first, asked = asyncio.run(story(url))
    blocks = [arguments for query, arguments in asked if query.startswith("SELECT data")]
    assert found == expected
    assert first == expected[:1]
    assert len(blocks) == len(set(blocks)) > 10
    ends = [number for first_block, last_block in blocks for number in (last_block, first_block)]
    assert ends == sorted(ends, reverse=True), "no block is scanned twice"


@pytest.mark.usefixtures("small_blocks")
def test_a_search_that_nobody_waits_for_leaves_its_connection_in_order(url: str) -> None:
    async def story(url: str) -> None:
        async with connection_to(url) as connection:
            watched = WatchedConnection(connection)
            search = newest(watched, parse("text:word"), "", 1000)  # type: ignore[arg-type]
            task = asyncio.ensure_future(search)
            await watched.is_third.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await connection.fetchval("SELECT 1") == 1
            async with connection.transaction(isolation="serializable"):
                assert await connection.fetchval("SELECT count(*) FROM sightline.exchanges") == 200

    with sink(url) as target:
        for n in range(200):
            target.apply(whole(f"x_{n:03}", chat_body(f"word {n} {'filler ' * 9}"), "yes"))
        while target.tidy():
            pass
    asyncio.run(story(url))


def test_the_entries_of_an_exchange_are_what_was_recorded(url: str, target: PostgresSink) -> None:
    entries = whole("x_1", chat_body("hello"), "y", "es")
    target.apply(entries)
    assert connected(url, lambda connection: entries_of(connection, "x_1")) == entries
    assert connected(url, lambda connection: entries_of(connection, "x_2")) == []
