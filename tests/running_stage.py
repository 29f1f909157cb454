"""A stage for runs: a real store, a model that plays a script over HTTP, tools that remember, people who decide."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count as counting
from pathlib import Path
from typing import Any

from sightline.agent.core.approval import Allowed, Decision
from sightline.agent.core.facts import RunFact, read
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import Approve, Confirm, RunnableCall
from sightline.agent.core.tool import Definition, ToolOutcome, text_outcome
from sightline.agent.service.approvers import Approver, Interrupted
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.runner import NewRun, Runner, RunnerOptions
from sightline.agent.tools.tools import Progress
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose
from sightline.catalog.compose import Prompt
from sightline.catalog.facts import Model, Prices
from sightline.catalog.provider import Provider
from sightline.dialects.dialect import Client
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Announced, FactQueue, Hub
from sightline.exchange.interception.core.reply_writing import write_reply as told
from sightline.exchange.memory import Memory
from sightline.exchange.relay import Relay
from sightline.exchange.request_counter import RequestCounter
from sightline.model.events import StreamEvent
from sightline.model.parts import Text
from sightline.model.reply import Reply
from sightline.model.request import Message, Request
from sightline.store.sqlite import SqliteStore, open_store
from sightline.transport.embedded.process import EmbeddedModel
from sightline.transport.http.client import HttpClient
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies
from sightline.transport.sender import Sender
from sightline.transport.waiting import Clock
from tests.fake_clock import FakeClock
from tests.loop_stage import COUNT, EDIT, SHELL, errors
from tests.loop_stage import plan as plan_of
from tests.store.traffic import prices
from tests.upstream import Play, Upstream, answer, chunk, head, streams

KEY = "sk-planted-9876543210"


def plays(reply: Reply, spoken: str = "openai-chat", *, stream: bool = True) -> Play:
    """The reply as a provider of this dialect gives it."""
    data = told(reply, spoken, Client(id="r_1", model="m", created=1), is_stream=stream)
    return streams(data) if stream else answer(200, data, [("Content-Type", "application/json")])


def begins(reply: Reply, gate: "asyncio.Event | None" = None, spoken: str = "openai-chat") -> Play:
    """A reply that breaks off in the middle of its last frames, or stalls there."""
    from tests.upstream import cut, stall

    data = told(reply, spoken, Client(id="r_1", model="m", created=1), is_stream=True)
    first = data[: data.rindex(b"data:", 0, data.rindex(b"finish_reason"))]
    opening = (head(200, [("Content-Type", "text/event-stream")]), chunk(first))
    return cut(*opening, how="eof") if gate is None else stall(*opening, gate.set)


@dataclass
class FakeTools:
    """Tools that remember what they were given; `act` is what they do."""

    act: Callable[[RunnableCall], Awaitable[ToolOutcome]] | None = None
    definitions: tuple[Definition, ...] = (EDIT, COUNT, SHELL)
    used: list[RunnableCall] = field(default_factory=list)
    cut_off: list[str] = field(default_factory=list)
    is_closed: bool = False

    async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
        self.used.append(call)
        progress(f"{call.name} began")
        try:
            return text_outcome(f"{call.name} {call.key} did it") if self.act is None else await self.act(call)
        except asyncio.CancelledError:
            self.cut_off.append(call.key)
            raise

    async def close(self) -> None:
        self.is_closed = True


def stuck_tools() -> tuple[FakeTools, asyncio.Event]:
    """Tools whose calls never end, and the event that one has begun."""
    begun = asyncio.Event()

    async def act(_call: RunnableCall) -> ToolOutcome:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    return FakeTools(act), begun


@dataclass
class Person:
    """Decides as told: allows, unless something else stands here, and remembers what was asked."""

    decisions: list[Mapping[str, Decision]] = field(default_factory=list)
    confirms: int = 0
    interrupted: Interrupted = "skip"
    asked: list[Approve] = field(default_factory=list)
    limits: list[Confirm] = field(default_factory=list)
    mid: list[str] = field(default_factory=list)
    waits: asyncio.Event | None = None
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def approve(self, run: str, step: Approve) -> Mapping[str, Decision]:
        self.asked.append(step)
        await self._wait()
        return self.decisions.pop(0) if self.decisions else {call.key: Allowed() for call in step.calls}

    async def confirm(self, run: str, step: Confirm) -> bool:
        self.limits.append(step)
        await self._wait()
        return len(self.limits) <= self.confirms

    async def mid_flight(self, run: str, calls: Sequence[RunnableCall]) -> Mapping[str, Interrupted]:
        self.mid += [call.key for call in calls]
        await self._wait()
        return {call.key: self.interrupted for call in calls}

    async def _wait(self) -> None:
        self.is_asked.set()
        if self.waits is not None:
            await self.waits.wait()


class RunStage:
    """One provider `acme` with a key, at an upstream that plays `script`; the store is a real one."""

    def __init__(self, store: SqliteStore, url: str, folder: Path, spoken: str, clock: Clock, **more: Any) -> None:
        self.store = store
        self.clock = clock
        self.spoken = spoken
        self.catalog = Catalog(
            providers={"acme": Provider(dialect=spoken, base_url=url, key_env="ACME_KEY")},
            models={"m": Model(providers=("acme",), prices=Prices(input=3.0, output=15.0), tools=True)},
        )
        self.memory = Memory(folder, clock.now)
        self.client = HttpClient(trust=Trust(environment={}), proxies=Proxies.of({}))
        self.embedded = EmbeddedModel(environment={}, make_key=lambda: "k")
        self.hub = Hub(store.record)
        ids = counting(1)
        self.make_id: Callable[[], str] = more.pop("make_id", lambda: f"x_{next(ids):03}")
        self.relay = Relay(
            catalog=self.catalog,
            environment={"ACME_KEY": KEY},
            sender=Sender(self.client, clock, lambda: 0.5, self.memory.ledger),
            embedded=self.embedded,
            memory=self.memory,
            hub=self.hub,
            clock=clock,
            make_id=self.make_id,
        )
        self.engine = Engine(self.relay, self.relay, RequestCounter(self.memory), self.memory, clock)
        self.runner = self.another("here")
        self.tools = FakeTools()
        self.person = Person()
        self.heard: list[StreamEvent] = []

    def another(self, process: str, *alive: str) -> Runner:
        """A runner of another process on the same logbook, which knows of these that they are alive."""
        around = RunnerOptions(self.catalog, self.make_id, process, lambda name: name in alive, self.store, self.hub)
        return Runner(self.engine, self.store.logbook, around)

    @property
    def choice(self) -> ModelChoice:
        return choose(self.catalog, "acme/m", has_key=lambda _: True)

    def prompt(self, text: str = "Do it.", *, stream: bool = True) -> Prompt:
        limit = 1000 if self.spoken == "anthropic" else None
        return Prompt(messages=(Message("user", (Text(text),)),), max_tokens=limit, stream=stream)

    async def run(self, plan: RunPlan | None = None, approver: Approver | None = None, **more: Any) -> FinishedRun:
        """A run named r_1 unless something else is said."""
        request, session, run = more.pop("prompt", self.prompt()), more.pop("session", "s"), more.pop("run", "r_1")
        own = {name: more.pop(name) for name in ("origin", "opening", "is_stepping") if name in more}
        new = NewRun(request, self.choice, plan or plan_of(), session, run, **own)
        tools = more.pop("tools", self.tools)
        company = RunParticipants(tools, approver or self.person, **{"on_event": self.heard.append, **more})
        return await self.runner.run(new, company)

    async def facts(self, run: str = "r_1") -> list[RunFact]:
        return [read(line.data) for line in await self.store.logbook.lines(f"run:{run}")]

    async def kinds(self, run: str = "r_1") -> list[str]:
        return [str(type(fact).__struct_config__.tag) for fact in await self.facts(run)]

    async def close(self) -> None:
        await self.client.close()
        await self.embedded.close()
        await self.store.close()


async def opened(folder: Path, url: str, spoken: str = "openai-chat", **more: Any) -> RunStage:
    """A stage on the store of a folder."""
    clock: Clock = more.pop("clock", None) or FakeClock()
    store = await open_store(folder, prices=prices, now=clock.now)
    return RunStage(store, url, folder, spoken, clock, **more)


@asynccontextmanager
async def open_stage(
    folder: Path, spoken: str = "openai-chat", **more: Any
) -> AsyncIterator[tuple[RunStage, Upstream]]:
    """A stage on the store of a folder, and its provider."""
    async with Upstream() as upstream:
        stage = await opened(folder, upstream.url, spoken, **more)
        try:
            yield stage, upstream
        finally:
            await stage.close()


def on_stage(story: Callable[[RunStage, Upstream], Awaitable[None]]) -> Callable[[Path], Awaitable[None]]:
    """A test that is a story on a stage."""

    async def test(tmp_path: Path) -> None:
        async with open_stage(tmp_path) as (stage, upstream):
            await story(stage, upstream)

    return test


def wrong(requests: Sequence[Request], spoken: str) -> list[str]:
    """What a provider of this dialect would refuse of these requests."""
    return [message for request in requests for message in errors(request, spoken)]


async def news(watch: FactQueue, until: str) -> list[tuple[int, str]]:
    """Versions and states of a run as they were announced, until one with this state."""
    found: list[tuple[int, str]] = []
    async for each in watch:
        if isinstance(each, Announced) and each.event == "run":
            found.append((each.value["version"], each.value["state"]))
            if each.value["state"] == until:
                break
    return found
