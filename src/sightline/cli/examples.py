"""`sightline examples`: lists or copies the files that the documentation uses."""

import argparse
import os
import shutil
from importlib.resources import files
from pathlib import Path

from sightline.cli.terminal import write
from sightline.errors import Code, Fault


def run(arguments: argparse.Namespace) -> int:
    source = examples_folder()
    if arguments.folder is None:
        files_below = (each for each in source.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
        found = sorted(str(each.relative_to(source)) for each in files_below)
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
    write(os.fsencode(f"{target}\n"))
    return 0


def examples_folder() -> Path:
    """The folder of the examples: in an installed package, or beside the sources of a checkout."""
    package = Path(str(files("sightline")))
    found = next((each for each in (package / "examples", package.parents[1] / "examples") if each.is_dir()), None)
    if found is None:
        raise Fault(Code.CONFIG, "this installation has no examples", hint="Install Sightline again from its wheel.")
    return found
