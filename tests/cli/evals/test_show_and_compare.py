import json
from pathlib import Path

import pytest

from sightline.cli.evals.report import resolve_run
from sightline.cli.program import main
from sightline.errors import Fault
from tests.eval_stage import EvalStage, on_stage
from tests.evals.api.eval_desk import FIXED

Captured = pytest.CaptureFixture[str]
TALK = """
name: talk
tests:
  - id: held
    criteria: x
    mode: conversation
    turns:
      - {input: About France., assertions: [{type: contains, value: Paris}]}
      - {input: About Rome., assertions: [{type: contains, value: nothing}]}
    assertions:
      - type: composite
        name: both
        required: true
        assertions: [{type: contains, value: Rome}]
        aggregator: {type: weighted_average}
"""


@pytest.fixture
def ran(folder: Path, capsys: Captured) -> Path:
    main(["eval", "run", "capitals.eval.yaml", "--target", "acme/m", "--target", "none", "--trials", "2"])
    capsys.readouterr()
    return folder


def test_runs_are_listed(ran: Path, capsys: Captured) -> None:
    assert main(["eval", "show"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["TIME", "RUN", "STATE", "DONE", "TARGETS", "SUITE"]
    assert line.endswith("ended  12/12  acme/m, none  capitals.eval.yaml")
    assert main(["eval", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 12
    assert main(["eval", "show", "--suite", "other.yaml"]) == 0
    assert capsys.readouterr().err == "no runs of suites are recorded\n"


def test_a_run_is_reported_again(ran: Path, capsys: Captured) -> None:
    assert main(["eval", "show", "last"]) == 0
    out = capsys.readouterr().out
    assert "FAILED (8)" in out
    assert "pass@2" in out
    assert main(["eval", "show", "e_", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == 12


def test_a_case_is_shown_with_what_was_sent_answered_and_graded(ran: Path, capsys: Captured) -> None:
    assert main(["eval", "show", "last", "spain", "--target", "acme/m", "--trial", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("case      spain on acme/m, trial 2\nverdict   fail, score 0")
    assert "\nSENT\n  user\n    What is the capital of Spain?\n\nANSWERED\n  assistant\n    Toledo\n" in out
    assert '    no  contains "Madrid"' in out
    assert "exchange  x_" in out
    assert main(["eval", "show", "last", "spain", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert main(["eval", "show", "last", "rome"]) == 2
    assert "Its cases are: france, italy, spain." in capsys.readouterr().err


def test_a_conversation_is_shown_turn_by_turn(folder: Path, capsys: Captured) -> None:
    (folder / "talk.yaml").write_text(TALK)
    main(["eval", "run", "talk.yaml", "--target", "acme/m"])
    assert "turn 2: contains-nothing (contains)" in capsys.readouterr().out
    assert main(["eval", "show", "last", "held"]) == 0
    out = capsys.readouterr().out
    assert "  turn 1: pass, score 1" in out
    assert "both (composite) " in out
    assert "required 0.8" in out


def test_an_answer_that_did_not_come_says_why(folder: Path, capsys: Captured) -> None:
    main(["eval", "run", "capitals.eval.yaml", "--target", "claude/m", "--case", "france"])
    capsys.readouterr()
    assert main(["eval", "show", "last", "france"]) == 0
    assert "\nerror     " in capsys.readouterr().out


@on_stage
async def test_a_run_is_found_by_the_beginning_of_its_name(stage: EvalStage) -> None:
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


@pytest.fixture
def runs(folder: Path, capsys: Captured) -> tuple[str, str]:
    found = []
    for target in ("none", "all"):
        main(["eval", "run", "capitals.eval.yaml", "--target", target, "--json", "--jsonl", f"{target}.jsonl"])
        found.append(json.loads(capsys.readouterr().out)["run"])
    return found[0], found[1]


def test_two_runs_are_compared_case_by_case(runs: tuple[str, str], capsys: Captured) -> None:
    assert main(["eval", "compare", *runs]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"A  {runs[0]} on none  mean 0\nB  {runs[1]} on all  mean 1\n")
    assert "the data cannot tell them apart" in out
    assert "3 wins, 0 losses, 0 ties" in out
    assert "(exact)" in out
    assert "now passes" in out
    assert "gain     1 of what was missing" in out


def test_files_of_results_are_compared_too(runs: tuple[str, str], folder: Path, capsys: Captured) -> None:
    (folder / "cut.jsonl").write_bytes((folder / "all.jsonl").read_bytes()[:-40])
    assert main(["eval", "compare", "none.jsonl", "cut.jsonl", "--json"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["before"], told["targets"], len(told["pairs"])) == ("none.jsonl", ["none", "all"], 2)
    assert err == "note: the last line of cut.jsonl is incomplete, and left out\n"
    assert main(["eval", "compare", runs[0], "all.jsonl"]) == 0


def test_targets_of_one_run_are_compared(folder: Path, capsys: Captured) -> None:
    main(["eval", "run", "capitals.eval.yaml", "--target", "all", "--target", "acme/m", "--json"])
    run = json.loads(capsys.readouterr().out)["run"]
    assert main(["eval", "compare", run, run]) == 2
    assert "A has several targets: all, acme/m" in capsys.readouterr().err
    assert main(["eval", "compare", run, run, "--target-a", "all", "--target-b", "acme/m", "--tolerance", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "A  all on all" in out
    assert "0 wins, 1 losses, 2 ties" in out
    assert "now fails" in out


def test_one_case_is_shown_with_its_differences(runs: tuple[str, str], capsys: Captured) -> None:
    assert main(["eval", "compare", *runs, "--case", "spain"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("trial 1: fail 0 → pass 1\n--- A none\n+++ B all\n")
    assert "-    I do not know." in out
    assert "+    Paris, Rome and Madrid." in out
    assert "contains-Madrid: 0 → 1" in out
    assert main(["eval", "compare", runs[0], runs[0], "--case", "spain"]) == 0
    assert "the same messages and the same answer" in capsys.readouterr().out
    assert main(["eval", "compare", *runs, "--case", "rome"]) == 2


def test_side_without_results_or_with_an_unknown_target_is_reported(
    runs: tuple[str, str], folder: Path, capsys: Captured
) -> None:
    (folder / "empty.jsonl").write_text("")
    assert main(["eval", "compare", runs[0], "empty.jsonl"]) == 2
    assert "B has no results yet" in capsys.readouterr().err
    assert main(["eval", "compare", *runs, "--target", "nobody"]) == 2
    assert main(["eval", "compare", "e_9", runs[0]]) == 2
