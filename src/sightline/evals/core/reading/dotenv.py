"""Variables that stand in a file, one in a line, as `.env` files have them."""

import re
from collections.abc import Collection

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=[ \t]*(.*)")
_QUOTED = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_variables(data: bytes, wanted: Collection[str]) -> dict[str, str]:
    """The variables of these names. What is not wanted is not even kept, for such files are full of keys.

    Of a name that stands there twice the last one counts, as in a shell. Nothing in a value is replaced.
    """
    found: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").removeprefix("\ufeff").splitlines():
        match = _LINE.fullmatch(line)
        if match is not None and match[1] in wanted:
            found[match[1]] = _value(match[2])
    return found


def _value(text: str) -> str:
    quoted = _QUOTED.match(text)
    if quoted is None:
        return re.split(r"\s#|^#", text, maxsplit=1)[0].strip()
    if quoted[1] is not None:
        return quoted[1]
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), quoted[2])
