"""Reads and writes the parts of a content, which are the same in requests and in replies.

`thoughtSignature` holds base64, and the vendor's own SDK requires it, so the signature of another provider is wrapped
and encoded once more.

Gemini CLI sends no thought back (`parts.filter((part) => !part.thought)` in its geminiChat.ts, 2026-11), but it keeps
the signature of a call, which is where Google's models put theirs. So a call that another model made after signed
thoughts carries these in the place of its signature. A client that sends thoughts back too sends each of them twice.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import assert_never

import msgspec

from sightline.dialects import signatures as signatures
from sightline.dialects.fields import (
    as_list,
    as_object,
    as_str,
    compact,
    nest_extras,
    object_at,
    objects_in,
    opt_bool,
    opt_object,
    opt_str,
    rest,
    str_of,
)
from sightline.dialects.gemini.field_names import NAME, both, spelling_of
from sightline.dialects.losses import thinking_words
from sightline.dialects.signatures import wrap
from sightline.dialects.tool_names import INPUT, arguments_object, as_function_arguments, flat_name
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report
from sightline.model.request import Message, parts_of
from sightline.wire.jsontext import encode

Signature = tuple[str | None, str | None, str | None]
"""A signature, the dialect that made it, and the item that it is bound to."""

REDACTED = "redacted"
"""Used instead of an id: the signature is a block of reasoning whose text the provider withholds."""

_SIGNED_CALL = "functionCall"
_SIGNATURE = both("thoughtSignature")
_NOTHING: Signature = (None, None, None)


def read_signature(part: JsonObject, at: str) -> Signature:
    if part.keys().isdisjoint(_SIGNATURE):
        return _NOTHING
    text = opt_str(part, spelling_of(part, "thoughtSignature"), at)
    if text is None:
        return _NOTHING
    return signatures.unwrap(signatures.decode_signature(text), NAME)


def for_client(signature: str | None, signed_by: str | None, item: str | None = None) -> str | None:
    """The signature in the form that a reply carries: our own unchanged, another provider's wrapped; None if none."""
    if signed_by is None or signed_by == NAME:
        return signature
    if signature is None and item is None:
        return None
    return base64.b64encode(signatures.wrap(signature, signed_by, item).encode("utf-8", "surrogatepass")).decode()


def sign_calls(contents: list[Json], report: Report) -> None:
    """Put a signature on the calls that have none, for models that refuse calls without one.

    Only the first call of each step is checked, and only in the current turn. Google documents the value for
    conversations that another model began (ai.google.dev/gemini-api/docs/thought-signatures, "FAQs", 2026-11). Calls of
    earlier turns get it too: they had it when theirs was the current turn, and the cached prefix must not change.
    """
    for index, content in enumerate(map(object_at, contents)):
        for number, part in objects_in(content.get("parts")):
            if _SIGNED_CALL not in part:
                continue
            if "thoughtSignature" not in part:
                part["thoughtSignature"] = signatures.UNCHECKED
                place = f"/contents/{index}/parts/{number}/thoughtSignature"
                report.add(place, "signature of a call", "the model refuses a call without one", "identity")
            break


_TEXT = both("text", "thoughtSignature")
_THOUGHT = _TEXT | {"thought"}
_CALL = both("functionCall", "thoughtSignature")
_CALL_MEMBERS = frozenset({"id", "name", "args"})
_RESPONSE = both("functionResponse")
_RESPONSE_MEMBERS = frozenset({"id", "name", "response", "parts"})
_MEDIA = both("inlineData", "fileData")
_SIGNED_MEDIA = _MEDIA | both("thoughtSignature")
_BLOB = both("data", "mimeType")
_FILE = both("fileUri", "mimeType")
_PART_KINDS = {
    spelling: name for name in ("inlineData", "fileData", "functionCall", "functionResponse") for spelling in both(name)
}
"""The kinds of parts that are not text, by the fields that hold them."""


def read_part(value: Json, at: str) -> Part:
    """A part of any kind; an unknown part, or one with several kinds of content, stays opaque."""
    part = as_object(value, at)
    text = part.get("text")
    if len(part) == 1 and type(text) is str:
        return Text(text, at=at)
    if type(text) is str and part.keys() <= _THOUGHT:
        return _text(part, text, at)
    kinds = {_PART_KINDS[key] for key, content in part.items() if key in _PART_KINDS and content is not None}
    if len(kinds) + (text is not None) != 1:
        return Opaque(NAME, part, at=at)
    if text is not None:
        return _text(part, as_str(text, f"{at}/text"), at)
    (kind,) = kinds
    if kind == "functionCall":
        return _call(part, at)
    if kind == "functionResponse":
        return _response(part, at)
    return _media(part, kind, at)


