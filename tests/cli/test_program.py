import subprocess
import sys
from pathlib import Path

import pytest

from sightline.cli.program import main, parser
from sightline.dialects.registry import NAMES


def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "translate" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["--port", "0", "--no-open"], ["--no-open"]])
def test_without_a_command_it_serves(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("sightline.cli.serve.run", lambda arguments: asked.append(arguments.command) or 0)
    assert main(words) == 0
    assert asked == ["serve"]


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
def test_a_traceback_is_shown_only_when_it_is_asked_for(level: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["translate", "request", "--from", "x", "--to", "raw"]
    assert main(command) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert main([*command, *level]) == 2
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert "\nerror[usage]: --from: unknown dialect" in told


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--", "no-such-program", "--log-level", "debug"],
        ["run", "no-such-program", "--log-level=debug"],
        ["run", "--session", "--", "no-such-program", "--log-level", "debug"],
    ],
)
def test_what_a_started_command_is_told_shows_no_traceback(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("stream", "code"), [("stdout", 2), ("stderr", 0)])
def test_a_full_disk_is_said_and_never_left_to_the_interpreter(stream: str, code: int) -> None:
    program = "from sightline.cli import main; raise SystemExit(main())"
    with Path("/dev/full").open("wb") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
        command = [sys.executable, "-c", program, "config", "path"]
        done = subprocess.run(command, **streams, check=False)
    assert done.returncode == code
    if stream == "stdout":
        assert done.stderr.startswith(b"error[usage]: stdout: No space left") or b"error[usage]: stdout" in done.stderr
        assert b"Exception ignored" not in done.stderr


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


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["traffic", "model:x", "--limit", "5"], "filter", ["model:x"]),
        (["traffic", "--limit", "5", "model:x"], "filter", ["model:x"]),
        (["traffic", "model:x", "--limit", "5", "&", "status:ok", "--json"], "filter", ["model:x", "&", "status:ok"]),
        (["eval", "run", "a.yaml", "--workers", "2", "b.yaml"], "suites", ["a.yaml", "b.yaml"]),
        (["eval", "show", "RUN", "--json", "CASE"], "case", "CASE"),
        (["ask", "--quiet", "hi"], "prompt", "hi"),
        (["run", "--session", "s", "--", "claude", "--json", "x"], "words", ["--", "claude", "--json", "x"]),
    ],
)
def test_options_and_words_come_in_any_order(words: list[str], name: str, value: object) -> None:
    arguments = parser().parse_args(words)
    assert getattr(arguments, name) == value
    assert getattr(arguments, "limit", 5) in (5, 20)


def test_a_word_too_many_is_still_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "x_1", "x_2"]) == 2
    assert "unrecognized arguments: x_2" in capsys.readouterr().err
