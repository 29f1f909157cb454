import json
from pathlib import Path

import pytest

from sightline.cli.program import main

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
    assert capsys.readouterr().err == "no runs of suites on record\n"


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
