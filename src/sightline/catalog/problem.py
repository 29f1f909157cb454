"""Problems of a configuration, worded so that a person finds the place and knows what to write instead."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from sightline.errors import Code, Fault

Path: TypeAlias = tuple[str | int, ...]
Mistake: TypeAlias = tuple[Path, str, str]
"""A key, what is wrong with it, and what to do."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class ConfigLocation:
    """A line of a file, or an environment variable, which has no line."""

    file: str
    line: int = 0
    variable: str = ""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """A mistake. `path` is the key that it concerns, or the variable."""

    file: str
    line: int
    path: str
    message: str
    hint: str = ""

    @property
    def text(self) -> str:
        """The mistake with its place in front, as compilers print it."""
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file} {self.path}: {self.message}"


def problem_at(place: ConfigLocation, path: Path, message: str, hint: str = "") -> ConfigProblem:
    """A mistake in the value at this path, which was set at this place."""
    return ConfigProblem(place.file, place.line, place.variable or format_path(path), message, hint)


def fault_of(problems: Sequence[ConfigProblem]) -> Fault:
    """The fault for a configuration that cannot be used: the first mistake, and how many more there are."""
    first, others = problems[0], len(problems) - 1
    more = f" (and {others} more: `sightline config check` shows all)" if others else ""
    return Fault(Code.CONFIG, f"{first.text}{more}", hint=first.hint, details=[each.text for each in problems])


def format_path(path: Path) -> str:
    """A path as it is written in the file: `models."acme/large".prices`, `routes[0]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            bare = step if _BARE.fullmatch(step) else quote_word(step)
            text += f".{bare}" if text else bare
    return text


def quote_word(word: str) -> str:
    """A word in quotes, shortened, without characters that could upset a terminal."""
    safe = "".join(letter if letter.isprintable() else "?" for letter in word)
    return f'"{safe if len(safe) <= 60 else safe[:57] + "..."}"'


def nearest(word: str, known: Iterable[str], otherwise: str = "Known") -> str:
    """A hint: the known name that was most likely meant, otherwise all known names."""
    names = list(known)
    return likely(word, names) or (f"{otherwise}: {', '.join(names)}." if names else "")


def likely(word: str, known: Iterable[str], alike: float = 0.6) -> str:
    """A hint: the known name that was most likely meant; empty if none is close."""
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=alike)
    return f"Did you mean {quote_word(by_lower[close[0]])}?" if close else ""
