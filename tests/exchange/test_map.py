"""The walk of a gateway request in the design docs names files and functions that exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"^\| (\d+) \| `([\w/.]+)` \| `([\w.]+)` \|", re.MULTILINE)


def names_in(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{each.name}" for each in node.body if hasattr(each, "name"))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def test_the_walk_of_a_gateway_request_is_true_and_short() -> None:
    section = (ROOT / "docs/design/map.md").read_text().partition("### A gateway request")[2].partition("\n## ")[0]
    steps = STEP.findall(section.partition("\n### ")[0])
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1))
    assert 20 < len(steps) <= 30
    missing = [(file, name) for _, file, name in steps if name not in set(names_in(ROOT / "src" / "sightline" / file))]
    assert not missing
