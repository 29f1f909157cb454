"""How long `sightline --help` takes, beside a Python that only imports msgspec."""

import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.timing import medians, milliseconds, ratio, table

ROUNDS = 15
AIM = "< 2.50x"


def report() -> str:
    sightline = Path(sys.executable).with_name("sightline")
    commands = {
        'python -c "import msgspec"': [sys.executable, "-c", "import msgspec"],
        "sightline --help": [str(sightline), "--help"],
    }
    times = medians({name: partial(_run, command) for name, command in commands.items()}, ROUNDS)
    least = next(iter(times.values()))
    aims = ["", AIM]
    rows = [
        [name, milliseconds(seconds), ratio(seconds / least), aim]
        for (name, seconds), aim in zip(times.items(), aims, strict=True)
    ]
    return table(f"Start (median of {ROUNDS})", ["command", "time", "ratio", "aim"], rows)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
