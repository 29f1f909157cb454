"""Files that messages name: text in place, a picture, a document, a sound, or guidelines for the system message."""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import assert_never
from xml.sax.saxutils import escape

from sightline.dialects.fields import from_url
from sightline.errors import Code, Fault
from sightline.evals.core.glob import compile_glob
from sightline.evals.core.suite import CaseMessage, FileSegment, ImageSegment, SuitePlace
from sightline.evals.core.target import FileForm
from sightline.model.message import Message
from sightline.model.parts import Audio, Document, Image, Inline, Part
from sightline.wire.media_type import encoding_of, is_text, sniff

_PICTURE = "image/"
_POSSIBLE = "Text, images, PDFs and audio can be sent."
_QUOTES = {'"': "&quot;"}


def marker(path: str) -> str:
    """The text in place of a file whose content is elsewhere."""
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
    """Whether the words could be taken for the end of the block around them, or for the head of another."""
    return "</file>" in text if form == "xml" else any(line.startswith("=== ") for line in text.splitlines())


def file_text(data: bytes, segment: FileSegment) -> str | None:
    """The words of a file, with plain line ends; None if it is no text."""
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


HEADING = "[[ ## Guidelines ## ]]"


class Guidelines:
    """The guideline files of a case, each once, in the order in which messages name them.

    A look-up is by the segment's own path; patterns are tried once for each path.
    """

    def __init__(
        self,
        messages: Iterable[CaseMessage | Message],
        files: Mapping[str, bytes],
        patterns: Iterable[str],
        form: FileForm,
    ) -> None:
        expressions = [compile_glob(pattern) for pattern in patterns]
        self._found: dict[str, FileSegment] = {}
        self._texts: list[str] = []
        for message in messages if expressions else ():
            for segment in message.segments if isinstance(message, CaseMessage) else ():
                if isinstance(segment, FileSegment) and segment.resolved not in self._found:
                    self._take(segment, files, expressions, form)

    def _take(
        self, segment: FileSegment, files: Mapping[str, bytes], expressions: list[re.Pattern[str]], form: FileForm
    ) -> None:
        paths = (segment.path, segment.resolved)
        if segment.resolved not in files or not any(each.fullmatch(path) for each in expressions for path in paths):
            return
        text = file_text(files[segment.resolved], segment)
        if text is not None:
            self._found[segment.resolved] = segment
            self._texts.append(block(segment.path, text, form))

    def __contains__(self, segment: FileSegment) -> bool:
        return segment.resolved in self._found

    @property
    def segments(self) -> tuple[FileSegment, ...]:
        """The files, where they are named first."""
        return tuple(self._found.values())

    @property
    def text(self) -> str:
        """What the system message has of them; empty where there are none."""
        return f"{HEADING}\n\n" + "\n\n".join(self._texts) if self._texts else ""
