"""Explain why a provider read less of a prompt from its cache than the previous turn had left there.

How much was left, read and lost is what the provider counted. The reason is inferred from the two requests: each
possible cause is considered by itself, and the one whose result is nearest to what was read is named first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, Literal, TypeAlias

import msgspec

from sightline.catalog.facts import Facts, Prices
from sightline.dialects.dialect import CacheRules
from sightline.dialects.registry import dialect
from sightline.model.json import Json
from sightline.model.parts import Text
from sightline.model.reply import Usage
from sightline.model.request import Message, Request
from sightline.tokens.cache_cost import (
    LEAST_CACHED,
    Mark,
    Prefix,
    PrefixDifference,
    findable,
    first_difference,
    pieces_of,
)
from sightline.tokens.cost import cost_of
from sightline.tokens.estimator import Estimator

Cause: TypeAlias = Literal[
    "", "unknown", "cold_start", "provider", "model", "organisation", "key", "cache_key", "in_flight", "tier",
    "expired", "format", "tools", "tools_order", "system", "settings", "messages", "marks_missing", "marks_moved",
    "marks_limit", "below_minimum", "version", "beta", "evicted",
]  # fmt: skip
"""Why tokens were lost, as described in `REASONS`; empty if none were."""

REASONS: Final[Mapping[Cause, str]] = {
    "": "nothing was lost",
    "unknown": "the provider does not report enough to tell",
    "cold_start": "the conversation begins here",
    "provider": "another provider",
    "model": "another model",
    "organisation": "another organisation or project",
    "key": "another API key, maybe of another account",
    "cache_key": "another cache key, or another cached content",
    "in_flight": "sent before the answer to the turn before had begun",
    "tier": "another service tier",
    "expired": "expired",
    "format": "the schema of the answer changed",
    "tools": "tool definitions changed",
    "tools_order": "the order of the tools changed",
    "system": "system prompt changed",
    "settings": "reasoning, verbosity or the choice of tools changed",
    "messages": "an earlier message changed",
    "marks_missing": "no cache mark",
    "marks_moved": "cache marks moved out of reach",
    "marks_limit": "more cache marks than the provider takes",
    "below_minimum": "shorter than what the provider caches",
    "version": "another version of the API",
    "beta": "other beta features",
    "evicted": "evicted: nothing in the requests explains it",
}

_CLOCK_ERROR = 0.05
"""Seconds by which two times may be off: arrivals are times of day, and the first byte is counted from a moment shortly
before the arrival was noted. A machine under load can lose milliseconds between both."""
_BEFORE, _AFTER = 24, 56
"""How many characters are shown before and after the first difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A request as it was sent, and what the provider counted. `organisation` is the account in the reply's headers,
    `key` a short hash of the key that it was sent with, `ready` when its answer began: the provider caches nothing
    before that."""

    request: Request
    at: float
    usage: Usage | None
    ready: float = 0.0
    provider: str = ""
    model: str = ""
    organisation: str = ""
    key: str = ""
    version: str = ""
    betas: frozenset[str] = frozenset()


class CacheAutopsy(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn could have read from the cache, what it read, and why not all of it.

    `also` are other causes that would have broken it too. `pointer` is the place of the first difference in the later
    document, `offset` the byte in the text there, `before` and `after` the two texts around it. `idle` is the seconds
    since the previous turn, `lifetime` how many seconds the provider keeps what was lost. `is_estimated`: the provider
    did not count what could have been read. `money` is in dollars, None if prices are unknown.
    """

    cause: Cause
    could_tokens: int = 0
    read_tokens: int = 0
    lost_tokens: int = 0
    money: float | None = None
    also: tuple[Cause, ...] = ()
    pointer: str = ""
    offset: int | None = None
    before: str = ""
    after: str = ""
    idle: float | None = None
    lifetime: float | None = None
    is_estimated: bool = False


def count_left(usage: Usage | None, rules: CacheRules, facts: Facts) -> int | None:
    """What a turn left in the cache, by the provider's own counts; None if they do not show it."""
    if usage is None or usage.input_tokens is None:
        return None
    if read_tokens(usage, rules) is None and not usage.cache_write_tokens:
        return None
    held = (usage.cached_tokens or 0) + (usage.cache_write_tokens or 0)
    if rules.needs_marks or usage.cache_write_tokens:
        return held
    whole = usage.input_tokens // rules.step * rules.step
    return whole if whole >= _minimum(facts) else 0


def read_tokens(usage: Usage, rules: CacheRules) -> int | None:
    """What a turn read from the cache; None if the provider does not report it."""
    return 0 if usage.cached_tokens is None and rules.omits_zero else usage.cached_tokens


