"""What a change costs in a provider's prompt cache: how much of the cached prompt is reused, and what broke the rest.

Two requests are compared in the order in which the provider caches a prompt.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, TypeVar, assert_never

import msgspec

from sightline.catalog.facts import Prices
from sightline.dialects.conversation import without_private_lines
from sightline.dialects.dialect import CacheRules
from sightline.dialects.registry import find_dialect
from sightline.model.json import Json
from sightline.model.parts import CacheBreakpoint, Opaque, Part, ToolResult
from sightline.model.reply import Usage
from sightline.model.report import Report
from sightline.model.request import Message, OpaqueTool, Request, Tool, of_message, of_part, of_parts, of_tool
from sightline.tokens.cost import cost_of
from sightline.tokens.estimator import Estimator

T = TypeVar("T")
UnitKind = Literal["model", "format", "tools", "system", "settings", "message"]

_ANY_RULES = CacheRules(order=("format", "tools", "system"), needs_marks=False)
"""The rules for a request that is not in any dialect yet."""
_SYSTEM_ROLES = ("system", "developer")
_STATEFUL = frozenset({"conversation", "cachedContent", "prompt", "thread"})


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of the prompt: a message, all tools, or settings that the provider's cache depends on."""

    kind: UnitKind
    pointer: str
    value: object
    tokens: int = 0
    pieces: int = 0
    marks: tuple[tuple[int, str, str], ...] = ()
    """For each cache mark: after how many of the unit's pieces it comes, its place in the document, and its
    lifetime."""

    def says_the_same(self, other: "Unit") -> bool:
        """Whether the model reads the same in both."""
        if self.value is other.value or self.value == other.value:
            return self.kind == other.kind
        if self.kind != other.kind:
            return False
        if isinstance(self.value, Message) and isinstance(other.value, Message):
            return of_message(self.value) == of_message(other.value)
        return self.kind == "tools" and [*map(_plain, pieces_of(self.value))] == [*map(_plain, pieces_of(other.value))]


@dataclass(frozen=True, slots=True)
class Mark:
    """A cache mark: after how many pieces of which unit it comes, and how many blocks and tokens come before it. `ttl`
    is the lifetime that it asks for, as the provider writes it; empty for the default."""

    unit: int
    pieces: int
    blocks: int
    tokens: int
    pointer: str
    ttl: str = ""


class Prefix:
    """The units of one request, with their tokens."""

    def __init__(self, request: Request, estimator: Estimator) -> None:
        spoken = find_dialect(request.dialect)
        # The provider removes private lines before caching, because they differ from request to request.
        self.request = request if spoken is None else without_private_lines(request, spoken, Report())
        self._estimator = estimator
        self.rules = _ANY_RULES if spoken is None else spoken.cache
        self.units = tuple(self._units())
        self._starts = (0, *accumulate(unit.tokens for unit in self.units))
        self._blocks = (0, *accumulate(unit.pieces for unit in self.units))

    @property
    def tokens(self) -> int:
        """The tokens of the whole request."""
        return self._starts[-1]

    @property
    def is_stateful(self) -> bool:
        """Whether the provider stores more of the conversation than the request contains."""
        request = self.request
        return request.options.previous_response_id is not None or not _STATEFUL.isdisjoint(request.extras)

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """The cache marks, in the order of the prompt."""
        found = [
            Mark(index, pieces, self._blocks[index] + pieces, self.tokens_before(index, pieces), pointer, ttl)
            for index, unit in enumerate(self.units)
            for pieces, pointer, ttl in unit.marks
        ]
        if _is_marked(dict(self.request.extras)):
            last, ttl = len(self.units) - 1, _ttl(dict(self.request.extras))
            found.append(Mark(last, self.units[last].pieces, self._blocks[-1], self.tokens, "/cache_control", ttl))
        return tuple(found)

    @cached_property
    def message_ends(self) -> tuple[Mark, ...]:
        """The ends of the messages that a client wrote, where providers set marks of their own."""
        return tuple(
            Mark(index, unit.pieces, self._blocks[index + 1], self._starts[index + 1], unit.pointer)
            for index, unit in enumerate(self.units)
            if isinstance(unit.value, Message) and unit.value.role in ("user", "tool")
        )

    def tokens_before(self, index: int, pieces: int) -> int:
        """The tokens before this piece of this unit."""
        if index == len(self.units):
            return self.tokens
        unit = self.units[index]
        if pieces >= unit.pieces:
            within = unit.tokens if pieces else 0
        elif isinstance(unit.value, Message):
            within = sum(self._estimator.part(part).tokens for part in of_parts(unit.value.parts)[:pieces])
        else:
            # All tools are counted together, so each one's share is guessed from its length.
            lengths = [len(repr(each)) for each in pieces_of(unit.value)]
            within = unit.tokens * sum(lengths[:pieces]) // sum(lengths)
        return self._starts[index] + min(within, unit.tokens)

    def _units(self) -> Iterator[Unit]:
        request, messages = self.request, self.request.messages
        yield Unit("model", "/model", {"model": request.model, "key": request.options.cache_key})
        others = (count for count, message in enumerate(messages) if message.role not in _SYSTEM_ROLES)
        count = next(others, len(messages))
        spoken = [
            self._message(message, estimate.tokens)
            for message, estimate in zip(messages, self._estimator.messages(messages), strict=True)
        ]
        for group in self.rules.order:
            match group:
                case "format":
                    form = request.options.format
                    yield Unit("format", "" if form is None else form.at, form)
                case "tools":
                    tokens = self._estimator.tools(request.tools).tokens
                    place = request.tools[0].at.rpartition("/")[0] if request.tools else ""
                    yield _unit("tools", place, request.tools, tokens)
                case "system":
                    yield from spoken[:count]
                case "settings":
                    reasoning, choice = request.options.reasoning, request.tool_choice
                    settings = {
                        "reasoning": reasoning and (reasoning.mode, reasoning.effort, reasoning.budget),
                        "choice": choice and (choice.mode, choice.names),
                        "parallel": request.parallel_tool_calls,
                    }
                    changed = reasoning or choice
                    yield Unit("settings", "" if changed is None else changed.at, settings)
                case unreachable:
                    assert_never(unreachable)
        yield from spoken[count:]

    def _message(self, message: Message, tokens: int) -> Unit:
        kind: UnitKind = "system" if message.role in _SYSTEM_ROLES else "message"
        return _unit(kind, message.at, message, tokens, self.rules.mark_field)


