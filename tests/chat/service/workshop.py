"""A chat whose topic has tools: where they are opened, and who drives their runs."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from itertools import count as counting
from pathlib import Path
from typing import Any

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome
from sightline.agent.service.approvers import SavedRules
from sightline.agent.service.runner import Runner, RunnerOptions
from sightline.agent.tools.hooks import Hooks
from sightline.catalog.catalog import Catalog
from sightline.chat.core.facts import TopicAdded
from sightline.chat.core.topics import Topic
from sightline.chat.service.answerer import Answerer
from sightline.errors import Code, Fault
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.settings import ChatSettings
from tests.chat.service.chat_stage import AsyncTest, ChatStage, Lines, open_stage
from tests.running_stage import FakeTools
from tests.upstream import Play


class Hands(FakeTools):
    """Tools that need no asking, with nobody looking at them."""

    rules: tuple[ApprovalRule, ...] = (ApprovalRule("*", "allow"),)
    hooks: Hooks | None = None
    places: Mapping[str, str] = {"count": "here"}


class Workshop:
    """Where toolsets are opened; there is one, `hands`."""

    def __init__(self, act: Callable[[RunnableCall], Awaitable[ToolOutcome]] | None = None) -> None:
        self.tools = Hands(act)
        self.opened: list[tuple[str, ...]] = []
        self.runs = Lines()
        self.hub = Hub(lambda _entries: None)
        self.kept: SavedRules | None = None
        self.trouble: Fault | None = None

    async def equip(self, toolsets: tuple[str, ...]) -> Hands:
        self.opened.append(toolsets)
        if self.trouble is not None:
            raise self.trouble
        if toolsets != ("hands",):
            raise Fault(Code.CONFIG, f"there is no toolset {toolsets[0]!r}")
        return self.tools

    def answering(self, engine: Engine) -> Answerer:
        ids = counting(1)
        surroundings = RunnerOptions(engine.relay.catalog, lambda: f"x_r{next(ids)}", hub=self.hub)
        assert isinstance(surroundings.catalog, Catalog)
        return Answerer(engine, Runner(engine, self.runs, surroundings), self.equip, self.kept)


async def begin(stage: ChatStage, *script: Play) -> None:
    """A topic with tools, somebody looking at it, and what the provider answers."""
    if script:
        stage.upstream.script = list(script)
    await stage.happen(TopicAdded(Topic(id="t", name="T", toolsets=("hands",))))
    await stage.service.views.set_view("v", model="huge", topic="t")


def open_workshop(folder: Path, workshop: Workshop) -> AbstractAsyncContextManager[ChatStage]:
    """A chat whose tools are those of this workshop."""
    return open_stage(folder, answering=workshop.answering, settings=ChatSettings())


def equipped(test: Callable[[ChatStage, Workshop], Coroutine[Any, Any, None]]) -> AsyncTest:
    """A test of a chat with a workshop of its own."""

    async def run(tmp_path: Path) -> None:
        workshop = Workshop()
        async with open_workshop(tmp_path, workshop) as stage:
            await test(stage, workshop)

    run.__name__ = test.__name__
    return run


def runner_of(stage: ChatStage) -> Runner:
    """What drives the runs of the stage."""
    return stage.answering.runner
