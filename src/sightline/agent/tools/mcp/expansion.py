"""Variables in a configuration: `${NAME}`, `${NAME:-default}` and `${env:NAME}`, filled in from an environment.

What was filled in is remembered, so that it can be kept out of whatever is told later.
"""

import re
from collections.abc import Mapping

MASK = "***"
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_SHORTEST = 4
"""Anything shorter stands in too many texts by chance."""


class UnfilledError(ValueError):
    """A variable that cannot be filled in. Its words name it and show no value."""


class Expansion:
    """Fills in variables, and knows what it filled in."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._values: set[str] = set()

    def expand(self, text: str) -> str:
        """The text with every variable filled in."""
        return _VARIABLE.sub(self._value, text)

    @property
    def values(self) -> frozenset[str]:
        """What is to be kept out of every text."""
        return frozenset(self._values)

    def _value(self, found: re.Match[str]) -> str:
        name = _NAME.fullmatch(found[1])
        if name is None:
            raise UnfilledError(f"{found[0]} is no variable of the environment")
        value = self._environment.get(name[1]) or name[2]
        if value is None:
            raise UnfilledError(f"the variable {name[1]} is not set")
        if name[1] in self._environment and len(value) >= _SHORTEST:
            self._values.add(value)
        return value


def mask_values(text: str, values: frozenset[str]) -> str:
    """The text without these values, the longest first: one may be a part of another."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text
