import asyncio
from typing import TypeVar

import pytest

from sightline.catalog.facts import Facts
from sightline.errors import Code
from sightline.evals.core.run_state import EvalBegan, Key, RunOptions
from sightline.evals.service.cluster import messages
from sightline.evals.service.cluster import pool as pool_module
from sightline.evals.service.cluster.host_pool import LostError
from sightline.evals.service.cluster.pool import Home, HostHandle, HostService
from sightline.evals.service.context import LocalSharing
from sightline.evals.service.target import Spending
from sightline.model.exchange import Received
from sightline.model.reply import Usage
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.store import Line, Log
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Wait
from tests.cluster_stage import FakeWorker, NearHostPool, NearPost, opens, passed, stuck_worker
from tests.eval_stage import EvalStage, on_stage
from tests.evals.service.cluster.test_host import BEGIN, KEY

T = TypeVar("T")


class ProcessTree:
    """A home on a stage, and desks for hosts. `answers` are what hosts were told."""

    def __init__(self, stage: EvalStage, *, is_cached: bool = True) -> None:
        run = stage.stage
        options = RunOptions(cache=is_cached)
        sharing = LocalSharing(stage.driven(EvalBegan(suite=stage.suite(), targets=(), options=options)))
        self.purse = Spending()
        self.memory = run.engine.memory
        self.clock = run.clock
        self.home = Home(run.hub.record, run.store.logbook, self.memory, run.clock, sharing, self.purse)
        self.answers: list[messages.HomeAnswer] = []
        self.came = asyncio.Event()

    def desk(self) -> HostService:
        return HostService(self.home, self._take)

    def _take(self, answer: messages.HomeAnswer) -> None:
        self.answers.append(answer)
        self.came.set()

    async def asked(self, desk: HostService, question: messages.Question, n: int = 1) -> messages.HomeAnswer:
        self.came.clear()
        await desk.handle(messages.HostQuestion(n, question))
        await self.came.wait()
        return self.answers[-1]

    async def value(self, desk: HostService, question: messages.Question, form: type[T]) -> T:
        return messages.value_of(bytes((await self.asked(desk, question)).value), form)

    @property
    def used(self) -> tuple[int | None, ...]:
        return tuple(self.memory.ledger.usage("acme", "m", self.clock.now()))[:2]


@on_stage
async def test_what_hosts_tell_is_on_record_here(stage: EvalStage) -> None:
    kin = ProcessTree(stage)
    told: tuple[Entry, ...] = (BodyEntry("ab", b"{}"), FactEntry("x_far", 0, 1.0, Received("openai-chat", "m", "ab")))
    await kin.desk().handle(messages.RecordEntries(told))
    await stage.stage.store.settle()
    assert len(await stage.stage.store.facts("x_far")) == 1


@on_stage
async def test_recording_failure_is_logged_and_stops_no_case(
    stage: EvalStage, caplog: pytest.LogCaptureFixture
) -> None:
    kin = ProcessTree(stage)

    def full(_entries: object) -> None:
        raise OSError("the disk is full")

    kin.home = Home(full, kin.home.logbook, kin.memory, kin.clock, kin.home.sharing, kin.purse)
    await kin.desk().handle(messages.RecordEntries(()))
    assert "the disk is full" in caplog.text


@on_stage
async def test_money_is_counted_once_for_all_hosts(stage: EvalStage) -> None:
    kin = ProcessTree(stage)
    for desk in (kin.desk(), kin.desk(), kin.desk()):
        await desk.handle(messages.CostSpent(0.5))
    assert kin.purse.spent == 1.5


