"""The whole program, a scripted provider, clients in threads, and the person who sits at the workbench."""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.background import upstream_in_background
from tests.gateway_server import Served, served
from tests.http_call import call
from tests.person import Person
from tests.relay_stage import PATHS
from tests.reply_samples import CALLS, SAYS, streamed, whole
from tests.upstream import Upstream, answer

SSE = [("Content-Type", "text/event-stream")]
JSON = [("Content-Type", "application/json")]


@dataclass(frozen=True)
class Got:
    """An answer as a client has it."""

    status: int
    exchange: str
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class DeskStage:
    """Its one provider is `acme`, which speaks `spoken`."""

    spoken: str
    server: Served
    person: Person
    upstream: Upstream
    pool: ThreadPoolExecutor

    def ask(self, body: Any, session: str = "one", spoken: str = "") -> "Future[Got]":
        """A client's request, on its way."""
        path = PATHS[spoken or self.spoken]
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.pool.submit(_asked, f"{self.server.url}/p/acme/s/{session}{path}", data)

    def says(self, *, calls: bool = False, stream: bool = False) -> None:
        """What the provider answers from now on."""
        events = CALLS if calls else SAYS
        body = b"".join(streamed(self.spoken, events)) if stream else whole(self.spoken, events)
        self.upstream.script = [answer(200, body, SSE if stream else JSON)]

    @property
    def sent(self) -> list[bytes]:
        """The bodies that the provider got."""
        return [seen.body for seen in self.upstream.seen]

    def hold(self, body: Any, **where: str) -> tuple[str, "Future[Got]"]:
        """A request that is held: its exchange, and the client that waits for it."""
        count = len(self.person.get("/api/holds"))
        waiting = self.ask(body, **where)
        return self.person.held(count + 1)[-1], waiting


@contextmanager
def desk_stage(folder: Path, spoken: str = "openai-chat", config: str = "") -> Iterator[DeskStage]:
    """All of it, listening; every request is held."""
    with upstream_in_background() as upstream, ThreadPoolExecutor(8) as pool:
        base = upstream.url if spoken in ("anthropic", "gemini") else f"{upstream.url}/v1"
        acme = f'[providers.acme]\ndialect = "{spoken}"\nbase_url = "{base}"\n'
        with served(folder, acme + config) as server:
            stage = DeskStage(spoken, server, Person(server), upstream, pool)
            stage.says()
            stage.person.put("/api/interception", {"mode": "every"})
            yield stage


def _asked(url: str, data: bytes) -> Got:
    got = call("POST", url, data, headers={"content-type": "application/json"})
    return Got(got.status, got.headers.get("x-sightline-exchange", ""), got.body)
