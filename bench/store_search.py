"""How long a search takes in a large record: in a file of SQLite, and in a PostgreSQL server if one is installed."""

import asyncio
import hashlib
import json
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter, process_time

from bench.store import NOON, answered, asked, varied
from bench.timing import table
from sightline.errors import Fault
from sightline.filters.expression import ContentTerm
from sightline.store import postgres, sqlite
from sightline.store.entries import Codec, Entry
from sightline.store.importer import Sink
from sightline.store.postgres_connection import address_of, connect, migrate
from sightline.store.postgres_sink import PostgresSink
from sightline.store.postgres_words import append_words as append_postgres_words
from sightline.store.search import RecordSearch
from sightline.store.sqlite_database import FILE_NAME, open_database
from sightline.store.sqlite_sink import SqliteSink
from sightline.store.sqlite_words import append_words
from sightline.store.store import load_migrations
from sightline.store.words import unpack_words

SEARCHED, COPIES, EVERY, RARE = 100_000, 10, 10_000, "haystack needle"
ROUNDS = 3
LIMITS = ((1, "first hit"), (1000, "all hits"))
PROGRAMS = ("initdb", "postgres")


def report() -> str:
    return f"{_sqlite_report()}\n{_postgres_report()}"


def fill(sink: Sink, count: int) -> None:
    """Record so many exchanges."""
    texts = [varied(random.Random(number), 170) for number in range(2000)]
    chance = random.Random(5)
    for at in range(0, count, 500):
        batch: list[Entry] = []
        for number in range(at, at + 500):
            said, reply = (f"{chance.choice(texts)[:400]} {chance.choice(texts)[:300]}" for _ in range(2))
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"{said} {number}"}]}).encode()
            name, exchange = hashlib.sha256(body).hexdigest(), f"x_{number:09}"
            batch += asked(exchange, body, name)
            batch += answered(exchange, name, 1, reply if number % EVERY else f"{reply} {RARE}")
        sink.apply(batch, 0)
        while sink.tidy():
            pass


# --- SQLite ---------------------------------------------------------------------------------------


def _sqlite_report() -> str:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        connection = open_database(folder)
        sink = SqliteSink(connection, lambda _provider, _model: None)
        fill(sink, SEARCHED)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        sink.close()
        stored = (folder / FILE_NAME).stat().st_size / SEARCHED
        for copies in (1, COPIES):
            _multiply(folder, SEARCHED, copies)
            reader = sqlite.SqliteReader(folder / FILE_NAME)
            for limit, what in LIMITS:
                started, began = process_time(), perf_counter()
                found = reader.search(RecordSearch(sqlite.TABLES, ContentTerm(RARE), NOON).newest("", limit))
                taken = _milliseconds(process_time() - started), _milliseconds(perf_counter() - began)
                rows.append([f"{copies * SEARCHED:,}", what, str(len(found)), *taken])
            reader.close()
    title = f"Record: search for a word that one in {EVERY:,} has; {stored:,.0f} bytes an exchange on the disk"
    return table(title, ["exchanges", "", "found", "CPU", "time"], rows)


def _multiply(folder: Path, count: int, copies: int) -> None:
    """Have every exchange so many times, as far as a search looks at them: rows and words."""
    connection, codec = open_database(folder), Codec()
    names = [row[1] for row in connection.execute("PRAGMA table_info (exchanges)")][2:]
    for copy in range(1, copies):
        shift = copy * count
        connection.execute(
            f"INSERT INTO exchanges SELECT seq + {shift}, printf('x_%09d', seq - 1 + {shift}), {', '.join(names)}"
            f" FROM exchanges WHERE seq <= {count}"
        )
        blocks = connection.execute("SELECT data FROM words WHERE last <= ? ORDER BY id", (count,)).fetchall()
        for (data,) in blocks:
            append_words(connection, codec, [(seq + shift, words) for seq, words in unpack_words(codec, data)])
    connection.close()


# --- PostgreSQL -----------------------------------------------------------------------------------


def _postgres_report() -> str:
    title = f"Record in PostgreSQL: search for a word that one in {EVERY:,} has (best of {ROUNDS})"
    programs = _find_programs()
    if programs is None:
        return f"\n{title}\nnot measured: PostgreSQL is not installed"
    rows = []
    with tempfile.TemporaryDirectory(prefix="sightline-bench-") as folder:
        create_server(programs, Path(folder))
        with running_server(programs, Path(folder)) as (url, server):
            fill_postgres(url, SEARCHED)
            for copies in (1, COPIES):
                asyncio.run(multiply_postgres(url, SEARCHED, copies))
                for limit, what in LIMITS:
                    found, *taken = asyncio.run(measure_postgres(url, server, limit))
                    rows.append([f"{copies * SEARCHED:,}", what, str(found), *map(_milliseconds, taken)])
    return table(title, ["exchanges", "", "found", "CPU", "server's CPU", "time"], rows)