@on_stage
async def test_requests_of_three_hosts_keep_to_one_limit(stage: EvalStage) -> None:
    kin = ProcessTree(stage)
    desks = [kin.desk() for _ in range(3)]
    facts = Facts(rpm=3)
    waits: list[float] = stage.stage.clock.waits  # type: ignore[attr-defined]
    for n, desk in enumerate(desks, 1):
        await kin.asked(desk, messages.Admit("acme", "m", 0, facts), n)
        await desk.handle(messages.RequestReleased(n))
        await desk.handle(messages.RequestCounted(n, "acme", "m", 10))
    assert (waits, kin.used) == ([], (3, 30))
    await kin.asked(desks[0], messages.Admit("acme", "m", 0, facts), 4)
    assert waits == [pytest.approx(60, abs=2)]


@on_stage
async def test_tokens_are_settled_by_the_number_of_the_request(
    stage: EvalStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "MOST_REMEMBERED", 2)
    kin = ProcessTree(stage)
    one, two = kin.desk(), kin.desk()
    await one.handle(messages.RequestCounted(1, "acme", "m", 10))
    await two.handle(messages.RequestCounted(1, "acme", "m", 100))
    await one.handle(messages.Settled(1, 7))
    await two.handle(messages.Uncounted(1))
    await two.handle(messages.Uncounted(1))
    assert kin.used == (1, 7)
    for n in (2, 3):
        await one.handle(messages.RequestCounted(n, "acme", "m", 1))
    await one.handle(messages.Settled(1, 50))  # so long ago that nobody remembers it
    assert kin.used == (3, 9)


@on_stage
async def test_rate_limits_reported_to_one_host_apply_to_all_hosts(stage: EvalStage) -> None:
    kin = ProcessTree(stage)
    one, two = kin.desk(), kin.desk()
    await one.handle(messages.Observed("acme", "m", {"retry-after": "30"}))
    answer = await kin.value(two, messages.HowLong("acme", "m", 5, Facts()), Wait)
    assert answer == Wait(pytest.approx(30), "asked", "retry_after")
    await one.handle(messages.Learned("acme", "m", Estimate(10, 9, 11), Usage(input_tokens=12), False))
    assert kin.memory.calibration.has_seen


@on_stage
async def test_a_request_that_can_never_go_is_refused_and_how_long_is_a_number(stage: EvalStage) -> None:
    kin = ProcessTree(stage)
    desk = kin.desk()
    refused = (await kin.asked(desk, messages.Admit("acme", "m", 500, Facts(tpm=100)))).fault
    assert refused is not None
    assert refused.code is Code.REQUEST_TOO_LARGE_FOR_RATE
    assert (await kin.value(desk, messages.HowLong("acme", "m", 500, Facts(tpm=100)), Wait)).seconds > 1e9


@on_stage
async def test_what_a_lost_host_was_to_send_is_no_longer_counted(stage: EvalStage) -> None:
    kin = ProcessTree(stage)
    desk = kin.desk()
    await kin.asked(desk, messages.Admit("acme", "m", 5, Facts(rpm=1)))
    assert kin.used == (1, 5)
    await desk.close()
    assert kin.used == (0, 0)
    await desk.handle(messages.RequestReleased(1))


@on_stage
async def test_questions_of_a_lost_host_are_dropped(stage: EvalStage) -> None:
    kin = ProcessTree(stage)
    desk = kin.desk()
    await desk.handle(messages.HostQuestion(1, messages.ReadLines("run:r_1")))
    await desk.close()
    assert kin.answers == []


@on_stage
async def test_logs_of_runs_are_kept_here(stage: EvalStage) -> None:
    kin = ProcessTree(stage)
    desk = kin.desk()
    assert (await kin.asked(desk, messages.Append("run:r_9", 0, (b"one", b"two"), 5.0))).fault is None
    overtaken = (await kin.asked(desk, messages.Append("run:r_9", 0, (b"one",), 5.0))).fault
    assert overtaken is not None
    assert overtaken.status == 409
    lines = await kin.value(desk, messages.ReadLines("run:r_9", 1), tuple[Line, ...])
    assert [line.data for line in lines] == [b"two"]
    logs = await kin.value(desk, messages.ListLogs("run:"), tuple[Log, ...])
    assert [log.name for log in logs] == ["run:r_9"]


