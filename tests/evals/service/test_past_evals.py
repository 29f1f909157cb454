import asyncio
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.evals.core.run_state import CaseStarted, EvalBegan, EvalEnded, EvalFact, EvalTaken, write
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.target import TargetSpec
from sightline.evals.service import eval_log as module
from sightline.evals.service.eval_log import PastEvals
from sightline.store.sqlite import SqliteLogbook
from tests.eval_stage import EvalStage, on_stage, open_evals

BEGAN = EvalBegan(suite=Suite(name="s", cases=(Case(id="a"),)), targets=(TargetSpec(name="t", mock=""),), at=5.0)


async def added(stage: EvalStage, run: str, after: int, *facts: EvalFact) -> None:
    await stage.stage.store.logbook.append(f"eval:{run}", after, [write(fact) for fact in facts], 1.0 + after)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ([EvalTaken("alive")], "running"),
        ([EvalTaken("gone")], "interrupted"),
        ([EvalTaken("alive"), EvalEnded("finished")], "ended"),
        ([EvalTaken("alive"), EvalEnded("budget")], "stopped"),
        ([EvalTaken("alive"), EvalEnded("stopped")], "stopped"),
    ],
)
@on_stage
async def test_a_run_is_as_its_last_process_left_it(stage: EvalStage, facts: list[EvalFact], state: str) -> None:
    await added(stage, "e_1", 0, BEGAN, *facts)
    past = PastEvals(stage.stage.store.logbook, lambda name: name == "alive")
    assert past.state(await past.standing("e_1")) == state
    (brief,) = await past.list_runs(9)
    assert (brief.run, brief.name, brief.state, brief.at, brief.of) == ("e_1", "s", state, 5.0, 1)


async def test_only_what_is_new_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    lines = SqliteLogbook.lines

    async def counted(self: SqliteLogbook, log: str, after: int = 0) -> object:
        asked.append(after)
        return await lines(self, log, after)

    monkeypatch.setattr(SqliteLogbook, "lines", counted)
    monkeypatch.setattr(module, "_MOST_KEPT", 1)

    async with open_evals(tmp_path) as (stage, _):
        past = PastEvals(stage.stage.store.logbook, lambda _: True)
        await added(stage, "e_1", 0, BEGAN, EvalTaken("p"))
        await past.standing("e_1")
        await added(stage, "e_1", 2, CaseStarted("a", "t", 0))
        assert (await past.standing("e_1")).running == (("a", "t", 0),)
        assert asked == [0, 2]
        await added(stage, "e_2", 0, BEGAN)
        await past.standing("e_2")
        both = await asyncio.gather(past.standing("e_1"), past.standing("e_1"))
        assert [each.version for each in both] == [3, 3]


@on_stage
async def test_a_log_without_a_beginning_is_no_run(stage: EvalStage) -> None:
    past = PastEvals(stage.stage.store.logbook, lambda _: True)
    await added(stage, "e_1", 0, EvalTaken("p"))
    for run in ("e_1", "e_2"):
        with pytest.raises(Fault, match="there is no run") as caught:
            await past.standing(run)
        assert caught.value.status == 404
