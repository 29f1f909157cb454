from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.filters.expression import OwnTopic
from sightline.filters.parsing import parse
from sightline.store.sqlite_database import FILE_NAME, open_database
from sightline.store.sqlite_reading import SqliteReader, _trigrams
from sightline.store.sqlite_sink import SqliteSink
from tests.store.traffic import NOON, chat_body, prices, whole


@pytest.fixture
def reading(tmp_path: Path) -> SqliteReader:
    sink = SqliteSink(open_database(tmp_path), 1, prices)
    for number in range(450):
        sink.apply(whole(f"x_{number:03}", chat_body(f"{'rare' if number % 100 == 0 else 'often'} é{number}"), "yes"))
    while sink.tidy():
        pass
    sink.close()
    return SqliteReader(tmp_path / FILE_NAME)


def test_a_filter_that_the_database_cannot_decide_goes_through_all_pages(reading: SqliteReader) -> None:
    found = reading.find(parse("text:é40"), now=NOON, before="", limit=500)
    assert [each.id for each in found] == ["x_409", "x_408", "x_407", "x_406", "x_405", "x_404", "x_403", "x_402",
                                           "x_401", "x_400", "x_040"]  # fmt: skip
    assert [each.id for each in reading.find(parse("text:é40"), now=NOON, before="x_404", limit=2)] == [
        "x_403",
        "x_402",
    ]
    after, oldest = "", list[str]()
    while ids := reading.oldest(parse("text:é44"), now=NOON, after=after):
        oldest += ids
        after = ids[-1]
    assert oldest == ["x_044", *(f"x_{n}" for n in range(440, 450))]
    assert reading.oldest(parse("text:é449"), now=NOON, after="x_449") == []
    reading.close()


def test_latest_counts_the_whole_list_also_beside_words(reading: SqliteReader) -> None:
    assert [e.id for e in reading.find(parse("latest:60 text:rare"), now=NOON, before="", limit=9)] == ["x_400"]
    assert [e.id for e in reading.find(parse("!latest:60 text:rare"), now=NOON, before="", limit=2)] == [
        "x_300",
        "x_200",
    ]
    reading.close()


def test_a_term_about_a_chat_is_refused(reading: SqliteReader) -> None:
    with pytest.raises(Fault, match="place in a list"):
        reading.find(OwnTopic(), now=NOON, before="", limit=1)
    reading.close()


def test_a_record_that_is_no_database_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"no database" * 100)
    with pytest.raises(Fault, match="damaged"):
        SqliteReader(tmp_path / "odd").facts("x_1")


@pytest.mark.parametrize(
    ("pattern", "query"),
    [
        ("ab", None),
        ("abc", '"abc"'),
        ("abcd", '"abc" AND "bcd"'),
        ("ab*cde", '"cde"'),
        ("abéde", None),
        ('a"b', '"a""b"'),
    ],
)
def test_the_index_is_asked_for_threes(pattern: str, query: str | None) -> None:
    assert _trigrams(pattern) == query
