"""Calls and media as parts of a content: the same in requests and in replies."""

import base64
from collections.abc import Mapping
from typing import assert_never

from sightline.dialects.fields import compact
from sightline.dialects.tool_names import INPUT, as_function_arguments, flat_name
from sightline.errors import Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Document, FileId, Image, Inline, Link, PlainText, Source, ToolCall
from sightline.model.report import Report
from sightline.wire.jsontext import decode

MEDIA_TYPES: Mapping[str, str] = {
    "aac": "audio/aac",
    "csv": "text/csv",
    "flac": "audio/flac",
    "gif": "image/gif",
    "heic": "image/heic",
    "heif": "image/heif",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
}
"""The media type of a link by the end of its path, where nothing else says it."""


_ANYTHING = "application/octet-stream"
"""A media type that says nothing."""

FETCHED = ("https://", "http://", "gs://")
"""How the address of something begins that the API can fetch; uploaded files have a web address too."""


def call_part(call: ToolCall, report: Report) -> JsonObject:
    """A call of a function; its arguments are an object here."""
    if call.item is not None:
        report.lose(call.at, "id of the output item", "gemini has no items", "identity")
    holder: JsonObject = {"id": call.id} if call.id else {}
    holder["name"] = flat_name(call.name, call.namespace)
    holder["args"] = arguments_object(call, report)
    return {"functionCall": holder}


def arguments_object(call: ToolCall, report: Report) -> JsonObject:
    """A call's arguments as an object; text that is none goes whole under one name."""
    text = as_function_arguments(call)
    if not text.strip():
        return {}
    try:
        value: Json = decode(text)
    except Fault:
        value = None
    if isinstance(value, dict):
        return value
    report.lose(call.at, "form of the arguments", f"gemini takes an object; the text stands under {INPUT!r}", "content")
    return {INPUT: text}


def media_part(part: Image | Audio | Document, place: str, report: Report, *, same: bool) -> JsonObject | None:
    """A picture, sound or file; None if gemini cannot get or read its bytes. `place` is where it goes."""
    if same and isinstance(part.source, (Inline, Link)):
        return _as_it_stood(part.source)
    if isinstance(part, Image) and part.detail is not None:
        is_default = part.detail == "auto"
        report.lose(part.at, "detail", "gemini has no detail on a picture", "identity" if is_default else "option")
    elif isinstance(part, Document):
        _lose_about_document(part, report)
    elif isinstance(part, Audio):
        if part.id is not None:
            report.lose(part.at, "id of spoken sound", "only its provider has it", "identity")
        if part.transcript is not None and (part.source is None or _is_untyped(part.source)):
            report.lose(part.at, "spoken sound", "gemini cannot get or read it; its words are carried", "content")
            return {"text": part.transcript}
        if part.transcript is not None:
            report.lose(part.at, "transcript", "gemini has no transcript on sound", "content")
    return _source_part(part.source, part.at, place, report)


def _lose_about_document(part: Document, report: Report) -> None:
    if part.title is not None:
        report.lose(part.at, "title", "gemini has no title on a file", "identity")
    if part.context is not None:
        report.lose(part.at, "context", "gemini has no context on a file", "content")
    if part.cite is not None:
        report.lose(part.at, "citations", "gemini cannot be asked to cite a file", "option")


def _as_it_stood(source: Inline | Link) -> JsonObject:
    kind = source.media_type or None
    if isinstance(source, Inline):
        return {"inlineData": compact({"mimeType": kind, "data": source.data})}
    return {"fileData": compact({"fileUri": source.url, "mimeType": kind})}


def _is_untyped(source: Source) -> bool:
    """Whether the kind of these bytes is unknown."""
    return isinstance(source, Inline) and ("/" not in source.media_type or source.media_type == _ANYTHING)


def _source_part(source: Source | None, at: str, place: str, report: Report) -> JsonObject | None:
    match source:
        case Inline():
            if _is_untyped(source):
                report.lose(at, "bytes of an unknown kind", "gemini reads bytes only of a stated kind", "content")
                return None
            return _as_it_stood(source)
        case PlainText(text, media_type):
            data = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
            return {"inlineData": {"mimeType": media_type, "data": data}}
        case Link(url) if not url.lower().startswith(FETCHED):
            report.lose(at, "bytes behind a link", "gemini fetches web addresses and its own storage only", "content")
            return None
        case Link(url, media_type):
            return {
                "fileData": compact({"fileUri": url, "mimeType": media_type or _guess_media_type(url, place, report)})
            }
        case FileId() | None:
            report.lose(at, "uploaded bytes", "they are stored with another provider", "content")
            return None
        case unreachable:
            assert_never(unreachable)


def _guess_media_type(url: str, place: str, report: Report) -> str | None:
    ending = url.partition("?")[0].partition("#")[0].rpartition(".")[2].lower()
    media_type = MEDIA_TYPES.get(ending)
    if media_type is not None:
        report.add(f"{place}/fileData/mimeType", media_type, "gemini wants the media type of a link")
    return media_type
