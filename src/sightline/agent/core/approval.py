"""Which tool calls may run: the rules, and the decisions that a person can make about a call.

A rule matches a tool's name and, optionally, arguments. The patterns are a convenience and not a sandbox. In a pattern,
`*` stops at a slash and at the end of a line, and `**` only at the end of a line. A value whose path contains a `..`
component matches no pattern with a wildcard, so that permission for one folder does not extend to its parent.
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
"""Who denied a call. `nobody` means that there was no one to ask."""


class ApprovalRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule for the calls whose tool name matches `tool` and whose arguments match the patterns, keyed by JSON
    pointer.

    `reason` is sent to the model when the call is denied. The text of a free-text tool is at the empty pointer.
    """

    tool: str
    ruling: Ruling
    arguments: dict[str, str] = {}
    reason: str = ""

    def covers(self, name: str, arguments: JsonObject | str) -> bool:
        """Whether the rule applies to this call. A missing argument matches no pattern."""
        return _fits(self.tool, name) and all(
            _argument_matches(arguments, place, pattern) for place, pattern in self.arguments.items()
        )


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rules of a run. A matching rule that denies takes precedence; otherwise the first matching rule decides."""

    rules: tuple[ApprovalRule, ...] = ()
    otherwise: Ruling = "ask"

    def ruling(self, name: str, arguments: JsonObject | str) -> ApprovalRule:
        """The rule that applies to this call; if none matches, one with the ruling `otherwise`."""
        covering = [rule for rule in self.rules if rule.covers(name, arguments)]
        denying = [rule for rule in covering if rule.ruling == "deny"]
        return next(iter(denying or covering), ApprovalRule(name, self.otherwise))

    def prepend(self, rule: ApprovalRule) -> "Policy":
        """A copy of the policy with this rule before the others."""
        return msgspec.structs.replace(self, rules=(rule, *self.rules))


class Allowed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="decision", tag="allowed"):
    """Run the call, with these arguments if they were edited. `rule` applies from now on."""

    arguments: dict[str, Json] | str | None = None
    rule: ApprovalRule | None = None


class Denied(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="decision", tag="denied"):
    """Do not run the call, and tell the model who denied it and why."""

    reason: str = ""
    rule: ApprovalRule | None = None
    by: DeniedBy = "user"


class AnsweredByHand(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="decision", tag="answered"):
    """Do not run the call; the model gets these parts as its result."""

    parts: tuple[ResultPart, ...]
    is_error: bool = False


Decision: TypeAlias = Allowed | Denied | AnsweredByHand


def _argument_matches(arguments: JsonObject | str, place: str, pattern: str) -> bool:
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
    """A pattern as bitmasks. Bit `n` of `takes[letter]` is set if character `n` of the pattern, not counting its stars,
    is that character. Bit `n` of `stars` and `double_stars` is set if such a star precedes character `n`.

    The values are written by a model and can be long. All ways to match are tracked at once, as the bits of one
    integer, because a regular expression with several stars would backtrack through them one after the other.
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
