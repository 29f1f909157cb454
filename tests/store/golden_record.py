"""Makes the golden SQLite database of the present version: `python -m tests.store.golden_record`.

Run it once for each migration; the files of earlier versions stay as they are. The golden records of PostgreSQL beside
them are dumps of `pg_dump` of a record with the exchanges that `test_postgres.py` expects, with a line on top.
"""

import asyncio
import tempfile
from pathlib import Path

import zstandard

from sightline.store.sqlite import open_store
from sightline.store.sqlite_database import FILE_NAME
from sightline.store.store import load_migrations
from tests.store.traffic import NOON, chat_body, prices, received, whole

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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(made(Path(folder)))
        packed = zstandard.ZstdCompressor(level=19).compress((Path(folder) / FILE_NAME).read_bytes())
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{load_migrations('sqlite')[-1].version:03}.sqlite3.zst").write_bytes(packed)


if __name__ == "__main__":
    main()
