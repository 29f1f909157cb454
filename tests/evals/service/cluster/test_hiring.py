from pathlib import Path

import msgspec
import pytest

from sightline.errors import Fault
from sightline.evals.core.facts import EvalBegan, read
from sightline.evals.core.options import RunOptions
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.cluster.messages import Begin, Keys, for_host
from sightline.evals.service.cluster.pool import open_worker
from sightline.evals.service.cluster.remote import Elsewhere, Needs
from sightline.evals.service.context import EvalRun
from sightline.evals.service.target import Spending
from sightline.settings import Settings
from tests.cluster_stage import OURS, FakeWorker, NearFleet, NearPost, opens
from tests.eval_stage import ACME, EvalStage, play
from tests.upstream import Upstream

MOCK = TargetSpec(name="parrot", mock="Paris")
PROGRAM = TargetSpec(name="program", cli=CommandSpec(command="cat", env=("PASSED",)), concurrency=3)


class Hired:
    """A stage whose cases are run on near hosts. `begun` is what the first of them was told."""

    def __init__(self, stage: EvalStage, **more: object) -> None:
        self.fleet = NearFleet(lambda _root: opens(FakeWorker()), stage.root.parent / "hosts")
        self.fleet.hired = self._overhear
        there = Elsewhere(self.fleet, stage.stage.hub.record, Settings(), OURS, "conf/sightline.toml", **more)  # type: ignore[arg-type]
        environment = {"PATH": "/bin", "ACME_KEY": "sk-1", "PASSED": "yes", "TOKEN": "t", "OTHER": "no"}
        self.stage = EvalStage(stage.stage, stage.root, elsewhere=there, environment=environment)
        self.began: list[bytes] = []

    def _overhear(self, post: NearPost) -> None:
        if len(self.fleet.posts) > 1:
            return
        told = post.host.receive

        def hear(data: bytes) -> None:
            self.began.append(data)
            told(data)

        post.host.receive = hear  # type: ignore[method-assign]

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
        began, run = EvalBegan(suite=suite, targets=targets, options=RunOptions(budget_usd=budget)), self.stage.stage
        around = self.stage.evaluation.surroundings
        opening = EvalRun("e_1", began, run.engine, run.store.logbook, around, Spending())
        async with open_worker(opening) as plan:
            return plan.widths


def test_hosts_are_told_what_they_need_and_no_more(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
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

    play(story, tmp_path)


def test_the_suites_own_number_of_cases_at_once_holds_for_the_whole_cluster(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        text = "execution: {workers: 5}\ntests:\n  - {id: a, input: hi, criteria: It greets.}\n"
        assert await Hired(stage).widths(ACME, text=text) == {"acme": 5}

    play(story, tmp_path)


def test_targets_that_ask_nobody_need_no_cluster(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        hired = Hired(stage)
        assert await hired.widths(MOCK) == {"parrot": 8}
        assert hired.fleet.posts == []

    play(story, tmp_path)


def test_what_is_wrong_with_a_model_is_told_before_anybody_is_hired(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        hired = Hired(stage)
        with pytest.raises(Fault, match="the prices of other are not known"):
            await hired.widths(TargetSpec(name="other", model="acme/other"), PROGRAM, budget=1.0)
        assert hired.fleet.posts == []

    play(story, tmp_path)


def test_nobody_judges_out_of_a_record_that_is_not_there(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        hired = Hired(stage)
        past = TargetSpec(name="past", model="acme/m", replay="")
        judged = TargetSpec(name="judged", model="acme/m", judge="past")
        with pytest.raises(Fault, match="past judges out of the record, which a cluster does not have"):
            await hired.widths(past, judged)
        assert hired.fleet.posts == []
        assert await hired.widths(past, ACME) == {"past": 16, "acme": 16}

    play(story, tmp_path)