def _find_programs() -> Path | None:
    """The folder of the server's programs: that of the command, else the newest that Debian keeps out of the path."""
    command = shutil.which("postgres")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    folders = [*([Path(command).resolve().parent] if command else []), *reversed(installed)]
    return next((path for path in folders if all((path / name).is_file() for name in PROGRAMS)), None)


def create_server(programs: Path, folder: Path) -> None:
    """Make the files of a server that lets in who asks from this machine."""
    user = _unprivileged()
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    options = ["--username", "bench", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"]
    _run(programs / "initdb", folder, "--pgdata", str(folder / "data"), *options).wait()


@contextmanager
def running_server(programs: Path, folder: Path) -> Iterator[tuple[str, int]]:
    """Its URL and its process. It has the settings that it comes with, but for waiting for the disk."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}", "-c", "fsync=off"]
    server = _run(programs / "postgres", folder, "-D", str(folder / "data"), "-p", str(port), *options)
    try:
        url = f"postgresql://bench@127.0.0.1:{port}/postgres?sslmode=disable"
        asyncio.run(_wait_for(url))
        yield url, server.pid
    finally:
        server.terminate()
        server.wait()


async def _wait_for(url: str) -> None:
    for _ in range(200):
        with suppress(Fault):
            connection = await connect(address_of(url))
            await migrate(connection, load_migrations("postgres"))
            await connection.close()
            return
        await asyncio.sleep(0.05)
    raise AssertionError("PostgreSQL does not start")


def _run(program: Path, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Run a program of the server: as another user where we are root, whom it refuses."""
    user = _unprivileged()
    return subprocess.Popen(
        [str(program), *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=None if user is None else user.pw_uid,
        group=None if user is None else user.pw_gid,
        extra_groups=None if user is None else [],
    )


def _unprivileged() -> pwd.struct_passwd | None:
    return None if os.geteuid() else next(each for each in pwd.getpwall() if each.pw_name in ("postgres", "nobody"))


def fill_postgres(url: str, count: int) -> None:
    """Record so many exchanges in a server."""
    sink = PostgresSink(address_of(url), replica="bench", prices=lambda _provider, _model: None, now=lambda: NOON)
    fill(sink, count)
    sink.close()


async def multiply_postgres(url: str, count: int, copies: int) -> None:
    """Have every exchange so many times, as far as a search looks at them: rows and words."""
    connection, codec = await connect(address_of(url)), Codec()
    rows = await connection.fetch(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'sightline'"
        " AND table_name = 'exchanges' AND column_name <> 'id'"
    )
    names = ", ".join(row[0] for row in rows)
    numbers = [row[0] for row in await connection.fetch("SELECT id FROM sightline.words ORDER BY id")]
    for copy in range(1, copies):
        shift = copy * count
        await connection.execute(
            f"INSERT INTO sightline.exchanges (id, {names})"
            f" SELECT 'x_' || lpad((substr(id, 3)::int + {shift})::text, 9, '0'), {names}"
            f" FROM sightline.exchanges WHERE id < 'x_{count:09}'"
        )
        for number in numbers:
            data = await connection.fetchval("SELECT data FROM sightline.words WHERE id = $1", number)
            said = [(f"x_{int(name[2:]) + shift:09}", words) for name, words in unpack_words(codec, data)]
            await append_postgres_words(connection, codec, said)
    await connection.execute("VACUUM ANALYZE sightline.exchanges, sightline.words")
    await connection.close()


async def measure_postgres(url: str, server: int, limit: int) -> tuple[int, float, float, float]:
    """How many are found, and the seconds that it takes: CPU here, CPU of the server, and in all."""
    connection = await connect(address_of(url))
    taken = []
    found = 0
    for _ in range(ROUNDS):
        before = _cpu_of_children(server)
        started, began = process_time(), perf_counter()
        search = RecordSearch(postgres.TABLES, ContentTerm(RARE), NOON).newest("", limit)
        found = len(await postgres.answer(connection, search))
        taken.append((perf_counter() - began, process_time() - started, _cpu_of_children(server) - before))
    await connection.close()
    wall, own, theirs = min(taken)
    return found, own, theirs, wall


def _cpu_of_children(server: int) -> float:
    """Seconds of CPU that the living children of a process have taken; 0 where the system does not say."""
    children = Path(f"/proc/{server}/task/{server}/children")
    numbers = children.read_text().split() if children.exists() else []
    return sum(int(Path(f"/proc/{number}/schedstat").read_text().split()[0]) for number in numbers) / 1e9


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"
