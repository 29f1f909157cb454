"""When two JSON values are the same, and how a value inside one is named."""

import re

from sightline.model.json import Json

_STEP = re.compile(r"\.|\[|\]")


class Absent:
    """What stands at a path that leads nowhere; null is something."""


ABSENT = Absent()


def alike(one: Json, other: Json) -> bool:
    """Whether two values are the same: 1 is 1.0, and true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(alike(a, b) for a, b in zip(one, other, strict=True))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def steps_of(path: str) -> tuple[str, ...]:
    """The steps of a path such as `lines[0].amount`."""
    return tuple(step for step in _STEP.split(path) if step)


def value_at(value: Json, path: str) -> Json | Absent:
    """What stands at a path."""
    for step in steps_of(path):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return ABSENT
    return value
