"""Pairs as messages: in their order, with nothing added."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import assert_never

import msgspec

from sightline.chat.core.pair import MessagePair
from sightline.model.message import Message
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

_TOOLS_MUST_BE_DECLARED = frozenset({"anthropic"})
"""Dialects that refuse calls and results unless the request offers tools."""

_MODELS_SHOW = frozenset({"gemini"})
"""Dialects in which images and sounds that a model made can be sent back to it."""


def takes_rounds(dialect: str, *, has_tools: bool) -> bool:
    """Whether earlier tool calls and their results can be sent."""
    return has_tools or dialect not in _TOOLS_MUST_BE_DECLARED


def question(text: str, attachments: tuple[Part, ...] = ()) -> Message | None:
    """The question as a message; None if it is empty."""
    said = (Text(text),) if text.strip() else ()
    parts: tuple[Part, ...] = (*attachments, *said)
    return Message("user", parts, bare=not attachments) if parts else None


def messages_of(pair: MessagePair, dialect: str, *, with_rounds: bool = True) -> tuple[Message, ...]:
    """The pair as it is sent: the question, then the answer.

    Left out are calls without a result, results without a call, and calls without a question before them: providers
    refuse these. Context given beside results is left out with them. Thinking is sent only beside calls, and only if it
    is signed by the provider that will read it; elsewhere providers drop or refuse it.
    """
    asked = question(pair.user_text, pair.attachments)
    answered = () if pair.answer is None else _join_same_role(pair.answer.messages)
    rounds = _answered_calls(answered) if with_rounds and asked is not None else frozenset()
    messages: list[Message] = []
    for message in answered:
        parts = tuple(_sendable(message, dialect, rounds))
        is_beside_nothing = message.role == "user" and not rounds
        if is_beside_nothing or not any(not isinstance(part, Thinking) for part in parts):
            continue
        if messages and messages[-1].role == message.role == "assistant":
            messages[-1] = Message("assistant", (*messages[-1].parts, *parts))
        else:
            is_bare = len(parts) == 1 and isinstance(parts[0], Text)
            messages.append(Message(message.role, parts, bare=is_bare))
    return tuple(messages) if asked is None else (asked, *messages)


def has_rounds(pair: MessagePair) -> bool:
    """Whether tools were called for the answer."""
    return pair.answer is not None and bool(_answered_calls(_join_same_role(pair.answer.messages)))


def concatenate(pairs: Iterable[tuple[Message, ...]]) -> tuple[Message, ...]:
    """The messages of several pairs. Ids of calls that an earlier pair has used are changed, together with those of
    their results, so that the provider can tell the calls apart."""
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


def _answered_calls(messages: tuple[Message, ...]) -> frozenset[int]:
    """The calls that the next message answers, and the results that answer them, by identity."""
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


def _sendable(message: Message, dialect: str, rounds: frozenset[int]) -> Iterator[Part]:
    calls = any(id(part) in rounds for part in message.parts)
    return (part for part in message.parts if _goes(part, dialect, rounds, beside_calls=calls))


def _goes(part: Part, dialect: str, rounds: frozenset[int], *, beside_calls: bool) -> bool:
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
            return dialect in _MODELS_SHOW
        case CacheBreakpoint():
            return False  # where a cache is worth it is for the next request to say
        case unreachable:
            assert_never(unreachable)
