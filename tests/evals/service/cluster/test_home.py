import asyncio
from pathlib import Path

import pytest

from sightline.catalog.facts import Facts
from sightline.errors import Code
from sightline.evals.service.cluster import home as home_module
from sightline.evals.service.cluster.home import Home, HostService
from sightline.evals.service.cluster.messages import (
    Admit,
    Append,
    CostSpent,
    Find,
    FindAnswer,
    HomeAnswer,
    HostQuestion,
    HowLong,
    Keep,
    Learned,
    Lines,
    ListLogs,
    Logs,
    Observed,
    Question,
    ReadLines,
    RecordEntries,
    RequestCounted,
    RequestReleased,
    Settled,
    Uncounted,
    Waiting,
    value_of,
)
from sightline.evals.service.context import OwnSharing
from sightline.evals.service.target import Spending
from sightline.model.exchange import Received
from sightline.model.usage import Usage
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.tokens.estimate import Estimate
from tests.eval_stage import EvalStage, play
from tests.upstream import Upstream


class ProcessTree:
    """A home on a stage, and desks for hosts. `answers` are what hosts were told."""

    def __init__(self, stage: EvalStage, *, is_cached: bool = True) -> None:
        run = stage.stage
        sharing = OwnSharing(run.engine, run.store.logbook, stage.evaluation.surroundings, is_cached=is_cached)
        self.purse = Spending()
        self.memory = run.engine.memory
        self.clock = run.clock
        self.home = Home(run.hub.record, run.store.logbook, self.memory, run.clock, sharing, self.purse)
        self.answers: list[HomeAnswer] = []
        self.came = asyncio.Event()

    def desk(self) -> HostService:
        return HostService(self.home, self._take)

    def _take(self, answer: HomeAnswer) -> None:
        self.answers.append(answer)
        self.came.set()

    async def asked(self, desk: HostService, question: Question, n: int = 1) -> HomeAnswer:
        self.came.clear()
        await desk.hear(HostQuestion(n, question))
        await self.came.wait()
        return self.answers[-1]

    @property
    def used(self) -> tuple[int | None, ...]:
        return tuple(self.memory.ledger.usage("acme", "m", self.clock.now()))[:2]


def test_what_hosts_tell_is_on_record_here(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage)
        told: tuple[Entry, ...] = (
            BodyEntry("ab", b"{}"),
            FactEntry("x_far", 0, 1.0, Received("openai-chat", "m", "ab")),
        )
        await kin.desk().hear(RecordEntries(told))
        await stage.stage.store.settle()
        assert len(await stage.stage.store.facts("x_far")) == 1

    play(story, tmp_path)


def test_a_record_that_fails_is_told_in_the_log_and_stops_no_case(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage)

        def full(_entries: object) -> None:
            raise OSError("the disk is full")

        kin.home = Home(full, kin.home.logbook, kin.memory, kin.clock, kin.home.sharing, kin.purse)
        await kin.desk().hear(RecordEntries(()))

    play(story, tmp_path)
    assert "the disk is full" in caplog.text


def test_money_is_counted_once_for_all_hosts(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage)
        for desk in (kin.desk(), kin.desk(), kin.desk()):
            await desk.hear(CostSpent(0.5))
        assert kin.purse.spent == 1.5

    play(story, tmp_path)


def test_requests_of_three_hosts_keep_to_one_limit(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage)
        desks = [kin.desk() for _ in range(3)]
        facts = Facts(rpm=3)
        waits: list[float] = stage.stage.clock.waits  # type: ignore[attr-defined]
        for n, desk in enumerate(desks, 1):
            await kin.asked(desk, Admit("acme", "m", 0, facts), n)
            await desk.hear(RequestReleased(n))
            await desk.hear(RequestCounted(n, "acme", "m", 10))
        assert (waits, kin.used) == ([], (3, 30))
        await kin.asked(desks[0], Admit("acme", "m", 0, facts), 4)
        assert waits == [pytest.approx(60, abs=2)]

    play(story, tmp_path)


