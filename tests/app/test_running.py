import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import open_engine, open_record
from sightline.app.tools import open_runner, runner_of, tool_surroundings, toolsets_of
from sightline.errors import Fault
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
    assert network is not None
    assert network.proxy("https://far.example/mcp") == ("http://proxy.example:3128", "Basic bWU6cHc=")
    for url in ("https://near.example/mcp", "http://127.0.0.1:1/mcp"):
        assert network.proxy(url) is None
    settings = msgspec.structs.replace(made.settings, network=NetworkSettings(ca_file="nowhere.pem"))
    network = tool_surroundings(replace(made, settings=settings)).network
    assert network is not None
    with pytest.raises(Fault, match=r"nowhere.pem .* does not exist"):
        network.context()


def loaded_without() -> Configuration:
    made = configuration(None)
    return Configuration(made.catalog, made.settings, None, {})


def test_configured_toolsets_are_opened_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        toolsets = toolsets_of(loaded(tmp_path, monkeypatch))
        assert toolsets.names == ("notes", "mine")
        tools = await toolsets.open_toolsets(["mine", "notes"])
        assert {"add", "read_file"} <= {each.name for each in tools.definitions}
        with pytest.raises(Fault, match="no tools named other"):
            await toolsets.open_toolsets(["other"])
        await toolsets.close()

    asyncio.run(story())


def test_runs_of_a_folder_are_known_to_every_process_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        made = loaded(tmp_path, monkeypatch)
        data = str(tmp_path / "data")
        async with open_engine(made, data, is_recorded=False) as engine, open_record(made, data) as record:
            runner = runner_of(made, engine, record.logbook, store=record)
            assert await runner.list_runs(5) == []
            first, second = runner.make_id(), runner.make_id()
            assert first.startswith("r_")
            assert first < second

    asyncio.run(story())


def test_a_runner_opens_with_its_record_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = loaded(tmp_path, monkeypatch)

    async def opened(data: Path) -> list[object]:
        async with open_runner(made, str(data)) as runner:
            return list(await runner.list_runs(5))

    assert asyncio.run(opened(tmp_path / "data")) == []
    assert (tmp_path / "data" / "record.sqlite3").exists()
    with pytest.raises(Fault):
        asyncio.run(opened(tmp_path / "mine.py"))
