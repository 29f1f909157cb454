"""Sources of images and documents: base64, a URL, an uploaded file, or plain text."""

import base64
import binascii
from typing import assert_never

from sightline.dialects.anthropic.names import NAME
from sightline.dialects.fields import rest, str_of
from sightline.model.json import JsonObject
from sightline.model.parts import Document, FileId, Image, Inline, Link, PlainText, Source
from sightline.model.report import Report

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""The image formats that the API takes."""

PDF = "application/pdf"

_BASE64 = frozenset({"type", "media_type", "data"})
_URL = frozenset({"type", "url"})
_FILE = frozenset({"type", "file_id"})


def read_source(source: JsonObject, at: str) -> tuple[Source | None, JsonObject]:
    """The source and its unmodelled fields; None for an unknown kind."""
    match str_of(source, "type", at):
        case "base64":
            return Inline(str_of(source, "media_type", at), str_of(source, "data", at)), rest(source, _BASE64)
        case "url":
            return Link(str_of(source, "url", at)), rest(source, _URL)
        case "file":
            return FileId(str_of(source, "file_id", at)), rest(source, _FILE)
        case "text":
            return PlainText(str_of(source, "data", at), str_of(source, "media_type", at)), rest(source, _BASE64)
        case _:
            return None, {}


def own_source(source: Source) -> JsonObject:
    """The source in the API's format."""
    match source:
        case Inline(media_type, data):
            return {"type": "base64", "media_type": media_type, "data": data}
        case Link(url):
            return {"type": "url", "url": url}
        case FileId(file_id):
            return {"type": "file", "file_id": file_id}
        case PlainText(text, media_type):
            return {"type": "text", "media_type": media_type, "data": text}
        case unreachable:
            assert_never(unreachable)


def foreign_source(part: Image | Document, report: Report) -> JsonObject | None:
    """The source of a part from another dialect; None, and a loss, if the API cannot take it."""
    what = "a picture" if isinstance(part, Image) else "a document"
    match part.source:
        case FileId():
            report.lose(part.at, what, "a file id means nothing to another provider", "content")
            return None
        case Link(url) if not url.startswith(("https://", "http://")):
            report.lose(part.at, what, f"{NAME} fetches web addresses only", "content")
            return None
        case Inline() | PlainText() if isinstance(part, Document):
            return _document_source(part, part.source, report)
        case PlainText():
            report.lose(part.at, what, "a picture cannot be text", "content")
            return None
        case Inline(media_type, data):
            kind = _kind_of(media_type)
            if kind not in IMAGE_TYPES:
                report.lose(part.at, f"a picture of type {media_type!r}", f"{NAME} does not take it", "content")
                return None
            if kind != media_type:
                report.lose(part.at, f"media type {media_type!r}", f"{NAME} calls it {kind}", "identity")
            return own_source(Inline(kind, data))
        case Link() as source:
            if source.media_type:
                report.lose(part.at, "media type of a link", f"{NAME} finds it out itself", "identity")
            return own_source(source)
        case unreachable:
            assert_never(unreachable)


def _document_source(part: Document, source: Inline | PlainText, report: Report) -> JsonObject | None:
    if isinstance(source, PlainText):
        _lose_kind_of_text(part, source.media_type, report)
        return own_source(PlainText(source.text))
    if _kind_of(source.media_type) == PDF:
        return own_source(Inline(PDF, source.data))
    if source.media_type.startswith("text/"):
        text = _decode_text(source.data)
        if text is not None:
            _lose_kind_of_text(part, source.media_type, report)
            return own_source(PlainText(text))
    report.lose(part.at, f"a document of type {source.media_type!r}", f"{NAME} takes PDF and plain text", "content")
    return None


def _kind_of(media_type: str) -> str:
    """A media type without its parameters, under its registered name."""
    kind = media_type.partition(";")[0].strip().lower()
    return "image/jpeg" if kind == "image/jpg" else kind


def _decode_text(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _lose_kind_of_text(part: Document, media_type: str, report: Report) -> None:
    if media_type != "text/plain":
        report.lose(part.at, f"that the text is {media_type}", f"{NAME} knows plain text only", "identity")
