"""A file that a message names, as what it is: words in place, a picture, a document or a sound."""

import base64
from typing import assert_never
from xml.sax.saxutils import escape

from sightline.dialects.media import from_url
from sightline.errors import Code, Fault
from sightline.evals.core.place import SuitePlace
from sightline.evals.core.suite import FileSegment, ImageSegment
from sightline.evals.core.target import FileForm
from sightline.model.parts import Audio, Document, Image, Inline, Part
from sightline.wire.media_type import encoding_of, is_text, sniff

_PICTURE = "image/"
_POSSIBLE = "Text, images, PDFs and audio can be sent."
_QUOTES = {'"': "&quot;"}


def marker(path: str) -> str:
    """What stands in place of a file whose content is elsewhere."""
    return f"<Attached: {path}>"


def block(path: str, text: str, form: FileForm) -> str:
    """The words of a file under its name."""
    match form:
        case "xml":
            body = text.strip("\n")
            return f'<file path="{escape(path, _QUOTES)}">\n{body}\n</file>'
        case "seed":
            return f"=== {path} ===\n{text}"
        case unreachable:
            assert_never(unreachable)


def is_ambiguous(text: str, form: FileForm) -> bool:
    """Whether the words could be taken for the end of the block that they stand in, or for the head of another."""
    return "</file>" in text if form == "xml" else any(line.startswith("=== ") for line in text.splitlines())


def file_text(data: bytes, segment: FileSegment) -> str | None:
    """The words of a file, with line ends as everybody writes them; None if it is no text."""
    if not is_text(sniff(data, segment.path)):
        return None
    return data.decode(encoding_of(data)).replace("\r\n", "\n")


def file_part(data: bytes, segment: FileSegment) -> Part:
    """A file that is no text, by what its bytes say it is."""
    kind = sniff(data, segment.path)
    inline = Inline(kind, base64.b64encode(data).decode())
    if kind == "application/pdf":
        return Document(inline, segment.path)
    match kind.partition("/")[0]:
        case "image":
            return Image(inline)
        case "audio":
            return Audio(inline)
        case _:
            raise refusal(segment.place, f"{segment.path} is {kind}, which no message can hold", _POSSIBLE)


def picture_link(segment: ImageSegment) -> Image:
    """A picture by its URL; data in a URL is the picture itself."""
    return Image(from_url(segment.path))


def picture(data: bytes, segment: ImageSegment) -> Image:
    """A picture from its bytes. Whatever the name says, bytes that are no picture are refused."""
    kind = sniff(data, segment.path)
    if not kind.startswith(_PICTURE):
        hint = "Write type: file, or name a PNG, JPEG, GIF or WebP."
        raise refusal(segment.place, f"{segment.path} is no picture: it is {kind}", hint)
    return Image(Inline(kind, base64.b64encode(data).decode()))


def refusal(place: SuitePlace, message: str, hint: str) -> Fault:
    """The fault of a case that cannot be delivered, with the place in the suite."""
    return Fault(Code.USAGE, f"{place}: {message}" if place.file else message, hint=hint)
