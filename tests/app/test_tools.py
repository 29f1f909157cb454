import asyncio
import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from sightline.agent.tools.opening import OpenToolsets
from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import open_engine, open_record
from sightline.app.tools import (
    ToolsWanted,
    open_runner,
    open_tools,
    parse_tools,
    runner_of,
    tool_surroundings,
    tools_of_run,
    toolsets_of,
)
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.settings import NetworkSettings

CONFIG = """
[providers.acme]
base_url = "http://127.0.0.1:1/v1"
key_env = "ACME_KEY"
[tools.notes]
folder = "notes"
[tools.mine]
python = "mine.py"
"""


def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    monkeypatch.setenv("ACME_KEY", "sk-planted-1234567890")
    monkeypatch.setenv("HARMLESS", "yes")
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("hello")
    (folder / "mine.py").write_text('def add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n')
    file = folder / "sightline.toml"
    file.write_text(CONFIG)
    return configuration(str(file))


def test_tools_are_found_beside_the_configuration_and_get_no_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tool_surroundings(loaded(tmp_path, monkeypatch))
    assert (where.base, where.path("mine.py")) == (tmp_path, tmp_path / "mine.py")
    assert ("ACME_KEY" in where.passed_on, where.passed_on["HARMLESS"]) == (False, "yes")
    assert tool_surroundings(loaded_without(), Path("/there")).base == Path("/there")
    assert tool_surroundings(loaded_without()).base == Path.cwd()


def test_tools_elsewhere_are_reached_as_providers_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:pw@proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "near.example")
    made = loaded(tmp_path, monkeypatch)
    network = tool_surroundings(made).network
    assert network.proxy("https://far.example/mcp") == ("http://proxy.example:3128", "Basic bWU6cHc=")
    for url in ("https://near.example/mcp", "http://127.0.0.1:1/mcp"):
        assert network.proxy(url) is None
    settings = msgspec.structs.replace(made.settings, network=NetworkSettings(ca_file="nowhere.pem"))
    network = tool_surroundings(replace(made, settings=settings)).network
    with pytest.raises(Fault, match=r"nowhere.pem .* does not exist"):
        network.context()


def loaded_without() -> Configuration:
    made = configuration(None)
    return Configuration(made.catalog, made.settings, None, {})


async def test_configured_toolsets_are_opened_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolsets = toolsets_of(loaded(tmp_path, monkeypatch))
    assert toolsets.names == ("notes", "mine")
    tools = await toolsets.open_toolsets(["mine", "notes"])
    assert {"add", "read_file"} <= {each.name for each in tools.definitions}
    with pytest.raises(Fault, match="no tools named other"):
        await toolsets.open_toolsets(["other"])
    await toolsets.close()


async def test_runs_of_a_folder_are_known_to_every_process_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = loaded(tmp_path, monkeypatch)
    data = str(tmp_path / "data")
    async with open_engine(made, data, is_recorded=False) as engine, open_record(made, data) as record:
        runner = runner_of(made, engine, record.logbook, store=record)
        assert await runner.list_runs(5) == []
        first, second = runner.make_id(), runner.make_id()
        assert first.startswith("r_")
        assert first < second


def test_a_runner_opens_with_its_record_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = loaded(tmp_path, monkeypatch)

    async def opened(data: Path) -> list[object]:
        async with open_runner(made, str(data)) as runner:
            return list(await runner.list_runs(5))

    assert asyncio.run(opened(tmp_path / "data")) == []
    assert (tmp_path / "data" / "record.sqlite3").exists()
    with pytest.raises(Fault):
        asyncio.run(opened(tmp_path / "mine.py"))


TOOLING_CONFIG = """
[tools.mine]
python = "mine.py"
allow = ["add"]
"""
TOOL = 'def add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n'


@pytest.fixture
def tooling_loaded(tmp_path: Path) -> Configuration:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "mine.py").write_text(TOOL)
    (project / "other.py").write_text(TOOL.replace("add", "sub"))
    (tmp_path / "sightline.toml").write_text(TOOLING_CONFIG)
    return configuration(str(tmp_path / "sightline.toml"))