def _unit(kind: UnitKind, pointer: str, value: Message | tuple[Tool, ...], tokens: int, mark_field: str = "") -> Unit:
    marks = tuple(_marks(value, mark_field))
    if marks and mark_field and isinstance(value, Message):  # the model does not read marks
        value = msgspec.structs.replace(value, parts=tuple(_without(part, mark_field) for part in value.parts))
    return Unit(kind, pointer, value, tokens, len(pieces_of(value)), marks)


def _without(part: Part, name: str) -> Part:
    others = {key: value for key, value in part.extras.items() if key != name}
    return msgspec.structs.replace(part, extras=others) if len(others) < len(part.extras) else part


def pieces_of(value: object) -> tuple[Part | Tool, ...]:
    """What a unit is made of: the parts of a message, or the tools; without cache marks."""
    if isinstance(value, Message):
        return tuple(part for part in value.parts if not isinstance(part, CacheBreakpoint))
    return value if isinstance(value, tuple) else ()


def same_piece(one: Part | Tool, other: Part | Tool) -> bool:
    """Whether the model reads the same in both."""
    return one == other or _plain(one) == _plain(other)


def _plain(piece: Part | Tool) -> Part | Tool:
    return of_tool(piece) if isinstance(piece, Tool) else of_part(piece)


def _marks(value: Message | tuple[Tool, ...], mark_field: str) -> Iterator[tuple[int, str, str]]:
    """Each mark of a unit: after how many of its pieces it comes, its place and its lifetime."""
    if isinstance(value, Message):
        pieces = 0
        for part in value.parts:
            if isinstance(part, CacheBreakpoint):
                yield pieces, part.at, part.ttl or ""
                continue
            pieces += 1
            if mark_field and part.extras.get(mark_field) is not None:
                yield pieces, part.at, ""
            elif isinstance(part, Opaque) and _is_marked(part.value):
                yield pieces, part.at, _ttl(part.value)
            elif isinstance(part, ToolResult):
                inside = (inner for inner in part.parts if isinstance(inner, CacheBreakpoint))
                yield from ((pieces, mark.at, mark.ttl or "") for mark in inside)
    else:
        for index, tool in enumerate(value):
            if tool.cache is not None:
                yield index + 1, tool.cache.at, tool.cache.ttl or ""
            elif isinstance(tool, OpaqueTool) and _is_marked(tool.value):
                yield index + 1, tool.at, _ttl(tool.value)


def _is_marked(value: Json) -> bool:
    return isinstance(value, dict) and value.get("cache_control") is not None


def _ttl(value: Json) -> str:
    """The lifetime that a marked value asks for; empty if none."""
    mark = value["cache_control"] if isinstance(value, dict) else None
    ttl = mark.get("ttl") if isinstance(mark, dict) else None
    return ttl if isinstance(ttl, str) else ""


LEAST_CACHED = 1024
"""No provider caches a shorter prompt."""

_REASONS = {
    "model": "the model or the cache key changed",
    "format": "the schema of the answer changed",
    "tools": "tool definitions changed",
    "system": "system prompt changed",
    "settings": "thinking or the choice of tools changed",
}


