"""What Sightline exports for AgentV, read by AgentV's own commands. TEST_CLIENTS=1 says that it may be fetched."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from sightline.evals.core.exports import to_index
from sightline.evals.core.result import CaseObservation, Check, Score
from sightline.model.reply import Usage
from tests.e2e.test_agentv import agentv as agentv
from tests.evals.core.rows import failed, row

pytestmark = pytest.mark.skipif(
    os.environ.get("TEST_CLIENTS") != "1", reason="fetches and runs AgentV; TEST_CLIENTS=1 allows it"
)

ODD = "a\x00b ]]> </script> \ud800 \U0001f600\u2028 end"
SEEN = CaseObservation(text=ODD, usage=Usage(input_tokens=3, output_tokens=4), cost=0.1, seconds=1.2)
WRONG = Score(name="exact", type="equals", verdict="fail", score=0.0, reason=ODD, checks=(Check(ODD, False, ODD),))


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two runs as folders of AgentV's."""
    first = [row("one", 1.0, seen=SEEN), row("two", 0.2, scores=(WRONG,)), failed("three", ODD), row("four", None)]
    contents = {"a": to_index(first), "b": to_index([row("one", 0.4), row("two", 0.9)])}
    for name, content in contents.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.jsonl").write_bytes(content)
    return [tmp_path / name for name in contents]


def said(program: Path, *words: object) -> str:
    done = subprocess.run(
        [program, *map(str, words)], capture_output=True, text=True, timeout=120, errors="replace", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_finds_nothing_wrong_with_the_rows(agentv: Path, runs: list[Path]) -> None:
    assert "4 test(s), 0 error(s)" in said(agentv, "results", "validate", runs[0])


def test_it_sums_them_up(agentv: Path, runs: list[Path]) -> None:
    summary = json.loads(said(agentv, "results", "summary", runs[0] / "index.jsonl"))
    assert (summary["total"], summary["passed"], summary["total_tokens"]) == (4, 1, 7)
    assert summary["failed_test_ids"] == ["two", "three", "four"]
    failures = json.loads(said(agentv, "results", "failures", runs[0] / "index.jsonl"))
    assert [each["test_id"] for each in failures] == ["two", "three", "four"]
    assert failures[0]["assertions"][0]["passed"] is False


def test_it_compares_two_of_them_and_writes_a_report(agentv: Path, runs: list[Path]) -> None:
    compared = said(agentv, "compare", runs[0] / "index.jsonl", runs[1] / "index.jsonl")
    assert "1 win, 1 loss, 0 ties" in compared
    assert "Report written" in said(agentv, "results", "report", runs[0] / "index.jsonl")
