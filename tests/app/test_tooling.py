import asyncio
import json
from pathlib import Path

import pytest

from sightline.agent.tools.opening import Opened
from sightline.app.configuration import Configuration, configuration
from sightline.app.tools import ToolsWanted, open_tools, parse_tools, tools_of_run
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject

CONFIG = """
[tools.mine]
python = "mine.py"
allow = ["add"]
"""
TOOL = 'def add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n'


@pytest.fixture
def loaded(tmp_path: Path) -> Configuration:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "mine.py").write_text(TOOL)
    (project / "other.py").write_text(TOOL.replace("add", "sub"))
    (tmp_path / "sightline.toml").write_text(CONFIG)
    return configuration(str(tmp_path / "sightline.toml"))


def opened(loaded: Configuration, wanted: ToolsWanted) -> tuple[Opened, list[str]]:
    async def looked() -> tuple[Opened, list[str]]:
        tools = await open_tools(loaded, wanted)
        try:
            return tools, [each.name for each in tools.definitions]
        finally:
            await tools.close()

    return asyncio.run(looked())


def test_words_mean_toolsets_of_the_configuration_or_files_here(loaded: Configuration, tmp_path: Path) -> None:
    here = tmp_path / "project"
    wanted = parse_tools(loaded, tools=["mine", "other.py", "mine"], builtin=["read_file"], here=here)
    assert (wanted.toolsets, wanted.python) == (("mine",), (str(here / "other.py"),))
    assert (wanted.folder, wanted.builtin, wanted.is_nothing) == (str(here), ("read_file",), False)
    tools, names = opened(loaded, wanted)
    assert names == ["add", "sub", "read_file"]
    assert tools.places == {
        "add": f"python {tmp_path / 'mine.py'}",
        "sub": f"python {here / 'other.py'}",
        "read_file": f"folder {here}",
    }
    assert [rule.tool for rule in tools.rules] == ["add"]


def test_a_folder_alone_is_for_reading(loaded: Configuration, tmp_path: Path) -> None:
    _, names = opened(loaded, parse_tools(loaded, folder="project", here=tmp_path))
    assert names == ["read_file", "list_files", "search_files"]
    assert parse_tools(loaded, here=tmp_path).is_nothing


def test_hooks_are_those_of_the_toolsets_and_the_ones_that_are_named(loaded: Configuration, tmp_path: Path) -> None:
    (tmp_path / "hooks.json").write_text(json.dumps({"stop": [{"command": "true"}]}))
    tools, _ = opened(loaded, parse_tools(loaded, tools=["mine"], hooks=["hooks.json"], here=tmp_path))
    assert tools.hooks is not None
    assert [hook.does for hook in tools.hooks.all] == ["true"]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ({"tools": ["nobody"]}, "'nobody' is neither a toolset nor a file", "Configured are: mine."),
        ({"builtin": ["format_disk"]}, "there is no built-in tool 'format_disk'", "There are read_file"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    loaded: Configuration, tmp_path: Path, words: dict[str, list[str]], message: str, hint: str
) -> None:
    with pytest.raises(Fault) as caught:
        parse_tools(loaded, here=tmp_path, **words)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.message) == (Code.USAGE, message)
    assert hint in caught.value.hint


def test_a_run_is_taken_up_with_the_tools_that_it_had(loaded: Configuration, tmp_path: Path) -> None:
    named = parse_tools(loaded, tools=["mine"], here=tmp_path)
    assert named.origin == {"toolsets": ["mine"], "here": str(tmp_path)}
    assert tools_of_run({"kind": "ask", **named.origin}) == named
    files = parse_tools(loaded, tools=["mine", "project/other.py"], builtin=["edit_file"], here=tmp_path)
    assert "toolsets" not in files.origin
    assert tools_of_run({"kind": "ask", **files.origin}) == files
    assert tools_of_run({"toolsets": ["mine"]}).here == str(Path.cwd())


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ({"kind": "library"}, "not started on the command line"),
        ({"tools": {"here": 1}}, "cannot be read"),
        ({"toolsets": [1]}, "cannot be read"),
    ],
)
def test_a_run_whose_tools_nobody_else_has_cannot_be_taken_up_here(origin: JsonObject, message: str) -> None:
    with pytest.raises(Fault, match=message):
        tools_of_run(origin)


def test_a_toolset_that_is_not_configured_any_more_is_missed(loaded: Configuration, tmp_path: Path) -> None:
    with pytest.raises(Fault, match="'gone' is neither"):
        opened(loaded, ToolsWanted(here=str(tmp_path), toolsets=("gone",)))
