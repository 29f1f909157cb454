"""A real PostgreSQL for the tests: found or installed, one for the whole run, and an empty database for each test.

The server belongs to a keeper, a process that waits until nobody uses it any more and then ends it and removes its
files. Who uses it holds a shared lock on a file, which the system takes back however a process ends: neither a worker
that was killed nor a run that was broken off leaves a server behind.
"""

import asyncio
import atexit
import contextlib
import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import TextIO
from urllib.parse import quote, urlsplit

import asyncpg
import pytest
import trustme

from tests.debian import brought

PASSWORD = "a planted: p@ssword/of the?server"
OWNER = "sightline"
HOST = "127.0.0.1"
PROGRAMS = ("initdb", "postgres")

# Durability against a crash of the machine is the server's business and costs seconds; what is tested here is ours.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "listen_addresses": HOST,
    "ssl": "on",
    "log_min_messages": "panic",
}


# --- finding it -----------------------------------------------------------------------------------


def found() -> Path | None:
    """The folder of the server's programs: that of the command, else the newest that Debian keeps out of the path."""
    on_path = shutil.which("postgres")
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True
    )
    # A link elsewhere does for `postgres`, but `initdb` looks for its companions beside itself.
    candidates = ([Path(on_path).resolve().parent] if on_path else []) + installed
    return next((path for path in candidates if all((path / name).is_file() for name in PROGRAMS)), None)


# --- one server -----------------------------------------------------------------------------------


