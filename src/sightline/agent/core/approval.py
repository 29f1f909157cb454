"""Who may run what: rules as values, and what a person can decide about a call.

A rule is about a tool's name and, where it has them, about arguments. Patterns are for convenience and are no sandbox:
in a pattern `*` stops at a slash and at the end of a line, `**` only at the end of a line, and a value with `..` as a
step of its path fits no pattern with a wildcard, so that leave for one folder is no leave for the one above it.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from sightline.agent.core.tool import ResultPart
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.wire import pointer
from sightline.wire.jsontext import encode

Ruling: TypeAlias = Literal["allow", "ask", "deny"]
DeniedBy: TypeAlias = Literal["user", "hook", "rule", "nobody"]
"""Who does not allow a call; `nobody`: there was no one to ask."""


class ApprovalRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """For calls of these tools whose arguments fit: the pattern of the name, and patterns by JSON pointer.

    `reason` goes to the model when the call is denied. A tool for free text has its text at the empty pointer.
    """

    tool: str
    ruling: Ruling
    arguments: dict[str, str] = {}
    reason: str = ""

    def covers(self, name: str, arguments: JsonObject | str) -> bool:
        """Whether the rule is about this call; an argument that is not there fits no pattern."""
        return _fits(self.tool, name) and all(
            _holds(arguments, place, pattern) for place, pattern in self.arguments.items()
        )


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rules of a run. One that denies comes before all others; of the rest the first that covers a call decides."""

    rules: tuple[ApprovalRule, ...] = ()
    otherwise: Ruling = "ask"

    def ruling(self, name: str, arguments: JsonObject | str) -> ApprovalRule:
        """What holds for this call."""
        covering = [rule for rule in self.rules if rule.covers(name, arguments)]
        denying = [rule for rule in covering if rule.ruling == "deny"]
        return next(iter(denying or covering), ApprovalRule(name, self.otherwise))

    def prepend(self, rule: ApprovalRule) -> "Policy":
        """The policy with a newer rule before the others."""
        return msgspec.structs.replace(self, rules=(rule, *self.rules))


class Allowed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="decision", tag="allowed"):
    """Run it, with these arguments if they were edited; `rule` is to hold from now on."""

    arguments: dict[str, Json] | str | None = None
    rule: ApprovalRule | None = None


class Denied(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="decision", tag="denied"):
    """Do not run it, and tell the model who denied it and why."""

    reason: str = ""
    rule: ApprovalRule | None = None
    by: DeniedBy = "user"


class AnsweredByHand(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="decision", tag="answered"):
    """Do not run it; this is what the model gets instead."""

    parts: tuple[ResultPart, ...]
    is_error: bool = False


Decision: TypeAlias = Allowed | Denied | AnsweredByHand


def _holds(arguments: JsonObject | str, place: str, pattern: str) -> bool:
    try:
        found = pointer.resolve(arguments, place)
    except Fault:
        return False
    return _fits(pattern, found if isinstance(found, str) else encode(found).decode())


def _fits(pattern: str, value: str) -> bool:
    if "*" in pattern and ".." in re.split(r"[/\\]", value):
        return False
    return _compile_pattern(pattern).fits(value)


class _ArgumentPattern(NamedTuple):
    """A pattern as bits. Bit `n` of `takes[letter]` is set if letter `n` of the pattern without its stars is that one,
    bit `n` of `stars` and `double_stars` if such a star is in front of it.

    A model writes the values, and long ones. All ways to match are followed at once, as bits of one number, because an
    expression of `re` with several stars would try them one after the other.
    """

    length: int
    takes: Mapping[str, int]
    stars: int
    double_stars: int

    def fits(self, value: str) -> bool:
        matched = 1
        for letter in value:
            stays = 0 if letter in "\r\n" else self.double_stars if letter == "/" else self.stars | self.double_stars
            matched = (matched & self.takes.get(letter, 0)) << 1 | matched & stays
            if not matched:
                return False
        return bool(matched >> self.length & 1)


@lru_cache(maxsize=1024)
def _compile_pattern(pattern: str) -> _ArgumentPattern:
    takes: dict[str, int] = {}
    stars = {"*": 0, "**": 0}
    length = 0
    for piece in re.findall(r"\*\*?|[^*]", pattern):
        if piece in stars:
            stars[piece] |= 1 << length
        else:
            takes[piece] = takes.get(piece, 0) | 1 << length
            length += 1
    return _ArgumentPattern(length, takes, stars["*"], stars["**"])
