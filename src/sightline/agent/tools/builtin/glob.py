"""Patterns for paths: `*` and `?` within a name, `**` for any folders, `{a,b}` for either.

Compared step by step with one place to come back to, so that no pattern takes longer than its length times the path's.
"""

import re
from collections.abc import Callable, Sequence

from sightline.errors import Code, Fault

_MOST_PATTERNS = 64
_BRACES = re.compile(r"\{([^{}]*)\}")


class Glob:
    """A pattern. One without a slash is about the name alone, wherever it is; an empty one fits everything."""

    def __init__(self, pattern: str) -> None:
        self._ways = [_steps(each) for each in _expand_braces(pattern.removeprefix("./"))] if pattern else []

    def fits(self, path: str) -> bool:
        """Whether a path, relative and with slashes, is meant."""
        names = path.split("/")
        return not self._ways or any(_fits(way, names, "**", _fits_name) for way in self._ways)


def _steps(pattern: str) -> list[str]:
    return pattern.split("/") if "/" in pattern else ["**", pattern]


def _expand_braces(pattern: str) -> list[str]:
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        each = waiting.pop()
        if found := _BRACES.search(each):
            waiting += [each[: found.start()] + choice + each[found.end() :] for choice in found[1].split(",")]
        else:
            done.append(each)
        if len(done) + len(waiting) > _MOST_PATTERNS:
            raise Fault(Code.USAGE, f"{pattern!r} stands for too many patterns", hint="Use fewer braces.")
    return done


def _fits_name(pattern: str, name: str) -> bool:
    return _fits(pattern, name, "*", lambda letter, other: letter in ("?", other))


def _fits(pattern: Sequence[str], items: Sequence[str], star: str, one: Callable[[str, str], bool]) -> bool:
    place = item = 0
    back: tuple[int, int] | None = None
    while item < len(items):
        if place < len(pattern) and pattern[place] == star:
            back = (place, item)
            place += 1
        elif place < len(pattern) and one(pattern[place], items[item]):
            place += 1
            item += 1
        elif back is not None:
            back = (back[0], back[1] + 1)
            place, item = back[0] + 1, back[1]
        else:
            return False
    return all(each == star for each in pattern[place:])
