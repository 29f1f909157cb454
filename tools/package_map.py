"""Write the map of packages in docs/design/map.md from the packages' own docstrings: `python tools/package_map.py`.

With `--check` nothing is written, and the exit status says whether the map is up to date.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "sightline"
FILE = ROOT / "docs" / "design" / "map.md"
BEGIN = "<!-- packages: written by tools/package_map.py; edit the docstrings of the packages instead -->"
END = "<!-- end of packages -->"


def layers() -> list[str]:
    """The top packages and modules, highest layer first, as the import contract lists them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    return [name.strip(" ()") for row in rows for name in row.split("|")]


def purpose(module: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    docstring = " ".join((ast.get_docstring(ast.parse(module.read_text())) or "").split())
    return re.split(r"(?<=\.) (?=[A-Z`])", docstring)[0].replace("|", "\\|")


def rows() -> Iterator[str]:
    for name in layers():
        if (PACKAGE / f"{name}.py").exists():
            yield f"| `{name}.py` | {purpose(PACKAGE / f'{name}.py')} |"
        for file in sorted((PACKAGE / name).rglob("__init__.py")):
            path = file.parent.relative_to(PACKAGE).as_posix()
            yield f"| `{path}/` | {purpose(file)} |"
    if (PACKAGE / "ui").is_dir():
        yield "| `ui/` | The page: files for the browser, one folder per view. No Python. |"


def block() -> str:
    return "\n".join([BEGIN, "", "| package | what it is for |", "|---|---|", *rows(), "", END])


def current(text: str) -> str:
    """The text of the map with an up-to-date block."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{FILE} has no place for the packages: {BEGIN} … {END}")
    return f"{before}{block()}{after}"


def main() -> int:
    text = FILE.read_text()
    fresh = current(text)
    if "--check" not in sys.argv[1:]:
        FILE.write_text(fresh)
    return int("--check" in sys.argv[1:] and fresh != text)


if __name__ == "__main__":
    sys.exit(main())
