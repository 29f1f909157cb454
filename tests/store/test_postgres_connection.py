import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias

import pytest
import trustme

from sightline.errors import Code, Fault
from sightline.store.postgres_connection import (
    TROUBLE,
    PostgresConnection,
    address_of,
    connect,
    failure,
    migrate,
    pruning,
    rebuilding,
    writing,
)
from sightline.store.store import Migration, load_migrations
from tests.postgres_server import PASSWORD, database, fetch, guest, shared_server
from tests.store.postgres_tables import connected, connection_to, tables


def refused(url: str, oldest: int = 0) -> Fault:
    """Why this URL leads nowhere."""

    async def try_it() -> None:
        connection = await connect(address_of(url), oldest=oldest)
        await connection.close()

    with pytest.raises(Fault) as caught:
        asyncio.run(try_it())
    assert caught.value.hint
    return caught.value


@pytest.fixture
def empty() -> Iterator[str]:
    """The URL of a database without tables."""
    with database() as url:
        yield url


@pytest.fixture
def filled() -> Iterator[str]:
    """The URL of a database with the tables of a record."""
    with tables() as url:
        yield url


def asked(url: str, query: str) -> object:
    """The answer of a server that is reached by this URL."""
    return connected(url, lambda connection: connection.fetchval(query))


# --- the URL --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://ann:secret@db.example:5433/records?sslmode=require", "db.example:5433/records"),
        ("postgres://ann@[::1]/records", "[::1]/records"),
        ("postgresql://ann:s%40cret@one,two:5433/re%20cords", "one,two:5433/re cords"),
        ("postgresql:///records?host=/run/pg&password=secret", "/run/pg/records"),
        ("postgresql:///records", "this machine/records"),
        ("postgresql://ann:secret@db.example", "db.example"),
    ],
)
def test_address_shows_the_place_without_user_or_password(url: str, place: str) -> None:
    address = address_of(url)
    assert address.place == place
    assert address.url == url
    assert "cret" not in repr(address)
    assert "ann" not in repr(address)


@pytest.mark.parametrize(
    "password", ["se@cret", "se/cret", "42/cret", "se?cret", "42?cret", "se#cret", "42#cret", "se[cret", "se:42/cret@x"]
)
def test_a_password_that_is_not_escaped_is_refused_and_not_repeated(password: str) -> None:
    with pytest.raises(Fault) as caught:
        address_of(f"postgresql://zoe:{password}@db.example/records")
    assert caught.value.code is Code.CONFIG
    assert "%40" in caught.value.hint
    said = f"{caught.value.message} {caught.value.hint}"
    assert not [piece for piece in ("cret", "42", "zoe") if piece in said]


@pytest.mark.parametrize("url", ["", "records.db", "mysql://ann:secret@db.example/records", "http://db.example/secret"])
def test_what_is_no_address_of_postgresql_is_refused(url: str) -> None:
    with pytest.raises(Fault) as caught:
        address_of(url)
    assert caught.value.code is Code.CONFIG
    assert caught.value.message == "the store's URL does not begin with postgresql://"
    assert "secret" not in caught.value.hint


# --- a server that is there -----------------------------------------------------------------------


def test_a_server_is_reached_with_a_password_full_of_signs(empty: str) -> None:
    assert asked(empty, "SELECT 1") == 1


IN_TLS = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


def test_tls_is_a_matter_of_sslmode() -> None:
    server = shared_server()
    assert asked(server.url(query="sslmode=disable"), IN_TLS) is False
    assert asked(server.url(query=""), IN_TLS) is True
    assert asked(server.url(query="sslmode=require"), IN_TLS) is True
    assert asked(server.url(query=f"sslmode=verify-full&sslrootcert={server.ca_file}"), IN_TLS) is True


def test_certificate_of_an_unknown_authority_is_rejected(tmp_path: Path) -> None:
    stranger = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(stranger)
    fault = refused(shared_server().url(query=f"sslmode=verify-full&sslrootcert={stranger}"))
    assert fault.code is Code.NETWORK
    assert "certificate is not trusted" in fault.message
    assert "sslrootcert" in fault.hint


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sslmode=yes", "`sslmode` parameter must be one of"),
        ("sslmode=disable&sslmod=require", 'unrecognized configuration parameter "sslmod"'),
        ("sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "a file that it takes is not there"),
        ("port=many", "cannot be read"),
        ("sslmode", "cannot be read"),
    ],
)
def test_query_parameters_of_the_url_are_validated(query: str, said: str) -> None:
    url = shared_server().url(query=query)
    if query.startswith("port"):
        url = f"postgresql:///records?{query}"
    fault = refused(url)
    assert fault.code is Code.CONFIG
    assert said in fault.message


def test_wrong_password_is_reported_as_an_auth_error() -> None:
    wrong = "another planted secret"
    fault = refused(shared_server().url(password=wrong))
    assert fault.code is Code.AUTH
    assert "refused the login" in fault.message
    assert not [secret for secret in (wrong, PASSWORD) if secret in f"{fault.message} {fault.hint}"]


def test_a_database_that_does_not_exist_is_named() -> None:
    fault = refused(shared_server().url("nowhere"))
    assert fault.code is Code.CONFIG
    assert 'database "nowhere" does not exist' in fault.message
    assert "CREATE DATABASE" in fault.hint


def test_a_server_that_is_too_old_says_which_one_will_do() -> None:
    fault = refused(shared_server().url(), oldest=990_000)
    assert fault.code is Code.CONFIG
    assert fault.message.endswith("; 99 is the oldest that will do")


# --- a server that is not there -------------------------------------------------------------------


