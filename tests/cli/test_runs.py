import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.model.parts import Text, ToolCall
from tests.loop_stage import reply, says
from tests.running_stage import plays
from tests.tool_desk import ToolDesk, tool_desk
from tests.upstream import says as answers

Captured = pytest.CaptureFixture[str]
ADD = ToolCall("c1", "add", '{"a": 2, "b": 3}')


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolDesk]:
    with tool_desk(tmp_path) as made:
        monkeypatch.chdir(tmp_path)
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


def test_runs_are_listed_newest_first_and_shown_round_by_round(desk: ToolDesk, capsys: Captured) -> None:
    unknown = ToolCall("c2", "subtract", "{}")
    desk.upstream.script = [
        plays(says("Hello.")),
        plays(reply(Text("Let me see."), ADD, unknown)),
        answers({"error": {"message": "no"}}, 400),
    ]
    assert main(["ask", "--tools", "tools.py", "--yes", "Greet me."]) == 0
    assert main(["ask", "--tools", "tools.py", "--yes", "Add\nthem."]) == 3
    capsys.readouterr()
    assert main(["runs"]) == 0
    heading, newest, oldest = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["TIME", "RUN", "STATE"]
    assert "failed" in newest
    assert newest.endswith("Add them.")
    assert "answered" in oldest
    assert main(["runs", "--json", "--limit", "1"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    run = json.loads(line)["id"]
    assert main(["runs", run[:-2]]) == 0
    told = capsys.readouterr().out
    assert f"run       {run}\n" in told
    assert "state     ended failed\n" in told
    assert "Let me see.\n→ add" in told
    assert "← add: 5\n" in told
    assert "← subtract (refused): " in told
    assert "error[invalid_request]: no\n" in told
    assert main(["runs", "--json", run]) == 0
    assert json.loads(capsys.readouterr().out)["rounds"][0]["calls"][0]["name"] == "add"


def test_without_runs_there_is_nothing_to_list(desk: ToolDesk, capsys: Captured) -> None:
    assert main(["runs"]) == 0
    assert capsys.readouterr() == ("", "no runs on record\n")
    assert main(["runs", "--json"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_name_must_mean_one_run(desk: ToolDesk, capsys: Captured) -> None:
    desk.upstream.script = [plays(says("Hello."))]
    for _ in range(2):
        assert main(["ask", "--tools", "tools.py", "--yes", "--quiet", "Greet me."]) == 0
    capsys.readouterr()
    assert main(["runs", "r_"]) == 2
    assert "error[usage]: 2 runs begin with 'r_'\nhint: `sightline runs` lists them.\n" in capsys.readouterr().err
    assert main(["runs", "x"]) == 2
    assert "there is no run 'x'" in capsys.readouterr().err
