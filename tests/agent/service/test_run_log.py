import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from sightline.agent.core.facts import Remarked, ToolFinished, ToolStarted
from sightline.agent.core.output import text_outcome
from sightline.agent.service.run_log import RunLog, read_facts
from sightline.errors import Code, Fault
from sightline.store.sqlite import open_store
from tests.store.traffic import NOON, prices


def test_facts_are_written_in_their_order_whoever_brings_them_and_without_keys(tmp_path: Path) -> None:
    async def story() -> None:
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

    asyncio.run(story())


def test_whoever_is_cancelled_meanwhile_is_so_when_the_fact_is_there(tmp_path: Path) -> None:
    async def story() -> None:
        store = await open_store(tmp_path, prices=prices, now=lambda: NOON)
        entered, gate = asyncio.Event(), asyncio.Event()

        class Slow:
            async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
                entered.set()
                await gate.wait()
                await store.logbook.append(log, after, data, at)

        log = RunLog(Slow(), "r_1", now=lambda: NOON)  # type: ignore[arg-type]
        task = asyncio.ensure_future(log.note(Remarked("kept")))
        await entered.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        gate.set()
        await asyncio.wait({task})
        assert (task.cancelled(), log.facts) == (True, [Remarked("kept")])
        await log.note(Remarked("and on"))
        assert len(await store.logbook.lines("run:r_1")) == 2
        await store.close()

    asyncio.run(story())


def test_a_run_that_another_process_drives_is_let_go(tmp_path: Path) -> None:
    async def story() -> None:
        store = await open_store(tmp_path, prices=prices, now=lambda: NOON)
        log = RunLog(store.logbook, "r_1", now=lambda: NOON)
        await store.logbook.append("run:r_1", 0, [b"{}"], NOON)
        with pytest.raises(Fault, match="r_1 was taken over by another process") as caught:
            await log.note(Remarked("mine"))
        assert (caught.value.code, caught.value.status, log.facts) == (Code.USAGE, 409, [])
        await store.close()

    asyncio.run(story())


def test_a_database_that_refuses_is_told_as_it_is() -> None:
    class Broken:
        async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
            raise Fault(Code.CONFIG, "the disk is full", hint="Make room.")

    async def story() -> None:
        log = RunLog(Broken(), "r_1", now=lambda: NOON)  # type: ignore[arg-type]
        with pytest.raises(Fault, match="the disk is full"):
            await log.note(Remarked("x"))
        assert log.timed_facts == []

    asyncio.run(story())
