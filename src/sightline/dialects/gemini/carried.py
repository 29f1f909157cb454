"""Thoughts of another provider's model on the call that follows them.

Gemini CLI sends no thought back (`parts.filter((part) => !part.thought)` in its geminiChat.ts, 2026-11), but it keeps
the signature of a call, which is where Google's models put theirs. So a call that another model made after sealed
thoughts carries these in the place of its signature. A client that sends thoughts back too brings each of them twice.
"""

import base64
from collections.abc import Iterable

import msgspec

from sightline.dialects.gemini.field_names import NAME
from sightline.dialects.gemini.parts import REDACTED
from sightline.dialects.losses import thinking_words
from sightline.dialects.signatures import wrap
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Part, Text, Thinking, ToolCall
from sightline.wire.jsontext import encode

_MAKER = "carried"
"""In place of a maker: the seal is a list of thoughts, each with its own."""

_Thought = tuple[str, str | None, str | None, str]
"""Maker, id, seal and words of a thought."""


def is_carried(part: Part) -> bool:
    """Whether this is a thought that only its own provider, which is not Google, wants to see again."""
    is_sealed = isinstance(part, Thinking) and (part.signature is not None or part.id is not None)
    return is_sealed and bool(part.signed_by) and part.signed_by != NAME  # type: ignore[union-attr] # it is a thought


def pack_thoughts(thoughts: Iterable[Part]) -> str | None:
    """What is sent as a call's signature; None where there is nothing to carry."""
    packed: list[Json] = [
        [each.signed_by, REDACTED if each.redacted else each.id, each.signature, thinking_words(each)]
        for each in thoughts
        if isinstance(each, Thinking)
    ]
    if not packed:
        return None
    return base64.b64encode(wrap(encode(packed).decode(), _MAKER).encode("utf-8", "surrogatepass")).decode()


def with_carried_thoughts(messages: list[Message]) -> list[Message]:
    """The messages with the thoughts that calls carry, each before the words that led to the call, and each once."""
    parts = [part for message in messages for part in message.parts]
    if not any(isinstance(part, ToolCall) and part.signed_by == _MAKER for part in parts):
        return messages
    seen = {(part.signed_by, part.signature) for part in parts if isinstance(part, Thinking) and part.signature}
    return [msgspec.structs.replace(message, parts=_unpack(message.parts, seen)) for message in messages]


def _unpack(parts: tuple[Part, ...], seen: set[tuple[str | None, str]]) -> tuple[Part, ...]:
    out: list[Part] = []
    for part in parts:
        if not isinstance(part, ToolCall) or part.signed_by != _MAKER:
            out.append(part)
            continue
        place = len(out)
        while place and isinstance(out[place - 1], Text):
            place -= 1
        out[place:place] = [each for each in _thoughts(part) if (each.signed_by, each.signature) not in seen]
        out.append(msgspec.structs.replace(part, signature=None, signed_by=None))
    return tuple(out)


def _thoughts(call: ToolCall) -> list[Thinking]:
    """The thoughts that a call carries; none where a client has changed what it should not read."""
    try:
        packed = msgspec.json.decode(call.signature or "", type=list[_Thought])
    except (msgspec.MsgspecError, UnicodeError):
        return []
    return [
        Thinking(
            words,
            id=None if item == REDACTED else item,
            signature=signature,
            signed_by=maker,
            redacted=item == REDACTED,
            at=f"{call.at}/thoughtSignature",
        )
        for maker, item, signature, words in packed
    ]
