"""Options that all commands have, and the types of option values."""

import argparse
import math
import re

from sightline.cli.terminal import read
from sightline.errors import Code, Fault

_FILE_NAME = re.compile(r"\S*(/\S*|\.[A-Za-z]\w{0,4})")
"""One word that contains a slash or ends like a file name."""


def add_shared(command: argparse.ArgumentParser) -> None:
    """Add `--config`, `--data` and `--log-level`."""
    command.add_argument("--config", metavar="FILE", help="configuration (default: ./sightline.toml, then the user's)")
    command.add_argument("--data", metavar="DIR", help="the data folder (or SIGHTLINE_DATA)")
    command.add_argument("--log-level", choices=("debug", "info"), default="info", help="debug shows tracebacks")


def add_apart(command: argparse.ArgumentParser) -> None:
    """Add `--apart`, for commands whose requests a running server sends."""
    command.add_argument(
        "--apart", action="store_true", help="send from this process even if a server runs with this data folder"
    )


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def number(text: str) -> float:
    """Any number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def amount(text: str) -> float:
    """A number above 0."""
    value = number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return value


def instructions_in(given: str | None, otherwise: str = "") -> str:
    """The text of an option that takes a text or a file name; `otherwise` if it is not given."""
    if given is None:
        return otherwise
    from pathlib import Path

    try:
        is_file = Path(given).is_file()
    except (OSError, ValueError):  # too long for a name, or with characters that no name has
        is_file = False
    if not is_file:
        if _FILE_NAME.fullmatch(given):
            raise Fault(Code.USAGE, f"{given}: there is no such file", hint="Name a file, or write the text itself.")
        return given
    try:
        return read(given).decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise Fault(Code.USAGE, f"{given} is not UTF-8 text (byte {error.start})", hint="Save it as UTF-8.") from None
