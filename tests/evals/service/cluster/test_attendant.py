import asyncio
from pathlib import Path

import pytest

from sightline.evals.core.run_state import Key
from sightline.evals.service.cluster import pool as attendant_module
from sightline.evals.service.cluster.messages import CostSpent
from sightline.evals.service.cluster.pool import HostHandle
from sightline.evals.service.cluster.remote import LostError
from tests.cluster_stage import FakeWorker, NearFleet, NearPost, opens, passed
from tests.eval_stage import EvalStage, play
from tests.evals.service.cluster.test_home import ProcessTree
from tests.evals.service.cluster.test_host import BEGIN, KEY
from tests.upstream import Upstream


class Attended:
    """A host with a worker, attended from home. `lost` counts how often it was."""

    def __init__(self, stage: EvalStage, worker: FakeWorker) -> None:
        self.kin = ProcessTree(stage)
        self.worker = worker
        self.lost = self.freed = 0
        self.fleet = NearFleet(lambda _root: opens(worker), stage.root / "hosts")

    async def begun(self) -> tuple[HostHandle, NearPost]:
        post = await self.fleet.hire()
        attendant = HostHandle(post, self.kin.home, self._lose, self._free)
        await attendant.begin(BEGIN)
        return attendant, post

    def _lose(self, _attendant: HostHandle) -> None:
        self.lost += 1

    def _free(self) -> None:
        self.freed += 1


def test_a_case_goes_there_and_its_result_comes_back(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        attended = Attended(stage, FakeWorker())
        attendant, post = await attended.begun()
        assert await attendant.run(KEY) == passed(KEY)
        post.host.line.tell(CostSpent(0.5))
        await attendant.close()
        assert (attended.kin.purse.spent, attended.lost, attended.freed) == (0.5, 0, 1)
        assert attended.worker.is_closed
        assert post.is_ended

    play(story, tmp_path)


def test_whoever_waits_for_a_lost_host_hears_of_it_and_its_owner_once(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        begun = asyncio.Event()

        async def act(_key: Key) -> None:
            begun.set()
            await asyncio.Event().wait()

        attended = Attended(stage, FakeWorker(act))
        attendant, post = await attended.begun()
        running = asyncio.get_running_loop().create_task(attendant.run(KEY))
        await begun.wait()
        assert attendant.load == 1
        post.lose()
        with pytest.raises(LostError, match="it was killed"):
            await running
        assert (attended.lost, attendant.load) == (1, 0)
        await attendant.close()
        assert attended.lost == 1

    play(story, tmp_path)


def test_a_host_that_leaves_by_itself_is_lost_too(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        begun = asyncio.Event()

        async def act(_key: Key) -> None:
            begun.set()
            await asyncio.Event().wait()

        attended = Attended(stage, FakeWorker(act))
        attendant, post = await attended.begun()
        running = asyncio.get_running_loop().create_task(attendant.run(KEY))
        await begun.wait()
        await post.host.leave()
        with pytest.raises(LostError, match="it has left"):
            await running
        await attendant.close()

    play(story, tmp_path)


def test_who_no_longer_waits_cuts_the_case_off(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        begun, cut = asyncio.Event(), asyncio.Event()

        async def act(_key: Key) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cut.set()

        attendant, _ = await Attended(stage, FakeWorker(act)).begun()
        running = asyncio.get_running_loop().create_task(attendant.run(KEY))
        await begun.wait()
        running.cancel()
        await cut.wait()
        await attendant.close()

    play(story, tmp_path)


def test_a_mistake_of_ours_on_a_host_is_loud_here(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        async def act(_key: Key) -> None:
            raise ZeroDivisionError("oops")

        attendant, _ = await Attended(stage, FakeWorker(act)).begun()
        with pytest.raises(RuntimeError, match="a host broke at a case: ZeroDivisionError"):
            await attendant.run(KEY)
        await attendant.close()

    play(story, tmp_path)


def test_a_host_that_does_not_come_to_an_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attendant_module, "GOODBYE", 0.01)

    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        enough = asyncio.Event()

        class Stubborn(FakeWorker):
            async def close(self) -> None:
                await enough.wait()

        attendant, post = await Attended(stage, Stubborn()).begun()
        ending = asyncio.get_running_loop().create_task(attendant.close())
        await post.is_lost.wait()
        assert post.is_ended
        enough.set()
        await ending

    play(story, tmp_path)