def price_loss(usage: Usage, lost: int, prices: Prices | None) -> float | None:
    """How much more these tokens cost than if they had been in the cache, in dollars; None if prices are unknown."""
    written, hour = usage.cache_write_tokens or 0, usage.cache_write_1h_tokens or 0
    # The lost tokens are at the beginning of the prompt, and tokens cached for an hour must come before the rest.
    better = msgspec.structs.replace(
        usage,
        cached_tokens=(usage.cached_tokens or 0) + lost,
        cache_write_tokens=max(0, written - lost),
        cache_write_1h_tokens=max(0, hour - lost),
        cost=None,
    )
    paid = cost_of(msgspec.structs.replace(usage, cost=None), prices)
    least = cost_of(better, prices)
    return None if paid is None or least is None or least.is_bound else max(0.0, paid.dollars - least.dollars)


def examine(previous: Turn | None, turn: Turn, estimator: Estimator, facts: Facts) -> CacheAutopsy:
    """Explain how much of this turn the provider read from the cache; it could have found the prompt of `previous`."""
    usage = turn.usage
    read = None if usage is None else read_tokens(usage, dialect(turn.request.dialect).cache)
    if usage is None or usage.input_tokens is None or read is None:
        return CacheAutopsy(cause="unknown")
    if previous is None:
        return CacheAutopsy(cause="cold_start", could_tokens=read, read_tokens=read)
    comparison = _compare(previous, turn, estimator, facts)
    if comparison is None:
        return CacheAutopsy(cause="unknown", read_tokens=read)
    if comparison.left == 0:
        return comparison.explain_empty(read)
    could = min(comparison.left, usage.input_tokens)
    lost = could - read
    if lost < comparison.rules.step:
        return CacheAutopsy(cause="", could_tokens=max(could, read), read_tokens=read, idle=comparison.idle)
    return comparison.report(comparison.rank(read), could, read)


def expect_read(previous: Turn, turn: Turn, estimator: Estimator, facts: Facts) -> int | None:
    """What the provider would read from the cache for this turn by its own rules if `previous` came before it. The
    counts of both give the lengths of their prompts. None if they are not sufficient."""
    comparison = _compare(previous, turn, estimator, facts)
    return None if comparison is None else comparison.expect()


def _compare(previous: Turn, turn: Turn, estimator: Estimator, facts: Facts) -> "_Comparison | None":
    rules = dialect(turn.request.dialect).cache
    left = count_left(previous.usage, rules, facts)
    if left is None or previous.usage is None:
        return None
    held, written = previous.usage.cached_tokens or 0, previous.usage.cache_write_tokens or 0
    if _names_cache(previous.request, rules):
        left = held  # only what was named is certain to be kept
    elif facts.cache_marks or _needs_marks(previous.request, rules):
        left = held + written
    return _Comparison(previous, turn, estimator, facts, rules, left)


