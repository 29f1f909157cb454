"""The prompt in the order in which its provider caches it, so that two requests can be laid side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, assert_never

from sightline.dialects.dialect import CacheGroup
from sightline.dialects.registry import find_dialect
from sightline.model.comparison import of_message, of_part, of_parts, of_tool
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Opaque, Part, ToolResult
from sightline.model.request import Request
from sightline.model.tools import OpaqueTool, Tool
from sightline.tokens.estimator import Estimator

UnitKind = Literal["model", "format", "tools", "system", "settings", "message"]

_ANY_ORDER: tuple[CacheGroup, ...] = ("format", "tools", "system")
"""That of a request which is in no dialect yet."""
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
    marks: tuple[tuple[int, str], ...] = ()
    """Behind how many of its pieces each cache mark stands, and where in the document."""

    def says_the_same(self, other: "Unit") -> bool:
        """Whether the model reads the same in both."""
        if self.value is other.value or self.value == other.value:
            return self.kind == other.kind
        if self.kind != other.kind:
            return False
        if isinstance(self.value, Message) and isinstance(other.value, Message):
            return of_message(self.value) == of_message(other.value)
        return self.kind == "tools" and _plain_tools(self.value) == _plain_tools(other.value)


@dataclass(frozen=True, slots=True)
class Mark:
    """A cache mark: behind how many pieces of which unit it stands, how many blocks and tokens come before it."""

    unit: int
    pieces: int
    blocks: int
    tokens: int
    pointer: str


class Prefix:
    """The units of one request, with what they cost. What it shares with a prefix that is `like` it is taken over."""

    def __init__(self, request: Request, estimator: Estimator, like: "Prefix | None" = None) -> None:
        self.request = request
        self._estimator = estimator
        self._known = {} if like is None else like.by_message
        self.units = tuple(self._units())
        self._starts = (0, *accumulate(unit.tokens for unit in self.units))

    @cached_property
    def by_message(self) -> dict[int, Unit]:
        """The unit of each message, by the message itself."""
        return {id(unit.value): unit for unit in self.units if isinstance(unit.value, Message)}

    @property
    def tokens(self) -> int:
        """All of it."""
        return self._starts[-1]

    @property
    def is_stateful(self) -> bool:
        """Whether the provider knows more of the conversation than stands in the request."""
        request = self.request
        return request.options.previous_response_id is not None or not _STATEFUL.isdisjoint(request.extras)

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """The cache marks, in the order of the prompt."""
        found: list[Mark] = []
        blocks = 0
        for index, unit in enumerate(self.units):
            for pieces, pointer in unit.marks:
                found.append(Mark(index, pieces, blocks + pieces, self.tokens_before(index, pieces), pointer))
            blocks += unit.pieces
        if self.request.extras.get("cache_control") is not None:
            last = len(self.units) - 1
            found.append(Mark(last, self.units[last].pieces, blocks, self.tokens, "/cache_control"))
        return tuple(found)

    def tokens_before(self, index: int, pieces: int) -> int:
        """What comes before this piece of this unit."""
        if index == len(self.units):
            return self.tokens
        unit = self.units[index]
        if pieces >= unit.pieces:
            within = unit.tokens if pieces else 0
        elif isinstance(unit.value, Message):
            within = sum(self._estimator.part(part).tokens for part in of_parts(unit.value.parts)[:pieces])
        else:
            # All tools are counted together, so that each one's share is guessed from its length.
            lengths = [len(repr(each)) for each in pieces_of(unit.value)]
            within = unit.tokens * sum(lengths[:pieces]) // sum(lengths)
        return self._starts[index] + min(within, unit.tokens)

    def _units(self) -> Iterator[Unit]:
        request, messages = self.request, self.request.messages
        yield Unit("model", "/model", {"model": request.model, "key": request.options.cache_key})
        others = (count for count, message in enumerate(messages) if message.role not in _SYSTEM_ROLES)
        count = next(others, len(messages))
        spoken = find_dialect(request.dialect)
        for group in _ANY_ORDER if spoken is None else spoken.cache.order:
            match group:
                case "format":
                    yield Unit("format", _format_at(request), request.options.format)
                case "tools":
                    tokens = self._estimator.tools(request.tools).tokens
                    yield _unit("tools", _tools_at(request), request.tools, tokens)
                case "system":
                    yield from map(self._message, messages[:count])
                case "settings":
                    yield Unit("settings", _settings_at(request), _settings(request))
                case unreachable:
                    assert_never(unreachable)
        yield from map(self._message, messages[count:])

    def _message(self, message: Message) -> Unit:
        known = self._known.get(id(message))
        if known is not None:
            return known
        kind: UnitKind = "system" if message.role in _SYSTEM_ROLES else "message"
        return _unit(kind, message.at, message, self._estimator.message(message).tokens)


def _unit(kind: UnitKind, pointer: str, value: Message | tuple[Tool, ...], tokens: int) -> Unit:
    return Unit(kind, pointer, value, tokens, len(pieces_of(value)), tuple(_marks(value)))


def pieces_of(value: object) -> tuple[Part | Tool, ...]:
    """What a unit is made of: the parts of a message, each of the tools; without cache marks."""
    if isinstance(value, Message):
        return tuple(part for part in value.parts if not isinstance(part, CacheBreakpoint))
    return value if isinstance(value, tuple) else ()


def same_piece(one: Part | Tool, other: Part | Tool) -> bool:
    """Whether the model reads the same in both."""
    return one == other or _plain(one) == _plain(other)


def _plain(piece: Part | Tool) -> Part | Tool:
    return of_tool(piece) if isinstance(piece, Tool) else of_part(piece)


def _plain_tools(value: object) -> list[Tool]:
    assert isinstance(value, tuple)
    return [of_tool(tool) for tool in value]


def _format_at(request: Request) -> str:
    return "" if request.options.format is None else request.options.format.at


def _tools_at(request: Request) -> str:
    return request.tools[0].at.rpartition("/")[0] if request.tools else ""


def _settings(request: Request) -> dict[str, object]:
    reasoning, choice = request.options.reasoning, request.tool_choice
    return {
        "reasoning": reasoning and (reasoning.mode, reasoning.effort, reasoning.budget),
        "choice": choice and (choice.mode, choice.names),
        "parallel": request.parallel_tool_calls,
    }


def _settings_at(request: Request) -> str:
    reasoning, choice = request.options.reasoning, request.tool_choice
    return reasoning.at if reasoning is not None else "" if choice is None else choice.at


def _marks(value: Message | tuple[Tool, ...]) -> Iterator[tuple[int, str]]:
    """Each mark of a unit: behind how many of its pieces it stands, and its place."""
    if isinstance(value, Message):
        pieces = 0
        for part in value.parts:
            if isinstance(part, CacheBreakpoint):
                yield pieces, part.at
                continue
            pieces += 1
            if isinstance(part, Opaque) and _is_marked(part.value):
                yield pieces, part.at
            elif isinstance(part, ToolResult):
                yield from ((pieces, inner.at) for inner in part.parts if isinstance(inner, CacheBreakpoint))
    else:
        for index, tool in enumerate(value):
            if tool.cache is not None:
                yield index + 1, tool.cache.at
            elif isinstance(tool, OpaqueTool) and _is_marked(tool.value):
                yield index + 1, tool.at


def _is_marked(value: Json) -> bool:
    return isinstance(value, dict) and value.get("cache_control") is not None
