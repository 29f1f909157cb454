"""Converts a server's tool result into an outcome.

Images and audio are checked by their bytes: a provider refuses a whole request because of one invalid image, which
would end the run.
"""

import base64
import binascii
from typing import assert_never, cast

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from sightline.agent.core.output import ResultPart, ToolOutcome
from sightline.agent.tools.mcp.config import mask_values
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.model.parts import Audio, Document, Image, Inline, Text
from sightline.wire.jsontext import decode, encode

_PICTURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_SOUNDS = {b"ID3": "audio/mpeg", b"\xff\xfb": "audio/mpeg", b"OggS": "audio/ogg", b"fLaC": "audio/flac"}
_PDF = b"%PDF-"
_WORD = 80


def outcome(result: CallToolResult, secret: frozenset[str]) -> ToolOutcome:
    """The outcome of a call, with `secret` values masked."""
    parts = tuple(_redact_part(_part(block), secret) for block in result.content)
    structured = cast(Json, result.structured_content)
    if structured is None:
        return ToolOutcome(parts, is_error=result.is_error)
    texts = [part.text for part in parts if isinstance(part, Text)]
    if secret:
        structured = _redact_json(structured, secret)
    if not isinstance(structured, dict):
        extra = () if _repeats(texts, structured) else (Text(encode(structured).decode()),)
        return ToolOutcome((*parts, *extra), is_error=result.is_error)
    if len(texts) == 1 and set(structured) == {"result"} and _repeats(texts, structured):
        return ToolOutcome(
            parts, is_error=result.is_error
        )  # the wrapper that some servers put around a text is dropped
    if _repeats(texts, structured):
        parts = tuple(part for part in parts if not isinstance(part, Text))
    return ToolOutcome(parts, is_error=result.is_error, structured=structured)


def _repeats(texts: list[str], structured: Json) -> bool:
    """Whether the text repeats the structured result, as the protocol advises for older clients."""
    values = [_value(text) for text in texts]
    inner = structured["result"] if isinstance(structured, dict) and set(structured) == {"result"} else structured
    same = [[structured], [inner], [inner if isinstance(inner, str) else encode(inner).decode()], inner]
    return values in same or texts in same


def _value(text: str) -> Json:
    try:
        return decode(text)
    except Fault:
        return text


def _redact_part(part: ResultPart, secret: frozenset[str]) -> ResultPart:
    return Text(mask_values(part.text, secret)) if isinstance(part, Text) and secret else part


def _redact_json(value: Json, secret: frozenset[str]) -> Json:
    match value:
        case str():
            return mask_values(value, secret)
        case list():
            return [_redact_json(each, secret) for each in value]
        case dict():
            return {mask_values(key, secret): _redact_json(each, secret) for key, each in value.items()}
        case _:
            return value


def _part(block: ContentBlock) -> ResultPart:
    match block:
        case TextContent():
            return Text(block.text)
        case ImageContent():
            return _media(block.data, block.mime_type, "")
        case AudioContent():
            return _media(block.data, block.mime_type, "")
        case ResourceLink():
            facts = (block.mime_type, f"{block.size} bytes" if block.size is not None else "", block.description)
            more = "".join(f", {fact}" for fact in facts if fact)
            return Text(f"[resource {block.title or block.name}: {block.uri}{more}]")
        case EmbeddedResource(resource=resource):
            if isinstance(resource, BlobResourceContents):
                return _media(resource.blob, resource.mime_type or "", resource.uri)
            return Text(f"[{resource.uri}]\n{resource.text}")
        case unreachable:
            assert_never(unreachable)


def _media(data: str, claimed: str, uri: str) -> ResultPart:
    """An image, audio or document by its bytes; anything else becomes a note."""
    place = f" at {uri}" if uri else ""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Text(f"[{claimed[:_WORD] or 'a file'}{place} left out: it is not base64]")
    if kind := _kind(content, _PICTURES) or ("image/webp" if _is_riff(content, b"WEBP") else ""):
        return Image(Inline(kind, data))
    if kind := _kind(content, _SOUNDS) or ("audio/wav" if _is_riff(content, b"WAVE") else ""):
        return Audio(Inline(kind, data))
    if content.startswith(_PDF):
        return Document(Inline("application/pdf", data), title=uri or None)
    return Text(f"[{claimed[:_WORD] or 'a file'} of {len(content)} bytes{place} left out: no model can be shown it]")


def _kind(content: bytes, kinds: dict[bytes, str]) -> str:
    return next((kind for start, kind in kinds.items() if content.startswith(start)), "")


def _is_riff(content: bytes, kind: bytes) -> bool:
    return content[:4] == b"RIFF" and content[8:12] == kind
