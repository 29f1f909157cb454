"""Reads and writes reasoning items and the content of messages and tool outputs: a string or a list of parts.

A reasoning item is a summary, sometimes the reasoning itself, and the signature, which is bound to the item's id.
"""

import base64
from collections.abc import Callable, Mapping, Sequence

from sightline.dialects.fields import (
    as_object,
    compact,
    from_url,
    merge,
    opt_int,
    opt_list,
    opt_str,
    rest,
    str_of,
    to_url,
    wrong,
)
from sightline.dialects.openai_chat.content import PartWriter
from sightline.dialects.openai_responses.names import NAME, REDACTED, UNSIGNED
from sightline.dialects.signatures import unwrap, wrap
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Citation,
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
)
from sightline.model.report import Report

_ITEM = frozenset({"type", "id", "summary", "content", "encrypted_content"})


def read_reasoning(item: JsonObject, at: str) -> Thinking:
    """The item as thinking. Pieces that could not be written back unchanged stay among the extras."""
    summary = pieces_of(item, "summary", at)
    content = pieces_of(item, "content", at)
    signature, signed_by, bound = read_signature(item, at)  # opencode 1.18 sends items back without their id
    text = "\n\n".join(content) or "\n\n".join(summary)
    body = _write_pieces(text, summary)
    extras = rest(item, _ITEM)
    for key in ("summary", "content"):
        if (pieces := item.get(key)) and pieces != body.get(key):
            extras = {**extras, key: pieces}
    if item.get("encrypted_content") == "":  # this is how llama.cpp reports that there is none
        extras = {**extras, "encrypted_content": ""}
    return Thinking(
        text,
        tuple(summary),
        id=None if bound == REDACTED else bound,
        signature=signature,
        signed_by=signed_by or None,
        redacted=bound == REDACTED,
        at=at,
        extras=extras,
    )


def pieces_of(item: JsonObject, key: str, at: str) -> list[str]:
    """The texts of `summary` or `content`."""
    return [
        opt_str(as_object(piece, place := f"{at}/{key}/{index}"), "text", place) or ""
        for index, piece in enumerate(opt_list(item, key, at))
    ]


def read_signature(item: JsonObject, at: str) -> tuple[str | None, str, str | None]:
    """The encrypted reasoning, the dialect that made it, and what it is bound to: for this dialect, the item itself."""
    encrypted, item_id = opt_str(item, "encrypted_content", at), opt_str(item, "id", at)
    if not encrypted:
        return None, NAME, item_id
    signature, signed_by, bound = unwrap(encrypted, NAME)
    return signature, signed_by, bound or item_id if signed_by == NAME else bound


def write_signature(signature: str | None, signed_by: str | None, bound: str | None, item_id: str) -> str | None:
    """The value of `encrypted_content`: this dialect's signature unchanged, any other wrapped so that it can be
    recognised in the next turn.

    A signature of this dialect is wrapped too if the item already had a different id than the one it is bound to.
    """
    if signed_by == NAME and bound in (None, item_id):
        return signature
    return wrap(signature, signed_by or UNSIGNED, bound)


def reasoning_pieces(thinking: Thinking, *, own: bool) -> JsonObject:
    """The `summary`, and the `content` if there is more text; foreign reasoning is shown as a summary."""
    summary = thinking.summary if own or thinking.summary else tuple(filter(None, (thinking.text,)))
    return _write_pieces(thinking.text, summary)


def _write_pieces(text: str, summary: Sequence[str]) -> JsonObject:
    pieces: list[Json] = [{"type": "summary_text", "text": piece} for piece in summary]
    document: JsonObject = {"summary": pieces}
    if text != "\n\n".join(summary):
        document["content"] = [{"type": "reasoning_text", "text": text}]
    return document


_OWN = ("url_citation", "file_citation", "container_file_citation", "file_path")


