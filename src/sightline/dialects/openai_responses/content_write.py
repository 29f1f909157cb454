"""Writing the content of a message or of a tool's output; what has no place there is reported."""

import base64

from sightline.dialects.fields import compact, merge
from sightline.dialects.losses import describe
from sightline.dialects.media import to_url
from sightline.dialects.openai_chat.names import DETAILS, OPENAI
from sightline.dialects.openai_responses.annotations import write_annotation
from sightline.dialects.openai_responses.content_read import INPUT, OUTPUT
from sightline.dialects.openai_responses.names import NAME
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


class ContentWriter:
    """Turns canonical parts into content."""

    def __init__(self, report: Report, source: str) -> None:
        self._report = report
        self._same = source == NAME
        self._shares_files = source in OPENAI

    def parts(self, parts: tuple[Part, ...], text: str = INPUT) -> list[Json]:
        """The parts that can be said; `text` is the type that a text has there."""
        written = (self._part(part, text) for part in parts)
        return [document for document in written if document is not None]

    def lose_seal(self, part: Text | Image | ToolCall | Thinking) -> None:
        """Report a signature that this provider has not made, or has no field for."""
        if part.signature is not None or (isinstance(part, Thinking) and part.id is not None):
            self._lose(part, "signature", f"it means nothing to a provider of {NAME}", "identity")

    def _part(self, part: Part, text: str) -> Json:
        if isinstance(part, Opaque):
            return self._opaque(part)
        if isinstance(part, Text):
            return self._text(part, text)
        document = self._other(part, text)
        return merge(document, part.extras) if document is not None and self._same else document

    def _opaque(self, part: Opaque) -> Json:
        if part.dialect == NAME:
            return part.value
        if not part.mirrored:
            self._lose(part, describe(part), f"{NAME} has no such part", "content")
        return None

    def _text(self, part: Text, usual: str) -> JsonObject:
        self.lose_seal(part)
        extras = part.extras if self._same else {}
        kind = extras.get("type", usual)
        document: JsonObject = {"type": kind, "text": part.text}
        if kind == OUTPUT:
            written = (write_annotation(citation, self._report) for citation in part.citations)
            annotations: list[Json] = [annotation for annotation in written if annotation is not None]
            if annotations or "annotations" not in extras:
                document["annotations"] = annotations
        elif part.citations:
            self._lose(part, "citations", f"{NAME} has none in a prompt", "option")
        kept = {key: value for key, value in extras.items() if key != "annotations"}
        if "logprobs" in kept and kept["logprobs"] is None:
            kept["logprobs"] = []
        return merge(document, kept)

    def _other(self, part: Part, text: str) -> JsonObject | None:
        match part:
            case Refusal(words):
                return {"type": "refusal", "refusal": words}
            case CacheBreakpoint():
                self._lose(part, "cache mark", f"{NAME} has no cache marks that every model takes", "option")
            case Image() | Document() | Audio() if text == OUTPUT and not self._same:
                self._lose(part, f"{part.__class__.__name__.lower()} of the assistant", "it can only speak", "content")
            case Image():
                return self._image(part)
            case Document():
                return self._document(part)
            case Audio(Inline(media_type, data)) if self._same:
                sound: JsonObject = {"data": data, "format": media_type.removeprefix("audio/")}
                return {"type": "input_audio", "input_audio": sound}
            case Audio():
                self._lose(part, "audio", f"{NAME} takes no sound", "content")
            case _:
                self._lose(part, "part", f"{NAME} has no place for it here", "content")
        return None

    def _image(self, part: Image) -> JsonObject | None:
        self.lose_seal(part)
        detail = part.detail
        if detail is not None and detail not in DETAILS and not self._same:
            self._lose(part, f"detail {detail!r} of an image", f"{NAME} has no such word", "option")
            detail = None
        self._lose_media_type(part)
        match part.source:
            case Inline() | Link():
                where: JsonObject = {"image_url": to_url(part.source)}
            case FileId(file_id) if self._shares_files:
                where = {"file_id": file_id}
            case _:
                self._lose(part, "image", f"{NAME} takes pictures by URL, inline or by its own file ids", "content")
                return None
        return compact({"type": "input_image", **where, "detail": detail})

    def _document(self, part: Document) -> JsonObject | None:
        if part.context is not None:
            self._lose(part, "context of a document", f"{NAME} has no field for it", "content")
        if part.cite is not None:
            self._lose(part, "wish for citations", f"{NAME} has no such setting", "option")
        self._lose_media_type(part)
        match part.source:
            case Inline(media_type, data):
                where: JsonObject = {"file_data": to_url(part.source) if media_type else data}
            case Link(url):
                where = {"file_url": url}
            case PlainText(words, media_type):
                data = base64.b64encode(words.encode("utf-8", "replace")).decode()
                where = {"file_data": to_url(Inline(media_type, data))}
            case FileId(file_id) if self._shares_files:
                where = {"file_id": file_id}
            case _:
                self._lose(part, "document", "a file id means nothing to another provider", "content")
                return None
        return compact({"type": "input_file", **where, "filename": part.title})

    def _lose_media_type(self, part: Image | Document) -> None:
        if isinstance(part.source, Link) and part.source.media_type:
            self._lose(part, f"media type {part.source.media_type}", "the address alone says where it is", "identity")

    def _lose(self, part: Part, what: str, why: str, severity: Severity) -> None:
        self._report.lose(part.at, what, why, severity)
