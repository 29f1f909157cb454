from pathlib import Path

from sightline.store.delta import Codec
from sightline.store.sqlite import prune, record_size
from sightline.store.sqlite_bodies import body_of
from sightline.store.sqlite_database import FILE_NAME, open_database
from sightline.store.sqlite_sink import SqliteSink
from tests.store.traffic import NOON, chat_body, prices, received, sha256, whole


def test_the_file_shrinks(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    for number in range(300):
        noise = "".join(sha256(f"{number} {line}".encode()) for line in range(40))
        sink.apply(whole(f"x_{number:03}", chat_body(noise), "yes", at=NOON + number))
    while sink.tidy():
        pass
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = (tmp_path / FILE_NAME).stat().st_size
    pruned = prune(connection, older_than=NOON + 250, larger_than=None)
    assert pruned.exchanges == 250
    assert pruned.bytes_left == record_size(connection)
    assert (tmp_path / FILE_NAME).stat().st_size < before / 2
    sink.close()


def test_bodies_that_branch_off_a_forgotten_one_build_on_each_other(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    base = [f"{n} " + "word " * 500 for n in range(5)]
    trunk = chat_body(*base)
    branches = [chat_body(*base, f"branch {n} " + "else " * 30) for n in range(4)]
    sink.apply(whole("x_0", trunk, "yes"))
    for number, body in enumerate(branches, 1):
        connection.execute("UPDATE bodies SET near = 'away' WHERE base IS NOT NULL")
        SqliteSink(connection, 1, prices).apply(whole(f"x_{number}", body, "yes", at=NOON + 100))
    assert connection.execute("SELECT count(*) FROM bodies WHERE base = 1").fetchone() == (4,)
    assert prune(connection, older_than=NOON + 1, larger_than=None).exchanges == 1
    assert body_of(connection, Codec(), sha256(trunk)) is None
    assert [body_of(connection, Codec(), sha256(body)) for body in branches] == branches
    assert connection.execute("SELECT count(*) FROM bodies WHERE base IS NULL").fetchone() == (1,)
    sink.close()


def test_a_body_that_no_fact_names_yet_is_left_alone(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    body = chat_body("soon")
    sink.apply(received("x_1", body)[:1])
    sink.apply(whole("x_0", chat_body("old"), "yes"))
    assert prune(connection, older_than=NOON + 100, larger_than=0).exchanges == 1
    assert body_of(connection, Codec(), sha256(body)) == body
    sink.close()
