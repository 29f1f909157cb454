"""Runs of suites in processes of their own, which are killed in the middle: what was done stays done."""

import asyncio
import json
import random
import sys
from pathlib import Path

from tests.eval_stage import knows
from tests.upstream import Talk, Upstream

CASES = 24
TRIALS = 2
WORKERS = 4
PROGRAM = """
import asyncio, json, sys
from pathlib import Path

from sightline.app.configuration import configuration
from sightline.app.evals import open_evaluation
from sightline.evals.core.run_state import RunOptions
from sightline.evals.core.suite import Suite
from sightline.evals.core.target import TargetSpec
import msgspec

async def main(how, folder):
    suite = msgspec.json.decode((folder / "suite.json").read_bytes(), type=Suite)
    async with open_evaluation(configuration(str(folder / "sightline.toml")), str(folder / "data"), folder) as evals:
        if how == "run":
            targets = [TargetSpec(name="acme", model="acme/m"), TargetSpec(name="parrot", mock="I know 3")]
            options = RunOptions(trials=TRIALS, workers=WORKERS, cache=False)
            standing = await evals.run(suite, targets, options, lambda _: None, run="e_1")
        else:
            standing = await evals.resume("e_1", lambda _: None)
        rows = [[r.case, r.target, r.trial, r.status, r.score.verdict, r.score.score] for r in standing.results]
        print(json.dumps(rows))

asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
"""


def suite() -> bytes:
    """Numbers that the model knows or does not; some depend on others."""
    cases = [
        {
            "id": f"c{number}",
            "messages": [{"role": "user", "segments": [{"type": "text", "text": f"Say number {number}."}]}],
            "graders": [{"type": "contains", "name": "says", "config": {"value": f"know {number}"}}],
            "depends_on": [f"c{number - 5}"] if number % 5 == 0 and number else [],
        }
        for number in range(CASES)
    ]
    return json.dumps({"name": "numbers", "cases": cases, "file": "numbers.yaml"}).encode()


class Stage:
    """A folder with all that a process needs, and a model that can be waited for."""

    def __init__(self, folder: Path, upstream: Upstream) -> None:
        folder.mkdir()
        self.folder = folder
        self.upstream = upstream
        self.kill_at = 0
        self.is_time = asyncio.Event()
        (folder / "suite.json").write_bytes(suite())
        (folder / "program.py").write_text(f"TRIALS, WORKERS = {TRIALS}, {WORKERS}\n{PROGRAM}")
        (folder / "sightline.toml").write_text(
            f'[providers.acme]\ndialect = "openai-chat"\nbase_url = "{upstream.url}"\nkey_env = "ACME_KEY"\n'
        )
        known = {f"number {number}.": f"I know {number}" for number in range(CASES) if number % 3}
        answers = knows(upstream, known)

        async def model(talk: Talk) -> None:
            if self.kill_at and len(upstream.seen) >= self.kill_at:
                self.is_time.set()
            await answers(talk)

        upstream.script = [model]

    async def process(self, how: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, str(self.folder / "program.py"), how, str(self.folder),
            stdout=asyncio.subprocess.PIPE,
            env={"ACME_KEY": "sk-test-1234567890", "PATH": "/usr/bin:/bin", "HOME": str(self.folder)},
        )  # fmt: skip

    async def finished(self, how: str) -> list[object]:
        process = await self.process(how)
        output, _ = await process.communicate()
        assert process.returncode == 0
        return json.loads(output)

    async def killed(self, how: str, after: int) -> None:
        """Start it, and kill it when the model has been asked that many times more; it may be done before."""
        self.kill_at = len(self.upstream.seen) + after
        self.is_time.clear()
        process = await self.process(how)
        time, end = asyncio.ensure_future(self.is_time.wait()), asyncio.ensure_future(process.wait())
        await asyncio.wait({time, end}, return_when=asyncio.FIRST_COMPLETED)
        if process.returncode is None:
            process.kill()
        await process.communicate()
        await end
        time.cancel()
        self.kill_at = 0


async def test_a_run_that_is_killed_again_and_again_ends_in_the_same_table(tmp_path: Path) -> None:
    async with Upstream() as upstream:
        whole = Stage(tmp_path / "whole", upstream)
        expected = await whole.finished("run")
        asked = len(upstream.seen)
        assert len(expected) == CASES * TRIALS * 2
    async with Upstream() as upstream:
        stage = Stage(tmp_path / "killed", upstream)
        chance = random.Random(0)
        kills = [chance.randint(1, 12) for _ in range(3)]
        for number, after in enumerate(kills):
            await stage.killed("resume" if number else "run", after)
        assert await stage.finished("resume") == expected
        assert len(upstream.seen) <= asked + len(kills) * WORKERS