def test_refused_connection_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        fault = refused(f"postgresql://ann:secret@127.0.0.1:{port}/records")
    assert fault.code is Code.NETWORK
    assert f"127.0.0.1:{port}/records" in fault.message
    assert "secret" not in f"{fault.message} {fault.hint}"


def test_there_is_no_such_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    fault = refused("postgresql://ann:secret@db.example/records")
    assert fault.code is Code.NETWORK
    assert fault.message == "PostgreSQL at db.example/records: there is no such host"


async def refused_after(*replies: bytes) -> Fault:
    """Why a server that says these things, whatever it is asked, will not do."""

    gone = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for reply in replies:
            await reader.read(1000)
            writer.write(reply)
        await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Fault) as caught:
            await connect(address_of(f"postgresql://zoe:secret@127.0.0.1:{port}/records?sslmode=require"))
        await gone.wait()
    return caught.value


@pytest.mark.parametrize(("replies", "said"), [([b"N"], "offers no TLS"), ([b"S", b"Sorry!"], "no TLS with it")])
def test_server_without_tls_is_rejected_if_tls_is_required(replies: list[bytes], said: str) -> None:
    fault = asyncio.run(refused_after(*replies))
    assert fault.code is Code.NETWORK
    assert said in fault.message


def test_timeout_is_reported_as_no_answer() -> None:
    fault = failure(TimeoutError(), address_of("postgresql://ann:secret@db.example/records"))
    assert fault.code is Code.NETWORK
    assert fault.message == "PostgreSQL at db.example/records does not answer"


Lock: TypeAlias = Callable[[PostgresConnection], AbstractAsyncContextManager[None]]

WAITING = """
SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()
"""


async def until_waiting(connection: PostgresConnection, count: int = 1) -> None:
    while await connection.fetchval(WAITING) < count:
        pass


async def test_writers_do_not_block_each_other(filled: str) -> None:
    async with connection_to(filled) as one, connection_to(filled) as two, writing(one), writing(two):
        assert await one.fetchval(WAITING) == 0


@pytest.mark.parametrize(("first", "second"), [(writing, pruning), (pruning, writing), (rebuilding, rebuilding)])
async def test_exclusive_operations_wait_for_others_and_block_them(filled: str, first: Lock, second: Lock) -> None:
    order: list[str] = []

    async def later(connection: PostgresConnection) -> None:
        async with second(connection):
            order.append("second")

    async with connection_to(filled) as one, connection_to(filled) as two, asyncio.TaskGroup() as group, first(one):
        group.create_task(later(two))
        await until_waiting(one)
        order.append("first")
    assert order == ["first", "second"]


@pytest.mark.parametrize("lock", [writing, pruning, rebuilding])
def test_what_is_begun_and_fails_has_not_happened(filled: str, lock: Lock) -> None:
    async def failing(connection: PostgresConnection) -> None:
        async with lock(connection):
            await connection.execute("INSERT INTO sightline.instructions VALUES ($1, 'x_1')", b"1")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        connected(filled, failing)
    assert fetch(filled, "SELECT * FROM sightline.instructions") == []


STEPS = [
    Migration(1, "CREATE TABLE sightline.cats (name text); INSERT INTO sightline.cats VALUES ('Tom')"),
    Migration(2, "ALTER TABLE sightline.cats ADD COLUMN lives integer DEFAULT 9"),
]


def version(url: str) -> int:
    return fetch(url, "SELECT number FROM sightline.version")[0]["number"]


def test_the_steps_that_ship_are_numbered_without_a_gap() -> None:
    versions = [step.version for step in load_migrations("postgres")]
    assert versions == list(range(1, versions[-1] + 1))


def take(url: str, steps: list[Migration]) -> int:
    return connected(url, lambda connection: migrate(connection, steps))


def test_missing_steps_are_taken_once(empty: str) -> None:
    assert [take(empty, STEPS[:1]), take(empty, STEPS), take(empty, STEPS)] == [1, 1, 0]
    assert [tuple(row) for row in fetch(empty, "SELECT * FROM sightline.cats")] == [("Tom", 9)]
    assert version(empty) == 2


async def test_replicas_that_start_at_once_do_the_work_once(empty: str) -> None:
    async def start() -> int:
        async with connection_to(empty) as connection:
            return await migrate(connection, STEPS)

    assert sorted(await asyncio.gather(*(start() for _ in range(8)))) == [0] * 7 + [2]
    async with connection_to(empty) as connection:
        assert len(await connection.fetch("SELECT * FROM sightline.cats")) == 1


def test_a_step_that_fails_leaves_everything_as_it_was(empty: str) -> None:
    take(empty, STEPS[:1])
    broken = [Migration(2, "DROP TABLE sightline.cats"), Migration(3, "DROP TABLE sightline.dogs")]
    with pytest.raises(TROUBLE):
        take(empty, [STEPS[0], *broken])
    assert version(empty) == 1
    assert len(fetch(empty, "SELECT * FROM sightline.cats")) == 1


def test_tables_of_a_newer_sightline_are_left_alone(empty: str) -> None:
    take(empty, STEPS)
    with pytest.raises(Fault, match="made by a newer Sightline") as caught:
        take(empty, STEPS[:1])
    assert caught.value.code is Code.CONFIG


def test_user_without_create_privilege_can_start_on_existing_tables(empty: str) -> None:
    take(empty, STEPS)
    with guest(empty, "USAGE ON SCHEMA sightline", "SELECT ON ALL TABLES IN SCHEMA sightline") as theirs:
        assert take(theirs, STEPS) == 0