def _text(part: JsonObject, text: str, at: str) -> Part:
    signature, signed_by, item = read_signature(part, at)
    if opt_bool(part, "thought", at):
        is_redacted = item == REDACTED
        return Thinking(
            text,
            id=None if is_redacted else item,
            signature=signature,
            signed_by=signed_by,
            redacted=is_redacted,
            at=at,
            extras=rest(part, _THOUGHT),
        )
    return Text(text, signature=signature, signed_by=signed_by, at=at, extras=rest(part, _TEXT))


def _call(part: JsonObject, at: str) -> ToolCall:
    key = spelling_of(part, "functionCall")
    place = f"{at}/{key}"
    call = as_object(part[key], place)
    args = opt_object(call, "args", place)
    nested = rest(call, _CALL_MEMBERS)
    if args is None:
        nested = {**nested, "args": None}
    signature, signed_by, _ = read_signature(part, at)
    return ToolCall(
        opt_str(call, "id", place) or "",
        str_of(call, "name", place),
        "{}" if args is None else encode(args).decode(),
        signature=signature,
        signed_by=signed_by,
        at=at,
        extras=nest_extras(rest(part, _CALL), key, nested),
    )


def _response(part: JsonObject, at: str) -> ToolResult:
    key = spelling_of(part, "functionResponse")
    place = f"{at}/{key}"
    holder = as_object(part[key], place)
    response = opt_object(holder, "response", place)
    nested = rest(holder, _RESPONSE_MEMBERS)
    parts: list[Part] = []
    is_error: bool | None = None
    if response is None:
        nested = {**nested, "response": None}
    elif len(response) == 1 and type(text := response.get("output", response.get("error"))) is str:
        word = next(iter(response))
        is_error = True if word == "error" else None
        parts.append(Text(text, at=f"{place}/response/{word}"))
        response = None
    media = holder.get("parts")
    if media is not None:
        parts.extend(
            read_part(item, f"{place}/parts/{index}") for index, item in enumerate(as_list(media, f"{place}/parts"))
        )
    return ToolResult(
        opt_str(holder, "id", place) or "",
        tuple(parts),
        name=opt_str(holder, "name", place),
        is_error=is_error,
        structured=response,
        at=at,
        extras=nest_extras(rest(part, _RESPONSE), key, nested),
    )


def _media(part: JsonObject, kind: str, at: str) -> Part:
    key = spelling_of(part, kind)
    place = f"{at}/{key}"
    holder = as_object(part[key], place)
    media_type = opt_str(holder, spelling_of(holder, "mimeType"), place) or ""
    source: Inline | Link
    if kind == "inlineData":
        source, nested = Inline(media_type, str_of(holder, "data", place)), rest(holder, _BLOB)
    else:
        uri = str_of(holder, spelling_of(holder, "fileUri"), place)
        source, nested = Link(uri, media_type), rest(holder, _FILE)
    if media_type.startswith("image/"):
        signature, signed_by, _ = read_signature(part, at)
        extras = nest_extras(rest(part, _SIGNED_MEDIA), key, nested)
        return Image(source, signature=signature, signed_by=signed_by, at=at, extras=extras)
    extras = nest_extras(rest(part, _MEDIA), key, nested)
    if media_type.startswith("audio/"):
        return Audio(source, at=at, extras=extras)
    return Document(source, at=at, extras=extras)


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
"""The media type of a link by the end of its path, if nothing else states it."""


_UNKNOWN_MEDIA_TYPE = "application/octet-stream"
"""A media type without any information."""

FETCHED = ("https://", "http://", "gs://")
"""The beginnings of URLs that the API can fetch; uploaded files have a web address too."""


def call_part(call: ToolCall, report: Report) -> JsonObject:
    """A function call; its arguments are an object here."""
    if call.item is not None:
        report.lose(call.at, "id of the output item", "gemini has no items", "identity")
    # Clients may leave ids out: opencode 1.18 sends calls and results without them.
    holder: JsonObject = {"id": call.id} if call.id else {}
    holder["name"] = flat_name(call.name, call.namespace)
    holder["args"] = _arguments(call, report)
    return {"functionCall": holder}


def _arguments(call: ToolCall, report: Report) -> JsonObject:
    """A call's arguments as an object; text that is not an object is put under one name as a whole."""
    text = as_function_arguments(call)
    value = arguments_object(text.strip())
    if value is not None:
        return value
    report.lose(call.at, "form of the arguments", f"gemini takes an object; the text stands under {INPUT!r}", "content")
    return {INPUT: text}


