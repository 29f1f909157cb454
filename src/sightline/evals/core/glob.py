"""Patterns for paths: `*` and `?` within a folder, `**` across folders, `[abc]` and `{one,other}`."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from sightline.errors import Code, Fault

_HINT = "Write a pattern such as **/*.instructions.md."
_MOST_CHARACTERS = 500
_IN_CLASS = re.compile(r"(.)-(.)|(.)", re.DOTALL)


class _Characters(NamedTuple):
    """Ranges of characters, both ends included, or all other characters. A slash matches only if `slash` is set."""

    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False
    slash: bool = False

    def have(self, character: str) -> bool:
        if character == "/":
            return self.slash
        return any(low <= character <= high for low, high in self.ranges) is not self.negated


_IN_FOLDER = _Characters(negated=True)
_ANY = _Characters(negated=True, slash=True)
_SLASH = _Characters(slash=True)

_Steps: TypeAlias = list[tuple[_Characters, int]]


@dataclass(frozen=True, eq=False)
class _StateSet:
    """The states reached after some characters, and the known transitions from there by the next character."""

    places: frozenset[int]
    after: dict[str, "_StateSet"] = field(default_factory=dict)


class PathPattern:
    """A pattern as a nondeterministic automaton of numbered states: `steps` consume a character, `free` do not.

    All states that the characters so far lead to are followed at once, so that the work grows with the length of the
    path. A regular expression of `re` would try the alternatives of each star one after the other: seconds for
    `*a*a*a*a*a*b`.
    """

    def __init__(self, steps: Sequence[_Steps], free: Sequence[list[int]], last: int) -> None:
        self._steps = steps
        self._free = free
        self._last = last
        self._first = _StateSet(self._with_free((0,)))
        self._known: dict[frozenset[int], _StateSet] = {}

    def matches(self, path: str) -> bool:
        """Whether the pattern matches the whole path."""
        reached = self._first
        for character in path:
            after = reached.after.get(character)
            if after is None:
                after = reached.after[character] = self._take(reached, character)
            reached = after
        return self._last in reached.places

    def _take(self, reached: _StateSet, character: str) -> _StateSet:
        steps = (step for place in reached.places for step in self._steps[place])
        places = self._with_free(other for characters, other in steps if characters.have(character))
        return self._known.setdefault(places, _StateSet(places))

    def _with_free(self, places: Iterable[int]) -> frozenset[int]:
        reached, waiting = set[int](), list(places)
        while waiting:
            place = waiting.pop()
            if place not in reached:
                reached.add(place)
                waiting += self._free[place]
        return frozenset(reached)


def compile_glob(pattern: str) -> PathPattern:
    """Compile a pattern that matches whole paths. Raises a `Fault` if the pattern is invalid."""
    if not pattern.strip():
        raise Fault(Code.USAGE, "the pattern is empty", hint=_HINT)
    if len(pattern) > _MOST_CHARACTERS:
        raise Fault(Code.USAGE, f"the pattern is longer than {_MOST_CHARACTERS} characters", hint=_HINT)
    if pattern.startswith("/") or "\\" in pattern or ".." in pattern.split("/"):
        raise Fault(Code.USAGE, f"{pattern}: patterns are of paths below the folder, with /", hint=_HINT)
    return _Reader(pattern.removeprefix("./")).read()


def is_glob(path: str) -> bool:
    """Whether a path is a pattern, which may match several paths."""
    return any(character in path for character in "*?[{")


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._steps: list[_Steps] = [[]]
        self._free: list[list[int]] = [[]]
        self._here = 0
        self._braces: list[tuple[int, int]] = []

    def read(self) -> PathPattern:
        while self._at < len(self._pattern):
            character = self._pattern[self._at]
            self._at += 1
            if character == "*":
                self._stars()
            elif character == "?":
                self._take(_IN_FOLDER)
            elif character == "[":
                self._take(self._class())
            elif character == "{":
                self._braces.append((self._here, self._add()))
                self._here = self._add(self._here)
            elif character in ",}" and self._braces:
                self._end_branch(character)
            else:
                self._take(_SLASH if character == "/" else _Characters(((character, character),)))
        if self._braces:
            raise Fault(Code.USAGE, f"{self._pattern}: a {{ is not closed", hint=_HINT)
        return PathPattern(self._steps, self._free, self._here)

    def _add(self, *before: int) -> int:
        """Add a state, which these states lead to without a character, and return its number."""
        new = len(self._steps)
        self._steps.append([])
        self._free.append([])
        for place in before:
            self._free[place].append(new)
        return new

    def _take(self, characters: _Characters) -> None:
        after = self._add()
        self._steps[self._here].append((characters, after))
        self._here = after

    def _end_branch(self, character: str) -> None:
        start, end = self._braces[-1]
        self._free[self._here].append(end)
        if character == ",":
            self._here = self._add(start)
        else:
            self._braces.pop()
            self._here = end

    def _stars(self) -> None:
        begins = self._at == 1 or self._pattern[self._at - 2] in "/{,"
        count = 1
        while self._pattern.startswith("*", self._at):
            self._at += 1
            count += 1
        # A new state: other branches of a brace start at the previous one, and must not be repeated.
        self._here = self._add(self._here)
        if count > 1 and begins and self._pattern.startswith("/", self._at):
            self._at += 1
            folder = self._add()
            self._steps[self._here].append((_IN_FOLDER, folder))
            self._steps[folder] += [(_IN_FOLDER, folder), (_SLASH, self._here)]
        else:
            self._steps[self._here].append((_IN_FOLDER if count == 1 else _ANY, self._here))

    def _class(self) -> _Characters:
        end = self._pattern.find("]", self._at + 1)
        if end < 0:
            raise Fault(Code.USAGE, f"{self._pattern}: a [ is not closed", hint=_HINT)
        inner = self._pattern[self._at : end]
        self._at = end + 1
        negated = inner[0] in "!^"
        ranges = tuple((low or one, high or one) for low, high, one in _IN_CLASS.findall(inner[negated:]))
        if not ranges or any(low > high for low, high in ranges):
            raise Fault(Code.USAGE, f"{self._pattern}: [{inner}] matches nothing", hint=_HINT)
        return _Characters(ranges, negated)
