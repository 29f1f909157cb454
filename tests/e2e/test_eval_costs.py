"""What is not known of a run's cost is not 0: in the report, in every export, and where a budget counts it."""

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sightline.cli.program import main
from tests.cli.evals.eval_folder import eval_folder, run_reported
from tests.upstream import Upstream

Captured = pytest.CaptureFixture[str]
SUITE = "capitals.eval.yaml"
TARGETS = """
[models."acme/priced"]
prices = { input = 1.0, output = 2.0 }
[evals.targets.program]
cli = { words = ["echo", "Paris, Rome and Madrid."] }
[evals.targets.telling]
cli = { command = "cat told.json > {OUTPUT_FILE}" }
"""


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with eval_folder(tmp_path, monkeypatch, TARGETS) as upstream:
        (tmp_path / "told.json").write_text(json.dumps({"text": "Paris, Rome and Madrid.", "cost_usd": 0.25}))
        yield upstream


def report(capsys: Captured, *words: str) -> tuple[dict[str, object], str]:
    _, found, err = run_reported(capsys, SUITE, *words)
    return found, err


def test_unknown_cost_is_null_and_counted(upstream: Upstream, capsys: Captured) -> None:
    found, _ = report(capsys, "--target", "program", "--target", "telling", "--target", "all", "--output", "out")
    costs = {each["target"]: each["cost"] for each in found["targets"]}
    assert costs == {
        "program": {"total": None, "known": 0, "unknown": 3, "at_least": 0.0},
        "telling": {"total": 0.75, "known": 3, "unknown": 0, "at_least": 0.75},
        "all": {"total": 0.0, "known": 3, "unknown": 0, "at_least": 0.0},
    }
    said = {each["target"]: " ".join(each["said"]) for each in found["targets"]}
    assert "What 3 of 3 answers cost is not known." in said["program"]
    assert "not known" not in said["telling"] + said["all"]
    suites = ElementTree.parse("out/junit.xml").getroot().findall("testsuite")
    told = [{each.get("name"): each.get("value") for each in suite.iter("property")} for suite in suites]
    assert ("cost_usd" in told[0], told[0]["cost_unknown"], told[1]["cost_usd"]) == (False, "3", "0.750000")
    main(["eval", "show", str(found["run"])])
    out = capsys.readouterr().out
    assert " unknown " in next(line for line in out.splitlines() if line.startswith("program"))


def test_a_budget_says_what_it_cannot_count(upstream: Upstream, capsys: Captured) -> None:
    found, err = report(capsys, "--target", "program", "--budget-usd", "1")
    assert "note: program is a program" in err
    assert found["budget_usd"] == 1
    main(["eval", "show", str(found["run"])])
    assert "The budget of $1.00 counts only what is known: the cost of 3 requests is not." in capsys.readouterr().out


def test_a_case_that_was_never_sent_costs_nothing(upstream: Upstream, capsys: Captured) -> None:
    Path(SUITE).write_text(
        "tests: [{id: a, criteria: x, input: [{role: user, content: [{type: file, value: gone.md}]}]},"
        " {id: b, criteria: x, depends_on: [a], on_dependency_failure: fail, input: hi}]\n"
    )
    found, _ = report(capsys, "--target", "program")
    (target,) = found["targets"]
    assert (target["cost"]["total"], target["cost"]["unknown"]) == (0.0, 0)
