"""Makes the golden records of the present version, SQLite's and PostgreSQL's: `python -m tests.store.golden_record`.

Run it once for each migration. A file that exists is left as it is: it is what that version wrote.
"""

import asyncio
import re
import subprocess
import tempfile
from pathlib import Path

import zstandard

from sightline.model.exchange import ExchangeFailed
from sightline.store.postgres import open_postgres
from sightline.store.sqlite import open_store
from sightline.store.sqlite_database import FILE_NAME
from sightline.store.store import load_migrations
from tests.postgres_server import database, execute, found
from tests.store.traffic import NOON, chat_body, noted, prices, received, whole

FOLDER = Path(__file__).parent / "golden"
SAID = [f"turn {turn} " + "lorem ipsum " * 60 for turn in range(21)]


def bodies() -> list[bytes]:
    """A conversation that grows."""
    return [chat_body(*SAID[: 2 * turn + 1], system="Be brief.") for turn in range(10)]


async def made(folder: Path) -> None:
    store = await open_store(folder, prices=prices, now=lambda: NOON)
    for turn, body in enumerate(bodies()):
        store.record(whole(f"x_{turn}", body, SAID[2 * turn + 1], at=NOON + turn))
    store.record(received("x_open", chat_body("unanswered"), at=NOON + 99))
    await store.logbook.append("chat", 0, [b'{"a":1}', b'{"b":2}'], NOON)
    await store.settle()
    await store.close()


def sqlite_record() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(made(Path(folder)))
        return zstandard.ZstdCompressor(level=19).compress((Path(folder) / FILE_NAME).read_bytes())


# --- PostgreSQL -----------------------------------------------------------------------------------

SPENT = "INSERT INTO sightline.caps VALUES ('daily', 'tokens', '[]', '2026-09-21', 1200, 300, 5000)"
DUMP = ("--inserts", "--no-owner", "--no-privileges", "--schema=sightline")


async def made_in_postgres(url: str, folder: Path) -> None:
    store = await open_postgres(url, folder, prices=prices, now=lambda: NOON)
    store.record(whole("x_1", chat_body("tell a Dad Joke", system="Be brief."), "Knock ", "knock"))
    said = ("tell a Dad Joke", "Knock knock", "Who is there?")
    store.record(whole("x_2", chat_body(*said, system="Be brief."), "Grüße", at=NOON + 5))
    store.record(received("x_3", chat_body("three"), at=NOON + 9))
    store.record(noted("x_3", [ExchangeFailed("rate_limited", "slow down", status=429)], first=1))
    await store.logbook.append("chat", 0, [b'{"a":1}', b'{"b":2}'], NOON)
    await store.settle()
    await store.close()


def postgres_record(version: int) -> str:
    programs = found()
    if programs is None or not (programs / "pg_dump").is_file():
        raise SystemExit("pg_dump is not installed beside the PostgreSQL server")
    with database() as url, tempfile.TemporaryDirectory() as folder:
        asyncio.run(made_in_postgres(url, Path(folder)))
        execute(url, SPENT)
        dump = subprocess.run([programs / "pg_dump", *DUMP, url], capture_output=True, check=True, text=True).stdout
    # Comments, settings of the session, and commands that only psql knows are for restoring with psql.
    kept = [line for line in dump.splitlines() if not re.match(r"--|SET |SELECT pg_catalog\.set_config|\\", line)]
    first = f"-- A record of version {version}, as pg_dump wrote it, with three exchanges, a log and a cap. "
    return first + "It is never made again.\n\n" + re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip() + "\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    sqlite = FOLDER / f"{load_migrations('sqlite')[-1].version:03}.sqlite3.zst"
    if not sqlite.exists():
        sqlite.write_bytes(sqlite_record())
    version = load_migrations("postgres")[-1].version
    postgres = FOLDER / f"postgres_{version:03}.sql"
    if not postgres.exists():
        postgres.write_text(postgres_record(version), "utf-8")


if __name__ == "__main__":
    main()
