"""A file as a part of a message: text under its name, images, PDFs and sound as what they are."""

import base64
import re
from typing import Literal, TypeAlias

from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Document, Image, Inline, Part, Text
from sightline.wire.media_type import BINARY, encoding_of, is_text, sniff

AttachmentKind: TypeAlias = Literal["text", "image", "document", "audio", "other"]

_POSSIBLE = "Text, images (PNG, JPEG, GIF, WebP), PDFs and audio (WAV, MP3) can be attached."
_FENCES = re.compile(r"`{3,}")
_FENCED = re.compile(r"File: (?P<name>.*)\n(?P<fence>`{3,})\n(?P<text>.*?)\n?(?P=fence)\n", re.DOTALL)


def attachment(data: bytes, name: str, place: str = "") -> Part:
    """The part for these bytes, whatever the name says. `place` is the file's name in error messages."""
    place, kind = place or name, sniff(data, name)
    if is_text(kind):
        return Text(_fence(data.decode(encoding_of(data)), name, place))
    inline = Inline(kind, base64.b64encode(data).decode())
    if kind == "application/pdf":
        return Document(inline, name)
    match kind.partition("/")[0]:
        case "image":
            return Image(inline)
        case "audio":
            return Audio(inline)
        case _:
            raise _refusal(data, kind, place)


def kind_of(part: Part) -> AttachmentKind:
    """What it is called on screen."""
    match part:
        case Text():
            return "text"
        case Image():
            return "image"
        case Document():
            return "document"
        case Audio():
            return "audio"
        case _:
            return "other"


def name_of(part: Part) -> str:
    """The file's name, if it is known."""
    match part:
        case Text(text=text):
            found = _FENCED.fullmatch(text)
            return "" if found is None else found["name"]
        case Document(title=title):
            return title or ""
        case _:
            return ""


def text_in(text: str) -> str:
    """The text of a text file, without the fences around it."""
    found = _FENCED.fullmatch(text)
    return text if found is None else found["text"]


def _fence(text: str, name: str, place: str) -> str:
    """The text under its name, in a fence longer than any fence inside it."""
    if not text.strip():
        raise Fault(Code.USAGE, f"{place}: the file has no text", hint="Leave it out.")
    fence = max(_FENCES.findall(text), key=len, default="``") + "`"
    end = "" if text.endswith("\n") else "\n"
    return f"File: {name}\n{fence}\n{text}{end}{fence}\n"


def _refusal(data: bytes, kind: str, place: str) -> Fault:
    encoding = encoding_of(data).removesuffix("-sig")  # so that a byte order mark counts among the bytes
    if kind == BINARY and (encoding != "utf-8" or b"\0" not in data):
        try:
            data.decode(encoding)
        except UnicodeDecodeError as error:
            message = f"{place}: this is not valid {encoding.upper()} text: byte {error.start}"
            return Fault(Code.USAGE, message, hint=f"Save it as UTF-8. {_POSSIBLE}")
    what = "an unknown kind of file" if kind == BINARY else kind
    return Fault(Code.USAGE, f"{place}: {what} cannot be attached", hint=_POSSIBLE)
