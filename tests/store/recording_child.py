"""A process that records without end and says what was acknowledged, until somebody kills it.

`python -m tests.store.recording_child FOLDER NAME`; each line of output names an exchange and how far it got.
"""

import asyncio
import itertools
import os
import sys
from pathlib import Path

from sightline.store.sqlite import open_store
from tests.store.traffic import NOON, answered, chat_body, chat_stream, prices, received, sha256


def body_of(name: str, number: int) -> bytes:
    """The request of an exchange: a conversation that grows."""
    return chat_body(*(f"{name} turn {turn} " + "word " * 100 for turn in range(number % 40 + 1)))


def noise(name: str, number: int) -> list[bytes]:
    """Its reply."""
    return chat_stream(*(sha256(f"{name} {number} {frame}".encode()) for frame in range(number % 30)))


def say(line: str) -> None:
    """In one write, so that a kill leaves whole lines only."""
    os.write(1, f"{line}\n".encode())


async def main(folder: Path, name: str) -> None:
    store = await open_store(folder, prices=prices, now=lambda: NOON)
    say("open")
    for number in itertools.count():
        exchange = f"x_{name}_{number:06}"
        body = body_of(name, number)
        store.record(received(exchange, body, at=NOON + number, session=name))
        say(f"{exchange} received")
        if number % 7:
            store.record(answered(exchange, body, noise(name, number), at=NOON + number))
            say(f"{exchange} finished")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
