import argparse
from pathlib import Path

import pytest

from sightline.agent.core.limits import RunLimits
from sightline.app.configuration import configuration
from sightline.cli.options import add_tool_options, has_tools, limits_in, refuse_without_tools, tools_in
from sightline.errors import Fault


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
