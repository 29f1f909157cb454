"""The log of a run that is driven here, and past runs as the logbook has them."""

import asyncio

import pytest

from sightline.agent.core.facts import (
    Remarked,
    RunBegan,
    RunEnded,
    RunTaken,
    TimedFact,
    ToolFinished,
    ToolStarted,
    write,
)
from sightline.agent.core.steps import Replied
from sightline.agent.core.tool import text_outcome
from sightline.agent.service.run_log import PastRuns, RunLog, read_facts
from sightline.errors import Code, Fault
from tests.logbook_fake import MemoryLogbook
from tests.loop_stage import plan, question, says
from tests.store.traffic import NOON


async def test_concurrent_facts_are_logged_in_order_with_secrets_masked() -> None:
    logbook = MemoryLogbook()
    heard: list[int] = []
    log = RunLog(
        logbook,
        "r_1",
        now=lambda: NOON,
        secrets=("sk-secret",),
        changed=lambda: heard.append(len(log.timed_facts)),
    )
    await asyncio.gather(*(log.note(ToolStarted(f"1.{n}"), Remarked(f"{n}")) for n in range(20)))
    await log.note(ToolFinished("1.1", text_outcome("the key is sk-secret")))
    lines = await logbook.lines("run:r_1")
    assert len(lines) == 41
    assert log.facts[:-1] == [told.fact for told in read_facts(lines)[:-1]]
    assert b"sk-secret" not in lines[-1].data
    assert (b"***" in lines[-1].data, heard[-1]) == (True, 41)
    told: list[object] = []
    other = RunLog(logbook, "r_2", now=lambda: NOON, tell=told.append)
    await other.note(ToolStarted("1.1"), Remarked("a"))
    assert told == [ToolStarted("1.1"), Remarked("a")]


async def test_a_run_that_another_process_drives_is_let_go() -> None:
    logbook = MemoryLogbook()
    log = RunLog(logbook, "r_1", now=lambda: NOON)
    await logbook.append("run:r_1", 0, [b"{}"], NOON)
    with pytest.raises(Fault, match="r_1 was taken over by another process") as caught:
        await log.note(Remarked("mine"))
    assert (caught.value.code, caught.value.status, log.facts) == (Code.USAGE, 409, [])


BEGAN = RunBegan(question(text="Hi."), plan(), "acme")


def is_alive(name: str) -> bool:
    return name == "alive"


@pytest.mark.parametrize("name", ["r_1", "", "../x", "r\0", "r\ud800", "x" * 200])
async def test_a_run_that_is_not_there_is_a_clear_fault(name: str) -> None:
    past = PastRuns(MemoryLogbook(), is_alive)
    with pytest.raises(Fault, match="there is no run") as caught:
        await past.show(name)
    assert caught.value.status == 404


def test_whether_a_run_goes_on_depends_on_the_process_that_has_it() -> None:
    past = PastRuns(MemoryLogbook(), is_alive)

    def state(*facts: RunTaken | RunEnded) -> str:
        return past.state([TimedFact(NOON, fact) for fact in (BEGAN, *facts)])

    assert state() == "interrupted"
    assert state(RunTaken("alive")) == "running"
    assert state(RunTaken("alive"), RunTaken("dead")) == "interrupted"
    assert state(RunTaken("alive"), RunEnded("answered")) == "ended"


async def test_unreadable_run_does_not_hide_other_runs() -> None:
    logbook = MemoryLogbook()
    past = PastRuns(logbook, is_alive)
    good = [write(fact) for fact in (BEGAN, Replied(says()), RunEnded("answered"))]
    await logbook.append("run:r_1", 0, good, NOON)
    await logbook.append("run:r_2", 0, [b'{"kind":"of_tomorrow"}'], NOON + 1)
    await logbook.append("run:r_3", 0, [write(Remarked("no beginning"))], NOON + 2)
    for _ in range(2):
        third, second, first = await past.list_runs(9, lambda _run: None)
        assert (first.id, first.title, first.state, first.rounds) == ("r_1", "Hi.", "ended", 1)
        assert "of_tomorrow" in second.title
        assert "no beginning" in third.title
    assert len(await past.list_runs(1, lambda _run: None)) == 1
