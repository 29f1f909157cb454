"""Pairs as messages, and their tokens for one model: likely sizes, and upper bounds that are safe for planning."""

from collections.abc import Iterable
from copy import copy
from itertools import pairwise
from math import ceil, exp, log
from typing import assert_never

import msgspec
from msgspec import structs

from sightline.catalog.facts import Facts
from sightline.chat.core.pair import MessagePair
from sightline.dialects.registry import dialect as find_dialect
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import Message, Request, Tool
from sightline.settings import ChatSettings
from sightline.tokens.calibration import Ratio
from sightline.tokens.estimate import Estimate, exactly, sum_estimates
from sightline.tokens.estimator import Estimator


def question(text: str, attachments: tuple[Part, ...] = ()) -> Message | None:
    """The question as a message; None if it is empty."""
    texts = (Text(text),) if text.strip() else ()
    parts: tuple[Part, ...] = (*attachments, *texts)
    return Message("user", parts, bare=not attachments) if parts else None


def messages_of(pair: MessagePair, dialect: str, *, with_rounds: bool = True) -> tuple[Message, ...]:
    """The pair as it is sent: the question, then the answer.

    Calls without a result, results without a call, and calls without a question before them are left out, because
    providers refuse them. Context that was given with results is left out with them. Thinking is sent only together
    with calls, and only if it is signed by the provider that will read it; otherwise providers drop or refuse it.
    """
    user_message = question(pair.user_text, pair.attachments)
    answered = () if pair.answer is None else _join_same_role(pair.answer.messages)
    rounds = _calls_with_results(answered) if with_rounds and user_message is not None else frozenset()
    messages: list[Message] = []
    for message in answered:
        has_calls = any(id(part) in rounds for part in message.parts)
        parts = tuple(part for part in message.parts if _is_sent(part, dialect, rounds, beside_calls=has_calls))
        is_beside_nothing = message.role == "user" and not rounds
        if is_beside_nothing or not any(not isinstance(part, Thinking) for part in parts):
            continue
        if messages and messages[-1].role == message.role == "assistant":
            messages[-1] = Message("assistant", (*messages[-1].parts, *parts))
        else:
            is_bare = len(parts) == 1 and isinstance(parts[0], Text)
            messages.append(Message(message.role, parts, bare=is_bare))
    return tuple(messages) if user_message is None else (user_message, *messages)


def concatenate(pairs: Iterable[tuple[Message, ...]]) -> tuple[Message, ...]:
    """The messages of several pairs. Call ids that an earlier pair has used are changed, in the calls and in their
    results, so that the provider can tell the calls apart."""
    used: set[str] = set()
    sent: list[Message] = []
    for messages in pairs:
        renamed: dict[str, str] = {}
        for message in messages:
            if any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
                parts = tuple(_with_unique_id(part, used, renamed) for part in message.parts)
                sent.append(msgspec.structs.replace(message, parts=parts))
            else:
                sent.append(message)
    return tuple(sent)


def _with_unique_id(part: Part, used: set[str], renamed: dict[str, str]) -> Part:
    if isinstance(part, ToolCall):
        fresh, number = part.id, 1
        while fresh in used:
            number += 1
            fresh = f"{part.id}_{number}"
        used.add(fresh)
        renamed[part.id] = fresh
        return part if fresh == part.id else msgspec.structs.replace(part, id=fresh)
    if isinstance(part, ToolResult) and renamed[part.id] != part.id:
        return msgspec.structs.replace(part, id=renamed[part.id])
    return part


