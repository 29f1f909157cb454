import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from sightline.errors import Code, Fault
from sightline.store.archive import load, read, write_archive
from sightline.store.entries import BodyEntry, Entry
from tests.store.traffic import chat_body, whole

ENTRIES = [*whole("x_1", chat_body("hi"), "yes"), *whole("x_2", b"\xff\x00 no JSON", "no")]


def lines(entries: Sequence[Entry] = ENTRIES) -> list[bytes]:
    async def all_of_them() -> AsyncIterator[Entry]:
        for entry in entries:
            yield entry

    async def collected() -> list[bytes]:
        return [line async for line in write_archive(all_of_them())]

    return asyncio.run(collected())


class Shelf:
    """A store that only takes."""

    def __init__(self) -> None:
        self.records: list[list[Entry]] = []

    def record(self, entries: Sequence[Entry]) -> None:
        self.records.append(list(entries))


def test_an_archive_is_lines_of_json_that_are_read_back() -> None:
    made = lines()
    assert made[0] == b'{"sightline":"record","version":1}\n'
    assert len(made) == len(ENTRIES) + 1
    assert list(read([*made, b"\n"])) == ENTRIES


def test_a_body_is_recorded_together_with_the_fact_behind_it() -> None:
    shelf = Shelf()
    many = [entry for n in range(300) for entry in whole(f"x_{n}", chat_body(str(n)), "yes")]
    assert load(shelf, lines(many)) == len(many)  # type: ignore[arg-type]
    assert [entry for record in shelf.records for entry in record] == many
    assert len(shelf.records) > 1
    assert not [record for record in shelf.records if isinstance(record[-1], BodyEntry)]


def test_large_bodies_go_in_small_batches() -> None:
    shelf = Shelf()
    load(shelf, lines([entry for n in range(4) for entry in whole(f"x_{n}", bytes([n]) * (3 << 20))]))  # type: ignore[arg-type]
    assert len(shelf.records) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "line 1 of the archive"),
        ([b"{}\n"], "line 1 of the archive"),
        ([b'{"sightline":"record","version":2}'], "version 2"),
        ([b'{"sightline":"chat","version":1}'], "'chat'"),
        ([*lines()[:2], b"{half"], "line 3 of the archive"),
    ],
)
def test_what_is_no_archive_is_refused_with_its_line(content: list[bytes], message: str) -> None:
    with pytest.raises(Fault, match=message) as caught:
        list(read(content))
    assert caught.value.code is Code.USAGE
    assert caught.value.hint
