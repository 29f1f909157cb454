import asyncio
from pathlib import Path

import pytest

from sightline.engine.evaluating.eval_log import PREFIX, EvalLog
from sightline.errors import Fault
from sightline.evals.facts import EvalBegan, EvalFact, EvalTaken, read
from sightline.evals.standing import Standing
from sightline.evals.suite import Suite
from sightline.evals.target import TargetSpec
from tests.eval_stage import EvalStage, play
from tests.upstream import Upstream

BEGAN = EvalBegan(suite=Suite(name="s"), targets=(TargetSpec(name="t", mock="my-secret-key"),))


def test_facts_are_known_at_once_and_told_when_they_last(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        logbook = stage.stage.store.logbook
        written: list[EvalFact] = []
        standing = Standing(BEGAN)
        log = EvalLog(logbook, "e_5", standing, now=lambda: 7.0, secrets=("my-secret-key",), written=written.append)
        log.note(BEGAN)
        log.note(EvalTaken("p"))
        assert (standing.by, standing.version, written) == ("p", 2, [])
        await log.flushed()
        assert written == [BEGAN, EvalTaken("p")]
        lines = await logbook.lines(PREFIX + "e_5")
        assert [line.at for line in lines] == [7.0, 7.0]
        assert b"my-secret-key" not in lines[0].data
        assert read(lines[1].data) == EvalTaken("p")

    play(story, tmp_path)


def test_a_log_that_another_process_adds_to_is_left_to_it(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        logbook = stage.stage.store.logbook
        logs = [EvalLog(logbook, "e_5", Standing(BEGAN), now=lambda: 7.0) for _ in range(2)]
        for log in logs:
            log.note(BEGAN)
        with pytest.raises(Fault, match="taken over") as caught:
            await asyncio.gather(*(log.flushed() for log in logs))
        assert caught.value.status == 409

    play(story, tmp_path)
