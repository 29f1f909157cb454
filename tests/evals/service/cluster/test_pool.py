import asyncio
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.errors import Code, Fault
from sightline.evals.core.run_state import EvalBegan, Key
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.cluster import pool as pool_module
from sightline.evals.service.cluster.host import Opening
from sightline.evals.service.cluster.messages import Introduction
from sightline.evals.service.cluster.pool import MOST_HOSTS, ClusterOrders, ClusterWorker
from tests.cluster_stage import OURS, FakeWorker, NearFleet, NearPost, opens
from tests.eval_stage import ACME, EvalStage, play
from tests.evals.service.cluster.test_home import ProcessTree
from tests.evals.service.cluster.test_host import BEGIN
from tests.upstream import Upstream

FRANCE: Key = ("france", "acme", 0)
Act = Callable[["Cluster", int, Key], Awaitable[None]]


class Cluster:
    """A pool of near hosts. `workers` is one for each host; what they do is `act`, with the host's number."""

    def __init__(self, stage: EvalStage, act: Act | None = None, **more: Any) -> None:
        self.workers: list[FakeWorker] = []
        self.act = act
        self.fleet = NearFleet(self._opening, stage.root / "hosts", **more)
        began = EvalBegan(suite=stage.suite(), targets=(ACME, TargetSpec(name="parrot", mock="x")))
        self.own = FakeWorker()
        self.kin = ProcessTree(stage)
        self.pool = ClusterWorker(
            began, ClusterOrders(BEGIN, OURS, frozenset({"parrot"})), self.fleet, self.kin.home, self.own
        )

    def _opening(self, _root: Path) -> Opening:
        number = len(self.workers)

        async def does(key: Key) -> None:
            if self.act is not None:
                await self.act(self, number, key)

        self.workers.append(FakeWorker(does))
        return opens(self.workers[-1])

    async def open(self, width: int = 4) -> int:
        size = await self.pool.open(zlib.compress(msgspec.msgpack.encode([])))
        self.pool.set_capacity({"acme": width}, size)
        return size


def told(story: Callable[[EvalStage], Awaitable[None]], folder: Path) -> None:
    async def with_upstream(stage: EvalStage, _upstream: Upstream) -> None:
        await story(stage)

    play(with_upstream, folder)


def test_cases_are_shared_out_and_those_that_need_nobody_stay_here(tmp_path: Path) -> None:
    async def story(stage: EvalStage) -> None:
        both = asyncio.Barrier(4)

        async def act(_cluster: Cluster, _number: int, _key: Key) -> None:
            await both.wait()

        cluster = Cluster(stage, act)
        assert await cluster.open(width=4) == 2
        keys: list[Key] = [("france", "acme", trial) for trial in range(4)]
        results = await asyncio.gather(*(cluster.pool.run(key) for key in keys))
        assert [result.key for result in results] == keys
        assert [len(worker.ran) for worker in cluster.workers] == [2, 2]
        await cluster.pool.run(("france", "parrot", 0))
        assert cluster.own.ran == [("france", "parrot", 0)]
        await cluster.pool.close()
        assert all(post.is_ended for post in cluster.fleet.posts)
        assert not cluster.fleet.is_open

    told(story, tmp_path)


def test_a_case_of_a_lost_host_is_run_on_another_and_the_host_is_replaced(tmp_path: Path) -> None:
    async def story(stage: EvalStage) -> None:
        async def act(cluster: Cluster, number: int, _key: Key) -> None:
            if number == 0:
                cluster.fleet.posts[0].lose()
                await asyncio.Event().wait()

        cluster = Cluster(stage, act, size=1)
        await cluster.open()
        result = await cluster.pool.run(FRANCE)
        assert (result.status, len(cluster.fleet.posts)) == ("ok", 2)
        await cluster.pool.close()

    told(story, tmp_path)


def test_a_case_that_takes_every_host_with_it_is_given_up_with_the_reason(tmp_path: Path) -> None:
    async def story(stage: EvalStage) -> None:
        async def act(cluster: Cluster, number: int, key: Key) -> None:
            if key == FRANCE:
                cluster.fleet.posts[number].lose()
                await asyncio.Event().wait()

        cluster = Cluster(stage, act)
        await cluster.open()
        result = await cluster.pool.run(FRANCE)
        assert (result.status, result.score.verdict) == ("execution_error", "not_graded")
        assert result.observation.error == "3 hosts of the cluster were lost while they ran it"
        assert (await cluster.pool.run(("italy", "acme", 0))).status == "ok"
        await cluster.pool.close()

    told(story, tmp_path)


def test_hosts_that_end_again_and_again_end_the_run(tmp_path: Path) -> None:
    async def story(stage: EvalStage) -> None:
        cluster = Cluster(stage, size=1)
        await cluster.open()
        cluster.fleet.hired = NearPost.lose
        cluster.fleet.posts[0].lose()
        with pytest.raises(Fault, match="hosts of near://here end again and again") as caught:
            await cluster.pool.run(FRANCE)
        assert caught.value.code is Code.NETWORK
        assert len(cluster.fleet.posts) == 1 + MOST_HOSTS
        await cluster.pool.close()

    told(story, tmp_path)


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (Introduction("0.9", "3.11"), "the cluster has Sightline 0.9, and this is 1.0"),
        (Introduction("1.0", "3.9"), "the cluster runs Python 3.9, and this is 3.11"),
    ],
)
def test_other_programs_on_the_cluster_are_named_before_keys_are_told(
    tmp_path: Path, theirs: Introduction, words: str
) -> None:
    async def story(stage: EvalStage) -> None:
        cluster = Cluster(stage, introduction=theirs)
        with pytest.raises(Fault, match=words):
            await cluster.open()
        await cluster.pool.close()
        assert [worker.ran for worker in cluster.workers] == [[], []]
        assert all(post.is_ended for post in cluster.fleet.posts)

    told(story, tmp_path)


def test_a_cluster_without_room_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "FIRST_HOST", 0.01)

    class Full(NearFleet):
        async def hire(self) -> NearPost:
            await asyncio.Event().wait()
            raise AssertionError

    async def story(stage: EvalStage) -> None:
        cluster = Cluster(stage)
        full = Full(cluster.fleet.opening, stage.root)
        orders = ClusterOrders(BEGIN, OURS, frozenset())
        began = EvalBegan(suite=stage.suite(), targets=(ACME,))
        pool = ClusterWorker(began, orders, full, cluster.kin.home, cluster.own)
        with pytest.raises(Fault, match="near://here has not started a host"):
            await pool.open(b"")
        await pool.close()

    told(story, tmp_path)
