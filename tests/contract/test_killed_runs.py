"""A run goes on wherever its process was killed, and no tool runs twice."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from sightline.agent.core.facts import RequestStarted, RunTaken, run_state_of
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.service.driver import RunParticipants
from sightline.errors import Fault
from sightline.model.parts import ToolCall
from sightline.model.reply import Reply
from tests.contract.killed_runs import EFFECTS, stage_of, the_plan, the_tools
from tests.loop_stage import calls, count, says
from tests.running_stage import Person, open_stage, plays
from tests.upstream import Talk, Upstream, chunk, head, stall

ROOT = Path(__file__).parents[2]
REPLIES: list[Reply] = [
    calls(count(1, "a"), count(2, "b")),
    calls(ToolCall("c", "shell", "ls")),
    calls(ToolCall("d", "edit_file", '{"filePath": "x"}'), count(3, "e")),
    calls(ToolCall("f", "unheard_of", "{}"), count('"4"', "g")),
    says("All five."),
]
KEYS = ["1.1", "1.2", "2.1", "3.1", "3.2", "4.2"]


async def model(talk: Talk) -> None:
    """A model that knows from the conversation which round it is."""
    spoken = [each for each in talk.upstream.seen[-1].json()["messages"] if each["role"] == "assistant"]
    await plays(REPLIES[len(spoken)])(talk)


def asked(upstream: Upstream, name: str) -> int:
    """How many requests the run of this name has sent."""
    return sum(json.loads(seen.body)["messages"][0]["content"] == name for seen in upstream.seen)


def essence(ended: FinishedRun) -> object:
    """What does not depend on when and where it ran."""
    return ended.why, ended.request.messages[1:], ended.rounds, ended.spent, ended.amendments


async def uninterrupted(folder: Path, upstream: Upstream) -> FinishedRun:
    stage = await stage_of(folder, upstream.url, "whole")
    try:
        return await stage.run(the_plan(), tools=the_tools(folder))
    finally:
        await stage.close()


async def resumed(folder: Path, upstream: Upstream, person: Person) -> FinishedRun | None:
    """The run taken up, or as it had ended; None where it had not even begun."""
    stage = await stage_of(folder, upstream.url, "second")
    try:
        return await stage.runner.resume("r_1", RunParticipants(the_tools(folder), person))
    except Fault as fault:
        if fault.status == 404:
            return None
        if "has ended" not in fault.message:
            raise
        return run_state_of(await stage.facts()).ended
    finally:
        await stage.close()


def effects(folder: Path) -> list[str]:
    file = folder / EFFECTS
    return file.read_text().split() if file.exists() else []


async def mid_flight(folder: Path) -> list[str]:
    """The calls that were running when the process ended."""
    stage = await stage_of(folder, "http://127.0.0.1:1", "none")
    try:
        facts = await stage.facts()
        return [call.key for call in run_state_of(facts).mid_flight] if facts else []
    finally:
        await stage.close()


@pytest.mark.parametrize("how", ["before", "after"])
async def test_killed_at_any_fact_a_run_goes_on_and_no_tool_runs_twice(tmp_path: Path, how: str) -> None:
    (tmp_path / "whole").mkdir()

    async def taken_up(folder: Path, name: str, upstream: Upstream, whole: FinishedRun) -> None:
        running = await mid_flight(folder)
        before = effects(folder)
        person = Person(interrupted="skip")
        ended = await resumed(folder, upstream, person)
        if ended is None:
            assert (before, asked(upstream, name)) == ([], 0)
            return
        assert person.mid == running
        # No request was sent twice either: one whose reply was not noted is found on record.
        assert asked(upstream, name) == 5
        ran = effects(folder)
        assert len(set(ran)) == len(ran)
        if not running:
            assert sorted(ran) == KEYS
            assert essence(ended) == essence(whole)
        else:
            assert set(KEYS) - set(running) <= set(ran)
            told = {call.key: call for done in ended.rounds for call in done.calls}
            assert all("interrupted" in str(told[key].outcome) for key in running)

    async with Upstream([model]) as upstream:
        whole = await uninterrupted(tmp_path / "whole", upstream)
        assert (whole.why, len(whole.rounds), effects(tmp_path / "whole")) == ("answered", 5, KEYS)
        command = [sys.executable, "-m", "tests.contract.killed_runs", str(tmp_path), upstream.url, how]
        child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
        said, _ = await child.communicate()
        assert child.returncode == 0
        last = int(said)
        assert last > 25
        for number in range(1, last):
            await taken_up(tmp_path / f"{how}-{number}", f"{how} {number}", upstream, whole)


async def test_a_person_can_have_an_interrupted_call_run_again(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [model]
        gate = asyncio.Event()

        async def hanging(*_: object) -> None:
            gate.set()
            await asyncio.Event().wait()

        stage.tools.act = hanging
        task = asyncio.ensure_future(stage.run(the_plan()))
        await gate.wait()
        task.cancel()
        await asyncio.wait({task})
        assert (await stage.runner.show("r_1")).pending is not None
        stage.tools.act = None
        person = Person(interrupted="again")
        ended = await stage.runner.resume("r_1", RunParticipants(stage.tools, person))
        assert (ended.why, person.mid) == ("answered", ["1.1", "1.2"])
        assert [call.fate for call in ended.rounds[0].calls] == ["ran", "ran"]


async def test_a_request_whose_answer_broke_off_with_the_process_is_sent_again(tmp_path: Path) -> None:
    came = asyncio.Event()
    half = stall(head(200, [("Content-Type", "text/event-stream")]), chunk(b": a sign of life\n\n"), came.set)
    async with Upstream([half, model]) as upstream:
        command = [sys.executable, "-m", "tests.contract.killed_runs", str(tmp_path), upstream.url, "never"]
        child = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        await came.wait()
        os.killpg(child.pid, signal.SIGKILL)
        await child.communicate()
        folder = tmp_path / "never-1"
        ended = await resumed(folder, upstream, Person())
        assert (ended.why, asked(upstream, "never 1"), sorted(effects(folder))) == ("answered", 6, KEYS)
        stage = await stage_of(folder, upstream.url, "third")
        started = [fact.exchange for fact in await stage.facts() if isinstance(fact, RequestStarted)]
        assert [name.split("_")[1] for name in started[:2]] == ["first", "second"]
        await stage.close()


# --- who may take a run up ------------------------------------------------------------------------


async def test_a_run_that_has_ended_is_not_taken_up(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        upstream.script = [plays(says())]
        await stage.run()
        with pytest.raises(Fault, match="has ended") as caught:
            await stage.runner.resume("r_1", RunParticipants(stage.tools, stage.person))
        assert caught.value.status == 409
        with pytest.raises(Fault, match="no run 'r_9'") as missing:
            await stage.runner.resume("r_9", RunParticipants(stage.tools, stage.person))
        assert missing.value.status == 404


async def test_a_run_of_a_living_process_is_left_to_it(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        stage.person.waits = asyncio.Event()
        upstream.script = [model]
        async with asyncio.TaskGroup() as group:
            task = group.create_task(stage.run(the_plan(), run="r_1"))
            await stage.person.is_asked.wait()
            other = stage.another("there", "here")
            assert (await other.show("r_1")).state == "running"
            for runner in (other, stage.runner):
                with pytest.raises(Fault, match="is under way"):
                    await runner.resume("r_1", RunParticipants(stage.tools, stage.person))
            stage.person.waits.set()
        assert task.result().why == "answered"


async def test_a_process_whose_run_was_taken_up_elsewhere_lets_it_go(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        stage.person.waits = asyncio.Event()
        upstream.script = [model]
        task = asyncio.ensure_future(stage.run(the_plan()))
        await stage.person.is_asked.wait()
        other = stage.another("there")
        tools = the_tools(tmp_path)
        ended = await other.resume("r_1", RunParticipants(tools, Person()))
        assert ended.why == "answered"
        stage.person.waits.set()
        with pytest.raises(Fault, match="taken over by another process"):
            await task
        assert [call.key for call in stage.tools.used] == ["1.1", "1.2", "2.1"]
        assert [call.key for call in tools.used] == ["3.1", "3.2", "4.2"]
        taken = [fact.by for fact in await stage.facts() if isinstance(fact, RunTaken)]
        assert taken == ["here", "there"]


async def test_a_provider_that_is_no_longer_there_is_missed_before_anything_is_done(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        stage.person.waits = asyncio.Event()
        upstream.script = [model]
        task = asyncio.ensure_future(stage.run(the_plan()))
        await stage.person.is_asked.wait()
        task.cancel()
        await asyncio.wait({task})
        stage.catalog.providers.clear()
        with pytest.raises(Fault, match="not configured as it was"):
            await stage.runner.resume("r_1", RunParticipants(stage.tools, stage.person))
        assert [fact for fact in await stage.facts() if isinstance(fact, RunTaken)] == [RunTaken("here")]
