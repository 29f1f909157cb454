"""How much work a pattern can make of a text, at the very most.

The engine of the standard library tries again from every place where it could have gone on differently, and cannot be
told to stop. The number of ways to go on, multiplied, is what is counted here: always too much and never too little.
What is repeated is counted by the longest run of it that the text has; where what is repeated can itself go on
differently, or the pattern refers to what it has matched, there is no telling.
"""

import re
import warnings
from dataclasses import dataclass

MOST_STEPS = 20_000_000
"""Less than a second."""

_TOKEN = re.compile(
    r"\\(?P<escape>x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|[\s\S])"
    r"|(?P<set>\[\^?\]?(?:\\[\s\S]|[^\]\\])*\])|(?P<again>\(\?P=)|(?P<open>\((?:\?[^)]?)?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<many>[*+])|(?P<maybe>\?)|(?P<times>\{(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\})|[\s\S]"
)
_FLAGS_INSIDE = re.compile(r"\(\?[aiLmsux-]")
_SPACED = re.compile(r"\(\?[a-zA-Z]*x")


@dataclass(slots=True)
class _Group:
    """What stands between two brackets: whether it can go on differently, and in how many ways."""

    start: int = 0
    varies: bool = False
    ways: float = 1.0


def compile_quietly(pattern: str, flags: re.RegexFlag) -> re.Pattern[str]:
    """A pattern, as it is read today and without a word on how it may be read one day."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern, flags)


def is_bounded(pattern: str, flags: re.RegexFlag, text: str) -> bool:
    """Whether looking for a pattern in a text is sure to end soon."""
    if _SPACED.search(pattern):
        return False  # comments may stand in it, and look like anything
    if _FLAGS_INSIDE.search(pattern):
        flags |= re.IGNORECASE | re.DOTALL
    ways = _ways(pattern, flags, text)
    return ways is not None and ways * (len(text) + 1) * (len(pattern) + 1) <= MOST_STEPS


def _ways(pattern: str, flags: re.RegexFlag, text: str) -> float | None:
    """In how many ways it can go on from one place, None where that cannot be told."""
    open_groups = [_Group()]
    atom: str | None = ""  # what a repetition repeats, None where it can go on differently
    for token in _TOKEN.finditer(pattern):
        group, kind, before = open_groups[-1], token.lastgroup, atom
        atom = token[0]
        match kind:
            case "again":
                return None
            case "escape" if token["escape"].isdigit():
                return None
            case "open" if token[0] == "(?(":
                return None
            case "open":
                open_groups.append(_Group(token.start()))
            case "close" if len(open_groups) > 1:
                inner = open_groups.pop()
                open_groups[-1].varies |= inner.varies
                open_groups[-1].ways *= inner.ways
                atom = None if inner.varies else pattern[inner.start : token.end()]
            case "bar":
                group.varies = True
                group.ways += 1
            case "maybe":
                group.varies = True
                group.ways *= 2
            case "many" | "times":
                most = _most(token)
                if before is None and most != 1:
                    return None
                run = 1 if before is None else _longest_run(before, flags, text)
                group.varies |= most is None or bool(token["comma"])
                group.ways *= 1 + (run if most is None else min(run, most))
            case _:
                pass
    return open_groups[0].ways


def _longest_run(atom: str, flags: re.RegexFlag, text: str) -> int:
    try:
        runs = compile_quietly(f"(?:{atom})+", flags)
    except re.error:
        return len(text)  # it is part of something longer, such as the sign of another repetition
    return max((len(run[0]) for run in runs.finditer(text)), default=0)


def _most(token: re.Match[str]) -> int | None:
    """How often something is repeated at the most, None where there is no end to it."""
    digits = token["high"] if token["comma"] else token["low"]
    return int(digits) if digits and len(digits) < 10 else None
