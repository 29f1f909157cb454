import asyncio
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.errors import Code, Fault
from sightline.evals.core.run_state import EvalBegan, Key, RunOptions, read
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.cluster import pool as pool_module
from sightline.evals.service.cluster.host import Opening
from sightline.evals.service.cluster.host_pool import Elsewhere, Needs
from sightline.evals.service.cluster.messages import Begin, Introduction, Keys, for_host
from sightline.evals.service.cluster.pool import MOST_HOSTS, ClusterWorker, open_worker
from sightline.settings import Settings
from tests.cluster_stage import OURS, FakeWorker, NearHostPool, NearPost, opens
from tests.eval_stage import ACME, EvalStage, on_stage
from tests.evals.service.cluster.test_home import ProcessTree
from tests.evals.service.cluster.test_host import BEGIN

FRANCE: Key = ("france", "acme", 0)
Act = Callable[["Cluster", int, Key], Awaitable[None]]


class Cluster:
    """A pool of near hosts. `workers` is one for each host; what they do is `act`, with the host's number."""

    def __init__(self, stage: EvalStage, act: Act | None = None, **more: Any) -> None:
        self.workers: list[FakeWorker] = []
        self.act = act
        self.host_pool = NearHostPool(self._opening, stage.root / "hosts", **more)
        began = EvalBegan(suite=stage.suite(), targets=(ACME, TargetSpec(name="parrot", mock="x")))
        self.own = FakeWorker()
        self.kin = ProcessTree(stage)
        self.pool = ClusterWorker(began, BEGIN, OURS, self.host_pool, self.kin.home, self.own)

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


@on_stage
async def test_cases_are_distributed_and_mock_targets_run_locally(stage: EvalStage) -> None:
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
    assert all(post.is_ended for post in cluster.host_pool.posts)
    assert not cluster.host_pool.is_open


@on_stage
async def test_a_case_of_a_lost_host_is_run_on_another_and_the_host_is_replaced(stage: EvalStage) -> None:
    async def act(cluster: Cluster, number: int, _key: Key) -> None:
        if number == 0:
            cluster.host_pool.posts[0].lose()
            await asyncio.Event().wait()

    cluster = Cluster(stage, act, size=1)
    await cluster.open()
    result = await cluster.pool.run(FRANCE)
    assert (result.status, len(cluster.host_pool.posts)) == ("ok", 2)
    await cluster.pool.close()


@on_stage
async def test_a_case_that_takes_every_host_with_it_is_given_up_with_the_reason(stage: EvalStage) -> None:
    async def act(cluster: Cluster, number: int, key: Key) -> None:
        if key == FRANCE:
            cluster.host_pool.posts[number].lose()
            await asyncio.Event().wait()

    cluster = Cluster(stage, act)
    await cluster.open()
    result = await cluster.pool.run(FRANCE)
    assert (result.status, result.score.verdict) == ("execution_error", "not_graded")
    assert result.observation.error == "3 hosts of the cluster were lost while they ran it"
    assert (await cluster.pool.run(("italy", "acme", 0))).status == "ok"
    await cluster.pool.close()


@on_stage
async def test_hosts_that_end_again_and_again_end_the_run(stage: EvalStage) -> None:
    cluster = Cluster(stage, size=1)
    await cluster.open()
    cluster.host_pool.hired = NearPost.lose
    cluster.host_pool.posts[0].lose()
    with pytest.raises(Fault, match="hosts of near://here end again and again") as caught:
        await cluster.pool.run(FRANCE)
    assert caught.value.code is Code.NETWORK
    assert len(cluster.host_pool.posts) == 1 + MOST_HOSTS
    await cluster.pool.close()


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (Introduction("0.9", "3.11"), "the cluster has Sightline 0.9, and this is 1.0"),
        (Introduction("1.0", "3.9"), "the cluster runs Python 3.9, and this is 3.11"),
    ],
)
@on_stage
async def test_incompatible_host_is_reported_before_keys_are_sent(
    stage: EvalStage, theirs: Introduction, words: str
) -> None:
    cluster = Cluster(stage, introduction=theirs)
    with pytest.raises(Fault, match=words):
        await cluster.open()
    await cluster.pool.close()
    assert [worker.ran for worker in cluster.workers] == [[], []]
    assert all(post.is_ended for post in cluster.host_pool.posts)


@on_stage
async def test_a_cluster_without_room_is_not_waited_for_without_end(
    stage: EvalStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "FIRST_HOST", 0.01)

    class Full(NearHostPool):
        async def start_host(self) -> NearPost:
            await asyncio.Event().wait()
            raise AssertionError

    cluster = Cluster(stage)
    full = Full(cluster.host_pool.opening, stage.root)
    began = EvalBegan(suite=stage.suite(), targets=(ACME,))
    pool = ClusterWorker(began, BEGIN, OURS, full, cluster.kin.home, cluster.own)
    with pytest.raises(Fault, match="near://here has not started a host"):
        await pool.open(b"")
    await pool.close()


