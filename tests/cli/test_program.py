import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.agent.core.limits import RunLimits
from sightline.app.configuration import configuration
from sightline.cli.options import (
    add_tool_options,
    amount,
    count,
    has_tools,
    instructions_in,
    number,
    refuse_without_tools,
)
from sightline.cli.program import main, parser
from sightline.cli.tool_run import limits_in, tools_in
from sightline.dialects.registry import NAMES
from sightline.errors import Code, Fault


@pytest.mark.parametrize("words", [[], ["--port", "0", "--no-open"], ["--no-open"]])
def test_without_a_command_it_serves(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("sightline.cli.serve.run", lambda arguments: asked.append(arguments.command) or 0)
    assert main(words) == 0
    assert asked == ["serve"]


@pytest.mark.parametrize("words", [["runs"], ["eval", "show"], ["config", "forget-learned"]])
def test_a_name_that_is_not_utf_8_is_refused(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "\udcff", "--data", str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "error[usage]: '\\udcff' is not UTF-8 text",
        "hint: Check its spelling and the locale.",
    ]


@pytest.mark.parametrize("words", [["run", "--help"], ["--version"]])
def test_help_and_version_are_written_like_all_output(words: list[str]) -> None:
    command = [sys.executable, "-c", "import sys; from sightline.cli.program import main; sys.exit(main())", *words]
    in_ascii = {**os.environ, "PYTHONIOENCODING": "ascii"}
    assert subprocess.run(command, env=in_ascii, capture_output=True, check=True, timeout=60).stderr == b""
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"error[usage]: stdout: ")


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.count(".") == 2


@pytest.mark.parametrize(
    ("words", "told", "named"),
    [
        (["nonsense"], "invalid choice: 'nonsense'", "sightline"),
        (["translate"], "required: KIND", "sightline translate"),
        (["translate", "request"], "required: --from, --to", "sightline translate request"),
        (["translate", "request", "--from", "raw", "--to", "raw", "--what"], "--what", "sightline translate request"),
        (["chat", "--what"], "--what", "sightline chat"),
        (["traffic", "age<1h", "--limit", "5", "model:x", "--what"], "--what", "sightline traffic"),
        (["show", "x_1", "x_2"], "x_2", "sightline show"),
    ],
)
def test_wrong_usage_is_one_line_with_a_hint_at_the_help_of_its_command(
    words: list[str], told: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    first, second = captured.err.splitlines()
    assert first.startswith("error[usage]: ")
    assert told in first
    assert second == f"hint: See `{named} --help`."
    assert captured.out == ""


@pytest.mark.parametrize("level", [["--log-level", "debug"], ["--log-level=debug"]])
def test_traceback_is_shown_only_at_debug_level(level: list[str], capsys: pytest.CaptureFixture[str]) -> None:
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
def test_log_level_option_of_a_started_command_shows_no_traceback(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("stream", "code"), [("stdout", 2), ("stderr", 0)])
def test_full_disk_is_reported_without_an_interpreter_message(stream: str, code: int) -> None:
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


def test_numbers_that_options_take() -> None:
    assert (count("3"), number("-0.5"), amount("0.5")) == (3, -0.5, 0.5)
    for read, text in ((count, "0"), (count, "-1"), (count, "٣"), (number, "nan"), (number, "x"), (amount, "0")):
        with pytest.raises(argparse.ArgumentTypeError):
            read(text)


def test_instructions_are_a_text_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.md").write_text("\ufeffUse metres.\n", encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert instructions_in("rules.md") == "Use metres."
    assert instructions_in("Use rules.md as it is.") == "Use rules.md as it is."
    assert instructions_in("Brief.") == "Brief."
    assert instructions_in("x" * 5000) == "x" * 5000
    assert (instructions_in(None), instructions_in(None, "Usual."), instructions_in("", "Usual.")) == ("", "Usual.", "")
    for name in ("missing.md", "no/such", "binary"):
        with pytest.raises(Fault) as caught:
            instructions_in(name)
        assert caught.value.code is Code.USAGE


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_tool_options(parser)
    return parser.parse_args(words)


def test_tools_are_named_in_four_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kit.py").touch()
    assert not has_tools(parsed())
    for words in (("--tools", "kit.py"), ("--mcp", "m.json"), ("--folder", "."), ("--builtin", "read_file")):
        assert has_tools(parsed(*words))
    wanted = tools_in(
        parsed("--tools", "kit.py", "--mcp", "m.json", "--builtin", "read_file, edit_file", "--hooks", "h.json"),
        configuration(None),
    )
    assert (wanted.python, wanted.mcp) == ((str(tmp_path / "kit.py"),), (str(tmp_path / "m.json"),))
    assert (wanted.folder, wanted.builtin) == (str(tmp_path), ("read_file", "edit_file"))
    assert wanted.hooks == (str(tmp_path / "h.json"),)


def test_limits_are_those_of_the_options() -> None:
    assert limits_in(parsed(), is_asked=False) == RunLimits()
    words = ["--max-requests=2", "--max-tool-calls=3", "--max-tokens-total=4", "--max-cost=0.5", "--max-seconds=6"]
    limits = RunLimits(requests=2, tool_calls=3, tokens=4, cost=0.5, seconds=6.0, behaviour="confirm")
    assert limits_in(parsed(*words), is_asked=True) == limits


@pytest.mark.parametrize("words", [("--yes",), ("--confirm",), ("--max-cost", "1"), ("--hooks", "h.json")])
def test_what_is_for_tools_is_refused_without_any(words: tuple[str, ...]) -> None:
    with pytest.raises(Fault, match=f"{words[0]} needs tools"):
        refuse_without_tools(parsed(*words))
    refuse_without_tools(parsed("--tools", "x.py", *words))


def test_yes_and_confirm_exclude_each_other() -> None:
    with pytest.raises(SystemExit):
        parsed("--yes", "--confirm")
