import json
from pathlib import Path

import pytest

from sightline.cli.program import main

Captured = pytest.CaptureFixture[str]


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
    assert err == "note: the last line of cut.jsonl is cut, and left out\n"
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


def test_a_side_without_results_or_with_an_unknown_target_is_told(
    runs: tuple[str, str], folder: Path, capsys: Captured
) -> None:
    (folder / "empty.jsonl").write_text("")
    assert main(["eval", "compare", runs[0], "empty.jsonl"]) == 2
    assert "B has no results yet" in capsys.readouterr().err
    assert main(["eval", "compare", *runs, "--target", "nobody"]) == 2
    assert main(["eval", "compare", "e_9", runs[0]]) == 2
