"""What a run has come to, at every moment of its life."""

import asyncio
from pathlib import Path

from sightline.agent.core.approval import Allowed, Denied, Policy
from sightline.agent.core.facts import RequestStarted, RunFact, ToolFinished, ToolStarted
from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.core.rounds import Round
from sightline.agent.core.steps import RunnableCall
from sightline.model.parts import Text
from tests.loop_stage import calls, count, plan, says
from tests.running_stage import FakeTools, RunStage, play, plays
from tests.upstream import Upstream


def test_the_open_round_has_what_is_known_of_its_calls(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        gate, seen = asyncio.Event(), list[tuple[Round, ...]]()

        async def act(call: RunnableCall) -> ToolOutcome:
            if call.key == "1.3":
                await gate.wait()
            return text_outcome(f"{call.key} done")

        def told(fact: RunFact) -> None:
            if isinstance(fact, ToolStarted | ToolFinished):
                seen.append(stage.runner.so_far("r_1"))
            if isinstance(fact, ToolFinished) and fact.key == "1.1":
                gate.set()

        upstream.script = [plays(calls(count(1, "a"), count(2, "b"), count(3, "c"))), plays(says())]
        stage.person.decisions = [{"1.1": Allowed({"n": 9}), "1.2": Denied("no"), "1.3": Allowed()}]
        ended = await stage.run(plan(policy=Policy()), tools=FakeTools(act), on_fact=told)
        first = seen[0][-1].calls
        assert [(call.fate, call.is_edited, call.ran) for call in first] == [
            ("cancelled", True, {"n": 9}),
            ("denied", False, None),
            ("cancelled", False, {"n": 3}),
        ]
        assert first[1].outcome is not None
        then = next(each for each in seen if each[-1].calls[0].outcome is not None)[-1].calls
        assert (then[0].fate, then[2].outcome) == ("ran", None)
        assert then[0].outcome is not None
        assert then[0].outcome.parts == (Text("1.1 done"),)
        assert await stage.runner.result_of("r_1") == (ended.rounds, ended)

    play(story, tmp_path)


def test_a_run_that_was_left_has_what_it_came_to(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        begun = asyncio.Event()

        async def act(_call: RunnableCall) -> ToolOutcome:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        upstream.script = [plays(calls(count(1)))]
        task = asyncio.get_running_loop().create_task(stage.run(tools=FakeTools(act)))
        await begun.wait()
        assert len(stage.runner.so_far("r_1")) == 1
        task.cancel()
        await asyncio.wait({task})
        (open_round,), ended = await stage.runner.result_of("r_1")
        assert (open_round.number, open_round.calls[0].outcome, ended) == (1, None, None)

    play(story, tmp_path)


def test_before_a_reply_there_is_nothing(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        upstream.script = [plays(says())]
        seen: list[int] = []

        def told(fact: RunFact) -> None:
            if isinstance(fact, RequestStarted):
                seen.append(len(stage.runner.so_far("r_1")))

        await stage.run(on_fact=told)
        assert seen == [0]

    play(story, tmp_path)
