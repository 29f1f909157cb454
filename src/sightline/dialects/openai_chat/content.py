"""Writes the content of a Chat Completions message: a string, or a list of parts."""

from sightline.dialects.fields import compact, merge, object_at, to_url
from sightline.dialects.losses import lose_unknown
from sightline.dialects.openai_chat.names import DETAILS, NAME, OPENAI
from sightline.dialects.openai_chat.request_read import MEDIA_TYPES
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from sightline.model.report import Report, Severity

_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav"}
"""Audio media types whose name is not this dialect's word for the format."""


_ENDINGS = {media_type: ending for ending, media_type in MEDIA_TYPES.items()}

MEDIA: frozenset[type[Part]] = frozenset({Image, Audio, Document})
"""The types of parts that may be media. A document is none if it is text."""


def is_media(part: Part) -> bool:
    """Whether this is something other than text, which only a user message takes."""
    return isinstance(part, (Image, Audio)) or (isinstance(part, Document) and not isinstance(part.source, PlainText))


class PartWriter:
    """What the content writers of both OpenAI APIs have in common; `name` is the name of the dialect."""

    def __init__(self, report: Report, source: str, name: str) -> None:
        self._report = report
        self._name = name
        self._same = source == name
        self._shares_files = source in OPENAI

    def lose_signature(self, part: Text | Image | ToolCall | Thinking) -> None:
        """Report a signature that this provider did not make, or has no field for."""
        if part.signature is not None or (isinstance(part, Thinking) and part.id is not None):
            self._lose(part, "signature", f"it means nothing to a provider of {self._name}", "identity")

    def _opaque(self, part: Opaque) -> Json:
        if part.dialect == self._name:
            return part.value
        lose_unknown(part, self._name, self._report)
        return None

    def _detail(self, part: Image) -> str | None:
        if part.detail is None or part.detail in DETAILS or self._same:
            return part.detail
        self._lose(part, f"detail {part.detail!r} of an image", f"{self._name} has no such word", "option")
        return None

    def _lose_settings(self, part: Document) -> None:
        if part.context is not None:
            self._lose(part, "context of a document", f"{self._name} has no field for it", "content")
        if part.cite is not None:
            self._lose(part, "citations requested", f"{self._name} has no such setting", "option")

    def _file_name(self, part: Document, media_type: str) -> str | None:
        """The name of a file that is sent inline. OpenAI's server refuses a file without one as a "missing required
        parameter" (openai-agents-python#1513, laravel/ai#321), and tells its type by the ending."""
        if part.title is not None or self._same:
            return part.title
        name = ".".join(filter(None, ("document", _ENDINGS.get(media_type))))
        self._report.add(part.at, f"name of a file: {name}", f"{self._name} demands one", "identity")
        return name

    def _lose(self, part: Part, what: str, why: str, severity: Severity) -> None:
        self._report.lose(part.at, what, why, severity)


class ContentWriter(PartWriter):
    """Writes canonical parts as content; parts that have no place in a message are reported."""

    def __init__(self, report: Report, source: str) -> None:
        super().__init__(report, source, NAME)

    def write(self, parts: tuple[Part, ...], *, bare: bool, words_only: bool = False) -> Json:
        """The content of a message: a string if it was one, or if it is a single text.

        `words_only` is for roles that take only text. None if nothing of it can be written.
        """
        if words_only and not self._same and not MEDIA.isdisjoint(map(type, parts)):
            parts = tuple(part for part in parts if not self._is_lost_media(part))
        written = self.parts(parts)
        if not written:
            return [] if self._same and not bare else None
        if bare or not self._same:
            only = written[0]
            if len(written) == 1 and isinstance(only, dict) and only.keys() == {"type", "text"}:
                return only["text"]
        return list(written)

    def parts(self, parts: tuple[Part, ...]) -> list[Json]:
        """The parts that can be written."""
        written = [self._part(part) for part in parts]
        return [document for document in written if document is not None]

    def _is_lost_media(self, part: Part) -> bool:
        if not is_media(part):
            return False
        self._lose(part, part.__class__.__name__.lower(), f"{NAME} takes it in user messages only", "content")
        return True

    def _part(self, part: Part) -> Json:
        if isinstance(part, Opaque):
            return self._opaque(part)
        document = self._write_known_part(part)
        if document is not None and self._same:
            merge(document, part.extras)
        return document

    def _write_known_part(self, part: Part) -> JsonObject | None:
        match part:
            case Text(text):
                if part.citations:
                    self._lose(part, "citations", "a request cannot hold them", "option")
                self.lose_signature(part)
                return {"type": "text", "text": text}
            case Refusal(text):
                return {"type": "refusal", "refusal": text}
            case Image():
                return self._image(part)
            case Document():
                return self._document(part)
            case Audio(source=Inline(media_type, data)) if media_type.startswith("audio/"):
                word = media_type.removeprefix("audio/")
                form = word if self._same else _AUDIO_FORMATS.get(word, word)
                return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
            case Audio():
                self._lose(part, "audio", f"{NAME} takes sound inline only", "content")
            case CacheBreakpoint():
                self._lose(part, "cache mark", f"{NAME} has no cache marks", "option")
            case _:
                self._lose(part, "part", f"{NAME} has no place for it in this role", "content")
        return None

    def _image(self, part: Image) -> JsonObject | None:
        self.lose_signature(part)
        if isinstance(part.source, (Inline, Link)):
            if isinstance(part.source, Link) and part.source.media_type:
                self._lose(part, "media type of a link", f"{NAME} does not name it", "identity")
            image = compact({"url": to_url(part.source), "detail": self._detail(part)})
            return {"type": "image_url", "image_url": image}
        self._lose(part, "image", f"{NAME} takes pictures by URL or inline, not by file id", "content")
        return None

    def _document(self, part: Document) -> JsonObject | None:
        self._lose_settings(part)
        name = part.title
        match part.source:
            case Inline(media_type, data):
                name = self._file_name(part, media_type)
                was_bare = self._same and "file_data" in object_at(part.extras, "file")  # not a data URL
                file: JsonObject = {"file_data": data if was_bare else to_url(part.source)}
            case Link(url) if self._same:
                file = {"file_data": url}
            case FileId(file_id) if self._shares_files:
                file = {"file_id": file_id}
            case PlainText(text, media_type):
                if media_type != "text/plain":
                    self._lose(part, "type of a document", f"{NAME} takes a text document as plain text", "identity")
                if part.title is not None:
                    self._lose(part, "title of a document", f"{NAME} takes a text document as plain text", "identity")
                return {"type": "text", "text": text}
            case _:
                self._lose(part, "document", f"{NAME} takes documents inline or by its own file ids", "content")
                return None
        return {"type": "file", "file": file | compact({"filename": name})}