def test_tokens_are_settled_by_the_number_of_the_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home_module, "MOST_REMEMBERED", 2)

    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage)
        one, two = kin.desk(), kin.desk()
        await one.hear(RequestCounted(1, "acme", "m", 10))
        await two.hear(RequestCounted(1, "acme", "m", 100))
        await one.hear(Settled(1, 7))
        await two.hear(Uncounted(1))
        await two.hear(Uncounted(1))
        assert kin.used == (1, 7)
        for n in (2, 3):
            await one.hear(RequestCounted(n, "acme", "m", 1))
        await one.hear(Settled(1, 50))  # so long ago that nobody remembers it
        assert kin.used == (3, 9)

    play(story, tmp_path)


def test_what_one_host_is_told_of_limits_holds_for_all(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage)
        one, two = kin.desk(), kin.desk()
        await one.hear(Observed("acme", "m", {"retry-after": "30"}))
        answer = await kin.asked(two, HowLong("acme", "m", 5, Facts()))
        assert value_of(bytes(answer.value), Waiting) == Waiting(pytest.approx(30), "asked", "retry_after")
        await one.hear(Learned("acme", "m", Estimate(10, 9, 11), Usage(input_tokens=12), False))
        assert kin.memory.calibration.has_seen

    play(story, tmp_path)


def test_a_request_that_can_never_go_is_refused_and_how_long_is_a_number(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage)
        desk = kin.desk()
        refused = (await kin.asked(desk, Admit("acme", "m", 500, Facts(tpm=100)))).fault
        assert refused is not None
        assert refused.code is Code.REQUEST_TOO_LARGE_FOR_RATE
        answer = await kin.asked(desk, HowLong("acme", "m", 500, Facts(tpm=100)))
        assert value_of(bytes(answer.value), Waiting).seconds > 1e9

    play(story, tmp_path)


def test_what_a_lost_host_was_to_send_is_no_longer_counted(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage)
        desk = kin.desk()
        await kin.asked(desk, Admit("acme", "m", 5, Facts(rpm=1)))
        assert kin.used == (1, 5)
        await desk.close()
        assert kin.used == (0, 0)
        await desk.hear(RequestReleased(1))

    play(story, tmp_path)


def test_nobody_waits_for_a_lost_host(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage)
        desk = kin.desk()
        await desk.hear(HostQuestion(1, ReadLines("run:r_1")))
        await desk.close()
        assert kin.answers == []

    play(story, tmp_path)


def test_logs_of_runs_are_kept_here(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage)
        desk = kin.desk()
        assert (await kin.asked(desk, Append("run:r_9", 0, (b"one", b"two"), 5.0))).fault is None
        overtaken = (await kin.asked(desk, Append("run:r_9", 0, (b"one",), 5.0))).fault
        assert overtaken is not None
        assert overtaken.status == 409
        lines = value_of(bytes((await kin.asked(desk, ReadLines("run:r_9", 1))).value), Lines)
        assert [line.data for line in lines] == [b"two"]
        logs = value_of(bytes((await kin.asked(desk, ListLogs("run:"))).value), Logs)
        assert [log.name for log in logs] == ["run:r_9"]

    play(story, tmp_path)


def test_an_answer_of_one_host_is_found_by_another(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        await stage.run()
        kin = ProcessTree(stage)
        one, two = kin.desk(), kin.desk()
        exchange = (await stage.evaluation.show("e_1")).standing.results[0].observation.exchanges[0]
        nothing = await kin.asked(two, Find("acme", "k"))
        assert value_of(bytes(nothing.value), FindAnswer) == FindAnswer()
        await one.hear(Keep("acme", "k", exchange))
        found = value_of(bytes((await kin.asked(two, Find("acme", "k"))).value), FindAnswer)
        assert found.exchange == exchange
        assert found.facts == tuple(await stage.stage.store.facts(exchange))
        await kin.home.sharing.close()

    play(story, tmp_path)


def test_where_everything_is_asked_anew_nothing_is_found(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        kin = ProcessTree(stage, is_cached=False)
        desk = kin.desk()
        await desk.hear(Keep("acme", "k", "x_1"))
        assert value_of(bytes((await kin.asked(desk, Find("acme", "k"))).value), FindAnswer) == FindAnswer()

    play(story, tmp_path)
