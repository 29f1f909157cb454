"""A living chat on loopback: a scripted upstream, a logbook that is a list, and somebody who watches."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import count
from pathlib import Path
from typing import Any

from sightline.agent.service.runner import Runner, RunnerOptions
from sightline.agent.tools.opening import OpenToolsets, Toolsets
from sightline.app.machine import is_alive, process_name
from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.chat.core.facts import ChatFact
from sightline.chat.core.pair import MessagePair
from sightline.chat.service.answerer import Answerer
from sightline.chat.service.chat import MAIN, ChatContext
from sightline.chat.service.chats import ChatService, chat_service
from sightline.chat.service.views import Models
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Announced, FactQueue
from sightline.exchange.request_counter import RequestCounter
from sightline.model.exchange import Budgeted
from sightline.model.json import JsonObject
from sightline.settings import ChatSettings
from sightline.store.store import Line
from tests.chat.core.stage import BY_LETTER, told
from tests.logbook_fake import MemoryLogbook
from tests.relay_stage import Stage
from tests.upstream import LAST, Play, Upstream, answer, chunk, head, pieces, streams

EVENT_STREAM = [("Content-Type", "text/event-stream")]
LIMIT = 100


class Lines(MemoryLogbook):
    """A logbook in memory that lets others run, as a database does. `before_append` is called with each log's name
    before anything is added to it."""

    def __init__(self) -> None:
        super().__init__()
        self.before_append: Callable[[str], object] = lambda _log: None

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        await asyncio.sleep(0)
        self.before_append(log)
        await super().append(log, after, data, at)

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        await asyncio.sleep(0)
        return await super().lines(log, after)

    @property
    def bytes(self) -> bytes:
        """All that is kept."""
        return b"\n".join(line.data for lines in self.kept.values() for line in lines)

    def kinds(self) -> list[str]:
        """The kinds of the chat's facts."""
        return [json.loads(line.data)["kind"] for line in self.kept.get("chat", [])]


def toolless(engine: Engine) -> Answerer:
    """Answers by requests alone."""

    async def opening(_names: Sequence[str]) -> OpenToolsets:
        raise AssertionError("no name is configured")

    runner = Runner(engine, Lines(), RunnerOptions(Catalog(), lambda: "x_none"))
    return Answerer(engine, runner, Toolsets((), opening).open_toolsets)


class ChatStage:
    """The provider `acme` has the models `m` (100 tokens, one a letter) `large` (1,000) and `huge`. The view is `v`."""

    def __init__(
        self,
        upstream: Upstream,
        folder: Path,
        *,
        settings: ChatSettings = BY_LETTER,
        answering: Callable[[Engine], Answerer] = toolless,
        default_model: str = "acme/m",
        **more: Any,
    ) -> None:
        self.upstream = upstream
        self.settings = settings
        self.default_model = default_model
        self.relays = Stage(upstream, folder, more.pop("spoken", "openai-chat"), **more)
        self.clock = self.relays.clock
        self.hub = self.relays.hub
        self.logbook = Lines()
        relay, memory = self.relays.relay, self.relays.memory
        self.engine = Engine(relay, relay, RequestCounter(memory), memory, self.clock)
        self.answering = answering(self.engine)
        self._ids = count(1)
        self.service = self.another("here")
        self._watch: FactQueue | None = None

    def another(self, host: str = "elsewhere", chat: str = MAIN) -> ChatService:
        """One more process on the same log, or another chat."""
        models = {
            "m": Model(providers=("acme",), context_window=LIMIT),
            "large": Model(providers=("acme",), context_window=1000),
            "poor": Model(providers=("acme",), context_window=1000, tpd=2),
            "huge": Model(providers=("acme",), context_window=100_000),
        }
        context = ChatContext(
            logbook=self.logbook,
            hub=self.hub,
            settings=self.settings,
            now=self.clock.now,
            make_id=lambda: f"p_{next(self._ids)}",
            secrets=self.engine.relay.secrets,
            process=process_name() if host == "" else f"{host}:1:0",
            is_alive=is_alive if host == "" else lambda _process: True,
        )
        catalog = Catalog(providers=self.relays.providers, models=models)
        known = Models(catalog, lambda _provider: True, self.engine.memory, self.default_model)
        return chat_service(context, known, self.answering, chat)

    async def begin(
        self, *pairs: MessagePair, filter_text: str = "", model: str = "m", script: Sequence[Play] = ()
    ) -> None:
        """The chat with these pairs, somebody looking at it, and what the provider answers."""
        if script:
            self.upstream.script = list(script)
        for fact in told(pairs):
            await self.service.chat.happen(fact)
        await self.service.views.set_view("v", filter=filter_text, model=model)

    async def ask(self, text: str = "hello", **more: Any) -> MessagePair:
        """The pair of a question when it has ended."""
        return await self.ended(await self.service.sends.send("v", text, **more))

    async def ended(self, name: str) -> MessagePair:
        """The pair once nothing is on its way any more."""
        await self.service.sends.wait_until_idle()
        return self.pair(name)

    async def happen(self, *facts: ChatFact) -> None:
        for fact in facts:
            await self.service.chat.happen(fact)

    def pair(self, name: str) -> MessagePair:
        return self.service.chat.history.get(name)

    @property
    def ids(self) -> list[str]:
        """The pairs of the history, oldest first."""
        return [pair.id for pair in self.service.chat.history]

    def sent(self, number: int = -1) -> list[str]:
        """What the upstream was told, message by message."""
        return [message["content"] for message in self.upstream.seen[number].json()["messages"]]

    def stages(self, exchange: str) -> list[str]:
        """What the record knows of how this exchange was planned."""
        facts = [fact for fact in self.relays.facts(exchange) if isinstance(fact, Budgeted)]
        return [str(fact.telemetry["stage"]) for fact in facts]

    def watch(self) -> None:
        """Listen from now on."""
        self._watch = self.hub.watch()

    async def news(self, kind: str) -> JsonObject:
        """The next news of this kind."""
        assert self._watch is not None
        async with asyncio.timeout(60):
            async for told in self._watch:
                if isinstance(told, Announced) and told.value["kind"] == kind:
                    return _without_chat(told.value)
        raise AssertionError("no more news")

    async def rest(self, kind: str) -> list[JsonObject]:
        """All news of this kind that are there."""
        self._watch.close()
        news = [t.value async for t in self._watch if isinstance(t, Announced)]
        return [_without_chat(value) for value in news if value["kind"] == kind]

    async def close(self) -> None:
        await self.service.close(5)
        await self.relays.client.close()
        await self.relays.embedded.close()


