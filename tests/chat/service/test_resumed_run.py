"""A run that is resumed for its pair."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome, text_outcome
from sightline.agent.service.driver import RunParticipants
from sightline.chat.core.facts import PairAnswered, PairsDeleted
from sightline.chat.core.pair import MessagePair
from sightline.chat.service.blocks import CallBlock, blocks_of
from sightline.errors import Code, Fault
from tests.chat.service.chat_stage import ChatStage
from tests.chat.service.workshop import Workshop, begin, open_workshop, runner_of
from tests.loop_stage import calls, count, says
from tests.running_stage import begins, plays


class Slow:
    """A tool whose second call does not end by itself, the first time."""

    def __init__(self) -> None:
        self.is_running = asyncio.Event()
        self.is_slow = True

    async def __call__(self, call: RunnableCall) -> ToolOutcome:
        if call.key == "2.1" and self.is_slow:
            self.is_slow = False
            self.is_running.set()
            await asyncio.Event().wait()
        return text_outcome(f"{call.key} done")


def stopped(test: Callable[[ChatStage, MessagePair, Workshop], Awaitable[None]]) -> Callable[[Path], Awaitable[None]]:
    """A test of a pair whose run was broken off while its second round's tool ran."""

    async def run(tmp_path: Path) -> None:
        slow = Slow()
        workshop = Workshop(slow)
        async with open_workshop(tmp_path, workshop) as stage:
            await begin(stage, plays(calls(count(1, "a"))), plays(calls(count(2, "b"))), plays(says("Both done.")))
            name = await stage.service.sends.send("v", "count")
            await slow.is_running.wait()
            await stage.service.sends.cancel()
            await test(stage, stage.pair(name), workshop)

    return run


def results(pair: MessagePair) -> list[str]:
    blocks = [block for block in blocks_of(pair.answer) if isinstance(block, CallBlock)]
    return ["" if block.result is None else block.result.text for block in blocks]


@stopped
async def test_a_run_that_a_person_stopped_goes_on_and_becomes_the_answer(
    stage: ChatStage, pair: MessagePair, workshop: Workshop
) -> None:
    assert (pair.state, pair.answer.finish, results(pair)) == ("complete", "cancelled", ["1.1 done", ""])
    assert (await runner_of(stage).show(pair.run)).state == "interrupted"
    runner_of(stage).questions.tell(pair.run, {"2.1": "again"})
    assert await stage.service.sends.resume_run(pair.id, pair.run)
    so_far = stage.service.sends.so_far(pair.id)
    assert (so_far.run, len(so_far.messages)) == (pair.run, 3), "what it had come to is there from the beginning"
    with pytest.raises(Fault, match="still arriving"):
        await stage.service.sends.send("v", "another")
    with pytest.raises(Fault, match="no send is waiting"):
        stage.service.sends.resume(anyway=True)
    whole = await stage.ended(pair.id)
    assert (whole.state, whole.assistant_text, whole.earlier) == ("complete", "Both done.", ())
    assert (results(whole), whole.answer.finish) == (["1.1 done", "2.1 done"], "stop")
    assert [call.key for call in workshop.tools.used] == ["1.1", "2.1", "2.1"]
    assert whole.answer.seconds is not None
    assert whole.exchange
    assert not await stage.service.sends.resume_run(pair.id, pair.run), "it has its answer"


@stopped
async def test_it_can_be_broken_off_again(stage: ChatStage, pair: MessagePair, workshop: Workshop) -> None:
    assert await stage.service.sends.resume_run(pair.id, pair.run)
    await stage.service.sends.cancel()
    again = stage.pair(pair.id)
    assert (again.state, again.earlier, results(again)) == ("complete", (), ["1.1 done", ""])
    assert (await runner_of(stage).show(pair.run)).state == "interrupted"


