"""Regular expressions in a server's schemas that could keep us busy for ever over a few dozen letters.

Arguments are held against them in our own process, where nothing can interrupt that. A pattern is judged by its form,
on the safe side: one that is put aside is not checked, and nothing else is lost. So is one that Python cannot read:
servers are written in other languages, whose patterns are not all ours.
"""

import re
import warnings

from sightline.model.json import Json

_MOST_REPEATS = 3
_DATA = ("const", "default", "enum", "examples")


def is_usable(pattern: str) -> bool:
    """Whether a pattern can be read, and will not take for ever."""
    if is_risky(pattern):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError, Warning):
        return False
    return True


def is_risky(pattern: str) -> bool:
    """Whether a repeated group holds something that repeats or forks, or too much repeats one after the other."""
    repeats = 0
    forks: list[bool] = [False]
    closed = False  # whether what was just closed is a group that repeats or forks within
    index = 0
    while index < len(pattern):
        letter, was_closed, closed = pattern[index], closed, False
        if letter == "\\":
            index += 1
        elif letter == "[":
            index = _class_end(pattern, index)
        elif letter == "(":
            forks.append(False)
        elif letter == ")" and len(forks) > 1:
            closed = forks.pop()
            forks[-1] = forks[-1] or closed
        elif letter == "|":
            forks[-1] = True
        elif letter in "*+" or (letter == "{" and "," in pattern[index : pattern.find("}", index) + 1]):
            if was_closed:
                return True
            repeats += 1
            forks[-1] = True
        elif letter == "{" and was_closed:
            return True
        index += 1
    return repeats > _MOST_REPEATS


def drop_unsafe_patterns(schema: Json) -> tuple[Json, int]:
    """The schema without patterns that cannot be used, and how many there were."""
    if isinstance(schema, list):
        pairs = [drop_unsafe_patterns(each) for each in schema]
        return [each for each, _ in pairs], sum(count for _, count in pairs)
    if not isinstance(schema, dict):
        return schema, 0
    kept: dict[str, Json] = {}
    total = 0
    for key, value in schema.items():
        if key == "pattern" and isinstance(value, str) and not is_usable(value):
            total += 1
            continue
        kept[key], count = (value, 0) if key in _DATA else drop_unsafe_patterns(value)
        total += count
    return kept, total


def has_unusable_names(schema: Json) -> bool:
    """Whether properties are named by a pattern that cannot be used: without it the schema means something else."""
    if isinstance(schema, list):
        return any(has_unusable_names(each) for each in schema)
    if not isinstance(schema, dict):
        return False
    named = schema.get("patternProperties")
    if isinstance(named, dict) and not all(is_usable(name) for name in named):
        return True
    return any(has_unusable_names(value) for key, value in schema.items() if key not in _DATA)


def _class_end(pattern: str, start: int) -> int:
    """Where a class of letters ends; a bracket that comes first in it is a letter."""
    index = start + 1
    if pattern[index : index + 1] == "^":
        index += 1
    if pattern[index : index + 1] == "]":
        index += 1
    while index < len(pattern) and pattern[index] != "]":
        index += 2 if pattern[index] == "\\" else 1
    return index
