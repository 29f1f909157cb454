"""The page's files: other people's are those of the manifest, and ours keep the rules that make them safe."""

import hashlib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from sightline.workbench.workbench import FOLDER

VENDOR = FOLDER / "vendor"
MANIFEST = tomllib.loads((VENDOR / "VENDOR.toml").read_text("utf-8"))
OWN = sorted(path for path in FOLDER.rglob("*.js") if VENDOR not in path.parents)
TESTS = Path(__file__).resolve().parent.parent / "ui"
MOST_LINES = 500
MOST_COLUMNS = 120


def test_the_vendored_files_are_those_of_the_manifest() -> None:
    assert {path.name for path in VENDOR.glob("*.js")} == set(MANIFEST)
    for name, told in MANIFEST.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == told["sha256"], "run tools/vendor.py"


def test_every_vendored_package_comes_with_its_licence_and_its_reason() -> None:
    reasons = (Path(__file__).resolve().parents[2] / "docs/design/dependencies.md").read_text("utf-8")
    for name, told in MANIFEST.items():
        assert f"**`{name}`**" in reasons
        licences = (VENDOR / told["licences"]).read_text("utf-8")
        for package in told["packages"]:
            assert f"{package['name']} {package['version']} ({package['licence']})" in licences


def test_our_modules_keep_the_rules() -> None:
    broken: list[str] = []
    for path in OWN:
        text = path.read_text("utf-8")
        rules = {
            "types are checked, and the module says what it is for": text.startswith("// @ts-check\n/**"),
            "components go through h(), so that their props are checked": "<${" not in text,
            "nothing is set as HTML": not re.search(
                r"\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML)\b", text
            ),
            "evals have that name, but nothing calls it": not re.search(r"(?<!/)\beval\b(?=\s*[(\[.,;)\]?])", text),
        }
        broken += [f"{path.relative_to(FOLDER)}: {rule}" for rule, holds in rules.items() if not holds]
    assert broken == []


def test_our_modules_are_no_longer_and_no_wider_than_the_limit() -> None:
    broken: list[str] = []
    for path in OWN:
        name, lines = path.relative_to(FOLDER), path.read_text("utf-8").splitlines()
        if len(lines) > MOST_LINES:
            broken.append(f"{name} has {len(lines)} lines; the limit is {MOST_LINES}: split it")
        # Prettier does not break the lines of a template in html`…`.
        broken += [
            f"{name}:{number} has {len(line)} characters; the limit is {MOST_COLUMNS}: break the line by hand"
            for number, line in enumerate(lines, start=1)
            if len(line) > MOST_COLUMNS
        ]
    assert not broken, "\n".join(broken)


def test_no_style_sheet_is_too_long() -> None:
    long = {
        path.name: count for path in FOLDER.rglob("*.css") if (count := len(path.read_text().splitlines())) > MOST_LINES
    }
    assert not long


@pytest.mark.parametrize(
    "path", [path for path in OWN if path.parent.name == "core"], ids=lambda path: path.relative_to(FOLDER).as_posix()
)
def test_core_modules_are_pure(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"\b(document|window|fetch|localStorage|Date\.now|Math\.random)\b\s*[.(]", text)
    for named in re.findall(r'^import .* from "([^"]+)"', text, re.MULTILINE):
        target = (path.parent / named).resolve()
        assert target.parent.name in ("core", "vendor"), f"{named}: a core imports other cores only"


def test_the_kit_imports_no_view() -> None:
    for path in OWN:
        if path.is_relative_to(FOLDER / "kit"):
            assert "/views/" not in path.read_text("utf-8"), f"{path.name}: the kit is shared, and imports no view"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_the_unit_tests_of_the_page_pass() -> None:
    node = shutil.which("node")
    assert node is not None
    # In one process: `node --test` starts one for each file, which takes three times as much of a core.
    imports = "".join(f'import "{path.as_uri()}";' for path in sorted(TESTS.glob("*.test.js")))
    done = subprocess.run([node, "--input-type=module", "-e", imports], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()[-4000:]
