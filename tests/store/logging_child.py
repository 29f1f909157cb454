"""A process that adds lines to one log and says where each came to stand, until it is done or killed.

`python -m tests.store.logging_child COUNT NAME FOLDER [URL]`; where another was faster, it reads and tries again.
"""

import asyncio
import os
import sys
from pathlib import Path

from sightline.errors import Fault
from sightline.store.postgres import open_postgres
from sightline.store.sqlite import open_store
from sightline.store.store import Store
from tests.store.traffic import NOON, prices


async def added(store: Store, after: int, data: bytes) -> int:
    """The number of the line."""
    while True:
        try:
            await store.logbook.append("shared", after, [data], NOON)
        except Fault as fault:
            if fault.status != 409:
                raise
            after += len(await store.logbook.lines("shared", after))
        else:
            return after + 1


async def main(count: int, name: str, folder: Path, url: str) -> None:
    opening = open_postgres(url, folder, prices=prices, now=lambda: NOON) if url else None
    store: Store = await (opening or open_store(folder, prices=prices, now=lambda: NOON))
    try:
        line = 0
        for number in range(count):
            line = await added(store, line, f"{name}-{number}".encode())
            # In one write, so that a kill leaves whole lines only.
            os.write(1, f"{line}\n".encode())
    finally:
        await store.close()


if __name__ == "__main__":
    _, how_many, who, data, *where = sys.argv
    asyncio.run(main(int(how_many), who, Path(data), where[0] if where else ""))
