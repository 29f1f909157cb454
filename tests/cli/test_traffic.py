import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli import traffic
from sightline.cli.program import main
from sightline.store.summary import Summary
from tests.cli.recorded_folder import fill, folder_of
from tests.recordings import exchange, failed
from tests.store.traffic import NOON, chat_body, chat_stream

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with folder_of(tmp_path, monkeypatch):
        yield tmp_path / "data"


@pytest.fixture
def three(data: Path) -> Path:
    fill(
        data,
        exchange("x_1", chat_body("first \x1b[31mwords"), chat_stream("a"), session="s"),
        exchange("x_2", chat_body("second"), [b"{}"], end=failed(529), at=NOON + 60),
        exchange("x_3", chat_body("third " * 60), chat_stream("b"), at=NOON + 120),
    )
    return data


def test_the_record_is_a_table_newest_first(three: Path, capsys: Captured) -> None:
    assert main(["traffic"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["TIME", "ID", "CLIENT", "MODEL", "STATE", "TOKENS", "COST", "TOOK", "TITLE"]
    assert [line.split()[2] for line in lines] == ["x_3", "x_2", "x_1"]
    assert {line.index("tests/1") for line in lines} == {heading.index("CLIENT")}
    assert "m → acme" in lines[0]
    assert "200 stop" in lines[0]
    assert "9→2" in lines[0]
    assert max(map(len, lines)) <= 160
    assert lines[0].endswith("…")
    assert "529 overloaded" in lines[1]
    assert "\\x1b[31mwords" in lines[2]


def test_a_filter_and_a_limit_say_which(three: Path, capsys: Captured) -> None:
    assert main(["traffic", "session:s", "&", "status:ok", "--json"]) == 0
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["x_1"]
    assert main(["traffic", "--limit", "2", "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["id"], second["id"]) == ("x_3", "x_2")
    assert (second["state"], second["status"], second["fault"]) == ("failed", 529, "overloaded")
    assert main(["traffic", "--limit", "0"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_long_lists_are_read_page_by_page(three: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "_PAGE", 1)
    assert main(["traffic"]) == 0
    assert capsys.readouterr().out.count("x_") == 3


def test_a_wrong_filter_is_pointed_at(data: Path, capsys: Captured) -> None:
    assert main(["traffic", "modl:claude"]) == 2
    told = capsys.readouterr().err
    assert "error[usage]" in told
    assert "^^^^" in told
    assert main(["traffic", "--limit", "-1"]) == 2
    assert "argument --limit: '-1' is not a whole number, 0 or more" in capsys.readouterr().err


def test_an_empty_record_says_so(data: Path, capsys: Captured) -> None:
    assert main(["traffic"]) == 0
    assert capsys.readouterr() == ("", "nothing on record\n")
    assert main(["traffic", "model:x"]) == 0
    assert "exchange matches" in capsys.readouterr().err
    assert main(["traffic", "--json"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_its_width_and_colours(three: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["traffic"]) == 0
    plain = capsys.readouterr().out
    assert "\x1b[" not in plain
    monkeypatch.setenv("NO_COLOR", "")
    assert main(["traffic"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("\x1b[31m")
    assert lines[2].endswith("\x1b[0m")
    assert max(len(line.replace("\x1b[31m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")) for line in lines) <= 80


@pytest.mark.parametrize(
    ("columns", "headings"),
    [
        (200, "TIME ID CLIENT MODEL STATE TOKENS COST TOOK TITLE"),
        (80, "TIME ID CLIENT MODEL STATE TOKENS TITLE"),
        (54, "TIME ID STATE TITLE"),
        (40, "ID STATE TITLE"),
    ],
)
def test_a_narrow_terminal_still_shows_how_it_ended_and_what_was_asked(
    three: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, columns: int, headings: str
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["traffic"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == headings.split()
    assert max(map(len, lines)) <= columns
    assert "529 overloaded" in lines[1]
    assert "second" in lines[1]


@pytest.mark.parametrize(
    ("cost", "shown"), [(None, ""), (0.0, "$0.00"), (0.00001, "<$0.0001"), (0.01234, "$0.0123"), (3.456, "$3.46")]
)
def test_money_is_short(cost: float | None, shown: str) -> None:
    assert traffic.money(cost) == shown


def test_counts_and_states_are_short() -> None:
    assert traffic.tokens(Summary(id="x", at=0.0, input_tokens=12_345)) == "12k→?"
    assert traffic.outcome(Summary(id="x", at=0.0, state="held")) == "held"
    assert traffic._clip("x" * 100) == "x" * 27 + "…"
