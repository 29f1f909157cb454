"""Reads a response for a caller of our own: its events as they come, and the reply that they make."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import msgspec

from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.errors import Code, Fault
from sightline.exchange.client_response import ClientResponse, header
from sightline.model.events import Failed, FrameBroken, StreamEvent
from sightline.model.fold import Fold
from sightline.model.reply import Reply

EventObserver: TypeAlias = Callable[[StreamEvent], None]

_LAST_WORDS = 0.2
"""Seconds for the rest of a transfer whose answer has said its end, so that its connection can be used again."""


async def read_answer(relayed: ClientResponse, spoken: str, tell: EventObserver) -> Reply:
    """The answer, which is of this dialect; `tell` gets each event as it comes.

    Where there is no answer, its fault is raised. An answer that breaks off raises nothing: what arrived is in the
    reply, with the fault.
    """
    refuse(relayed)
    hearing, fold = ReplyDecoder(dialect(spoken)), Fold(spoken)

    def take(events: list[StreamEvent]) -> None:
        for event in events:
            if relayed.fault is not None:
                if isinstance(event, FrameBroken):
                    continue  # half a frame is what a cut connection leaves
                if isinstance(event, Failed):
                    event = Failed(relayed.fault)
            fold.add(event)
            tell(event)

    reading = aiter(relayed)
    while not hearing.has_ended:
        try:
            data = await anext(reading, None)
        except Fault as fault:  # only the answer's own: what goes wrong with the telling is the teller's
            take(hearing.fail(fault))
            break
        if data is None:
            take(hearing.close())
            break
        take(hearing.feed(data))
    else:
        await _hear_out(reading)  # some servers keep the connection open behind the end
    reply = fold.reply
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
