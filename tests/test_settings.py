from pathlib import Path
from typing import get_args

import msgspec
import pytest

from sightline.errors import Code, Fault
from sightline.settings import (
    BuiltinName,
    CapSettings,
    EvalCommand,
    EvalTarget,
    LocalSettings,
    NetworkSettings,
    ServerSettings,
    Settings,
    Toolset,
)
from tests.catalog.documented import missing_rows


def test_nothing_has_to_be_set() -> None:
    settings = Settings()
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 7700)
    assert msgspec.convert({}, Settings) == settings


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ({"port": 65_536}, ServerSettings),
        ({"port": -1}, ServerSettings),
        ({"workers": 0}, ServerSettings),
        ({"workers": "all"}, ServerSettings),
        ({"allowed_origins": ["http://a/path"]}, ServerSettings),
        ({"url": "127.0.0.1:80"}, LocalSettings),
        ({"threads": -1}, LocalSettings),
        ({"max_connections": 0}, NetworkSettings),
    ],
)
def test_what_cannot_be_is_refused(table: dict[str, object], kind: type) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(table, kind)


def test_an_origin_and_a_url_are_taken() -> None:
    tables = {"server": {"allowed_origins": ["http://localhost:5173"]}, "local": {"url": "http://127.0.0.1:8080/v1"}}
    assert msgspec.convert(tables, Settings).local.url.endswith("/v1")


@pytest.mark.parametrize("table", [name for name in Settings.__struct_fields__ if name not in ("tools", "caps")])
def test_every_key_of_every_table_is_documented(table: str) -> None:
    assert not missing_rows(f"`[{table}]`", type(getattr(Settings(), table)))


def test_every_key_of_a_toolset_is_documented() -> None:
    assert not missing_rows("`[tools.NAME]`", Toolset)


def test_every_built_in_tool_has_its_row_in_the_guide() -> None:
    guide = (Path(__file__).parents[1] / "docs/guide/tools.md").read_text()
    assert [name for name in get_args(BuiltinName) if f"| `{name}` |" not in guide] == []


def test_every_key_of_a_cap_is_documented() -> None:
    assert not missing_rows("`[[caps]]`", CapSettings)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ([{"name": "a"}], "the cap a sets neither dollars nor tokens"),
        ([{"name": "a", "dollars": 1, "tokens": 1}], "the cap a sets both dollars and tokens"),
        ([{"name": "a", "tokens": 1}, {"name": "a", "dollars": 1}], "two caps are called a"),
    ],
)
def test_a_cap_that_is_unclear_is_a_mistake(tables: list[dict[str, object]], words: str) -> None:
    settings = msgspec.convert({"caps": tables}, Settings)
    assert [(path, said) for path, said, _ in settings.mistakes()] == [(("caps", len(tables) - 1), words)]


def test_every_key_of_a_target_is_documented() -> None:
    assert not missing_rows("`[evals.targets.NAME]`", EvalTarget)
    assert not missing_rows("`[evals.targets.NAME.cli]`", EvalCommand)


@pytest.mark.parametrize(
    "table", [{"python": "tools.py"}, {"mcp": "mcp.json"}, {"folder": ".", "builtin": ["run_command"]}]
)
def test_a_toolset_comes_from_one_place(table: dict[str, object]) -> None:
    msgspec.convert({"tools": {"mine": table}}, Settings).tools["mine"].check("mine")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "[tools.mine] names none of python, mcp, folder and plugin"),
        ({"python": "a.py", "folder": "."}, "[tools.mine] names python and folder"),
        ({"mcp": "a.json", "builtin": ["read_file"]}, "[tools.mine] has builtin without folder"),
    ],
)
def test_one_from_nowhere_or_from_two_places_is_refused(table: dict[str, object], words: str) -> None:
    with pytest.raises(Fault) as caught:
        msgspec.convert(table, Toolset).check("mine")
    assert caught.value.code is Code.CONFIG
    assert caught.value.message == words
    assert caught.value.hint
    settings = msgspec.convert({"tools": {"good": {"folder": "."}, "mine": table}}, Settings)
    assert list(settings.mistakes()) == [(("tools", "mine"), words, caught.value.hint)]