def _without_chat(news: JsonObject) -> JsonObject:
    assert news.get("chat", MAIN) == MAIN
    return {name: value for name, value in news.items() if name != "chat"}


@asynccontextmanager
async def open_stage(folder: Path, **more: Any) -> AsyncIterator[ChatStage]:
    """A living chat."""
    async with Upstream() as upstream:
        stage = ChatStage(upstream, folder, **more)
        try:
            async with asyncio.timeout(60):
                yield stage
        finally:
            await stage.close()


AsyncTest = Callable[..., Coroutine[Any, Any, None]]


def played(**more: Any) -> Callable[[AsyncTest], AsyncTest]:
    """A test whose parameter `stage` is a living chat; the options are those of the stage."""

    def decorate(test: AsyncTest) -> AsyncTest:
        wanted = [each for each in signature(test).parameters.values() if each.name != "stage"]
        names = [each.name for each in wanted]

        @wraps(test)
        async def run(tmp_path: Path, **fixtures: Any) -> None:
            given = {**fixtures, "tmp_path": tmp_path}
            async with open_stage(tmp_path, **more) as stage:
                await test(stage, **{name: given[name] for name in names})

        folder = [] if "tmp_path" in names else [Parameter("tmp_path", Parameter.KEYWORD_ONLY)]
        run.__signature__ = Signature([*wanted, *folder])
        return run

    return decorate


def word(text: str) -> bytes:
    """An event with some words."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return b"data: " + json.dumps({"id": "r", "model": "m", "choices": [choice]}).encode() + b"\n\n"


def last(tokens: int = 9) -> bytes:
    """The events at the end."""
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": 2}
    ended = json.dumps({"id": "r", "model": "m", "choices": [choice], "usage": usage}).encode()
    return b"data: " + ended + b"\n\ndata: [DONE]\n\n"


def says(*words: str) -> Play:
    """An answer of these words, streamed."""
    return streams(*map(word, words), last())


def says_until(gate: asyncio.Event, *words: str, then: Sequence[str] = ()) -> Play:
    """An answer whose rest waits."""
    after = [chunk(word(each)) for each in then]
    return pieces(head(200, EVENT_STREAM), *(chunk(word(each)) for each in words), gate, *after, chunk(last()), LAST)


def refuses(status: int, code: str, message: str, headers: Sequence[tuple[str, str]] = ()) -> Play:
    """An error of the provider."""
    body = json.dumps({"error": {"code": code, "message": message, "type": "invalid_request_error"}}).encode()
    return answer(status, body, [("Content-Type", "application/json"), *headers])


def overflows(limit: int | None = None, requested: int | None = None) -> Play:
    """The provider finds it too large, and perhaps says by how much."""
    message = "This model's maximum context length is exceeded"
    if limit is not None:
        message = f"This model's maximum context length is {limit} tokens. However, you requested {requested} tokens."
    return refuses(400, "context_length_exceeded", message)
