"""What a change costs in a provider's prompt cache: how much of what was cached is used again, and what broke it."""

from dataclasses import dataclass

from sightline.catalog.facts import Prices
from sightline.dialects.registry import find_dialect
from sightline.model.message import Message
from sightline.model.usage import Usage
from sightline.tokens.cache_prefix import Mark, Prefix, Unit, pieces_of, same_piece
from sightline.tokens.cost import cost_of

LEAST_CACHED = 1024
"""No provider caches a shorter prompt."""

LOOKBACK = 20
"""So many blocks before a mark Anthropic looks for what an earlier request wrote."""

_REASONS = {
    "model": "the model or the cache key changed",
    "format": "the schema of the answer changed",
    "tools": "tool definitions changed",
    "system": "system prompt changed",
    "settings": "thinking or the choice of tools changed",
}


@dataclass(frozen=True, slots=True)
class Reuse:
    """What a request takes from the cache that the one before it left.

    `broken_tokens` were cached and must be read anew; `pointer` is the place in the later document from which nothing
    matches, and `reason` says why. With `is_written` the broken tokens are also written to the cache again.
    """

    kept_tokens: int = 0
    broken_tokens: int = 0
    pointer: str = ""
    reason: str = ""
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class _Difference:
    """The first place where two prompts part: behind so many pieces of this unit."""

    unit: int
    pieces: int
    pointer: str
    reason: str


NOTHING_KNOWN = Reuse()


def reuse(previous: Prefix, later: Prefix, *, known: int = 0) -> Reuse:
    """What the later request finds of the previous one in the cache; so many units are `known` to be alike.

    Where a document has cache marks, only what stands before a mark was cached; elsewhere everything was. Nothing is
    said of requests that lean on what the provider keeps.
    """
    if previous.is_stateful or later.is_stateful:
        return NOTHING_KNOWN
    difference = _difference(previous, later, known)
    spoken = find_dialect(later.request.dialect)
    is_marked = bool(previous.marks or later.marks) or (spoken is not None and spoken.cache.needs_marks)
    if is_marked:
        return _by_marks(previous, later, difference)
    cached = _cacheable(previous.tokens)
    kept = cached if difference is None else _cacheable(previous.tokens_before(difference.unit, difference.pieces))
    if difference is None or kept >= cached:
        return Reuse(kept)
    return Reuse(kept, cached - kept, difference.pointer, difference.reason)


def money(reused: Reuse, broken_tokens: int, total_tokens: int, prices: Prices | None) -> float | None:
    """What these broken tokens cost more than if they came from the cache, in US dollars; None where it is not known.

    They are paid as input, or as written to the cache; the price of the whole prompt's length counts.
    """
    kept = max(0, min(reused.kept_tokens, total_tokens - broken_tokens))
    total = max(total_tokens, kept + broken_tokens)
    written = broken_tokens if reused.is_written else 0
    fresh = cost_of(Usage(input_tokens=total, output_tokens=0, cached_tokens=kept, cache_write_tokens=written), prices)
    cached = cost_of(Usage(input_tokens=total, output_tokens=0, cached_tokens=kept + broken_tokens), prices)
    if fresh is None or cached is None or cached.is_bound:
        return None
    return max(0.0, fresh.dollars - cached.dollars)


def _cacheable(tokens: int) -> int:
    return tokens if tokens >= LEAST_CACHED else 0


def _by_marks(previous: Prefix, later: Prefix, difference: _Difference | None) -> Reuse:
    """What is read again ends at a mark of the previous request that a mark of the later one is near enough to find."""
    written = [mark for mark in previous.marks if mark.tokens >= LEAST_CACHED]
    cached = max((mark.tokens for mark in written), default=0)
    matching = [mark for mark in written if difference is None or _stands_before(mark, difference)]
    kept = max((mark.tokens for mark in matching if _is_found(mark, later)), default=0)
    if kept >= cached:
        return Reuse(kept, is_written=True)
    if difference is not None and len(matching) < len(written):
        return Reuse(kept, cached - kept, difference.pointer, difference.reason, is_written=True)
    place = later.marks[-1].pointer if later.marks else ""
    reason = "a cache mark moved out of reach" if later.marks else "the cache marks are gone"
    return Reuse(kept, cached - kept, place, reason, is_written=True)


def _stands_before(mark: Mark, difference: _Difference) -> bool:
    return (mark.unit, mark.pieces) <= (difference.unit, difference.pieces)


def _is_found(written: Mark, later: Prefix) -> bool:
    return any(0 <= mark.blocks - written.blocks < LOOKBACK for mark in later.marks)


def alike(previous: Prefix, later: Prefix) -> int:
    """How many units in front say the same in both."""
    count = 0
    for old, new in zip(previous.units, later.units, strict=False):
        if not old.says_the_same(new):
            break
        count += 1
    return count


def _difference(previous: Prefix, later: Prefix, known: int) -> _Difference | None:
    """Where the later prompt stops saying what the previous one said; None if it only says more."""
    index = known
    while index < len(previous.units):
        if index == len(later.units):
            return _Difference(index, 0, "", "the conversation is shorter")
        old, new = previous.units[index], later.units[index]
        if not old.says_the_same(new):
            pieces = _same_pieces(old, new)
            if pieces == old.pieces and index + 1 == len(previous.units):
                return None  # the last message goes on, as a prefilled answer does
            return _Difference(index, pieces, _place(new, pieces), _reason(previous, later, index))
        index += 1
    return None


def _same_pieces(old: Unit, new: Unit) -> int:
    """How many of the first pieces are the same in both."""
    if not _are_alike(old, new):
        return 0
    pieces = 0
    for one, other in zip(pieces_of(old.value), pieces_of(new.value), strict=False):
        if not same_piece(one, other):
            break
        pieces += 1
    return pieces


def _are_alike(old: Unit, new: Unit) -> bool:
    if isinstance(old.value, Message) and isinstance(new.value, Message):
        return (old.value.role, old.value.name) == (new.value.role, new.value.name)
    return old.kind == new.kind == "tools"


def _place(unit: Unit, pieces: int) -> str:
    found = pieces_of(unit.value)
    return found[pieces].at if 0 < pieces < len(found) else unit.pointer


def _reason(previous: Prefix, later: Prefix, index: int) -> str:
    old, new = previous.units[index], later.units[index]
    if "system" in (old.kind, new.kind):
        return _REASONS["system"]
    if new.kind != "message":
        return _REASONS[new.kind]
    if index + 1 < len(later.units) and old.says_the_same(later.units[index + 1]):
        return "a message was put in before"
    if index + 1 < len(previous.units) and previous.units[index + 1].says_the_same(new):
        return "a message was taken out"
    return "an earlier message changed"
