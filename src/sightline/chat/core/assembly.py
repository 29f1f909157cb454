"""How pairs become messages: in their order, with nothing added and nothing of their marks."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import assert_never

import msgspec

from sightline.chat.core.pair import MessagePair
from sightline.dialects.registry import dialect as find_dialect
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


def takes_rounds(dialect: str, *, has_tools: bool) -> bool:
    """Whether earlier calls of tools, and their results, can go along."""
    return has_tools or not find_dialect(dialect).rules.needs_tools_for_calls


def question(text: str, attachments: tuple[Part, ...] = ()) -> Message | None:
    """What a person says and shows; None where that is nothing."""
    said = (Text(text),) if text.strip() else ()
    parts: tuple[Part, ...] = (*attachments, *said)
    return Message("user", parts, bare=not attachments) if parts else None


def messages_of(pair: MessagePair, dialect: str, *, with_rounds: bool = True) -> tuple[Message, ...]:
    """The pair as it is sent: the question, then what was answered.

    Of a call without a result, or a result without its call, nothing is sent; nor of calls that no question led to,
    which no provider takes, nor what the model was told beside results that are not. Thinking goes along only beside
    calls, sealed by the one who will read it: elsewhere providers drop it or refuse it.
    """
    asked = question(pair.user_text, pair.attachments)
    answered = () if pair.answer is None else _join_same_role(pair.answer.messages)
    rounds = _answered_calls(answered) if with_rounds and asked is not None else frozenset()
    told: list[Message] = []
    for message in answered:
        parts = tuple(_sendable(message, dialect, rounds))
        is_beside_nothing = message.role == "user" and not rounds
        if is_beside_nothing or not any(not isinstance(part, Thinking) for part in parts):
            continue
        if told and told[-1].role == message.role == "assistant":
            told[-1] = Message("assistant", (*told[-1].parts, *parts))
        else:
            is_bare = len(parts) == 1 and isinstance(parts[0], Text)
            told.append(Message(message.role, parts, bare=is_bare))
    return tuple(told) if asked is None else (asked, *told)


def has_rounds(pair: MessagePair) -> bool:
    """Whether tools were called for the answer."""
    return pair.answer is not None and bool(_answered_calls(_join_same_role(pair.answer.messages)))


def concatenate(pairs: Iterable[tuple[Message, ...]]) -> tuple[Message, ...]:
    """The messages of several pairs one after the other. Ids of calls that an earlier pair has used are changed, with
    their results', because a provider must be able to tell them apart."""
    used: set[str] = set()
    told: list[Message] = []
    for messages in pairs:
        renamed: dict[str, str] = {}
        for message in messages:
            if any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
                parts = tuple(_with_unique_id(part, used, renamed) for part in message.parts)
                told.append(msgspec.structs.replace(message, parts=parts))
            else:
                told.append(message)
    return tuple(told)


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
    """The messages with those in one that nobody spoke between: calls made at once, and their results."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            joined[-1] = Message(message.role, (*joined[-1].parts, *message.parts))
        else:
            joined.append(message)
    return tuple(joined)


def _answered_calls(messages: tuple[Message, ...]) -> frozenset[int]:
    """The calls that are answered in the next message, and the results that answer them, by identity."""
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
            return find_dialect(dialect).rules.takes_model_media
        case CacheBreakpoint():
            return False  # where a cache is worth it is for the next request to say
        case unreachable:
            assert_never(unreachable)