def media_part(part: Image | Audio | Document, place: str, report: Report, *, same: bool) -> JsonObject | None:
    """An image, audio or file; None if gemini cannot get or read its bytes. `place` is where it is written."""
    if same and isinstance(part.source, (Inline, Link)):
        return _as_it_stood(part.source)
    if isinstance(part, Image) and part.detail is not None:
        is_default = part.detail == "auto"
        report.lose(part.at, "detail", "gemini has no detail on a picture", "identity" if is_default else "option")
    elif isinstance(part, Document):
        if part.title is not None:
            report.lose(part.at, "title", "gemini has no title on a file", "identity")
        if part.context is not None:
            report.lose(part.at, "context", "gemini has no context on a file", "content")
        if part.cite is not None:
            report.lose(part.at, "citations", "gemini cannot be asked to cite a file", "option")
    elif isinstance(part, Audio):
        if part.id is not None:
            report.lose(part.at, "id of spoken sound", "only its provider has it", "identity")
        if part.transcript is not None and (part.source is None or _is_untyped(part.source)):
            report.lose(part.at, "spoken sound", "gemini cannot get or read it; its words are carried", "content")
            return {"text": part.transcript}
        if part.transcript is not None:
            report.lose(part.at, "transcript", "gemini has no transcript on sound", "content")
    return _source_part(part.source, part.at, place, report)


def _as_it_stood(source: Inline | Link) -> JsonObject:
    kind = source.media_type or None
    if isinstance(source, Inline):
        return {"inlineData": compact({"mimeType": kind, "data": source.data})}
    return {"fileData": compact({"fileUri": source.url, "mimeType": kind})}


def _is_untyped(source: Source) -> bool:
    """Whether the media type of these bytes is unknown."""
    return isinstance(source, Inline) and ("/" not in source.media_type or source.media_type == _UNKNOWN_MEDIA_TYPE)


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


_CARRIED = "carried"
"""Used instead of a maker: the signature is a list of thoughts, each with its own maker."""

_Thought = tuple[str, str | None, str | None, str]
"""Maker, id, signature and text of a thought."""


def is_carried(part: Part) -> bool:
    """Whether this is a thought that only its own provider, which is not Google, can use again."""
    is_signed = isinstance(part, Thinking) and (part.signature is not None or part.id is not None)
    return is_signed and bool(part.signed_by) and part.signed_by != NAME  # type: ignore[union-attr] # it is a thought


def pack_thoughts(thoughts: Iterable[Part]) -> str | None:
    """The thoughts packed as a call's signature; None if there is nothing to carry."""
    packed: list[Json] = [
        [each.signed_by, REDACTED if each.redacted else each.id, each.signature, thinking_words(each)]
        for each in thoughts
        if isinstance(each, Thinking)
    ]
    if not packed:
        return None
    return base64.b64encode(wrap(encode(packed).decode(), _CARRIED).encode("utf-8", "surrogatepass")).decode()


def with_carried_thoughts(messages: list[Message]) -> list[Message]:
    """The messages with the thoughts that calls carry, each once, before the text that led to the call."""
    parts = parts_of(messages)
    if not [part for part in parts if type(part) is ToolCall and part.signed_by == _CARRIED]:
        return messages
    seen = {(part.signed_by, part.signature) for part in parts if isinstance(part, Thinking) and part.signature}
    return [msgspec.structs.replace(message, parts=_unpack(message.parts, seen)) for message in messages]


def _unpack(parts: tuple[Part, ...], seen: set[tuple[str | None, str]]) -> tuple[Part, ...]:
    out: list[Part] = []
    for part in parts:
        if not isinstance(part, ToolCall) or part.signed_by != _CARRIED:
            out.append(part)
            continue
        place = len(out)
        while place and isinstance(out[place - 1], Text):
            place -= 1
        out[place:place] = [each for each in _thoughts(part) if (each.signed_by, each.signature) not in seen]
        out.append(msgspec.structs.replace(part, signature=None, signed_by=None))
    return tuple(out)


def _thoughts(call: ToolCall) -> list[Thinking]:
    """The thoughts that a call carries; none if a client has changed them."""
    try:
        packed = msgspec.json.decode(call.signature or "", type=list[_Thought])
    except (msgspec.MsgspecError, UnicodeError):
        return []
    return [
        Thinking(
            words,
            id=None if item == REDACTED else item,
            signature=signature,
            signed_by=maker,
            redacted=item == REDACTED,
            at=f"{call.at}/thoughtSignature",
        )
        for maker, item, signature, words in packed
    ]
