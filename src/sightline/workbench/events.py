"""Every fact as it becomes true, and what is announced, as server-sent events, for as long as somebody listens."""

import asyncio

from sightline.exchange.hub import Announced, Hub, News
from sightline.web.asgi import Send, response_body, response_start
from sightline.web.replies import GUARDED
from sightline.wire.jsontext import encode
from sightline.workbench.views import fact_shown

PING = 15.0
"""After so many quiet seconds a comment is sent, so that nothing in between takes the connection for dead."""


async def stream(hub: Hub, send: Send, *, ping: float = PING) -> None:
    """Tell facts until the hub is closed. The first comment says that nothing is missed from here on."""
    with hub.watch() as watch:
        await send(response_start(200, [(b"content-type", b"text/event-stream"), *GUARDED]))
        await send(response_body(b": listening\n\n", more=True))
        coming = aiter(watch)
        while True:
            try:
                async with asyncio.timeout(ping):
                    news = await anext(coming)
            except TimeoutError:
                await send(response_body(b": still here\n\n", more=True))
            except StopAsyncIteration:
                break
            else:
                await send(response_body(event(news), more=True))
        await send(response_body(b"", more=False))


def event(news: News) -> bytes:
    """One fact; or what was announced, under its name."""
    if isinstance(news, Announced):
        return b"event: " + news.event.encode() + b"\ndata: " + encode(news.value) + b"\n\n"
    return b"data: " + encode({"exchange": news.exchange, **fact_shown(news)}) + b"\n\n"
