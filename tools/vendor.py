"""Build the files of other people's code that the page uses, from exact versions: `python tools/vendor.py`.

It needs Node and npm, and works in a folder of its own that it removes. Running Sightline, or changing the page, needs
neither: the files, their licences and the manifest that a test checks are kept in the repository.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "src" / "sightline" / "ui" / "vendor"
ESBUILD = "0.28.2"
AXE_FOLDER = Path(__file__).resolve().parent.parent / "tests" / "ui" / "axe"
AXE = {"axe-core": "4.14.0"}

PREACT = {"preact": "11.2.0", "@preact/signals": "2.11.4", "@preact/signals-core": "1.14.5", "htm": "3.1.1"}
CODEMIRROR = {
    "@codemirror/autocomplete": "6.20.4",
    "@codemirror/commands": "6.11.1",
    "@codemirror/lang-css": "6.3.1",
    "@codemirror/lang-html": "6.4.12",
    "@codemirror/lang-javascript": "6.2.5",
    "@codemirror/lang-json": "6.0.2",
    "@codemirror/lang-markdown": "6.5.2",
    "@codemirror/language": "6.13.1",
    "@codemirror/lint": "6.9.7",
    "@codemirror/merge": "6.12.2",
    "@codemirror/search": "6.7.2",
    "@codemirror/state": "6.7.6",
    "@codemirror/streamparser": "6.0.0",
    "@codemirror/view": "6.43.15",
    "@lezer/common": "1.5.5",
    "@lezer/css": "1.3.9",
    "@lezer/highlight": "1.2.5",
    "@lezer/html": "1.3.13",
    "@lezer/javascript": "1.5.6",
    "@lezer/json": "1.0.3",
    "@lezer/lr": "1.4.12",
    "@lezer/markdown": "1.8.1",
    "@marijn/find-cluster-break": "1.0.4",
    "crelt": "1.0.7",
    "style-mod": "4.1.4",
    "w3c-keyname": "2.2.8",
}

TEMML = {"temml": "0.13.5"}
DIFF = {"diff": "9.0.0"}

PREACT_ENTRY = """
import { h } from "preact";
import htm from "htm";
export * from "preact";
export * from "preact/hooks";
export * from "@preact/signals";
export const html = htm.bind(h);
"""

CODEMIRROR_ENTRY = """
export * from "@codemirror/state";
export * from "@codemirror/view";
export * from "@codemirror/commands";
export * from "@codemirror/language";
export * from "@codemirror/search";
export * from "@codemirror/autocomplete";
export * from "@codemirror/lint";
export * from "@codemirror/merge";
export * from "@codemirror/lang-json";
export * from "@codemirror/lang-markdown";
export { tags, tagHighlighter, highlightTree, classHighlighter } from "@lezer/highlight";
"""

# Only the tree: the page makes elements of it by its own rules, and markup of it is never made.
TEMML_ENTRY = """
import temml from "temml";
export const treeOf = temml.__renderToMathMLTree;
"""

DIFF_ENTRY = """
export { diffArrays } from "diff";
"""

PATCHES = (
    # Without style elements the page needs no leave for styles that stand in it: the policy can forbid them all.
    ("style-mod/src/style-mod.js", "if (!root.head && root.adoptedStyleSheets", "if (root.adoptedStyleSheets"),
)
"""What is changed before bundling: the file, the text that must be there once, and what stands in its place."""

BUNDLES = (
    ("preact", PREACT, PREACT_ENTRY),
    ("codemirror", CODEMIRROR, CODEMIRROR_ENTRY),
    ("temml", TEMML, TEMML_ENTRY),
    ("diff", DIFF, DIFF_ENTRY),
)


def main() -> None:
    """Install, bundle, and write down what came of it."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("error: npm is missing. hint: install Node, or leave the vendored files as they are.")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        wanted = PREACT | CODEMIRROR | TEMML | DIFF | AXE | {"esbuild": ESBUILD}
        (scratch / "package.json").write_text(json.dumps({"private": True, "dependencies": wanted}), "utf-8")
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--save-exact")
        subprocess.run([npm, "install", *options], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
        for file, before, after in PATCHES:
            _patch(scratch / "node_modules" / file, before, after)
        manifest = "".join(_bundled(scratch, *bundle) for bundle in BUNDLES)
        _keep_axe(scratch / "node_modules" / "axe-core")
    (FOLDER / "VENDOR.toml").write_text(_HEAD + manifest, "utf-8")


_HEAD = """# Other people's code in this folder, written by tools/vendor.py, which also names the one change made to it.
# A test compares the hashes.
"""


def _keep_axe(package: Path) -> None:
    """Copy axe-core, by which the tests check what a page owes to everyone; it is no part of the page."""
    AXE_FOLDER.mkdir(exist_ok=True)
    for name in ("axe.min.js", "LICENSE", "LICENSE-3RD-PARTY.txt"):
        shutil.copyfile(package / name, AXE_FOLDER / name)
    about = json.loads((package / "package.json").read_text("utf-8"))
    sha256 = hashlib.sha256((AXE_FOLDER / "axe.min.js").read_bytes()).hexdigest()
    keys = {"name": "name", "version": "version", "licence": "license"}
    told = "".join(f'{name} = "{about[key]}"\n' for name, key in keys.items())
    (AXE_FOLDER / "VENDOR.toml").write_text(f'{_AXE_HEAD}{told}sha256 = "{sha256}"\n', "utf-8")


_AXE_HEAD = """# axe-core as npm has it, for the tests of the page alone; written by tools/vendor.py.
# A test compares the hash.
"""


def _patch(path: Path, before: str, after: str) -> None:
    text = path.read_text("utf-8")
    if text.count(before) != 1:
        sys.exit(f"error: {path.name} is not what the patch was made for. hint: look at what has changed in it.")
    path.write_text(text.replace(before, after), "utf-8")


def _bundled(scratch: Path, name: str, packages: dict[str, str], entry: str) -> str:
    """Write one file and its licences; gives back its part of the manifest."""
    source, target = scratch / f"{name}.entry.js", FOLDER / f"{name}.js"
    source.write_text(entry, "utf-8")
    esbuild = scratch / "node_modules" / ".bin" / "esbuild"
    options = ("--bundle", "--format=esm", "--minify", "--target=es2022", "--charset=utf8", "--legal-comments=none")
    subprocess.run([esbuild, source, *options, f"--outfile={target}", "--log-level=warning"], cwd=scratch, check=True)
    told, licences = [], []
    for package, version in sorted(packages.items()):
        folder = scratch / "node_modules" / package
        about = json.loads((folder / "package.json").read_text("utf-8"))
        if about["version"] != version:
            sys.exit(f"error: {package} came as {about['version']}. hint: pin every package in {Path(__file__).name}.")
        text = (folder / "LICENSE").read_text("utf-8").strip()
        licences.append(f"{package} {version} ({about['license']})\n\n{text}\n")
        told.append(f'{{ name = "{package}", version = "{version}", licence = "{about["license"]}" }}')
    (FOLDER / f"{name}.LICENSE").write_text(f"\n{'-' * 80}\n\n".join(licences), "utf-8")
    sha256 = hashlib.sha256(target.read_bytes()).hexdigest()
    listed = "".join(f"    {each},\n" for each in told)
    part = f'\n["{name}.js"]\nsha256 = "{sha256}"\nlicences = "{name}.LICENSE"\npackages = [\n{listed}]\n'
    tomllib.loads(part)
    return part


if __name__ == "__main__":
    main()