def opened(tooling_loaded: Configuration, wanted: ToolsWanted) -> tuple[OpenToolsets, list[str]]:
    async def looked() -> tuple[OpenToolsets, list[str]]:
        tools = await open_tools(tooling_loaded, wanted)
        try:
            return tools, [each.name for each in tools.definitions]
        finally:
            await tools.close()

    return asyncio.run(looked())


def test_words_mean_toolsets_of_the_configuration_or_files_here(tooling_loaded: Configuration, tmp_path: Path) -> None:
    here = tmp_path / "project"
    wanted = parse_tools(tooling_loaded, tools=["mine", "other.py", "mine"], builtin=["read_file"], here=here)
    assert (wanted.toolsets, wanted.python) == (("mine",), (str(here / "other.py"),))
    assert (wanted.folder, wanted.builtin) == (str(here), ("read_file",))
    tools, names = opened(tooling_loaded, wanted)
    assert names == ["add", "sub", "read_file"]
    assert tools.places == {
        "add": f"python {tmp_path / 'mine.py'}",
        "sub": f"python {here / 'other.py'}",
        "read_file": f"folder {here}",
    }
    assert [rule.tool for rule in tools.rules] == ["add"]


def test_a_folder_alone_is_for_reading(tooling_loaded: Configuration, tmp_path: Path) -> None:
    _, names = opened(tooling_loaded, parse_tools(tooling_loaded, folder="project", here=tmp_path))
    assert names == ["read_file", "list_files", "search_files"]


def test_hooks_are_those_of_the_toolsets_and_the_ones_that_are_named(
    tooling_loaded: Configuration, tmp_path: Path
) -> None:
    (tmp_path / "hooks.json").write_text(json.dumps({"stop": [{"command": "true"}]}))
    tools, _ = opened(tooling_loaded, parse_tools(tooling_loaded, tools=["mine"], hooks=["hooks.json"], here=tmp_path))
    assert [hook.does for hook in tools.hooks.all] == ["true"]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ({"tools": ["nobody"]}, "'nobody' is neither a toolset nor a file", "Configured are: mine."),
        ({"tools": ["servers.json"]}, "'servers.json' is no Python file", "--mcp servers.json"),
        ({"builtin": ["format_disk"]}, "there is no built-in tool 'format_disk'", "There are read_file"),
    ],
)
def test_unknown_toolset_or_builtin_is_reported_with_the_available_ones(
    tooling_loaded: Configuration, tmp_path: Path, words: dict[str, list[str]], message: str, hint: str
) -> None:
    (tmp_path / "servers.json").write_text('{"mcpServers": {}}')
    with pytest.raises(Fault) as caught:
        parse_tools(tooling_loaded, here=tmp_path, **words)
    assert (caught.value.code, caught.value.message) == (Code.USAGE, message)
    assert hint in caught.value.hint


def test_a_run_is_taken_up_with_the_tools_that_it_had(tooling_loaded: Configuration, tmp_path: Path) -> None:
    named = parse_tools(tooling_loaded, tools=["mine"], here=tmp_path)
    assert named.origin == {"toolsets": ["mine"], "here": str(tmp_path)}
    assert tools_of_run({"kind": "ask", **named.origin}) == named
    files = parse_tools(tooling_loaded, tools=["mine", "project/other.py"], builtin=["edit_file"], here=tmp_path)
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
def test_run_with_unavailable_tools_cannot_be_resumed(origin: JsonObject, message: str) -> None:
    with pytest.raises(Fault, match=message):
        tools_of_run(origin)


def test_a_toolset_that_is_not_configured_any_more_is_missed(tooling_loaded: Configuration, tmp_path: Path) -> None:
    with pytest.raises(Fault, match="'gone' is neither"):
        opened(tooling_loaded, ToolsWanted(here=str(tmp_path), toolsets=("gone",)))
