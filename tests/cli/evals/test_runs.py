from pathlib import Path

import pytest

from sightline.cli.evals.report import resolve_run
from sightline.errors import Fault
from tests.eval_stage import EvalStage, play
from tests.evals.api.eval_desk import FIXED
from tests.upstream import Upstream


def test_a_run_is_found_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    async def story(stage: EvalStage, _upstream: Upstream) -> None:
        with pytest.raises(Fault, match="there is no run 'last'"):
            await resolve_run(stage.evaluation, "last")
        await stage.run(targets=(FIXED,), run="e_1")
        await stage.run(targets=(FIXED,), run="e_12")
        assert await resolve_run(stage.evaluation, "e_1") == "e_1"
        assert await resolve_run(stage.evaluation, "e_12") == "e_12"
        assert await resolve_run(stage.evaluation, "last") == "e_12"
        with pytest.raises(Fault, match="2 runs begin with 'e_'"):
            await resolve_run(stage.evaluation, "e_")
        with pytest.raises(Fault, match="there is no run ''"):
            await resolve_run(stage.evaluation, "")

    play(story, tmp_path)