@dataclass
class PostgresServer:
    """A server with its files in `folder`; it can be ended and started again, on the same port."""

    programs: Path
    folder: Path
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def ca_file(self) -> Path:
        """The certificate that a careful client trusts."""
        return self.folder / "ca.pem"

    def url(
        self, database: str = "postgres", *, password: str = PASSWORD, user: str = OWNER, query: str = "sslmode=disable"
    ) -> str:
        """Where a database is, with the password that lets one in. Ending TLS takes longer than a test's loop may live,
        so that it is there for the tests that are about it."""
        login = f"{quote(user, safe='')}:{quote(password, safe='')}"
        return f"postgresql://{login}@{HOST}:{self.port}/{database}{f'?{query}' if query else ''}"

    def create(self) -> None:
        """Make its files."""
        who = _unprivileged()
        if who is not None:
            os.chown(self.folder, who.pw_uid, who.pw_gid)
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        issuer = trustme.CA()
        issued = issuer.issue_cert(HOST, "localhost")
        issuer.cert_pem.write_to_path(self.ca_file)
        issued.private_key_pem.write_to_path(self.folder / "server.key")
        for index, blob in enumerate(issued.cert_chain_pems):
            blob.write_to_path(self.folder / "server.crt", append=index > 0)
        (self.folder / "server.key").chmod(0o600)
        if who is not None:
            for path in (secret, self.ca_file, self.folder / "server.key", self.folder / "server.crt"):
                os.chown(path, who.pw_uid, who.pw_gid)
        login = ["--username", OWNER, "--pwfile", str(secret), "--auth", "scram-sha-256"]
        kind = ["--encoding", "UTF8", "--locale", "C", "--no-sync"]
        made = self._run("initdb", "--pgdata", str(self.folder / "data"), *login, *kind)
        _, said = made.communicate()
        assert made.returncode == 0, said.decode(errors="replace")
        ours = {**SETTINGS, "unix_socket_directories": self.folder}
        ours |= {"ssl_cert_file": self.folder / "server.crt", "ssl_key_file": self.folder / "server.key"}
        lines = [f"{name} = '{value}'\n" for name, value in ours.items()]
        with (self.folder / "data" / "postgresql.conf").open("a") as config:
            config.writelines(lines)

    def start(self) -> None:
        """Run it, and return once it takes connections."""
        for _ in range(5):
            port = self.port or _free_port()
            self._process = self._run("postgres", "-D", str(self.folder / "data"), "-p", str(port))
            if self._is_ready(port):
                self.port = port
                return
        raise AssertionError("PostgreSQL does not start")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it; by this signal it ends at once and in order."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.communicate()
            self._process = None

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        who = _unprivileged()
        return subprocess.Popen(
            [str(self.programs / program), *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            user=None if who is None else who.pw_uid,
            group=None if who is None else who.pw_gid,
            extra_groups=None if who is None else [],
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
        )

    def _is_ready(self, port: int) -> bool:
        """Whether it came up. Its own file says so: the last line of its lock file is what it tells `pg_ctl`."""
        said = self.folder / "data" / "postmaster.pid"
        while self._process.poll() is None:
            with contextlib.suppress(FileNotFoundError):
                lines = said.read_text().splitlines()
                # A file that an earlier server left behind names another process.
                if len(lines) > 7 and lines[0] == str(self._process.pid) and lines[7].strip() == "ready":
                    return True
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
        self._process.communicate()
        return False


def _unprivileged() -> pwd.struct_passwd | None:
    """Who runs it where we are root, whom it refuses."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise AssertionError("neither a user `postgres` nor `nobody` to run a server as")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def own_server() -> Iterator[PostgresServer]:
    """A server for one test that ends it and starts it again."""
    with tempfile.TemporaryDirectory(prefix="sightline-postgres-") as folder:
        server = PostgresServer(_programs(), Path(folder))
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()


# --- one for the whole run ------------------------------------------------------------------------


@cache
def _programs() -> Path:
    """Where its programs are; the test that asks is skipped where there are none and none can be had."""
    programs = brought(found, "postgresql")
    if programs is None:
        pytest.skip("PostgreSQL is not installed, and could not be (Debian, as root: apt-get install postgresql)")
    return programs


@cache
def shared_server() -> PostgresServer:
    """The server of this run: started by the first who asks, ended after the last."""
    programs = _programs()
    # Where the workers of one run, and of no other, find each other.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    place = Path(tempfile.gettempdir()) / f"sightline-postgres-run-{run}"
    atexit.register(_joined(place).close)
    address = place / "address"
    with _locked(place / "guard"):
        if not address.exists():
            _start_keeper(programs, place)
        told = json.loads(address.read_text())
    return PostgresServer(programs, Path(told["folder"]), told["port"])


def _joined(place: Path) -> TextIO:
    """The file whose lock says that this process uses the server."""
    while True:
        place.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            users = (place / "users").open("w")
            fcntl.flock(users, fcntl.LOCK_SH)
            # A keeper that was just clearing away has taken the file with it, and all begins anew.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(users.fileno()), (place / "users").stat()):
                    return users
            users.close()


def _start_keeper(programs: Path, place: Path) -> None:
    command = [sys.executable, "-m", "tests.postgres_server", str(programs), str(place)]
    root = Path(__file__).parents[1]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, start_new_session=True) as keeper:
        said = keeper.stdout.readline()
        # It outlives this process on purpose, so that nobody waits for it here.
        keeper.returncode = 0
    assert said == b"ready\n", "the keeper of PostgreSQL did not start"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def keep(programs: Path, place: Path) -> None:
    """Run a server until nobody holds the lock of those who use it."""
    with (place / "users").open("w") as users, tempfile.TemporaryDirectory(prefix="sightline-postgres-") as folder:
        server = PostgresServer(programs, Path(folder))
        server.create()
        server.start()
        try:
            (place / "address").write_text(json.dumps({"folder": folder, "port": server.port}))
            os.write(1, b"ready\n")
            os.close(1)
            fcntl.flock(users, fcntl.LOCK_EX)
        finally:
            server.stop()
            shutil.rmtree(place)


# --- one database for a test ----------------------------------------------------------------------

_NUMBERS = count()
_EMPTY: dict[Path, list[str]] = {}
"""Databases of each server that were used and are empty again: to make one takes five times as long as to empty it."""
OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@contextlib.contextmanager
def database(server: PostgresServer | None = None) -> Iterator[str]:
    """The URL of an empty database. It is emptied afterwards, and whoever is still connected is not any more."""
    server = server or shared_server()
    empty = _EMPTY.setdefault(server.folder, [])
    if empty:
        name = empty.pop()
    else:
        name = f"test_{os.getpid()}_{next(_NUMBERS)}"
        execute(server.url(), f"CREATE DATABASE {name}")
    yield server.url(name)
    _clear(server.url(name))
    empty.append(name)


def _clear(url: str) -> None:
    while fetch(url, f"SELECT pg_terminate_backend(pid) {OTHERS}"):
        time.sleep(0.01)  # they end on their own, and tell nobody
    ours = "nspname !~ '^pg_' AND nspname <> 'information_schema'"
    schemas = [row["name"] for row in fetch(url, f"SELECT quote_ident(nspname) AS name FROM pg_namespace WHERE {ours}")]
    drops = [f"DROP SCHEMA {name} CASCADE" for name in schemas]
    execute(url, "; ".join([*drops, "CREATE SCHEMA public", "GRANT USAGE ON SCHEMA public TO PUBLIC"]))


@contextlib.contextmanager
def guest(url: str, *grants: str) -> Iterator[str]:
    """The same database for a user who has only these rights."""
    parts = urlsplit(url)
    name = f"guest_of_{parts.path.removeprefix('/')}"
    execute(url, f"CREATE ROLE {name} LOGIN PASSWORD 'guest'")
    try:
        for grant in grants:
            execute(url, f"GRANT {grant} TO {name}")
        yield parts._replace(netloc=f"{name}:guest@{parts.netloc.rpartition('@')[2]}").geturl()
    finally:
        execute(url, f"DROP OWNED BY {name}")
        execute(url, f"DROP ROLE {name}")


def execute(url: str, statement: str) -> None:
    """Run one statement."""

    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


def fetch(url: str, query: str, *arguments: object) -> list[asyncpg.Record]:
    """The rows of one query."""

    async def run() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetch(query, *arguments)
        finally:
            await connection.close()

    return asyncio.run(run())


if __name__ == "__main__":
    keep(Path(sys.argv[1]), Path(sys.argv[2]))
