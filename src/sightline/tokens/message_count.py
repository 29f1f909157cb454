"""Tokens of the parts of a message and of the message around them."""

import json
from typing import assert_never

from sightline.catalog.facts import Facts
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Inline,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.tokens.estimate import NOTHING, Estimate, between, exactly
from sightline.tokens.image_count import count_image
from sightline.tokens.image_size import image_size
from sightline.tokens.media_count import count_media
from sightline.tokens.text_count import TextCounter

_ROLE = 1
_UNKNOWN_FRAME = (0, 4, 8)
_AROUND_A_PICTURE = (0, 2, 6)
_ANY_SHARES = (0.5, 1.0, 1.3)
_JSON_SHARES = {"gemini": (0.05, 0.75, 2.0)}
_AROUND_A_CALL = {"openai-chat": (2, 7, 14), "openai-responses": (2, 7, 16), "anthropic": (20, 38, 60)}
_AROUND_A_RESULT = {"anthropic": (8, 14, 30)}
_ANY_FRAME = (0, 6, 24)
_LETTERS_OF_A_SEALED_TOKEN = 4


class MessageCounter:
    """Counts messages for one model and one dialect."""

    def __init__(self, facts: Facts, dialect: str, texts: TextCounter) -> None:
        self._facts = facts
        self._dialect = dialect
        self._texts = texts

    def message(self, message: Message) -> Estimate:
        """A message with what frames it."""
        total = self._frame(message)
        for part in message.parts:
            total += self.part(part)
        return total

    def part(self, part: Part) -> Estimate:
        """One part."""
        match part:
            case Text():
                return self._texts.count(part.text) + self._signature(part.signature)
            case Refusal():
                return self._texts.count(part.text)
            case Image():
                size = image_size(part.source.data) if isinstance(part.source, Inline) else None
                return count_image(self._facts.image, size, part.detail) + self._around_a_picture()
            case Document():
                described = self._texts.count(part.title or "") + self._texts.count(part.context or "")
                return count_media(part.source, self._dialect, self._texts) + described
            case Audio():
                spoken = self._texts.count(part.transcript or "")
                return spoken if part.source is None else count_media(part.source, self._dialect, self._texts) + spoken
            case Thinking():
                return self._thinking(part)
            case ToolCall():
                return self._call(part)
            case ToolResult():
                return self._result(part)
            case CacheBreakpoint():
                return NOTHING
            case Opaque():
                return self.json(part.value)
            case unreachable:
                assert_never(unreachable)

    def json(self, value: Json) -> Estimate:
        """A value that its provider turns into text in its own way: more or less its JSON."""
        written = self._texts.count(json.dumps(value, ensure_ascii=False))
        least, usual, most = _JSON_SHARES.get(self._dialect, _ANY_SHARES)
        return between(written.low * least, written.tokens * usual, written.high * most + 10, written.how)

    def _frame(self, message: Message) -> Estimate:
        facts = self._facts
        if message.role == "system" and self._dialect == "anthropic":
            return between(0, 0, _UNKNOWN_FRAME[1])
        if facts.message_tokens is None:
            return between(*_UNKNOWN_FRAME)
        tokens = facts.message_tokens + _ROLE
        if message.role == "assistant":
            tokens += facts.assistant_tokens or 0
        calls = message.role == "tool" or any(isinstance(part, ToolCall | ToolResult) for part in message.parts)
        frame = exactly(tokens) if self._texts.frames_are_known and not calls else between(0, tokens, tokens + 2)
        if message.name is not None:
            frame += exactly(facts.name_tokens or 0) + self._texts.count(message.name)
        return frame

    def _around_a_picture(self) -> Estimate:
        return NOTHING if self._dialect.startswith("openai") else between(*_AROUND_A_PICTURE)

    def _thinking(self, part: Thinking) -> Estimate:
        """Earlier thoughts are sent, but which of them the provider keeps, and in which form, is its own affair."""
        read = self._texts.count(part.text or "\n\n".join(part.summary))
        sealed = self._signature(part.signature).high
        return between(0, read.tokens or sealed / 2, max(read.high, sealed) + 10, read.how)

    def _signature(self, signature: str | None) -> Estimate:
        """A seal may hold thoughts, which some endpoints count and some do not."""
        return between(0, 0, len(signature) / _LETTERS_OF_A_SEALED_TOKEN) if signature else NOTHING

    def _call(self, part: ToolCall) -> Estimate:
        said = self._texts.count(part.name) + self._texts.count(part.arguments)
        # The arguments are put into the provider's own form: JSON loses its braces and quotes in some, gains in others.
        said = between(said.low * 0.6, said.tokens, said.high * 1.25, said.how)
        return said + between(*_AROUND_A_CALL.get(self._dialect, _ANY_FRAME)) + self._signature(part.signature)

    def _result(self, part: ToolResult) -> Estimate:
        total = between(*_AROUND_A_RESULT.get(self._dialect, _ANY_FRAME))
        if part.structured is not None:
            total += self.json(part.structured)
        for inner in part.parts:
            total += self.part(inner)
        return total
