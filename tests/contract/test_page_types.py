"""The page's types, written as comments, checked by TypeScript; npm brings it where there is npm."""

import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from sightline.workbench.workbench import FOLDER

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".venv/page-types"
TYPESCRIPT = "typescript@7.0.2"


@pytest.fixture(scope="module")
def modules() -> Path:
    """The folder with TypeScript and the types of what is vendored."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed; it brings TypeScript, which checks the page's types")
    manifest = tomllib.loads((FOLDER / "vendor/VENDOR.toml").read_text("utf-8"))
    listed = [f"{each['name']}@{each['version']}" for told in manifest.values() for each in told["packages"]]
    wanted = [TYPESCRIPT, *sorted(listed)]
    stamp = CACHE / "installed.json"
    if not stamp.exists() or json.loads(stamp.read_text()) != wanted:
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(CACHE)]
        done = subprocess.run([*command, *wanted], cwd=CACHE, capture_output=True, check=False, timeout=300)
        if done.returncode != 0:
            pytest.skip(f"npm could not bring TypeScript: {done.stderr.decode()[-300:]}")
        stamp.write_text(json.dumps(wanted))
    return CACHE / "node_modules"


def test_the_types_of_the_page_hold(modules: Path, tmp_path: Path) -> None:
    config = tmp_path / "tsconfig.json"
    options = {
        "strict": True, "checkJs": True, "allowJs": True, "noEmit": True,
        "target": "es2023", "module": "esnext", "moduleResolution": "bundler",
        "lib": ["es2023", "dom", "dom.iterable", "dom.asynciterable"], "types": [],
        "paths": {
            "preact": [f"{modules}/preact"], "preact/*": [f"{modules}/preact/*"], "htm": [f"{modules}/htm"],
            "@preact/*": [f"{modules}/@preact/*"], "@codemirror/*": [f"{modules}/@codemirror/*"],
            "@lezer/*": [f"{modules}/@lezer/*"], "style-mod": [f"{modules}/style-mod"],
        },
    }  # fmt: skip
    places = {"include": [f"{FOLDER}/**/*.js", f"{FOLDER}/**/*.d.ts"], "exclude": [f"{FOLDER}/vendor/*.js"]}
    config.write_text(json.dumps({"compilerOptions": options, **places}))
    node = shutil.which("node")
    assert node is not None
    # On one thread it takes half as much of the cores, which other tests use meanwhile.
    command = [node, str(modules / "typescript/bin/tsc"), "--singleThreaded", "-p", str(config)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout.decode()[-4000:]
