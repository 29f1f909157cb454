"""A replica as a process of its own: records exchanges one after the other, and says what it was promised."""

import asyncio
import sys
from pathlib import Path

from sightline.store.postgres import open_postgres
from tests.store.traffic import NOON, answered, chat_body, chat_stream, prices, received


def exchange_id(name: str, number: int) -> str:
    return f"x_{number:05}_{name}"


def body_of(name: str, number: int) -> bytes:
    """The body of an exchange: a conversation that grows, beginning with words that all replicas share."""
    said = [f"{turn} of everybody " + "lorem ipsum " * 20 for turn in range(2 * (number % 20))]
    return chat_body(*said, f"{name} asks {number}")


async def run(url: str, folder: Path, name: str, first: int, count: int) -> None:
    store = await open_postgres(url, folder, prices=prices, now=lambda: NOON)
    try:
        for number in range(first, first + count):
            exchange, body = exchange_id(name, number), body_of(name, number)
            store.record(received(exchange, body))
            sys.stdout.write(f"received {number}\n")
            sys.stdout.flush()
            store.record(answered(exchange, body, chat_stream("Yes, ", str(number))))
            sys.stdout.write(f"finished {number}\n")
            sys.stdout.flush()
        await store.settle()
    finally:
        await store.close()


if __name__ == "__main__":
    _, where, data, who, start, length = sys.argv
    asyncio.run(run(where, Path(data), who, int(start), int(length)))