@stopped
async def test_it_can_fail_and_what_it_came_to_stays(stage: ChatStage, pair: MessagePair, workshop: Workshop) -> None:
    stage.upstream.script = [begins(says("Half of it"))]
    stage.upstream._played = 0
    runner_of(stage).questions.tell(pair.run, {"2.1": "skip"})
    assert await stage.service.sends.resume_run(pair.id, pair.run)
    failed = await stage.ended(pair.id)
    assert failed.trouble is not None
    assert (failed.state, failed.earlier) == ("error", ())
    assert results(failed)[0] == "1.1 done"


@stopped
async def test_failed_resume_is_reported_and_keeps_existing_results(
    stage: ChatStage, pair: MessagePair, workshop: Workshop
) -> None:
    workshop.trouble = Fault(Code.CONFIG, "no hands today")
    with pytest.raises(Fault, match="no hands"):
        await stage.service.sends.resume_run(pair.id, pair.run)
    left = await stage.ended(pair.id)
    assert (left.state, left.trouble.message, results(left)) == ("error", "no hands today", ["1.1 done", ""])
    await stage.happen(PairsDeleted((pair.id,)))
    assert not await stage.service.sends.resume_run(pair.id, pair.run)


@stopped
async def test_after_a_process_that_died_the_pair_has_what_its_run_came_to(
    stage: ChatStage, pair: MessagePair, workshop: Workshop
) -> None:
    # As the log of a process that died in the middle: the end of the pair is missing.
    stage.logbook.kept["chat"].pop()
    fresh = stage.another()
    history = await fresh.chat.load()
    left = history.get(pair.id)
    assert (left.state, left.trouble.code, left.run) == ("error", "interrupted", pair.run)
    assert results(left) == ["1.1 done", ""]
    runner_of(stage).questions.tell(pair.run, {"2.1": "again"})
    assert await fresh.sends.resume_run(pair.id, pair.run)
    await fresh.sends.wait_until_idle()
    assert results(history.get(pair.id)) == ["1.1 done", "2.1 done"]
    # The same once more: this time its run had ended.
    stage.logbook.kept["chat"].pop()
    last = stage.another()
    done = (await last.chat.load()).get(pair.id)
    assert (done.state, done.assistant_text, done.trouble) == ("complete", "Both done.", None)
    await fresh.close(1)
    await last.close(1)


@stopped
async def test_a_run_that_never_began_leaves_the_pair_interrupted(
    stage: ChatStage, pair: MessagePair, workshop: Workshop
) -> None:
    stage.logbook.kept["chat"].pop()
    workshop.runs.kept.clear()
    fresh = stage.another()
    left = (await fresh.chat.load()).get(pair.id)
    assert (left.state, left.answer) == ("error", None)
    await fresh.close(1)


@stopped
async def test_a_run_that_was_taken_up_elsewhere_gives_its_answer(
    stage: ChatStage, pair: MessagePair, workshop: Workshop
) -> None:
    runner = runner_of(stage)
    runner.questions.tell(pair.run, {"2.1": "again"})
    await runner.resume(pair.run, RunParticipants(workshop.tools, runner.questions))
    assert stage.pair(pair.id) == pair, "nobody has told it"
    assert await stage.service.sends.resume_run(pair.id, pair.run)
    assert (await stage.ended(pair.id)).assistant_text == "Both done."


@stopped
async def test_another_answer_that_has_come_meanwhile_is_kept_behind_it(
    stage: ChatStage, pair: MessagePair, workshop: Workshop
) -> None:
    stage.upstream.script = [plays(says("Another."))]
    stage.upstream._played = 0
    await stage.service.sends.reask(pair.id, "v")
    assert (await stage.ended(pair.id)).assistant_text == "Another."
    stage.upstream.script = [plays(says("Both done."))]
    runner_of(stage).questions.tell(pair.run, {"2.1": "again"})
    assert await stage.service.sends.resume_run(pair.id, pair.run)
    whole = await stage.ended(pair.id)
    assert (whole.assistant_text, [each.text for each in whole.earlier]) == ("Both done.", ["Another."])
    assert msgspec.json.decode(stage.logbook.kept["chat"][-1].data, type=PairAnswered).id == pair.id
