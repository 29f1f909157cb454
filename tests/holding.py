"""Clients whose requests are held, and the person who decides about them."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from sightline.exchange.client_request import ClientRequest
from sightline.exchange.interception.hold import Hold
from sightline.exchange.interception.holds import Holds
from tests.relay_stage import Got, Stage, open_stage

SSE = [("Content-Type", "text/event-stream")]
JSON = [("Content-Type", "application/json")]
CODED = [*SSE, ("Content-Encoding", "gzip")]

T = TypeVar("T")


@asynccontextmanager
async def holding(folder: Path, spoken: str = "openai-chat", **settings: Any) -> AsyncIterator[Stage]:
    """A stage on which every request is held, before a provider that gives a whole answer."""
    async with open_stage(folder, spoken, **settings) as stage:
        stage.relay.holds.set_mode("every")
        yield stage


@asynccontextmanager
async def asking(stage: Stage, *requests: ClientRequest) -> AsyncIterator[list["asyncio.Task[Got]"]]:
    """These requests on their way, each of them held; they come in their order."""
    tasks = []
    async with asyncio.TaskGroup() as group:
        for number, asked in enumerate(requests, 1):
            tasks.append(group.create_task(stage.ask(asked)))
            await held(stage, number)
        yield tasks


@asynccontextmanager
async def one_held(
    folder: Path, asked: ClientRequest, spoken: str = "openai-chat", **settings: Any
) -> AsyncIterator[tuple[Stage, Holds, Hold]]:
    """One request that is held. In the end it is dropped, unless it was decided about."""
    async with holding(folder, spoken, **settings) as stage, asking(stage, asked):
        hold = await held(stage)
        yield stage, stage.relay.holds, hold
        if hold.is_open:
            stage.relay.holds.drop(hold.exchange)


async def held(stage: Stage, count: int = 1) -> Hold:
    """The last of so many holds, as soon as they are there."""
    with stage.hub.watch() as watch:
        while len(stage.relay.holds.waiting) < count:
            await anext(watch)
    return stage.relay.holds.waiting[count - 1]


async def promptly(awaited: Awaitable[T]) -> T:
    """What should not take long, so that a mistake does not take forever."""
    async with asyncio.timeout(60):
        return await awaited


def let_go(stage: Stage, hold: Hold) -> None:
    """Release it as it stands on screen."""
    stage.relay.holds.release(hold.exchange, hold.draft.sha256)


def coded(pieces: list[bytes]) -> bytes:
    """A stream in the coding that a client may have asked for."""
    return gzip.compress(b"".join(pieces))


def said_by(words: str) -> dict[str, Any]:
    """A reply that a person writes."""
    return {"parts": [{"type": "text", "text": words}]}
