"""`sightline costs` on a record."""

import asyncio
import json
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.store.caps import FolderCounts
from sightline.tokens.caps import BucketKey
from sightline.workbench.costs import GROUPS
from tests.cli.recorded_folder import fill, stand_alone_in
from tests.recordings import exchange, failed
from tests.store.traffic import NOON


@pytest.fixture(autouse=True)
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone_in(tmp_path, monkeypatch)
    monkeypatch.setenv("TZ", "UTC")
    bodies = [b'{"model":"m","messages":[]}', b'{"model":"m","messages":[1]}']
    exchanges = [exchange(f"x_{n}", body, at=NOON + n, session="s") for n, body in enumerate(bodies)]
    fill(tmp_path / "data", *exchanges)


def test_a_table_has_groups_and_a_total(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["costs", "--by", "model"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["MODEL", "REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST", "SAVED"]
    assert [line.split()[:3] for line in lines[1:]] == [["m", "2", "18"], ["total", "2", "18"]]


def test_a_group_that_does_not_exist_is_wrong_usage_and_the_help_lists_those_that_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["costs", "--by", "moon"]) == 2
    assert f"There are {', '.join(GROUPS)}." in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["costs", "--help"])
    assert f"{', '.join(GROUPS)}; several" in " ".join(capsys.readouterr().out.split())


def test_below_the_table_is_where_the_prices_are_from(capsys: pytest.CaptureFixture[str]) -> None:
    prices = 'prices = { input = 1.0, output = 2.0, as_of = "2026-11", source = "https://acme/prices" }'
    Path("sightline.toml").write_text(f'[models."m"]\n{prices}\n')
    assert main(["costs"]) == 0
    assert "prices of 2026-11 (https://acme/prices): m" in capsys.readouterr().err


def test_a_failed_request_does_not_make_the_cost_of_the_others_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path / "data", exchange("x_9", b'{"model":"m","messages":[9]}', [b"{}"], end=failed(429)))
    assert main(["costs", "--by", "model"]) == 0
    total = capsys.readouterr().out.splitlines()[-1].split()
    assert (total[1], total[5]) == ("3", "unknown")


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


CAPS = """
[[caps]]
name = "daily"
dollars = 2
[[caps]]
name = "each"
per = ["session"]
window = "always"
tokens = 1000
"""


def test_caps_are_printed_with_what_is_left_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["costs", "--caps"]) == 0
    assert "no caps are set" in capsys.readouterr().err
    Path("sightline.toml").write_text(CAPS)
    assert main(["costs", "--caps"]) == 0
    assert "nothing is spent yet" in capsys.readouterr().err

    async def spend() -> None:
        counts = FolderCounts(tmp_path / "data")
        await counts.settle(BucketKey("each", "tokens", '["=fix@shop"]', ""), 0, 250)
        await counts.settle(BucketKey("daily", "dollars", "[]", "2026-01-01"), 0, 500_000_000)
        await counts.close()

    asyncio.run(spend())
    assert main(["costs", "--caps"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["CAP", "BUCKET", "PERIOD", "SPENT", "RESERVED", "LIMIT", "SHARE"],
        ["daily", "–", "2026-01-01", "$0.5000", "$0.0000", "$2.0000", "25%"],
        ["each", "=fix@shop", "–", "250", "0", "1,000", "25%"],
    ]
    assert main(["costs", "--caps", "--as", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[2] == "each,'=fix@shop,,tokens,250.0,0.0,1000.0,0.25"
    assert main(["costs", "--caps", "--as", "json"]) == 0
    assert [cap["name"] for cap in json.loads(capsys.readouterr().out)["caps"]] == ["daily", "each"]
    assert main(["costs", "--caps", "--by", "day"]) == 2