@on_stage
async def test_an_answer_of_one_host_is_found_by_another(stage: EvalStage) -> None:
    await stage.run()
    kin = ProcessTree(stage)
    one, two = kin.desk(), kin.desk()
    exchange = (await stage.evaluation.show("e_1")).standing.results[0].observation.exchanges[0]
    assert await kin.value(two, messages.Find("acme", "k"), messages.FindAnswer) == messages.FindAnswer()
    await one.handle(messages.Keep("acme", "k", exchange))
    found = await kin.value(two, messages.Find("acme", "k"), messages.FindAnswer)
    assert found.exchange == exchange
    assert found.facts == tuple(await stage.stage.store.facts(exchange))
    await kin.home.sharing.close()


@on_stage
async def test_nothing_is_found_when_the_cache_is_off(stage: EvalStage) -> None:
    kin = ProcessTree(stage, is_cached=False)
    desk = kin.desk()
    await desk.handle(messages.Keep("acme", "k", "x_1"))
    assert await kin.value(desk, messages.Find("acme", "k"), messages.FindAnswer) == messages.FindAnswer()


class Attended:
    """A host with a worker, attended from home. `lost` counts how often it was."""

    def __init__(self, stage: EvalStage, worker: FakeWorker) -> None:
        self.kin = ProcessTree(stage)
        self.worker = worker
        self.lost = self.freed = 0
        self.host_pool = NearHostPool(lambda _root: opens(worker), stage.root / "hosts")

    async def begun(self) -> tuple[HostHandle, NearPost]:
        post = await self.host_pool.start_host()
        attendant = HostHandle(post, self.kin.home, self._lose, self._free)
        await attendant.begin(BEGIN)
        return attendant, post

    def _lose(self, _attendant: HostHandle) -> None:
        self.lost += 1

    def _free(self) -> None:
        self.freed += 1


@on_stage
async def test_a_case_goes_there_and_its_result_comes_back(stage: EvalStage) -> None:
    attended = Attended(stage, FakeWorker())
    attendant, post = await attended.begun()
    assert await attendant.run(KEY) == passed(KEY)
    post.host.line.tell(messages.CostSpent(0.5))
    await attendant.close()
    assert (attended.kin.purse.spent, attended.lost, attended.freed) == (0.5, 0, 1)
    assert attended.worker.is_closed
    assert post.is_ended


@on_stage
async def test_lost_host_fails_its_cases_and_is_reported_once(stage: EvalStage) -> None:
    worker, begun, _ = stuck_worker()
    attended = Attended(stage, worker)
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


@on_stage
async def test_a_host_that_leaves_by_itself_is_lost_too(stage: EvalStage) -> None:
    worker, begun, _ = stuck_worker()
    attendant, post = await Attended(stage, worker).begun()
    running = asyncio.get_running_loop().create_task(attendant.run(KEY))
    await begun.wait()
    await post.host.leave()
    with pytest.raises(LostError, match="it has left"):
        await running
    await attendant.close()


@on_stage
async def test_cancelling_the_caller_cancels_the_case_on_its_host(stage: EvalStage) -> None:
    worker, begun, cut = stuck_worker()
    attendant, _ = await Attended(stage, worker).begun()
    running = asyncio.get_running_loop().create_task(attendant.run(KEY))
    await begun.wait()
    running.cancel()
    await cut.wait()
    await attendant.close()


@on_stage
async def test_a_mistake_of_ours_on_a_host_is_loud_here(stage: EvalStage) -> None:
    async def act(_key: Key) -> None:
        raise ZeroDivisionError("oops")

    attendant, _ = await Attended(stage, FakeWorker(act)).begun()
    with pytest.raises(RuntimeError, match="a host broke at a case: ZeroDivisionError"):
        await attendant.run(KEY)
    await attendant.close()


@on_stage
async def test_a_host_that_does_not_come_to_an_end_is_ended(stage: EvalStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "GOODBYE", 0.01)
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