@dataclass(frozen=True, slots=True)
class Reuse:
    """What a request reads from the cache that the previous one left.

    `broken_tokens` were cached and must be processed again; `pointer` is the place in the later document from which
    nothing matches, and `reason` is why. With `is_written`, the broken tokens are also written to the cache again.
    """

    kept_tokens: int = 0
    broken_tokens: int = 0
    pointer: str = ""
    reason: str = ""
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class PrefixDifference:
    """The first place where two prompts differ: after `pieces` pieces of this unit."""

    unit: int
    pieces: int
    pointer: str
    reason: str


NOTHING_KNOWN = Reuse()


def reuse(previous: Prefix, later: Prefix, *, known: int = 0) -> Reuse:
    """What the later request finds in the cache of the previous one; the first `known` units are known to be the same.

    If a document has cache marks, only what comes before a mark was cached; otherwise everything was. Nothing is
    reported for requests that depend on state that the provider keeps.
    """
    if previous.is_stateful or later.is_stateful:
        return NOTHING_KNOWN
    difference = first_difference(previous, later, known)
    if previous.marks or later.marks or later.rules.needs_marks:
        return _by_marks(previous, later, difference)
    cached = _cacheable(previous.tokens)
    kept = cached if difference is None else _cacheable(previous.tokens_before(difference.unit, difference.pieces))
    if difference is None or kept >= cached:
        return Reuse(kept)
    return Reuse(kept, cached - kept, difference.pointer, difference.reason)


def money(reused: Reuse, broken_tokens: int, total_tokens: int, prices: Prices | None) -> float | None:
    """How much more these broken tokens cost than if they came from the cache, in US dollars; None if unknown.

    They are charged as input, or as written to the cache, at the price for the length of the whole prompt.
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


def _by_marks(previous: Prefix, later: Prefix, difference: PrefixDifference | None) -> Reuse:
    """What is read again ends at a mark of the previous request that a mark of the later one is near enough to find."""
    written = [mark for mark in previous.marks if mark.tokens >= LEAST_CACHED]
    cached = max((mark.tokens for mark in written), default=0)
    end = None if difference is None else (difference.unit, difference.pieces)
    matching = [mark for mark in written if end is None or (mark.unit, mark.pieces) <= end]
    kept = max((mark.tokens for mark in findable(matching, later.marks, later.rules.lookback)), default=0)
    if kept >= cached:
        return Reuse(kept, is_written=True)
    if difference is not None and len(matching) < len(written):
        return Reuse(kept, cached - kept, difference.pointer, difference.reason, is_written=True)
    place = later.marks[-1].pointer if later.marks else ""
    reason = "a cache mark moved out of reach" if later.marks else "the cache marks are gone"
    return Reuse(kept, cached - kept, place, reason, is_written=True)


def findable(written: Iterable[Mark], later: Iterable[Mark], far: int | None) -> Iterator[Mark]:
    """The written marks that one of the later marks finds, looking back at most `far` blocks."""
    reach = [mark.blocks for mark in later]
    for mark in written:
        if any(mark.blocks <= blocks and (far is None or blocks - mark.blocks < far) for blocks in reach):
            yield mark


def alike(previous: Prefix, later: Prefix, known: int = 0) -> int:
    """How many leading units are the same in both; the first `known` are known to be."""
    return known + _count_same(previous.units[known:], later.units[known:], Unit.says_the_same)


def _count_same(ones: Sequence[T], others: Sequence[T], is_same: Callable[[T, T], bool]) -> int:
    differing = (n for n, pair in enumerate(zip(ones, others, strict=False)) if not is_same(*pair))
    return next(differing, min(len(ones), len(others)))


def first_difference(previous: Prefix, later: Prefix, known: int = 0) -> PrefixDifference | None:
    """Where the later prompt stops repeating the previous one; None if it only adds to it."""
    index = alike(previous, later, known)
    if index == len(previous.units):
        return None
    if index == len(later.units):
        return PrefixDifference(index, 0, "", "the conversation is shorter")
    old, new = previous.units[index], later.units[index]
    pieces = _same_pieces(old, new)
    if pieces == old.pieces and index + 1 == len(previous.units):
        return None  # the last message continues, as a prefilled answer does
    found = pieces_of(new.value)
    place = found[pieces].at if 0 < pieces < len(found) else new.pointer
    return PrefixDifference(index, pieces, place, _reason(previous, later, index))


def _same_pieces(old: Unit, new: Unit) -> int:
    """How many of the first pieces are the same in both."""
    if isinstance(old.value, Message) and isinstance(new.value, Message):
        are_alike = (old.value.role, old.value.name) == (new.value.role, new.value.name)
    else:
        are_alike = old.kind == new.kind == "tools"
    if not are_alike:
        return 0
    return _count_same(pieces_of(old.value), pieces_of(new.value), same_piece)


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
