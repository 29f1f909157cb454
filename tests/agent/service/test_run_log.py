"""The log of a run that is driven here, and past runs as the logbook has them."""

import asyncio
from pathlib import Path

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
from sightline.store.sqlite import SqliteStore, open_store
from tests.loop_stage import plan, question, says
from tests.store.traffic import NOON, prices


async def test_concurrent_facts_are_logged_in_order_with_secrets_masked(tmp_path: Path) -> None:
    store = await open_store(tmp_path, prices=prices, now=lambda: NOON)
    heard: list[int] = []
    log = RunLog(
        store.logbook,
        "r_1",
        now=lambda: NOON,
        secrets=("sk-secret",),
        changed=lambda: heard.append(len(log.timed_facts)),
    )
    await asyncio.gather(*(log.note(ToolStarted(f"1.{n}"), Remarked(f"{n}")) for n in range(20)))
    await log.note(ToolFinished("1.1", text_outcome("the key is sk-secret")))
    lines = await store.logbook.lines("run:r_1")
    assert len(lines) == 41
    assert log.facts[:-1] == [told.fact for told in read_facts(lines)[:-1]]
    assert b"sk-secret" not in lines[-1].data
    assert (b"***" in lines[-1].data, heard[-1]) == (True, 41)
    told: list[object] = []
    other = RunLog(store.logbook, "r_2", now=lambda: NOON, tell=told.append)
    await other.note(ToolStarted("1.1"), Remarked("a"))
    assert told == [ToolStarted("1.1"), Remarked("a")]
    await store.close()


async def test_a_run_that_another_process_drives_is_let_go(tmp_path: Path) -> None:
    store = await open_store(tmp_path, prices=prices, now=lambda: NOON)
    log = RunLog(store.logbook, "r_1", now=lambda: NOON)
    await store.logbook.append("run:r_1", 0, [b"{}"], NOON)
    with pytest.raises(Fault, match="r_1 was taken over by another process") as caught:
        await log.note(Remarked("mine"))
    assert (caught.value.code, caught.value.status, log.facts) == (Code.USAGE, 409, [])
    await store.close()


BEGAN = RunBegan(question(text="Hi."), plan(), "acme")


async def opened(folder: Path) -> tuple[SqliteStore, PastRuns]:
    store = await open_store(folder, prices=prices, now=lambda: NOON)
    return store, PastRuns(store.logbook, lambda name: name == "alive")


@pytest.mark.parametrize("name", ["r_1", "", "../x", "r\0", "r\ud800", "x" * 200])
async def test_a_run_that_is_not_there_is_a_clear_fault(tmp_path: Path, name: str) -> None:
    store, past = await opened(tmp_path)
    with pytest.raises(Fault, match="there is no run") as caught:
        await past.show(name)
    assert caught.value.status == 404
    await store.close()


def test_whether_a_run_goes_on_depends_on_the_process_that_has_it() -> None:
    past = PastRuns(None, lambda name: name == "alive")

    def state(*facts: RunTaken | RunEnded) -> str:
        return past.state([TimedFact(NOON, fact) for fact in (BEGAN, *facts)])

    assert state() == "interrupted"
    assert state(RunTaken("alive")) == "running"
    assert state(RunTaken("alive"), RunTaken("dead")) == "interrupted"
    assert state(RunTaken("alive"), RunEnded("answered")) == "ended"


async def test_unreadable_run_does_not_hide_other_runs(tmp_path: Path) -> None:
    store, past = await opened(tmp_path)
    good = [write(fact) for fact in (BEGAN, Replied(says()), RunEnded("answered"))]
    await store.logbook.append("run:r_1", 0, good, NOON)
    await store.logbook.append("run:r_2", 0, [b'{"kind":"of_tomorrow"}'], NOON + 1)
    await store.logbook.append("run:r_3", 0, [write(Remarked("no beginning"))], NOON + 2)
    for _ in range(2):
        third, second, first = await past.list_runs(9, lambda _run: None)
        assert (first.id, first.title, first.state, first.rounds) == ("r_1", "Hi.", "ended", 1)
        assert "of_tomorrow" in second.title
        assert "no beginning" in third.title
    assert len(await past.list_runs(1, lambda _run: None)) == 1
    await store.close()