def _join_same_role(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Merge adjacent messages of the same role: parallel calls, and their results."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            joined[-1] = Message(message.role, (*joined[-1].parts, *message.parts))
        else:
            joined.append(message)
    return tuple(joined)


def _calls_with_results(messages: tuple[Message, ...]) -> frozenset[int]:
    """The calls that the next message answers, and the results that answer them, by object identity."""
    found: set[int] = set()
    for asking, answering in pairwise(messages):
        if asking.role != "assistant" or answering.role != "tool":
            continue
        calls: dict[str, ToolCall] = {}
        for part in asking.parts:
            if isinstance(part, ToolCall) and part.id:
                calls.setdefault(part.id, part)
        for part in answering.parts:
            if isinstance(part, ToolResult) and (call := calls.pop(part.id, None)) is not None:
                found |= {id(call), id(part)}
    return frozenset(found)


def _is_sent(part: Part, dialect: str, rounds: frozenset[int], *, beside_calls: bool) -> bool:
    match part:
        case ToolCall() | ToolResult():
            return id(part) in rounds
        case Thinking():
            return beside_calls and bool(part.signature) and part.signed_by == dialect
        case Text() | Refusal():
            return bool(part.text.strip())
        case Opaque():
            return part.dialect == dialect
        case Image() | Audio() | Document():
            return find_dialect(dialect).rules.takes_model_media
        case CacheBreakpoint():
            return False  # the next request decides where caching is worthwhile
        case unreachable:
            assert_never(unreachable)


class TokenBand(msgspec.Struct, frozen=True):
    """An estimate: the likely number, and its bounds."""

    tokens: int
    low: int
    high: int


def band(estimate: Estimate) -> TokenBand:
    return TokenBand(estimate.tokens, estimate.low, estimate.high)


_REMEMBERED = 200_000
_ROUNDING = 2


class Sizer:
    """Counts tokens for one model in one dialect, by the settings. Counts of pairs are cached."""

    def __init__(
        self,
        facts: Facts,
        *,
        dialect: str,
        settings: ChatSettings,
        tools: tuple[Tool, ...] = (),
        calibration: Ratio | None = None,
        base_instructions: str = "",
    ) -> None:
        self.dialect = dialect
        self.base_instructions = base_instructions
        """The instructions of the model's family, used if no topic has a system prompt."""
        self.tools = tools
        self.has_rounds = bool(tools) or not find_dialect(dialect).rules.needs_tools_for_calls
        """Whether earlier tool calls are sent to this model."""
        self.by_characters = settings.estimation == "characters"
        """Whether the user wants tokens to be counted by characters."""
        self._chars_per_token = settings.chars_per_token
        if not facts.tokenizer and not facts.nearest_tokenizer and facts.chars_per_token is None:
            facts = structs.replace(facts, chars_per_token=settings.chars_per_token)  # nothing better is known
        self._estimator = Estimator(facts, dialect=dialect)
        self._calibration = calibration
        self._pairs: dict[str, tuple[MessagePair, Estimate]] = {}

    def with_calibration(self, calibration: Ratio | None) -> "Sizer":
        """The same sizer with a new calibration. Cached counts stay."""
        other = copy(self)
        other._calibration = calibration
        return other

    def messages(self, pair: MessagePair) -> tuple[Message, ...]:
        return messages_of(pair, self.dialect, with_rounds=self.has_rounds)

    def pair(self, pair: MessagePair) -> Estimate:
        """What a pair adds to a request."""
        known = self._pairs.get(pair.id)
        if known is not None and known[0] is pair:
            return known[1]
        if len(self._pairs) >= _REMEMBERED:
            self._pairs.clear()
        estimate = sum_estimates(map(self.message, self.messages(pair)))
        self._pairs[pair.id] = pair, estimate
        return estimate

    def size(self, pair: MessagePair) -> Estimate:
        """What a pair adds to a request, corrected by the provider's past counts."""
        return self.correct(self.pair(pair))

    def cost(self, pair: MessagePair) -> int:
        """The tokens to plan for a pair: its size, and a margin because it may be larger."""
        return self.cautious(self.pair(pair))

    def message(self, message: Message) -> Estimate:
        """What one message adds to a request."""
        if not self.by_characters:
            return self._estimator.message(message)
        return exactly(sum(map(self._part_tokens, message.parts)), "characters per token")

    def prelude(self, text: str) -> Estimate:
        """The system message, including what every request has."""
        messages = (Message("system", (Text(text),), bare=True),) if text else ()
        if not self.by_characters:
            return self._estimator.estimate_by_rules(Request(messages=messages))
        return sum_estimates(map(self.message, messages))

    def tool_tokens(self) -> Estimate:
        return self._estimator.tools(self.tools)

    def correct(self, estimate: Estimate) -> Estimate:
        """Correct the estimate of a part of a request by the provider's past counts."""
        return estimate if self._calibration is None else self._calibration.scale(estimate)

    def cautious(self, estimate: Estimate) -> int:
        """The number of tokens that the part will hardly exceed, by the calibration."""
        if self._calibration is None or estimate.is_exact:
            return estimate.high
        lesson = self._calibration
        trust = lesson.seen / (lesson.seen + 1)
        likely = estimate.tokens * exp(log(lesson.factor) * trust)
        unbelieved = abs(estimate.tokens * lesson.factor - likely)
        return ceil(likely + (estimate.high - estimate.tokens) * lesson.width + unbelieved)

    @property
    def always_added(self) -> int:
        """What every request has in addition, by the calibration."""
        if self._calibration is None:
            return 0
        return max(0, ceil(self._calibration.added)) + _ROUNDING

    def _part_tokens(self, part: Part) -> int:
        match part:
            case Text() | Refusal():
                return self._rough_tokens(part.text)
            case ToolCall():
                return self._rough_tokens(part.name + part.arguments)
            case ToolResult():
                return sum(map(self._part_tokens, part.parts))
            case _:
                return self._estimator.part(part).high

    def _rough_tokens(self, text: str) -> int:
        return ceil(len(text) / self._chars_per_token)