MOCK = TargetSpec(name="parrot", mock="Paris")
PROGRAM = TargetSpec(name="program", cli=CommandSpec(command="cat", env=("PASSED",)), concurrency=3)


class Hired:
    """A stage whose cases are run on near hosts. `begun` is what the first of them was told."""

    def __init__(self, stage: EvalStage, **more: object) -> None:
        self.host_pool = NearHostPool(lambda _root: opens(FakeWorker()), stage.root.parent / "hosts")
        self.host_pool.hired = self._overhear
        there = Elsewhere(self.host_pool, stage.stage.hub.record, Settings(), OURS, "conf/sightline.toml", **more)  # type: ignore[arg-type]
        environment = {"PATH": "/bin", "ACME_KEY": "sk-1", "PASSED": "yes", "TOKEN": "t", "OTHER": "no"}
        self.stage = EvalStage(stage.stage, stage.root, elsewhere=there, environment=environment)
        self.began: list[bytes] = []

    def _overhear(self, post: NearPost) -> None:
        if len(self.host_pool.posts) > 1:
            return
        told = post.host.receive

        def handle(data: bytes) -> None:
            self.began.append(data)
            told(data)

        post.host.receive = handle  # type: ignore[method-assign]

    def begin(self) -> Begin:
        """What it was told, and before that by itself, the keys."""
        [keys], [begin, *_] = (for_host(data) for data in self.began[:2])
        assert isinstance(keys, Keys)
        assert isinstance(begin, Begin)
        assert begin.variables == {}
        return msgspec.structs.replace(begin, variables=keys.variables)

    async def widths(
        self, *targets: TargetSpec, text: str | None = None, budget: float | None = None
    ) -> dict[str, int]:
        suite = self.stage.suite(text) if text else self.stage.suite()
        began = EvalBegan(suite=suite, targets=targets, options=RunOptions(budget_usd=budget))
        async with open_worker(self.stage.driven(began)) as (_, widths):
            return widths


@on_stage
async def test_hosts_receive_only_the_keys_and_targets_they_need(stage: EvalStage) -> None:
    hired = Hired(stage, toolsets={"files": Needs(variables=("TOKEN",)), "others": Needs(variables=("OTHER",))})
    tools = TargetSpec(name="tools", model="acme/m", toolsets=("files",))
    assert await hired.widths(ACME, MOCK, PROGRAM, tools) == {"acme": 16, "parrot": 16, "program": 3, "tools": 16}
    begin = hired.begin()
    assert begin.variables == {"ACME_KEY": "sk-1", "TOKEN": "t", "PASSED": "yes"}
    assert begin.targets == ("acme", "program", "tools")
    assert (begin.process, begin.config) == ("here", "conf/sightline.toml")
    began = read(begin.began)
    assert isinstance(began, EvalBegan)
    assert [case.id for case in began.suite.cases] == ["france", "italy", "spain"]


@on_stage
async def test_the_suites_own_number_of_cases_at_once_holds_for_the_whole_cluster(stage: EvalStage) -> None:
    text = "execution: {workers: 5}\ntests:\n  - {id: a, input: hi, criteria: It greets.}\n"
    assert await Hired(stage).widths(ACME, text=text) == {"acme": 5}


@on_stage
async def test_mock_targets_need_no_cluster(stage: EvalStage) -> None:
    hired = Hired(stage)
    assert await hired.widths(MOCK) == {"parrot": 8}
    assert hired.host_pool.posts == []


@on_stage
async def test_model_problem_is_reported_before_hosts_are_started(stage: EvalStage) -> None:
    hired = Hired(stage)
    with pytest.raises(Fault, match="the prices of other are not known"):
        await hired.widths(TargetSpec(name="other", model="acme/other"), PROGRAM, budget=1.0)
    assert hired.host_pool.posts == []


@on_stage
async def test_replay_target_cannot_be_a_judge_on_a_cluster(stage: EvalStage) -> None:
    hired = Hired(stage)
    past = TargetSpec(name="past", model="acme/m", replay="")
    judged = TargetSpec(name="judged", model="acme/m", judge="past")
    with pytest.raises(Fault, match="past judges out of the record, which a cluster does not have"):
        await hired.widths(past, judged)
    assert hired.host_pool.posts == []
    assert await hired.widths(past, ACME) == {"past": 16, "acme": 16}
