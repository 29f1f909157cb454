"""What was forgotten is in no file any more: not in rows, not in pages that are not used, not in logs or journals."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.filters.expression import EVERYTHING
from sightline.store.entries import Codec
from sightline.store.journal import frame_record, put_aside, quarantine, records, scrub
from sightline.store.sqlite import SqliteStore, forget, open_store
from sightline.store.sqlite_database import FILE_NAME, connect_database, erase_remains, open_database
from sightline.store.sqlite_sink import SqliteSink
from tests.postgres_server import fetch
from tests.store.postgres_tables import tables
from tests.store.traffic import NOON, chat_body, prices, sha256, whole

SECRET = "planted-word-Zq7xKw"
_WINDOW = 24
"""So many bytes of a compressed row occur nowhere else by chance."""


def noise(name: str, lines: int = 12) -> str:
    """Text that does not compress."""
    return " ".join(sha256(f"{name} {line}".encode()) for line in range(lines))


def secret_exchange(number: int) -> list[object]:
    body = chat_body(f"{SECRET} asked {noise(f'secret {number}', 12 if number % 2 else 200)}")
    headers = (("x-note", f"{SECRET} header"),)
    return whole(f"x_s{number:03}", body, f"{SECRET} ", f"replied {noise(f'reply {number}')}", headers=headers)  # type: ignore[return-value]


def other_exchange(number: int) -> list[object]:
    return whole(f"x_o{number:03}", chat_body(f"other {number} {noise(f'other {number}', 9)}"), f"fine {number}")  # type: ignore[return-value]


def rows_with_secret(path: Path) -> Iterator[bytes]:
    """The rows of the database that have the word, as they are stored."""
    connection, codec = sqlite3.connect(path), Codec()
    for table in ("blocks", "words", "bodies"):
        for (data,) in connection.execute(f"SELECT data FROM {table}"):
            if SECRET.lower().encode() in codec.unpack(data).lower():
                yield data
    connection.close()


def traces(folder: Path, stored: set[bytes]) -> list[str]:
    """The files with the word itself, or with a piece of a row that had it. A piece may also be of another exchange
    that was in the same block, so what is still stored does not count."""
    connection = sqlite3.connect(folder / FILE_NAME)
    tables = ("blocks", "words", "bodies")
    current = [data for table in tables for (data,) in connection.execute(f"SELECT data FROM {table}")]
    connection.close()
    known = {data[at : at + _WINDOW] for data in current for at in range(len(data))}
    cuts = (data[at : at + _WINDOW] for data in stored for at in range(16, len(data) - _WINDOW, _WINDOW))
    pieces = [piece for piece in cuts if piece not in known]
    found = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        held = path.read_bytes()
        if SECRET.encode() in held or SECRET.lower().encode() in held:
            found.append(f"{path.name}: the word")
        windows = {held[at : at + _WINDOW] for at in range(len(held))}
        found += [f"{path.name}: a piece" for piece in pieces if piece in windows]
    return found


def files_with_secret(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def remember(folder: Path, stored: set[bytes]) -> None:
    stored.update(rows_with_secret(folder / FILE_NAME))


async def opened(folder: Path) -> SqliteStore:
    return await open_store(folder, prices=prices, now=lambda: NOON)


async def test_no_file_of_the_data_folder_holds_what_was_forgotten(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    stored: set[bytes] = set()
    for number in range(20):
        store.record(other_exchange(number))  # type: ignore[arg-type]
        store.record(secret_exchange(number))  # type: ignore[arg-type]
        if number % 4 == 0:
            await store.settle()
            remember(tmp_path, stored)  # blocks are written anew as they grow
    await store.settle()
    remember(tmp_path, stored)
    assert traces(tmp_path, stored), "the word is there before"
    gone = [f"x_s{number:03}" for number in range(20)]
    assert (await store.forget(gone)).exchanges == 20
    assert traces(tmp_path, stored) == []
    assert len(await store.find(EVERYTHING, now=NOON)) == 20
    store.record(other_exchange(99))  # type: ignore[arg-type]
    await store.settle()
    assert len(await store.find(EVERYTHING, now=NOON)) == 21
    await store.close()
    assert traces(tmp_path, stored) == []


def test_a_record_of_an_earlier_version_is_written_anew_once(tmp_path: Path, connection: sqlite3.Connection) -> None:
    # Earlier versions overwrote deleted rows only where that cost nothing.
    connection.execute("PRAGMA application_id = 0")
    connection.execute("PRAGMA secure_delete = OFF")
    target = SqliteSink(connection, prices)
    stored: set[bytes] = set()
    for number in range(12):
        target.apply([*secret_exchange(number), *other_exchange(number)])  # type: ignore[list-item]
        remember(tmp_path, stored)
    target.close()
    connection = connect_database(tmp_path / FILE_NAME)
    assert forget(connection, [f"x_s{number:03}" for number in range(12)], is_dry_run=False).exchanges == 12
    assert traces(tmp_path, stored) == []
    pages = connection.execute("PRAGMA application_id").fetchone()
    erase_remains(connection)
    assert connection.execute("PRAGMA application_id").fetchone() == pages != (0,)


def test_a_reader_that_keeps_the_log_from_being_emptied_is_reported(tmp_path: Path) -> None:
    target = SqliteSink(open_database(tmp_path), prices)
    target.apply(secret_exchange(1))  # type: ignore[arg-type]
    reader, connection = (connect_database(tmp_path / FILE_NAME) for _ in range(2))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM exchanges").fetchall()
    connection.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(Fault, match="reading the record") as raised:
        forget(connection, ["x_s001"], is_dry_run=False)
    assert "not yet from its log" in raised.value.hint
    reader.execute("COMMIT")
    assert forget(connection, ["x_s001"], is_dry_run=False).exchanges == 0
    assert traces(tmp_path, set()) == []
    for each in (reader, connection):
        each.close()
    target.close()


def test_refused_entries_of_a_forgotten_exchange_go_and_others_stay(tmp_path: Path) -> None:
    path = quarantine(tmp_path, 1, secret_exchange(1))  # type: ignore[arg-type]
    quarantine(tmp_path, 1, other_exchange(1))  # type: ignore[arg-type]
    quarantine(tmp_path, 2, secret_exchange(1))  # type: ignore[arg-type]
    with path.open("ab") as file:
        file.write(b"torn")
    scrub(tmp_path, {"x_s001"})
    (left,) = (record[0] for record in records(path))  # type: ignore[index]
    assert frame_record(left) == frame_record(other_exchange(1))  # type: ignore[arg-type]
    assert [each.name for each in tmp_path.glob("refused-*")] == [path.name]
    scrub(tmp_path, {"x_s001"})
    assert len(list(records(path))) == 1


def test_a_segment_is_not_put_aside_while_another_process_scrubs(tmp_path: Path) -> None:
    from sightline.store.journal import lock

    segment = tmp_path / "001-00000001.log"
    segment.write_bytes(b"x")
    with (tmp_path / "scrub.lock").open("wb") as guard:
        assert lock(guard.fileno())
        put_aside(segment)
        assert segment.exists()
        with pytest.raises(Fault, match="changes the journal"):
            scrub(tmp_path, ())
    put_aside(segment)
    assert not segment.exists()


def test_no_row_of_the_database_holds_what_was_forgotten(tmp_path: Path) -> None:
    from sightline.store.postgres import open_postgres

    async def story(url: str) -> None:
        store = await open_postgres(url, tmp_path, prices=prices, now=lambda: NOON)
        for number in range(6):
            store.record(secret_exchange(number))  # type: ignore[arg-type]
            store.record(other_exchange(number))  # type: ignore[arg-type]
        await store.settle()
        assert (await store.forget([f"x_s{number:03}" for number in range(6)])).exchanges == 6
        assert await asyncio.to_thread(files_with_secret, tmp_path) == []
        assert len(await store.find(EVERYTHING, now=NOON)) == 6
        await store.close()

    with tables() as url:
        asyncio.run(story(url))
        codec = Codec()
        rows = [
            value
            for table in ("exchanges", "facts", "frames", "bodies", "words", "instructions", "uses", "log_lines")
            for row in fetch(url, f"SELECT * FROM sightline.{table}")
            for value in row.values()
        ]
        packed = [value for value in rows if isinstance(value, bytes) and value.startswith(b"\x28\xb5\x2f\xfd")]
        assert len(packed) >= 12
        for value in [*rows, *map(codec.unpack, packed)]:
            held = value if isinstance(value, bytes) else str(value).encode()
            assert SECRET.lower().encode() not in held.lower()
