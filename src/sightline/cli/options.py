"""Options that every command understands."""

import argparse


def add_shared(command: argparse.ArgumentParser) -> None:
    """`--config`, `--data` and `--log-level`."""
    command.add_argument("--config", metavar="FILE", help="configuration (default: ./sightline.toml, then the user's)")
    command.add_argument(
        "--data", metavar="DIR", help="where Sightline keeps what it records and learns (or SIGHTLINE_DATA)"
    )
    command.add_argument("--log-level", choices=("debug", "info"), default="info", help="debug shows tracebacks")
