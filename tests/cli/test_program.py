import pytest

from sightline.cli.program import main
from sightline.dialects.registry import NAMES


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "translate" in capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.count(".") == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nonsense"], "invalid choice: 'nonsense'"),
        (["translate"], "required: KIND"),
        (["translate", "request"], "required: --from, --to"),
        (["translate", "request", "--from", "raw", "--to", "raw", "--what"], "--what"),
    ],
)
def test_wrong_usage_is_one_line_with_a_hint(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    first, second = captured.err.splitlines()
    assert first.startswith("error[usage]: ")
    assert told in first
    assert second.startswith("hint: See `sightline")
    assert captured.out == ""


@pytest.mark.parametrize("level", [["--log-level", "debug"], ["--log-level=debug"]])
def test_a_traceback_is_shown_only_when_it_is_asked_for(level: list[str]) -> None:
    with pytest.raises(Exception, match="unknown dialect"):
        main(["translate", "request", "--from", "x", "--to", "raw", *level])


def test_an_interruption_has_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_words: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("sightline.cli.program._run", interrupted)
    assert main([]) == 130


def test_help_names_every_dialect(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["translate", "--help"])
    told = capsys.readouterr().out
    assert [name for name in NAMES if name not in told] == []