def read_annotation(value: Json, at: str) -> Citation:
    """One annotation, unchanged, with its URL, title and place as fields."""
    annotation = as_object(value, at)
    return Citation(
        url=opt_str(annotation, "url", at) or "",
        title=opt_str(annotation, "title", at) or opt_str(annotation, "filename", at) or "",
        start=opt_int(annotation, "start_index", at),
        end=opt_int(annotation, "end_index", at),
        value=annotation,
        at=at,
    )


def write_annotation(citation: Citation, report: Report) -> JsonObject | None:
    """The citation as an annotation; None, and a loss, if the API cannot express it."""
    value = citation.value
    if isinstance(value, dict) and value.get("type") in _OWN and "url_citation" not in value:
        return value  # one of ours, unchanged; in Chat Completions the members are one level deeper
    if not citation.url or citation.start is None or citation.end is None:
        report.lose(citation.at, "a citation", f"{NAME} cites URLs with their place in the text", "option")
        return None
    if citation.cited_text:
        report.lose(citation.at, "the quotation of a citation", f"{NAME} has no field for it", "option")
    return {
        "type": "url_citation",
        "url": citation.url,
        "title": citation.title,
        "start_index": citation.start,
        "end_index": citation.end,
    }


_INPUT_TEXT = frozenset({"type", "text"})
_OUTPUT_TEXT = frozenset({"type", "text", "annotations"})
_LOGPROBS = frozenset({"logprobs"})
_NO_LOGPROBS: JsonObject = {"logprobs": None}
"""How an empty list of logprobs is recorded; it is ignored everywhere else."""
_REFUSAL = frozenset({"type", "refusal"})
_AUDIO = frozenset({"type", "input_audio"})
_SOUND = frozenset({"data", "format"})

INPUT, OUTPUT = "input_text", "output_text"


def read_content(content: Json, at: str, text: str = INPUT) -> tuple[tuple[Part, ...], bool]:
    """The parts of a content field, and whether it was a single string. `text` is the usual type of its texts."""
    if type(content) is str:
        return (Text(content, at=at),), True
    if type(content) is list:
        return tuple([read_part(value, f"{at}/{index}", text) for index, value in enumerate(content)]), False
    raise wrong(content, at, "a string or a list of parts")


def read_part(value: Json, at: str, text: str = INPUT) -> Part:
    """Read one part of a content list."""
    holder = as_object(value, at)
    kind = str_of(holder, "type", at)
    if kind in (INPUT, OUTPUT):
        return _read_text(holder, at, kind, text)
    reader = _READERS.get(kind)
    part = None if reader is None else reader(holder, at)
    return Opaque(NAME, holder, at=at) if part is None else part


def _read_text(holder: JsonObject, at: str, kind: str, usual: str) -> Text:
    """A text. Its extras record any spelling that differs from what we write; null records an absent field."""
    known, text = _INPUT_TEXT if kind == INPUT else _OUTPUT_TEXT, holder.get("text")
    if (
        kind == usual
        and holder.keys() == known
        and type(text) is str
        and (kind == INPUT or holder["annotations"] == [])
    ):
        return Text(text, at=at)  # the case for nearly all of them
    extras = rest(holder, known)
    if kind != usual:
        extras = {**extras, "type": kind}
    if "logprobs" in extras and extras["logprobs"] in ([], None):
        extras = {**rest(extras, _LOGPROBS), **({} if extras["logprobs"] is None else _NO_LOGPROBS)}
    if kind == INPUT:
        return Text(str_of(holder, "text", at), at=at, extras=extras)
    if holder.get("annotations") is None:
        extras = {**extras, "annotations": None}
    annotations = opt_list(holder, "annotations", at)
    return Text(
        str_of(holder, "text", at),
        tuple(read_annotation(value, f"{at}/annotations/{index}") for index, value in enumerate(annotations)),
        at=at,
        extras=extras,
    )


def _read_refusal(holder: JsonObject, at: str) -> Refusal:
    return Refusal(str_of(holder, "refusal", at), at=at, extras=rest(holder, _REFUSAL))


