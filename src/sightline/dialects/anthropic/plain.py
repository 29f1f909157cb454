"""Fast readers with typed decoders for the texts of Messages requests that contain only texts, and of ordinary replies.

A body is read only if the meaning of its shape is known here; any other body is left to the full readers. Fields that
are not declared contain no text.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal

import msgspec

from sightline.dialects.dialect import PlainTexts
from sightline.dialects.streaming import read_frames


class _CacheControl(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class _Part(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str
    cache_control: _CacheControl | None = None


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    content: str | list[_Part]


class _Request(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[_Message]
    model: str | None = None
    max_tokens: int | None = None
    system: str | list[_Part] | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: None = None


class _Text(msgspec.Struct, tag_field="type", tag="text"):
    text: str
    citations: list[None] | None = None


class _Thinking(msgspec.Struct, tag_field="type", tag="thinking"):
    thinking: str
    signature: str = ""


class _ToolUse(msgspec.Struct, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any] | None = None


class _Reply(msgspec.Struct, tag_field="type", tag="message"):
    content: list[_Text | _Thinking]
    stop_reason: Literal["end_turn", "max_tokens", "stop_sequence"]
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None
    stop_sequence: str | None = None
    error: None = None
    stop_details: None = None


class _Begun(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None
    content: list[None] = []


class _MessageStart(msgspec.Struct, tag_field="type", tag="message_start"):
    message: _Begun


class _BlockStart(msgspec.Struct, tag_field="type", tag="content_block_start"):
    index: int
    content_block: _Text | _Thinking | _ToolUse


class _TextDelta(msgspec.Struct, tag_field="type", tag="text_delta", gc=False):
    text: str


class _ThinkingDelta(msgspec.Struct, tag_field="type", tag="thinking_delta", gc=False):
    thinking: str


class _SignatureDelta(msgspec.Struct, tag_field="type", tag="signature_delta", gc=False):
    signature: str


class _InputDelta(msgspec.Struct, tag_field="type", tag="input_json_delta", gc=False):
    partial_json: str


class _BlockDelta(msgspec.Struct, tag_field="type", tag="content_block_delta"):
    index: int
    delta: _TextDelta | _ThinkingDelta | _SignatureDelta | _InputDelta


class _BlockStop(msgspec.Struct, tag_field="type", tag="content_block_stop", gc=False):
    index: int


class _Stop(msgspec.Struct):
    stop_reason: Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]
    stop_sequence: str | None = None
    stop_details: None = None


class _MessageDelta(msgspec.Struct, tag_field="type", tag="message_delta"):
    delta: _Stop
    usage: _Usage | None = None


class _MessageStop(msgspec.Struct, tag_field="type", tag="message_stop", gc=False):
    pass


class _Ping(msgspec.Struct, tag_field="type", tag="ping", gc=False):
    pass


_Event = _MessageStart | _BlockStart | _BlockDelta | _BlockStop | _MessageDelta | _MessageStop | _Ping
_REQUEST, _REPLY = msgspec.json.Decoder(_Request), msgspec.json.Decoder(_Reply)
_EVENTS: msgspec.json.Decoder[list[_Event]] = msgspec.json.Decoder(list[_Event])


def _read_request(data: bytes) -> list[tuple[str, list[str]]] | None:
    try:
        request = _REQUEST.decode(data)
    except ValueError:
        return None
    said: list[tuple[str, list[str]]] = [(each.role, _texts(each.content)) for each in request.messages]
    return said if request.system is None else [("system", _texts(request.system)), *said]


def _texts(content: str | list[_Part]) -> list[str]:
    return [content] if isinstance(content, str) else [part.text for part in content]


def _read_reply(data: bytes) -> str | None:
    try:
        if data[:1] != b"{":
            return _read_stream(data)
        parts = _REPLY.decode(data).content
    except (ValueError, KeyError):
        return None
    return "\n".join(filter(None, [part.text if isinstance(part, _Text) else part.thinking for part in parts]))


def _read_stream(data: bytes) -> str | None:
    """The text of a stream whose blocks arrived one after another, and that finished and is complete."""
    frames = read_frames(data)
    if frames is None or frames[2]:
        return None
    events = _EVENTS.decode(frames[0])
    if len(events) != frames[1]:
        return None
    first, *blocks, finish, end = [event for event in events if type(event) is not _Ping]  # too few are a ValueError
    if (type(first), type(finish), type(end)) != (_MessageStart, _MessageDelta, _MessageStop):
        return None
    words: list[str] = []
    block: _Text | _Thinking | _ToolUse | None = None
    number, pieces = -1, list[str]()
    for event in blocks:
        if isinstance(event, _BlockStart) and block is None and event.index == number + 1:
            block, number, pieces = event.content_block, event.index, []
        elif isinstance(event, _BlockDelta) and block is not None and event.index == number:
            pieces.append(_GROWTH[type(block), type(event.delta)](event.delta))  # an unknown pair is a KeyError
        elif isinstance(event, _BlockStop) and block is not None and event.index == number:
            words += _words_of(block, "".join(pieces))
            block = None
        else:
            return None
    return "\n".join(filter(None, words)) if block is None else None


_GROWTH: dict[tuple[type, type], Callable[[Any], str]] = {
    (_Text, _TextDelta): attrgetter("text"),
    (_Thinking, _ThinkingDelta): attrgetter("thinking"),
    (_Thinking, _SignatureDelta): lambda _: "",
    (_ToolUse, _InputDelta): attrgetter("partial_json"),
}


def _words_of(block: _Text | _Thinking | _ToolUse, grown: str) -> list[str]:
    """The text of a block that has grown by this; raises a KeyError for a call whose arguments are in its start."""
    if not isinstance(block, _ToolUse):
        return [(block.text if isinstance(block, _Text) else block.thinking) + grown]
    if not grown:
        raise KeyError(block.name)
    return [block.name, grown]


PLAIN_TEXTS = PlainTexts(request=_read_request, reply=_read_reply)
