import asyncio
import json

from sightline.exchange.hub import Announced, Hub
from sightline.model.exchange import ExchangeCancelled, Received
from sightline.store.entries import FactEntry
from sightline.web.asgi import ResponseBody, ResponseStart
from sightline.workbench.workbench import event, stream


class Listener:
    """Hears what is sent; `until` waits for some words."""

    def __init__(self) -> None:
        self.started: ResponseStart | None = None
        self.said = b""
        self.is_over = False
        self._more = asyncio.Event()

    async def __call__(self, message: ResponseStart | ResponseBody) -> None:
        if message["type"] == "http.response.start":
            self.started = message
        else:
            self.said += message["body"]
            self.is_over = not message["more_body"]
        self._more.set()

    async def until(self, words: bytes) -> None:
        while words not in self.said:
            self._more.clear()
            await self._more.wait()


def test_facts_are_told_in_their_order_until_the_hub_is_closed() -> None:
    async def story() -> None:
        hub, listener = Hub(lambda _entries: None), Listener()
        listening = asyncio.ensure_future(stream(hub, listener))
        await listener.until(b": listening\n\n")
        assert listener.started is not None
        assert (b"content-type", b"text/event-stream") in listener.started["headers"]
        hub.record(
            [FactEntry("x_1", 0, 1.0, Received("anthropic", "m", "aa")), FactEntry("x_1", 1, 2.0, ExchangeCancelled())]
        )
        await listener.until(b"cancelled")
        hub.close()
        await listening
        told = [json.loads(line[6:]) for line in listener.said.split(b"\n\n") if line.startswith(b"data: ")]
        assert [(each["exchange"], each["n"], each["kind"]) for each in told] == [
            ("x_1", 0, "received"),
            ("x_1", 1, "cancelled"),
        ]
        assert listener.is_over

    asyncio.run(story())


def test_a_quiet_stream_is_kept_open() -> None:
    async def story() -> None:
        hub, listener = Hub(lambda _entries: None), Listener()
        listening = asyncio.ensure_future(stream(hub, listener, ping=0.0))
        await listener.until(b": still here\n\n")
        hub.close()
        await listening

    asyncio.run(story())


def test_who_leaves_is_told_nothing_more() -> None:
    async def story() -> None:
        hub, listener = Hub(lambda _entries: None), Listener()
        listening = asyncio.ensure_future(stream(hub, listener))
        await listener.until(b"listening")
        assert hub.is_watched
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        assert not hub.is_watched

    asyncio.run(story())


def test_an_event_is_one_line() -> None:
    said = event(FactEntry("x_1", 0, 1.0, Received("anthropic", "two\nlines", "aa")))
    assert said.count(b"\n") == 2


def test_what_is_announced_is_an_event_of_that_name() -> None:
    said = event(Announced("chat", {"kind": "changed", "ids": ["é\n"]}))
    assert said == 'event: chat\ndata: {"kind":"changed","ids":["é\\n"]}\n\n'.encode()