def _read_image(holder: JsonObject, at: str) -> Image | None:
    url, file_id = opt_str(holder, "image_url", at), opt_str(holder, "file_id", at)
    detail = opt_str(holder, "detail", at)
    if url is not None:
        return Image(from_url(url), detail, at=at, extras=rest(holder, frozenset({"type", "image_url", "detail"})))
    if file_id is not None:
        return Image(FileId(file_id), detail, at=at, extras=rest(holder, frozenset({"type", "file_id", "detail"})))
    return None


def _read_file(holder: JsonObject, at: str) -> Document | None:
    title = opt_str(holder, "filename", at)
    for key in ("file_data", "file_url", "file_id"):
        source = opt_str(holder, key, at)
        if source is not None:
            extras = rest(holder, frozenset({"type", "filename", key}))
            return Document(_file_source(key, source), title, at=at, extras=extras)
    return None


def _file_source(key: str, content: str) -> Inline | Link | FileId:
    if key == "file_id":
        return FileId(content)
    source = from_url(content)
    if key == "file_data" and isinstance(source, Link):
        return Inline("", content)  # bytes without the prefix of a data URL
    return source if key == "file_data" else Link(content)


def _read_audio(holder: JsonObject, at: str) -> Audio | None:
    place = f"{at}/input_audio"
    inner = as_object(holder.get("input_audio"), place)
    data, form = str_of(inner, "data", place), str_of(inner, "format", place)
    spare = rest(inner, _SOUND)
    extras = rest(holder, _AUDIO)
    return Audio(Inline(f"audio/{form}", data), at=at, extras={**extras, "input_audio": spare} if spare else extras)


_READERS: Mapping[str, Callable[[JsonObject, str], Part | None]] = {
    "refusal": _read_refusal,
    "input_image": _read_image,
    "input_file": _read_file,
    "input_audio": _read_audio,
}
"""Each returns None for a part without a source; such a part is kept unchanged."""


class ContentWriter(PartWriter):
    """Writes canonical parts as content."""

    def __init__(self, report: Report, source: str) -> None:
        super().__init__(report, source, NAME)

    def parts(self, parts: tuple[Part, ...], text: str = INPUT) -> list[Json]:
        """The parts that can be written; `text` is the type of texts there."""
        written = (self._part(part, text) for part in parts)
        return [document for document in written if document is not None]

    def _part(self, part: Part, text: str) -> Json:
        if isinstance(part, Opaque):
            return self._opaque(part)
        if isinstance(part, Text):
            return self._text(part, text)
        document = self._other(part, text)
        return merge(document, part.extras) if document is not None and self._same else document

    def _text(self, part: Text, usual: str) -> JsonObject:
        self.lose_signature(part)
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
                self._lose(part, "cache mark", f"{NAME} has no cache marks that all models accept", "option")
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
        self.lose_signature(part)
        detail = self._detail(part)
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
        self._lose_settings(part)
        self._lose_media_type(part)
        name = part.title
        match part.source:
            case Inline(media_type, data):
                name = self._file_name(part, media_type)
                where: JsonObject = {"file_data": to_url(part.source) if media_type else data}
            case Link(url):
                if name is not None and not self._same:
                    self._lose(part, "name of a file", f"{NAME} takes a URL or a name, not both", "identity")
                    name = None
                where = {"file_url": url}
            case PlainText(words, media_type):
                name = self._file_name(part, media_type)
                data = base64.b64encode(words.encode("utf-8", "replace")).decode()
                where = {"file_data": to_url(Inline(media_type, data))}
            case FileId(file_id) if self._shares_files:
                where = {"file_id": file_id}
            case _:
                self._lose(part, "document", "a file id means nothing to another provider", "content")
                return None
        return compact({"type": "input_file", **where, "filename": name})

    def _lose_media_type(self, part: Image | Document) -> None:
        if isinstance(part.source, Link) and part.source.media_type:
            self._lose(part, f"media type {part.source.media_type}", "the address alone says where it is", "identity")
