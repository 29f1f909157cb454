"""The walks and the table of changes in the map name what exists, and frequent changes take few files. That the files
in the table exist is checked with the architecture."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAP = (ROOT / "docs/design/map.md").read_text()
WALKS = ("A gateway request", "A chat send", "A tool call with approval", "An eval case")
SHORT_WALKS = ("A frame of a WebSocket", "A request below TLS", "A direct request")
STEP = re.compile(r"^\| (\d+) \| `([\w/.]+)` \| (`[\w.]+`(?:, `[\w.]+`)*) \|", re.MULTILINE)
MOST_STEPS = 30


def names_in(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{each.name}" for each in node.body if hasattr(each, "name"))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


@pytest.mark.parametrize("walk", [*WALKS, *SHORT_WALKS])
def test_a_walk_is_true_and_short(walk: str) -> None:
    section = MAP.partition(f"### {walk}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    steps = STEP.findall(section)
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1))
    assert (5 if walk in SHORT_WALKS else 20) < len(steps) <= MOST_STEPS
    missing = [
        (file, name)
        for _, file, names in steps
        for name in re.findall(r"`([\w.]+)`", names)
        if name not in set(names_in(ROOT / "src" / "sightline" / file))
    ]
    assert not missing


MOST_FILES = {
    "a provider quirk": 2,
    "a column of the record": 3,
    "a column that only reading the request tells": 4,
    "a panel beside the chat": 3,
    "a call of the chat": 2,
    "a built-in tool": 2,
    "an export of eval results": 3,
    "a format of `export` and **Share**": 2,
}
"""How many files of the program a change takes as a rule: tests, documentation, migrations and what is generated come
on top, and what the sentences after the first say of special cases."""


@pytest.mark.parametrize("change", MOST_FILES)
def test_a_frequent_change_takes_few_files(change: str) -> None:
    row = MAP.partition(f"\n| {change} | ")[2].partition("\n")[0].partition(". If ")[0]
    files = {name for name in re.findall(r"`([\w./-]+)`", row) if (ROOT / "src" / "sightline" / name).is_file()}
    assert 0 < len(files) <= MOST_FILES[change], sorted(files)


def test_the_table_of_changes_names_what_exists() -> None:
    files = (path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".js", ".toml"))
    words = {word for path in files for word in re.findall(r"\w+", path.read_text())}
    rows = MAP.partition("## Where a change goes\n")[2].partition("\n## ")[0]
    named = {word for name in re.findall(r"`([\w.]+)`", rows) for word in name.split(".")}
    assert named
    assert not named - words
