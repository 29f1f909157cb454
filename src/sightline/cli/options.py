"""Options that every command understands, and the numbers that options take."""

import argparse
import math


def add_shared(command: argparse.ArgumentParser) -> None:
    """`--config`, `--data` and `--log-level`."""
    command.add_argument("--config", metavar="FILE", help="configuration (default: ./sightline.toml, then the user's)")
    command.add_argument(
        "--data", metavar="DIR", help="where Sightline keeps what it records and learns (or SIGHTLINE_DATA)"
    )
    command.add_argument("--log-level", choices=("debug", "info"), default="info", help="debug shows tracebacks")


def add_apart(command: argparse.ArgumentParser) -> None:
    """`--apart`, for commands that a running server sends for."""
    command.add_argument(
        "--apart", action="store_true", help="send from this process, also where a server runs with this data folder"
    )


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


def number(text: str) -> float:
    """Any number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return value


def amount(text: str) -> float:
    """A number above 0."""
    value = number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return value
