"""A result as it is written down: pictures, documents and sounds by their hash, since each of them is sent many times.

What was sent is on record with the exchange, and what a case names is in its folder.
"""

import hashlib

import msgspec

from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.result import CaseResult
from sightline.model.message import Message
from sightline.model.parts import Audio, Document, Image, Inline, Link, Part, ToolResult

LONGEST_INLINE = 4096
"""Letters of base64 that are written down as they are."""

SCHEME = "sha256:"

_MEDIA = (Image, Document, Audio, ToolResult)


def replace_media(result: CaseResult) -> CaseResult:
    """The result, with the hash of its bytes in place of everything that is large and no text."""
    if not _has_media(result.observation) and not any(_has_media(turn) for turn in result.turns):
        return result
    return msgspec.structs.replace(
        result, observation=_observation(result.observation), turns=tuple(_observation(turn) for turn in result.turns)
    )


def _has_media(observation: CaseObservation) -> bool:
    messages = (*observation.asked, *observation.messages)
    return any(isinstance(part, _MEDIA) for each in messages for part in each.parts)


def _observation(observation: CaseObservation) -> CaseObservation:
    return msgspec.structs.replace(
        observation,
        asked=tuple(map(_message, observation.asked)),
        messages=tuple(map(_message, observation.messages)),
    )


def _message(message: Message) -> Message:
    return msgspec.structs.replace(message, parts=tuple(map(_part, message.parts)))


def _part(part: Part) -> Part:
    match part:
        case Image(source=Inline() as source) | Document(source=Inline() as source) | Audio(source=Inline() as source):
            if len(source.data) <= LONGEST_INLINE:
                return part
            # Of the coded form: it is what was sent, letter by letter.
            digest = hashlib.sha256(source.data.encode("ascii", "replace")).hexdigest()
            return msgspec.structs.replace(part, source=Link(SCHEME + digest, source.media_type))
        case ToolResult(parts=inner):
            return msgspec.structs.replace(part, parts=tuple(map(_part, inner)))
        case _:
            return part
