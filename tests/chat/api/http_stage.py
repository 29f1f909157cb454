"""The chat of a whole program over HTTP, with a scripted provider behind it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sightline.model.events import Ended, Finished, Started, StreamEvent, TextReceived, UsageReceived
from sightline.model.reply import Usage
from tests.background import upstream_in_background
from tests.gateway_server import Served, served
from tests.http_call import Answer, call
from tests.person import Person
from tests.reply_samples import streamed
from tests.upstream import LAST, Upstream, chunk, head, pieces, streams

CONFIG = """
[providers.acme]
dialect = "openai-chat"
base_url = "{url}/v1"
default_model = "large"
[models."acme/large"]
context_window = 8000
prices = {{ input = 1.0, output = 2.0 }}
"""
SSE = [("Content-Type", "text/event-stream")]


def spoken(*words: str, used: int = 11) -> list[bytes]:
    """The frames of an answer that says this."""
    told: list[StreamEvent] = [
        Started("r_1", "large", 1_760_000_000),
        *(TextReceived(0, each) for each in words),
        UsageReceived(Usage(input_tokens=used, output_tokens=7)),
        Finished("stop"),
        Ended(),
    ]
    return streamed("openai-chat", told)


@dataclass(frozen=True)
class ChatDesk:
    """A person at the chat."""

    server: Served
    person: Person
    upstream: Upstream

    # --- the provider ---

    def answers(self, *words: str) -> None:
        """What the provider says from now on."""
        self.upstream.script = [streams(*spoken(*words))]

    def stops_after(self, *words: str) -> asyncio.Event:
        """The provider says this and no more, until the event is set."""
        gate = asyncio.Event()
        frames = spoken(*words)
        said = len(words) + 1
        self.upstream.script = [
            pieces(head(200, SSE), *map(chunk, frames[:said]), gate, *map(chunk, frames[said:]), LAST)
        ]
        return gate

    def open(self, gate: asyncio.Event) -> None:
        """Let the provider go on."""
        self.upstream._loop.call_soon_threadsafe(gate.set)

    @property
    def sent(self) -> list[Any]:
        """The bodies that the provider got."""
        return [seen.json() for seen in self.upstream.seen]

    # --- the person ---

    def call(self, method: str, path: str, value: Any = None) -> tuple[int, Any]:
        """One call below /api/chat: status, JSON."""
        return self.person.ask(method, f"/api/chat/{path}", value)

    def done(self, method: str, path: str, value: Any = None) -> Any:
        """The same, which must succeed."""
        status, told = self.call(method, path, value)
        assert status == 200, told
        return told

    def refused(self, status: int, method: str, path: str, value: Any = None) -> Any:
        """The same, which must be refused so; the error."""
        got, told = self.call(method, path, value)
        assert got == status, told
        assert set(told["error"]) >= {"code", "message", "hint"}
        assert told["error"]["hint"]
        return told["error"]

    def raw(self, method: str, path: str, body: bytes | None = None) -> Answer:
        """The same, byte for byte."""
        return call(method, f"{self.server.url}/api/chat/{path}", body, token=self.server.token)

    def look(self, view: str = "v", **wanted: Any) -> Any:
        """A view, made where it is not there."""
        return self.done("PUT", f"views/{view}", {"model": "acme/large", **wanted})

    def rows(self, view: str = "v") -> list[Any]:
        """What is on screen."""
        return self.done("GET", f"views/{view}/rows")["rows"]

    def pair(self, pair: str, view: str = "v") -> Any:
        """One pair."""
        return self.done("GET", f"pairs/{quote(pair, safe='')}?view={view}")

    def ask(self, text: str, view: str = "v", **more: Any) -> Any:
        """Ask, and wait for the end: the pair."""
        asked = self.done("POST", "send", {"view": view, "text": text, **more})
        return self.ended(asked["pair"], view)

    def ended(self, pair: str, view: str = "v") -> Any:
        """The pair once its answer has come, or has not."""
        return self.person.until(lambda: self.pair(pair, view), lambda shown: shown["state"] != "sending")


@contextmanager
def chat_desk(folder: Path, config: str = "") -> Iterator[ChatDesk]:
    """All of it, listening, with a view `v`."""
    with upstream_in_background() as upstream, served(folder, CONFIG.format(url=upstream.url) + config) as server:
        desk = ChatDesk(server, Person(server), upstream)
        desk.answers("Hello ", "there.")
        desk.look()
        yield desk
