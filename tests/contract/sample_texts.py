"""Texts of many kinds, two of each: the weights of the character model are fitted to the first, judged by the second.

The rule of the split is the place in the pair. The weights never saw the second texts, but the margin around them was
set with the second texts in sight.
"""

import base64
import json
import random
from collections.abc import Callable
from pathlib import Path

WRITTEN: dict[str, tuple[str, str]] = {
    name: (fitted, judged)
    for name, (fitted, judged) in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
}


def _uuid(draw: random.Random) -> str:
    digits = f"{draw.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _log_line(draw: random.Random) -> str:
    level = draw.choice(["INFO", "WARN", "ERROR", "DEBUG"])
    return (
        f"2025-03-{draw.randint(1, 28):02d}T{draw.randint(0, 23):02d}:{draw.randint(0, 59):02d}:"
        f"{draw.randint(0, 59):02d}.{draw.randint(0, 999):03d}Z {level} [worker-{draw.randint(1, 16)}] "
        f"request id={draw.getrandbits(48):012x} "
        f"path=/api/v2/items/{draw.randint(1, 99999)} status={draw.choice([200, 204, 404, 500])} "
        f"took={draw.randint(1, 900)}ms"
    )


def _record(draw: random.Random) -> str:
    return (
        f'{{"id": {draw.randint(1, 10**6)}, "active": {draw.choice(["true", "false"])}, "score": {draw.random():.4f}, '
        f'"tags": ["{draw.choice(["red", "blue", "green"])}", "x{draw.randint(1, 99)}"], "owner": null}}'
    )


def _row(draw: random.Random) -> str:
    return ",".join(str(round(draw.uniform(-1000, 1000), draw.randint(0, 4))) for _ in range(6))


MADE: dict[str, Callable[[random.Random], str]] = {
    "base64": lambda draw: base64.b64encode(draw.randbytes(360)).decode(),
    "hex": lambda draw: draw.randbytes(200).hex(),
    "uuids": lambda draw: "\n".join(_uuid(draw) for _ in range(8)),
    "logs": lambda draw: "\n".join(_log_line(draw) for _ in range(6)),
    "json": lambda draw: "[" + ", ".join(_record(draw) for _ in range(6)) + "]",
    "csv": lambda draw: "\n".join(_row(draw) for _ in range(12)),
    "digits": lambda draw: " ".join(str(draw.randint(0, 10**9)) for _ in range(30)),
}


def _made(name: str, place: int) -> str:
    return MADE[name](random.Random(f"{name} {place}"))


def texts(place: int) -> dict[str, str]:
    """The texts at this place of their pairs: 0 to fit, 1 to judge. Each kind also comes long, with its neighbour."""
    short = {name: pair[place] for name, pair in WRITTEN.items()} | {name: _made(name, place) for name in MADE}
    names = list(short)
    long = {
        f"{name}+{after}": "\n\n".join([short[name], short[after]] * 3)
        for name, after in zip(names, names[1:] + names[:1], strict=True)
    }
    return short | long


FIT = texts(0)
HELD_OUT = texts(1)
