"""Files that leave the chat: images can be shown in the page, everything else is a download."""

import base64
import binascii
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from sightline.chat.core.attachment import name_of, text_in
from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Document, FileId, Image, Inline, Link, Part, PlainText, Text
from sightline.web import replies
from sightline.web.asgi import WebResponse
from sightline.wire.media_type import BINARY, sniff

RASTER: Final[Mapping[str, str]] = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
"""Image types that can be shown in the page, with their file suffix. None of them can contain a script."""

_SANDBOX: Final = (b"content-security-policy", b"default-src 'none'; sandbox")


def media(part: Part) -> WebResponse:
    """The bytes of a part: shown if they are an image, whatever type they claim; otherwise a download."""
    data, name = _bytes(part), name_of(part)
    kind = sniff(data, name)
    if kind in RASTER:
        return WebResponse(200, data, [(b"content-type", kind.encode()), _SANDBOX, *replies.GUARDED])
    return download(data, name or "file")


def download(data: bytes, name: str, media_type: str = BINARY) -> WebResponse:
    """A download under this name."""
    plain = "".join(letter if (letter.isascii() and letter.isalnum()) or letter in " ._-" else "_" for letter in name)
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"
    kept = (b"content-disposition", disposition.encode())
    return WebResponse(200, data, [(b"content-type", media_type.encode()), kept, _SANDBOX, *replies.GUARDED])


def size_of(part: Part) -> tuple[str, int]:
    """The media type of a part and its size in bytes, as far as the bytes are here."""
    match part:
        case Text(text=text):
            return "text/plain", len(text_in(text).encode("utf-8", "replace"))
        case Image(source=source) | Document(source=source) | Audio(source=Inline() as source):
            match source:
                case Inline(media_type=media_type, data=coded):
                    return media_type, len(coded) * 3 // 4 - coded[-2:].count("=")
                case PlainText(text=text, media_type=media_type):
                    return media_type, len(text.encode("utf-8", "replace"))
                case Link(media_type=media_type):
                    return media_type, 0
                case FileId():
                    return "", 0
        case _:
            return "", 0


def _bytes(part: Part) -> bytes:
    match part:
        case Text(text=text):
            return text_in(text).encode("utf-8", "replace")
        case Image(source=Inline(data=coded)) | Document(source=Inline(data=coded)) | Audio(source=Inline(data=coded)):
            try:
                return base64.b64decode(coded)
            except (binascii.Error, ValueError):
                raise _not_found("the data of this file is damaged", "Attach it again.") from None
        case Document(source=PlainText(text=text)):
            return text.encode("utf-8", "replace")
        case _:
            raise _not_found("this file lies elsewhere", "Only what was attached here can be shown.")


def _not_found(message: str, hint: str) -> Fault:
    return Fault(Code.USAGE, message, hint=hint, status=404)
