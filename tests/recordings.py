"""A store that holds some exchanges, for tests of what is done with the record."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from sightline.exchange.recording.exchange_record import RecordedExchange, find_exchange, load_exchange
from sightline.model.exchange import (
    AttemptStarted,
    ExchangeFailed,
    ExchangeFinished,
    Fact,
    FrameArrived,
    Received,
    Translated,
)
from sightline.model.reply import Usage
from sightline.model.report import Loss
from sightline.store.entries import BodyEntry, Entry
from sightline.store.sqlite import SqliteStore, open_store
from tests.store.traffic import NOON, noted, prices, sha256

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
}
EVENTS = (("content-type", "text/event-stream"), ("x-request-id", "r1"))
USAGE = Usage(input_tokens=9, output_tokens=2)


def exchange(
    name: str,
    body: bytes,
    frames: Sequence[bytes] = (),
    *,
    spoken: str = "openai-chat",
    asked: str = "",
    sent: bytes | None = None,
    stream: bool = True,
    at: float = NOON,
    losses: tuple[Loss, ...] = (),
    end: Fact | None = None,
    path: str = "",
    headers: tuple[tuple[str, str], ...] = (),
    url: str = "",
    **fields: str,
) -> list[Entry]:
    """An exchange in which a client of `asked` was answered by a provider of `spoken`, a piece every half second."""
    asked = asked or spoken
    wire = body if sent is None else sent
    received = Received(
        asked,
        "m",
        sha256(body),
        path=path or PATHS[asked],
        is_stream=stream,
        headers=headers,
        client="tests/1",
        **fields,
    )
    facts: list[Fact] = [received]
    if sent is not None:
        facts.append(Translated(spoken, sha256(sent), len(losses), losses))
    facts.append(AttemptStarted(1, "acme", sha256(wire), model="m", dialect=spoken, url=url))
    facts += [FrameArrived(frame, 0.5 * (n + 1)) for n, frame in enumerate(frames)]
    head = EVENTS if stream else (("content-type", "application/json"), ("content-encoding", "gzip"))
    whole = ExchangeFinished("stop", 200, head, sha256(b"".join(frames)), "m", USAGE, (), 0.5, 1.5)
    facts.append(whole if end is None else end)
    return [BodyEntry(sha256(body), body), BodyEntry(sha256(wire), wire), *noted(name, facts, at=at)]


def failed(status: int, code: str = "overloaded", message: str = "busy") -> ExchangeFailed:
    """The end of one that failed."""
    return ExchangeFailed(code, message, "Wait.", status, (("content-type", "application/json"),), "", None, 0.1, 0.2)


@asynccontextmanager
async def store_with(folder: Path, *exchanges: Iterable[Entry]) -> AsyncIterator[SqliteStore]:
    """A store in this folder with all of these."""
    store = await open_store(folder, prices=prices, now=lambda: NOON + 1000)
    try:
        for entries in exchanges:
            store.record(list(entries))
        await store.settle()
        yield store
    finally:
        await store.close()


async def one(folder: Path, entries: Iterable[Entry], name: str = "x_1") -> RecordedExchange:
    """An exchange, recorded and read back."""
    async with store_with(folder, entries) as store:
        return await load_exchange(store, await find_exchange(store, name, now=NOON))
