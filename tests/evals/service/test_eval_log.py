from sightline.evals.core.exports import to_index, to_jsonl, to_junit
from sightline.evals.core.result import CaseObservation
from sightline.evals.core.run_state import CaseDone, EvalBegan, EvalFact, EvalState, EvalTaken, RunOptions, read
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.eval_log import PREFIX, EvalLog
from tests.eval_stage import EvalStage, on_stage
from tests.evals.core.rows import row

BEGAN = EvalBegan(suite=Suite(name="s"), targets=(TargetSpec(name="t", mock="my-secret-key"),))
KEYED = EvalBegan(
    suite=Suite(name="s", cases=(Case(id="c"),)),
    targets=(TargetSpec(name="t", mock="my-secret-key"),),
    options=RunOptions(trials=2),
)


@on_stage
async def test_facts_update_state_immediately_and_are_announced_once_written(stage: EvalStage) -> None:
    logbook = stage.stage.store.logbook
    written: list[EvalFact] = []
    standing = EvalState(BEGAN)
    log = EvalLog(logbook, "e_5", standing, now=lambda: 7.0, secrets=("my-secret-key",), written=written.append)
    log.note(BEGAN)
    log.note(EvalTaken("p"))
    assert (standing.by, standing.version, written) == ("p", 2, [])
    await log.flush()
    assert written == [BEGAN, EvalTaken("p")]
    lines = await logbook.lines(PREFIX + "e_5")
    assert [line.at for line in lines] == [7.0, 7.0]
    assert b"my-secret-key" not in lines[0].data
    assert read(lines[1].data) == EvalTaken("p")


@on_stage
async def test_a_result_is_known_without_the_keys_too(stage: EvalStage) -> None:
    standing = EvalState(KEYED)
    told: list[EvalFact] = []
    log = EvalLog(
        stage.stage.store.logbook, "e_5", standing, now=lambda: 7.0, secrets=("my-secret-key",), written=told.append
    )
    log.note(KEYED)
    said = CaseObservation(text="it is my-secret-key")
    log.note(CaseDone(row("c", 1.0, target="t", seen=said)))
    await log.append(CaseDone(row("c", 1.0, target="t", trial=1, seen=said)))
    # What is exported is what the run stands at, and a model may well say what it was told.
    for export in (to_jsonl, to_junit, to_index):
        assert b"my-secret-key" not in export(standing.results)
    assert [each.observation.text for each in standing.results] == ["it is ***"] * 2
    assert [each.result for each in told if isinstance(each, CaseDone)] == list(standing.results)
    assert standing.began.targets[0].mock == "my-secret-key"
