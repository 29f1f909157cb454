"""The words of Chat Completions requests and replies that are nothing but texts, as most are, read by typed decoders.

A shape is taken only where all its fields are known here; whatever does not fit is left to the full readers.
"""

from typing import Annotated, Literal

import msgspec

from sightline.dialects.dialect import PlainTexts
from sightline.dialects.plain_streams import read_frames


class _Part(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]


class _StreamOptions(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    include_usage: bool | None = None


class _Request(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[_Message]
    model: str | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["assistant"]
    content: str
    refusal: None = None
    annotations: list[None] = []


class _Choice(msgspec.Struct, forbid_unknown_fields=True):
    index: Literal[0]
    message: _Answer
    finish_reason: Literal["stop", "length"]
    logprobs: None = None


class _Reply(msgspec.Struct, forbid_unknown_fields=True):
    choices: tuple[_Choice]
    id: str | None = None
    object: str | None = None
    created: float | None = None
    model: str | None = None
    usage: dict[str, int | dict[str, int | None] | None] | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    content: str | None = None
    role: Literal["assistant"] | None = None
    refusal: None = None


class _Grown(msgspec.Struct, forbid_unknown_fields=True):
    index: Literal[0]
    delta: _Delta
    finish_reason: Literal["stop", "length"] | None = None
    logprobs: None = None


class _Chunk(msgspec.Struct, forbid_unknown_fields=True):
    choices: Annotated[list[_Grown], msgspec.Meta(max_length=1)]
    id: str | None = None
    object: str | None = None
    created: float | None = None
    model: str | None = None
    usage: dict[str, int | dict[str, int | None] | None] | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    obfuscation: str | None = None


_REQUEST, _REPLY = msgspec.json.Decoder(_Request), msgspec.json.Decoder(_Reply)
_CHUNKS = msgspec.json.Decoder(list[_Chunk])


def _read_request(data: bytes) -> list[tuple[str, list[str]]] | None:
    try:
        messages = _REQUEST.decode(data).messages
    except ValueError:
        return None
    return [
        (each.role, [each.content] if type(each.content) is str else [part.text for part in each.content])  # type: ignore[union-attr]
        for each in messages
    ]


def _read_reply(data: bytes) -> str | None:
    try:
        return _REPLY.decode(data).choices[0].message.content if data[:1] == b"{" else _read_stream(data)
    except ValueError:
        return None


def _read_stream(data: bytes) -> str | None:
    """The words of a stream that finished and came to its end."""
    frames = read_frames(data)
    if frames is None or not frames[2]:
        return None
    chunks = _CHUNKS.decode(frames[0])
    grown = [chunk.choices[0] for chunk in chunks if chunk.choices]
    finishes = [each.finish_reason for each in grown]
    # What follows a finish is read by rules of its own.
    if len(chunks) != frames[1] or not finishes or finishes.pop() is None or any(finishes):
        return None
    return "".join([each.delta.content or "" for each in grown])


PLAIN_TEXTS = PlainTexts(request=_read_request, reply=_read_reply)