@dataclass
class _Comparison:
    """Two turns compared. Tokens are on the provider's scale: estimates are scaled by what it counted."""

    previous: Turn
    turn: Turn
    estimator: Estimator
    facts: Facts
    rules: CacheRules
    left: int
    before: Prefix = field(init=False)
    now: Prefix = field(init=False)
    difference: PrefixDifference | None = field(init=False)

    def __post_init__(self) -> None:
        self.before = Prefix(self.previous.request, self.estimator)
        self.now = Prefix(self.turn.request, self.estimator)
        self.difference = first_difference(self.before, self.now)
        self.idle = max(0.0, self.turn.at - self.previous.at)
        self.is_marked = _needs_marks(self.previous.request, self.rules) or bool(
            self.facts.cache_marks or self.before.marks
        )
        self.marks = self._marks()
        counted = self.previous.usage.input_tokens if self.previous.usage is not None else None
        whole = max((mark.tokens for mark in self.marks), default=0) if self.is_marked and self.left else 0
        self.scale = (self.left / whole if whole else (counted or 0) / max(1, self.before.tokens)) or 1.0

    def _marks(self) -> tuple[Mark, ...]:
        """Where the previous turn left what can be found again, in the order of the prompt."""
        marks = self._counting(self.before.marks)
        if not self.facts.cache_marks or _needs_marks(self.previous.request, self.rules):
            return marks
        # Such a provider has itself marked the end of the newest message, in this turn and in all before it.
        return tuple(sorted({*marks, *self.before.message_ends}, key=lambda mark: (mark.unit, mark.pieces)))

    def _counting(self, marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
        """The marks of a request that are within the limit."""
        most = self.rules.most_marks
        return marks[-most:] if self.rules.keeps_last_marks else marks[:most]

    def explain_empty(self, read: int) -> CacheAutopsy:
        """The autopsy if the previous turn left nothing: the repeated part could have been cached and read."""
        end, counted = self.difference, self.previous.usage
        whole = 0 if counted is None else counted.input_tokens or 0
        repeated = whole if end is None else round(self.before.tokens_before(end.unit, end.pieces) * self.scale)
        if repeated - read < self.rules.step:
            return CacheAutopsy(cause="", could_tokens=read, read_tokens=read, idle=self.idle)
        last = max((mark.tokens for mark in self.marks), default=0)
        if self.is_marked and not self.marks:
            cause: Cause = "marks_missing"
        elif min(whole, round(last * self.scale) if self.is_marked else whole) < _minimum(self.facts):
            cause = "below_minimum"
        else:
            cause = "unknown"
        return self.report((cause,), repeated, read, is_estimated=True)

    def causes(self) -> dict[Cause, int]:
        """Every cause that would have lost something by itself, with what it would have left."""
        found: dict[Cause, int] = dict.fromkeys(self._routing_causes(), 0)
        alive = self._alive()
        if alive < self.left:
            found["expired"] = alive
        if not self.before.is_stateful and not self.now.is_stateful:
            found |= self._content() | self._marking()
        return found

    def expect(self) -> int:
        """What the provider reads by its rules."""
        usage = self.turn.usage
        counted = self.left if usage is None or usage.input_tokens is None else usage.input_tokens
        left = self.left or self._most(self.marks)  # what would have been cached if there had been marks
        return max(0, min(left if left >= _minimum(self.facts) else 0, counted, *self.causes().values()))

    def rank(self, read: int) -> tuple[Cause, ...]:
        """The causes that would have lost something, the most likely first."""
        known = self.causes()
        likely = sorted(known, key=lambda cause: abs(known[cause] - read))  # stable: the first of equals stays first
        least = min(known.values(), default=self.left)
        if least > max(2 * read, _minimum(self.facts)) or not likely:
            beside = self._circumstances() or ["evicted"]
            return tuple(dict.fromkeys((*beside, *likely)))
        return tuple(likely)

    def report(self, causes: tuple[Cause, ...], could: int, read: int, *, is_estimated: bool = False) -> CacheAutopsy:
        """The autopsy with these causes."""
        usage, cause = self.turn.usage, causes[0]
        assert usage is not None, "it was counted"
        offset, before, after = None, "", ""
        if self.difference is not None and cause in _CONTENT:
            offset, before, after = self._texts(self.difference)
        return CacheAutopsy(
            cause=cause,
            could_tokens=could,
            read_tokens=read,
            lost_tokens=could - read,
            money=price_loss(usage, could - read, self.facts.prices),
            also=causes[1:],
            pointer=self._place(cause),
            offset=offset,
            before=before,
            after=after,
            idle=self.idle,
            lifetime=self._lifetime() if cause == "expired" else None,
            is_estimated=is_estimated,
        )

    def _place(self, cause: Cause) -> str:
        if self.difference is not None and cause in _CONTENT:
            return self.difference.pointer
        if cause in ("marks_moved", "marks_limit"):
            return self.now.marks[-1].pointer
        return ""

    def _routing_causes(self) -> list[Cause]:
        """Causes that route a request to a place without the previous turn's cache."""
        old, new = self.previous, self.turn
        has_accounts, has_keys = bool(old.organisation and new.organisation), bool(old.key and new.key)
        caches = [
            [each.request.options.cache_key, *map(each.request.extras.get, self.rules.named_by)] for each in (old, new)
        ]
        found: dict[Cause, bool] = {
            "provider": old.provider != new.provider,
            "model": old.model != new.model,
            "organisation": has_accounts and old.organisation != new.organisation,
            # Keys of one account share its cache, but whose they are is not known.
            "key": not has_accounts and has_keys and old.key != new.key,
            "cache_key": caches[0] != caches[1],
            "in_flight": new.at < old.ready - _CLOCK_ERROR,
        }
        return [cause for cause, is_so in found.items() if is_so]

    def _circumstances(self) -> list[Cause]:
        """Changes outside the prompt that may affect the cache."""
        old, new = _circumstances_of(self.previous), _circumstances_of(self.turn)
        return [cause for cause in old if old[cause] != new[cause]]

    def _content(self) -> dict[Cause, int]:
        """What the first difference of the prompts leaves of the cache, if that is less than all."""
        end = self.difference
        if end is None:
            return {}
        if self.is_marked:
            kept = self._most(mark for mark in self.marks if (mark.unit, mark.pieces) <= (end.unit, end.pieces))
        else:
            kept = round(self.before.tokens_before(end.unit, end.pieces) * self.scale) // self.rules.step
            kept = kept * self.rules.step if kept * self.rules.step >= _minimum(self.facts) else 0
        kind = self.before.units[end.unit].kind
        if kept >= self.left or kind == "model":  # `_routing_causes` compares the models, as sent to the provider
            return {}
        if kind == "tools" and self._is_reordered(end):
            return {"tools_order": kept}
        return {"messages" if kind == "message" else kind: kept}

    def _is_reordered(self, end: PrefixDifference) -> bool:
        old, new = (list(map(_tool_name, turn.request.tools)) for turn in (self.previous, self.turn))
        return old[end.pieces :] != new[end.pieces :] and sorted(old) == sorted(new)

    def _marking(self) -> dict[Cause, int]:
        """What the later marks can find, if that is less than all."""
        if not self.is_marked or (self.facts.cache_marks and not _needs_marks(self.turn.request, self.rules)):
            return {}
        if not self.now.marks:
            return {"marks_missing": 0}
        kept = self._reach(self._counting(self.now.marks))
        if kept >= self.left:
            return {}
        return {"marks_limit" if self._reach(self.now.marks) > kept else "marks_moved": kept}

    def _reach(self, marks: tuple[Mark, ...]) -> int:
        return self._most(findable(self.marks, marks, self.rules.lookback))

    def _alive(self) -> int:
        """What has not exceeded its lifetime."""
        if not self.is_marked:
            lifetime = self._lifetime()
            return self.left if lifetime is None or self.idle <= lifetime else 0
        lasting = (mark for mark in self.marks if self.idle <= self._seconds(mark.ttl))
        return self._most(lasting)

    def _lifetime(self) -> float | None:
        """How long the provider keeps what the previous turn left last; None if it does not say."""
        seconds = self._seconds(self.marks[-1].ttl if self.marks else "")
        return None if seconds == inf else seconds

    def _seconds(self, asked: str) -> float:
        """The seconds of a lifetime that a mark, or otherwise the request, asks for."""
        lifetimes = self.rules.lifetime
        asked = asked or self.previous.request.options.cache_retention or ""
        if asked in lifetimes and asked:
            return lifetimes[asked]
        return self.facts.cache_lifetime or lifetimes.get("", inf)

    def _most(self, marks: Iterable[Mark]) -> int:
        return round(max((mark.tokens for mark in marks), default=0) * self.scale)

    def _texts(self, end: PrefixDifference) -> tuple[int | None, str, str]:
        """The byte at which the texts differ, and both texts around it."""
        old = _text_of(self.before.units[end.unit].value, end.pieces)
        new = _text_of(self.now.units[end.unit].value, end.pieces) if end.unit < len(self.now.units) else ""
        pairs = enumerate(zip(old, new, strict=False))
        at = next((n for n, (one, other) in pairs if one != other), min(len(old), len(new)))
        start = max(0, at - _BEFORE)
        start += old.find(" ", start, at) + 1 - start if start and " " in old[start:at] else 0  # at a word
        return len(old[:at].encode("utf-8", "replace")), old[start : at + _AFTER], new[start : at + _AFTER]


_CONTENT = ("format", "tools", "tools_order", "system", "settings", "messages")


def _circumstances_of(turn: Turn) -> dict[Cause, object]:
    options = turn.request.options
    return {
        "tier": options.service_tier,
        "settings": (options.verbosity, options.reasoning and options.reasoning.effort),
        "version": turn.version,
        "beta": turn.betas,
    }


def _needs_marks(request: Request, rules: CacheRules) -> bool:
    """Whether only what is marked is cached for this request."""
    path, value = rules.only_marked
    return rules.needs_marks or (bool(path) and _value_at(request.extras, path) == value)


def _names_cache(request: Request, rules: CacheRules) -> bool:
    return any(request.extras.get(name) is not None for name in rules.named_by)


def _value_at(value: Json, path: tuple[str, ...]) -> Json:
    """The value at these nested keys; None if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _minimum(facts: Facts) -> int:
    return facts.cache_minimum or LEAST_CACHED


def _tool_name(tool: object) -> str:
    return str(getattr(tool, "name", "")) or repr(tool)


def _text_of(value: object, pieces: int) -> str:
    """The text of the piece after `pieces` others of a unit, as the model reads it; JSON if it is not text."""
    found = pieces_of(value)
    if isinstance(value, Message | tuple):
        piece = found[pieces] if pieces < len(found) else None
        if isinstance(piece, Text):
            return piece.text
        return "" if piece is None else msgspec.json.encode(msgspec.structs.replace(piece, at="")).decode()
    return msgspec.json.encode(value).decode()
