"""What recording costs, and how small an agent's growing history is on the disk."""

import asyncio
import hashlib
import json
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import zstandard

from bench.documents import WORDS
from bench.timing import microseconds, ratio, table
from sightline.model.exchange import AttemptStarted, ExchangeFinished, Fact, FrameArrived, Received
from sightline.model.reply import Usage
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.importer import Importer
from sightline.store.journal import JournalWriter, encode_entries
from sightline.store.sqlite import open_store
from sightline.store.sqlite_database import FILE_NAME, open_database
from sightline.store.sqlite_sink import SqliteSink

Object = dict[str, Any]
Words = Callable[[random.Random, int], str]

TURNS = 100
EXCHANGES = 300
WARM_UP, PAUSE, IMPORTED = 500, 10_000, 50_000
SYLLABLES = [a + b for a in "bcdfghklmnprstvw" for b in "aeiou"]
NOON = 1_790_000_000.0
SOURCES = sorted(Path("src/sightline").rglob("*.py"))
HEADERS = (("content-type", "application/json"), ("user-agent", "cli/2.1.197"), ("accept", "*/*")) * 4


def report() -> str:
    return f"{_size_report()}\n{_time_report()}\n{_import_report()}"


# --- size -----------------------------------------------------------------------------------------


def session(turns: int = TURNS) -> Iterator[bytes]:
    """A coding agent's requests: its whole history each time, and a cache mark that moves along."""
    chance = random.Random(4)
    text = "".join(path.read_text() for path in SOURCES)
    tools = [
        {"name": f"tool_{n}", "description": _sentence(chance, 400), "input_schema": {"type": "object"}}
        for n in range(24)
    ]
    system = [{"type": "text", "text": _sentence(chance, 3500), "cache_control": {"type": "ephemeral"}}]
    messages: list[Object] = [{"role": "user", "content": [{"type": "text", "text": _sentence(chance, 60)}]}]
    for turn in range(turns):
        messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        request = {
            "model": "m",
            "messages": messages,
            "system": system,
            "tools": tools,
            "max_tokens": 64000,
            "stream": True,
        }
        yield json.dumps(request, separators=(",", ":")).encode()
        del messages[-1]["content"][-1]["cache_control"]
        start = chance.randrange(len(text) - 4000)
        call = {"type": "tool_use", "id": f"toolu_{turn:024}", "name": "tool_3", "input": {"path": f"src/{turn}.py"}}
        result = {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": text[start : start + chance.randrange(200, 2000)],
        }
        messages.append({"role": "assistant", "content": [{"type": "text", "text": _sentence(chance, 20)}, call]})
        messages.append({"role": "user", "content": [result]})


def _size_report() -> str:
    bodies = list(session())
    raw = sum(map(len, bodies))
    alone = sum(len(zstandard.ZstdCompressor(level=3).compress(body)) for body in bodies)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_recorded(Path(folder), [asked(f"x_{n:06}", body) for n, body in enumerate(bodies)]))
        with sqlite3.connect(Path(folder) / FILE_NAME) as connection:
            (stored,) = connection.execute("SELECT sum(length(data)) FROM bodies").fetchone()
        connection.close()
        whole = (Path(folder) / FILE_NAME).stat().st_size
    rows = [
        ["as sent", f"{raw:,}", ratio(1)],
        ["each compressed by itself", f"{alone:,}", ratio(raw / alone)],
        ["bodies in the record", f"{stored:,}", ratio(raw / stored)],
        ["the whole file, with facts and search", f"{whole:,}", ratio(raw / whole)],
    ]
    title = f"Record: {TURNS} turns of an agent, {len(bodies[0]):,} to {len(bodies[-1]):,} bytes each"
    return table(title, ["", "bytes", "smaller"], rows)


async def _recorded(folder: Path, records: list[list[Entry]]) -> None:
    store = await open_store(folder, prices=lambda _provider, _model: None, now=lambda: NOON)
    try:
        for entries in records:
            store.record(entries)
        await store.settle()
    finally:
        await store.close()


# --- time -----------------------------------------------------------------------------------------


def _time_report() -> str:
    agent = list(session(EXCHANGES))
    cases: dict[str, tuple[Callable[[int], bytes], int, Words]] = {
        "1 KB, whole answer": (lambda n: _small(n, 1000, _sentence), 1, _sentence),
        "1 KB, whole answer, varied words": (lambda n: _small(n, 1000, varied), 1, varied),
        "1 KB, stream of 200 frames": (lambda n: _small(n, 1000, _sentence), 200, _sentence),
        "1 KB, stream of 200 frames, varied words": (lambda n: _small(n, 1000, varied), 200, varied),
        "97 KB and more, agent, whole answer": (lambda n: agent[n], 1, _sentence),
        "97 KB, each different, whole answer": (lambda n: _small(n, 97_000, varied), 1, varied),
    }
    rows = [[name, *map(microseconds, _times(*case))] for name, case in cases.items()]
    title = f"Record: CPU time for one exchange (mean of {EXCHANGES}; the caller waits for the first column only)"
    return table(title, ["exchange", "journal", "hash", "database"], rows)


