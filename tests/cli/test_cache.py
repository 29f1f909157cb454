"""`sightline cache` on a record."""

import json
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.exchange.interception.store import KeptInterception
from sightline.model.exchange import ExchangeFinished
from sightline.model.reply import Usage
from sightline.store.entries import Entry
from tests.cli.recorded_folder import fill, stand_alone_in
from tests.recordings import exchange
from tests.store.traffic import NOON

LONG = "The quick brown fox jumps over the lazy dog. " * 200
TURNS = ("First.", "Second.", "Third.")


def turn(number: int, day: str, usage: Usage) -> list[Entry]:
    system = [{"type": "text", "text": f"It is {day}. {LONG}", "cache_control": {"type": "ephemeral"}}]
    messages = []
    for word in TURNS[:number]:
        messages += [{"role": "user", "content": word}, {"role": "assistant", "content": "Yes."}]
    body = json.dumps({"model": "m", "max_tokens": 9, "system": system, "messages": messages[:-1]}).encode()
    end = ExchangeFinished("stop", 200, (), "", "m", usage, (), 0.5, 1.5)
    return exchange(f"x_{number}", body, spoken="anthropic", session="fix@shop", at=NOON + 60 * number, end=end)


@pytest.fixture(autouse=True)
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone_in(tmp_path, monkeypatch)
    (tmp_path / "sightline.toml").write_text(
        '[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\ndialect = "anthropic"\n'
        '[models."m"]\nproviders = ["acme"]\n'
        "prices = { input = 3.0, output = 15.0, cached = 0.3, cache_write = 3.75 }\n"
    )
    written = Usage(input_tokens=2010, output_tokens=1, cached_tokens=0, cache_write_tokens=2000)
    read = Usage(input_tokens=2020, output_tokens=1, cached_tokens=2000, cache_write_tokens=0)
    turns = [turn(1, "Monday", written), turn(2, "Monday", read), turn(3, "Tuesday", written)]
    fill(tmp_path / "data", *turns)


def test_every_turn_is_told_with_its_cause(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "fix@shop", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [each["autopsy"]["cause"] for each in report["turns"]] == ["cold_start", "", "system"]
    assert (report["could_tokens"], report["read_tokens"], report["lost_tokens"]) == (4000, 2000, 2000)
    assert report["money"] == pytest.approx(2000 * (3.75 - 0.3) / 1e6)


def test_a_turn_is_compared_with_the_one_before_it_also_where_the_filter_leaves_that_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cache", "--filter", "id:x_3", "--json"]) == 0
    (last,) = json.loads(capsys.readouterr().out)["turns"]
    assert (last["previous"], last["autopsy"]["cause"]) == ("x_2", "system")


@pytest.mark.parametrize("words", [[], ["fix@shop"], ["--filter", "client:tests*"]])
def test_the_page_names_causes_bytes_and_advice(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", *words]) == 0
    said = capsys.readouterr().out
    assert "3 turns: read 2,000 of 4,000 tokens" in said
    assert "lost 2,000 tokens, $0.0069" in said
    assert "system prompt changed" in said
    assert "byte 6: “It is Monday." in said
    assert "Saves 2,000 tokens, $0.0069 in 1 turn." in said


def test_turns_that_lost_nothing_have_no_heading_for_causes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--filter", "id:x_2"]) == 0
    assert capsys.readouterr().out == "1 turn: read 2,000 of 2,000 tokens that the cache could have held (100%)\n"


def test_causes_are_summed_by_client(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--filter", "session:fix*", "--by", "client"]) == 0
    said = capsys.readouterr().out.splitlines()
    at = said.index("Causes")
    assert said[at + 1] == "  tests/1"
    assert "system prompt changed" in said[at + 2]


@pytest.mark.parametrize(("words", "name"), [([], "fix@shop"), (["--for", "project"], "shop"), (["--for", "all"], "")])
def test_an_edit_is_kept_for_later_requests(
    words: list[str], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", "fix@shop"]) == 0
    said = capsys.readouterr().out
    assert "--keep 1  Move to the end “It is Tuesday.”: 2,000 tokens, $0.0069" in said
    for _ in range(2):
        assert main(["cache", "fix@shop", "--keep", "2", *words]) == 0
    assert "Freeze (Tuesday.)" in capsys.readouterr().out
    _, (mask,) = KeptInterception(tmp_path / "data").read()
    assert (mask.name, mask.cache and mask.cache.action) == (name, "freeze")
    assert mask.created > NOON


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["fix@shop", "--keep", "9"], "there is no edit 9; there are 3"),
        (["nobody"], "no request of the session 'nobody' is on record"),
        (["--filter", "model:none"], "no request matches"),
        (["--filter", "colour:red"], "colour"),
    ],
)
def test_a_wrong_session_or_filter_is_an_error(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", *words]) == 2
    assert problem in capsys.readouterr().err
