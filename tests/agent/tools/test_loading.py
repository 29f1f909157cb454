import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.agent.tools.worker import FileBroken, load


@pytest.fixture(autouse=True)
def _same_modules_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_functions_that_a_file_only_imports_are_no_tools_of_it(tmp_path: Path) -> None:
    source = "from json import dumps\nfrom os.path import *\nclass C: ...\nvalue = 3\ndef f(x: int) -> int: return x"
    tools = load(tmp_path / "kit.py", source)
    assert isinstance(tools, dict)
    assert list(tools) == ["f"]
    assert tools["f"].function(x=4) == 4


def test_a_decorated_function_is_one_if_it_kept_its_name(tmp_path: Path) -> None:
    source = """
from functools import wraps
def _twice(f):
    @wraps(f)
    def inner(*args, **kw): return 2 * f(*args, **kw)
    return inner
@_twice
def f(x: int) -> int:
    "Double."
    return x
"""
    tools = load(tmp_path / "kit.py", source)
    assert isinstance(tools, dict)
    assert tools["f"].function(x=4) == 8
    assert tools["f"].definition.description == "Double."


@pytest.mark.parametrize("name", ["json.py", "has-dash.py", "sys.py"])
def test_a_file_that_is_named_like_a_module_replaces_none(tmp_path: Path, name: str) -> None:
    import json

    assert isinstance(load(tmp_path / name, "def f(): ..."), dict)
    assert sys.modules["json"] is json


def test_a_broken_one_says_where(tmp_path: Path) -> None:
    broken = load(tmp_path / "kit.py", "\n\n1 / 0")
    assert broken == FileBroken(
        "ZeroDivisionError: division by zero", 3, "Run the file with Python by itself to see all of it."
    )
    missing = load(tmp_path / "kit.py", "import not_here_at_all")
    assert isinstance(missing, FileBroken)
    assert "Install it" in missing.hint


def test_hints_that_no_schema_can_say_are_refused_with_their_line(tmp_path: Path) -> None:
    broken = load(tmp_path / "kit.py", "import re\n\ndef f(x: re.Pattern): ...")
    assert isinstance(broken, FileBroken)
    assert broken.line == 3
    assert "Use types that JSON has" in broken.hint
