from pathlib import Path

import msgspec

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.steps import RunnableCall
from sightline.agent.service.approvers import Approver, Questions
from sightline.agent.service.runner import Runner
from sightline.agent.service.shapes import RunPaused
from sightline.agent.tools.tools import Progress
from sightline.tokens.ledger import Wait
from tests.fake_clock import FakeClock
from tests.loop_stage import COUNT, calls, count, says
from tests.running_stage import FakeTools, Person, RunStage, play, plays
from tests.upstream import Upstream


class Watching:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.waits: list[Wait] = []
        self.progress: list[tuple[str, str]] = []

    def on_pause(self, wait: Wait) -> None:
        self.waits.append(wait)

    def on_progress(self, key: str, words: str) -> None:
        self.progress.append((key, words))


class LookingClock(FakeClock):
    """Looks at a run whenever somebody sleeps."""

    runner: Runner | None = None

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[RunPaused | None] = []

    async def sleep(self, seconds: float) -> None:
        assert self.runner is not None
        self.seen.append((await self.runner.show("r_1")).paused)
        await super().sleep(seconds)


def test_a_page_and_a_person_can_both_decide() -> None:
    deciders: list[Approver] = [Questions(lambda _run: None), Person()]
    for name in ("approve", "confirm", "mid_flight"):
        assert all(callable(getattr(each, name)) for each in deciders)


def test_a_wait_for_the_providers_limits_is_shown_until_it_is_over(tmp_path: Path) -> None:
    clock = LookingClock()

    async def story(stage: RunStage, upstream: Upstream) -> None:
        clock.runner, watching = stage.runner, Watching()
        stage.catalog.models["m"] = msgspec.structs.replace(stage.catalog.models["m"], rpm=1)

        async def act(_call: RunnableCall) -> ToolOutcome:
            clock.time += 55
            return text_outcome("done")

        upstream.script = [plays(calls(count(1))), plays(says())]
        ended = await stage.run(tools=FakeTools(act), watcher=watching)
        assert (ended.why, len(watching.waits), watching.waits[0].limit) == ("answered", 1, "rpm")
        (paused,) = clock.seen
        assert paused is not None
        assert (paused.line.partition(": ")[2], paused.can_go_at) == ("requests per minute (1)", clock.time)
        assert (await stage.runner.show("r_1")).paused is None

    play(story, tmp_path, clock=clock)


def test_who_watches_hears_how_far_a_tool_is_once_a_second(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        class Slow(FakeTools):
            async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
                for number in range(30):
                    progress(f"{number} of 30")
                    await stage.clock.sleep(0.1)
                return text_outcome("done")

        upstream.script = [plays(calls(count(1))), plays(says())]
        watching = Watching()
        await stage.run(tools=Slow(), watcher=watching)
        assert [key for key, _ in watching.progress] == ["1.1"] * 3
        assert watching.progress[0][1] == "0 of 30"

    play(story, tmp_path)


def test_a_person_is_told_that_the_tools_have_changed(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        class Changing(FakeTools):
            async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
                self.definitions = (msgspec.structs.replace(COUNT, schema={"type": "object"}),)
                return text_outcome("done")

        upstream.script = [plays(calls(count(1))), plays(calls(count(2))), plays(says())]
        await stage.run(tools=Changing())
        shown = await stage.runner.show("r_1")
        assert shown.notes == ("the tools are not as they were: edit_file, shell gone; count changed",)

    play(story, tmp_path)
