import asyncio
import socket
from pathlib import Path

import pytest
import trustme

from sightline.errors import Code, Fault
from sightline.store.postgres_connection import PostgresConnection, address_of, connect, failure
from tests.postgres_server import PASSWORD, database, shared_server


def refused(url: str, oldest: int = 0) -> Fault:
    """Why this URL leads nowhere."""

    async def try_it() -> None:
        connection = await connect(address_of(url), oldest=oldest)
        await connection.close()

    with pytest.raises(Fault) as caught:
        asyncio.run(try_it())
    assert caught.value.hint
    return caught.value


def asked(url: str, query: str) -> object:
    """The answer of a server that is reached by this URL."""

    async def ask() -> object:
        connection: PostgresConnection = await connect(address_of(url))
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    return asyncio.run(ask())


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
def test_an_address_shows_where_it_leads_and_not_who_goes_there(url: str, place: str) -> None:
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


def test_a_server_is_reached_with_a_password_full_of_signs() -> None:
    with database() as url:
        assert asked(url, "SELECT 1") == 1


IN_TLS = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


def test_tls_is_a_matter_of_sslmode() -> None:
    server = shared_server()
    assert asked(server.url(query="sslmode=disable"), IN_TLS) is False
    assert asked(server.url(query=""), IN_TLS) is True
    assert asked(server.url(query="sslmode=require"), IN_TLS) is True
    assert asked(server.url(query=f"sslmode=verify-full&sslrootcert={server.ca_file}"), IN_TLS) is True


def test_a_certificate_that_nobody_vouched_for_is_not_trusted(tmp_path: Path) -> None:
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
def test_what_stands_behind_the_question_mark_is_checked(query: str, said: str) -> None:
    url = shared_server().url(query=query)
    if query.startswith("port"):
        url = f"postgresql:///records?{query}"
    fault = refused(url)
    assert fault.code is Code.CONFIG
    assert said in fault.message


def test_a_wrong_password_is_told_from_a_wrong_address() -> None:
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


def test_nobody_listens() -> None:
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
def test_a_server_without_tls_is_not_spoken_to_where_tls_is_asked_for(replies: list[bytes], said: str) -> None:
    fault = asyncio.run(refused_after(*replies))
    assert fault.code is Code.NETWORK
    assert said in fault.message


def test_silence_is_told_as_such() -> None:
    fault = failure(TimeoutError(), address_of("postgresql://ann:secret@db.example/records"))
    assert fault.code is Code.NETWORK
    assert fault.message == "PostgreSQL at db.example/records does not answer"
