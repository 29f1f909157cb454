"""Reads a response for a caller of our own: its events as they come, and the reply that they make."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.exchange.client_response import ClientResponse, header
from sightline.exchange.reply_reader import ReplyReader
from sightline.model.events import Failed, StreamEvent
from sightline.model.reply import Reply

EventObserver: TypeAlias = Callable[[StreamEvent], None]

_LAST_WORDS = 0.2
"""Seconds for the rest of a transfer whose answer has said its end, so that its connection can be used again."""


async def read_answer(relayed: ClientResponse, spoken: str, tell: EventObserver) -> Reply:
    """The answer, which is of this dialect; `tell` gets each event as it comes.

    The events are those that the relay has read for the record, where it reads these very bytes as they come. What
    another process relayed, what a person answered or held, and what came in another form than the one asked for is
    read here. Where there is no answer, its fault is raised. An answer that breaks off raises nothing: what arrived is
    in the reply, with the fault.
    """
    refuse(relayed)
    shared = relayed.share_reading()
    reading = shared or ReplyReader(spoken, keeps_events=True)
    chunks = aiter(relayed)
    while True:
        try:
            data = await anext(chunks, None)
        except Fault as fault:  # only the answer's own: what goes wrong with the telling is the teller's
            reading.fail(fault)
            data = None
        else:
            if shared is None:
                reading.was_interrupted = relayed.fault is not None
                reading.close() if data is None else reading.feed(data)
        for event in reading.take_events():
            tell(Failed(relayed.fault) if relayed.fault is not None and isinstance(event, Failed) else event)
        if data is None or reading.has_ended:
            break
    reply = reading.reply  # what may follow the end is no part of it
    if data is not None:
        await _hear_out(chunks)  # some servers keep the connection open behind the end
    if reply.fault is not None and relayed.fault is not None:
        return msgspec.structs.replace(reply, fault=relayed.fault)
    return reply


def refuse(relayed: ClientResponse) -> None:
    """Raise the fault of a response that is an error, or that cannot be read because it is compressed."""
    if relayed.fault is not None and relayed.status >= 400:
        raise relayed.fault
    coding = header(tuple(relayed.headers), b"content-encoding").strip().lower()
    if coding not in ("", "identity"):
        raise Fault(
            Code.UPSTREAM_PROTOCOL,
            f"the answer is compressed ({coding}), which was not asked for",
            hint="Something between here and the provider compresses answers; tell it not to.",
        )


async def _hear_out(reading: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(_LAST_WORDS):
            async for _ in reading:
                pass
    except (TimeoutError, Fault):
        return