def _times(make: Callable[[int], bytes], frames: int, words: Words) -> tuple[float, float, float]:
    bodies = [make(n) for n in range(EXCHANGES)]
    started = process_time()
    names = [hashlib.sha256(body).hexdigest() for body in bodies]
    hashed = process_time() - started
    questions = [asked(f"x_{n:06}", body, name) for n, (body, name) in enumerate(zip(bodies, names, strict=True))]
    answers = [
        answered(f"x_{n:06}", name, frames, words(random.Random(f"reply {n}"), 200)) for n, name in enumerate(names)
    ]
    with tempfile.TemporaryDirectory() as folder:
        caller = _called(Path(folder), [*questions, *answers])
    with tempfile.TemporaryDirectory() as folder:
        sink = SqliteSink(open_database(Path(folder)), lambda _provider, _model: None)
        started = process_time()
        for at in range(0, EXCHANGES, 32):
            sink.apply([entry for entries in questions[at : at + 32] for entry in entries])
            sink.apply([entry for entries in answers[at : at + 32] for entry in entries])
        applied = process_time() - started
        sink.close()
    return caller / EXCHANGES, hashed / EXCHANGES, applied / EXCHANGES


# --- import ---------------------------------------------------------------------------------------


def _import_report() -> str:
    """Bring records from a journal into the database, as a recorder does: exchanges wait as after a pause of it, and
    what memory the process itself has written is flat."""
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        journal = JournalWriter(folder / "journal")
        importer = Importer(
            folder / "journal", lambda: SqliteSink(open_database(folder), lambda _provider, _model: None), lambda: NOON
        )
        importer.acquire()
        done = 0
        for waiting in (WARM_UP, *[PAUSE] * (IMPORTED // PAUSE)):
            for number in range(done, done + waiting):
                body = _small(number, 1000, varied)
                sha256, exchange = hashlib.sha256(body).hexdigest(), f"x_{number:09}"
                answer = answered(exchange, sha256, 1, varied(random.Random(f"reply {number}"), 200))
                journal.append(encode_entries([*asked(exchange, body, sha256), *answer]))
            done += waiting
            started, began = process_time(), perf_counter()
            importer.catch_up()
            each, taken = (process_time() - started) / waiting, perf_counter() - began
            rows.append(
                [
                    f"{done:,}",
                    f"{waiting:,}",
                    microseconds(each),
                    f"{1 / each:,.0f}",
                    f"{taken:.1f} s",
                    _own_megabytes(),
                ]
            )
        journal.close()
        importer.close()
    heads = ["exchanges", "waiting", "CPU each", "a second of CPU", "until caught up", "own MB"]
    return table("Record: import of whole answers of 1 KB, varied words, one after another", heads, rows)


def _own_megabytes() -> str:
    lines = Path("/proc/self/status").read_text().splitlines() if Path("/proc/self/status").exists() else []
    return next((f"{int(line.split()[1]) / 1024:.1f}" for line in lines if line.startswith("RssAnon")), "-")


def _called(folder: Path, records: list[list[Entry]]) -> float:
    """What the caller does itself, with nobody else on the interpreter."""
    journal = JournalWriter(folder / "journal")
    started = process_time()
    for entries in records:
        journal.append(encode_entries(entries))
    taken = process_time() - started
    journal.close()
    return taken


def asked(exchange: str, body: bytes, name: str = "") -> list[Entry]:
    """What is recorded of a request."""
    name = name or hashlib.sha256(body).hexdigest()
    dialect = "anthropic" if b'"max_tokens"' in body else "openai-chat"
    fact = Received(dialect, "m", name, session="s", client="cli", path="/v1/messages", is_stream=True, headers=HEADERS)
    return [BodyEntry(name, body, "s"), FactEntry(exchange, 0, NOON, fact)]


def answered(exchange: str, name: str, count: int, text: str) -> list[Entry]:
    """What is recorded of its answer: whole, or a stream of so many frames."""
    if count == 1:
        message = {"role": "assistant", "content": text}
        reply = {
            "id": "c",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        frames = [json.dumps(reply).encode()]
    else:
        frames = [
            b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%s "}}]}\n\n'
            % word.encode()
            for word in text.split()[: count - 2]
        ]
        frames.append(b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
        frames.append(b"data: [DONE]\n\n")
    end = ExchangeFinished("stop", 200, HEADERS, "", "m", Usage(input_tokens=1, output_tokens=2), (), 0.1, 0.2)
    facts: list[Fact] = [AttemptStarted(1, "acme", name, dialect="openai-chat")]
    facts += [FrameArrived(frame, 0.01 * n) for n, frame in enumerate(frames)]
    return [FactEntry(exchange, 1 + n, NOON, fact) for n, fact in enumerate([*facts, end])]


def _small(number: int, size: int, words: Words) -> bytes:
    text = words(random.Random(number), size // 6)
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], "stream": True}).encode()


def _sentence(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words))


def varied(chance: random.Random, words: int) -> str:
    """Words that hardly ever come again, as the names, numbers and paths of real requests do not."""
    return " ".join("".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(words))
