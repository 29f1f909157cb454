"""`sightline costs` on a record."""

import asyncio
import json
from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.cli.recorded_folder import fill, stand_alone_in
from tests.recordings import exchange
from tests.store.traffic import NOON


@pytest.fixture(autouse=True)
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone_in(tmp_path, monkeypatch)
    monkeypatch.setenv("TZ", "UTC")
    bodies = [b'{"model":"m","messages":[]}', b'{"model":"m","messages":[1]}']
    exchanges = [exchange(f"x_{n}", body, at=NOON + n, session="s") for n, body in enumerate(bodies)]
    asyncio.run(fill(tmp_path / "data", *exchanges))


def test_a_table_has_groups_and_a_total(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["costs", "--by", "model"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["MODEL", "REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST", "SAVED"]
    assert [line.split()[:3] for line in lines[1:]] == [["m", "2", "18"], ["total", "2", "18"]]


def test_json_and_csv_have_the_same_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["costs", "--as", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert main(["costs", "--as", "csv"]) == 0
    total = capsys.readouterr().out.splitlines()[-1].split(",")
    assert total[:2] == ["total", str(shown["total"]["requests"])]


def test_a_filter_takes_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["costs", "session:none"]) == 0
    assert "no recorded exchange matches" in capsys.readouterr().err


def test_a_report_that_differs_exits_with_1_and_names_a_filter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.csv"
    report.write_text("day,model,input_tokens\n2026-01-01,m,1\n")
    assert main(["costs", "--reconcile", str(report)]) == 1
    assert "sightline traffic 'date:2026-01-01 & model:*m*'" in capsys.readouterr().err
    assert main(["costs", "--reconcile", str(report), "--by", "day"]) == 2
